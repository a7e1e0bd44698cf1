"""How far rollouts are above what no schedule of their class can be below."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from optsched.bounds.bound import bound_of
from optsched.bounds.relaxation.prices import SETTINGS
from optsched.bounds.schedules import Schedules, UnknownPhysics, moves_matter
from optsched.rollout.results.as_recorded import NAME
from optsched.rollout.results.bounds.rows import BOUNDED, BoundRow
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from optsched.bounds.certificate import Bounds
    from optsched.rollout.results.as_recorded import RecordedSchedule
    from optsched.rollout.results.record import Record
    from optsched.rollout.run import Rollout
    from optsched.traces.trace import Trace

    Known = dict[tuple[int, Schedules], Bounds]

MOST_PAIRS = 1_000_000
"""Jobs x slots up to which bounds are told without being asked for."""


def is_quick(traces: Iterable[Trace]) -> bool:
    """Tell whether bounds of traces are told without being asked for."""
    jobs = max(map(len, traces))
    return jobs * min(SETTINGS.slots, SETTINGS.per_job * jobs) < MOST_PAIRS


def quick_bounds(run: Rollout) -> dict[str, float | None]:
    """Return bounds of a rollout's metrics, and how far above it is, where quick and known."""
    if not is_quick([run.record.trace]):
        return {}
    try:
        rows = rows_above({run.record.policy: [run]})
    except UnknownPhysics:
        return {}
    return {name: value for row in rows for name, value in row.figures().items()}


def rows_above(
    rollouts: Mapping[str, Sequence[Rollout]], recorded: RecordedSchedule | None = None
) -> tuple[BoundRow, ...]:
    """Return by policy and seed how far rollouts are above bounds that the verifier has confirmed.

    Each rollout is compared with the bound of the least class of schedules that it is in: with
    trials if it made some, with jobs given up if it gave some up, without moves if it made none and
    that makes a difference. What the seed changes nothing of has one row.

    Parameters
    ----------
    recorded
        Is set beside the bound of the modelled world. Where it is below, that is slower than the
        world that was recorded.

    Raises
    ------
    UnknownPhysics
        If no bound is known for their scenario.
    """
    known: Known = {}
    rows = [_row(name, run, known) for name, runs in rollouts.items() for run in _apart(runs)]
    if recorded is not None:
        bounds = bound_of(recorded.scenario, recorded.trace, Schedules())
        jct_s, left = recorded.metrics["jct_mean_s"], recorded.metrics["unfinished"]
        above = None if left or jct_s is None or not bounds.jct_mean_s else jct_s
        ratio = None if above is None else Fraction(above) / Fraction(bounds.jct_mean_s or 1) - 1
        rows.append(_beside(NAME, 0, ratio, recorded.metrics, bounds))
    return tuple(rows)


def jct_above(record: Record, bound_s: float | None) -> Fraction | None:
    """Return by which share a rollout's mean JCT is above a bound; None if jobs did not end."""
    if not bound_s or not len(record.trace) or int((record.jobs.end_us < 0).sum()):
        return None
    total_us = int(record.jobs.end_us.sum()) - int(record.trace.submit_us.sum())
    return Fraction(total_us, US * len(record.trace)) / Fraction(bound_s) - 1


def schedules_of(run: Rollout) -> Schedules:
    """Return the least class of schedules that a rollout is in."""
    figures = run.metrics
    return Schedules(
        trials=bool(figures["pre_run_gpu_h"]),
        gives_up=bool(figures["given_up"]),
        moves=bool(figures["migrations"]) or not moves_matter(run.record.scenario),
    )


def _apart(runs: Sequence[Rollout]) -> Iterator[Rollout]:
    return (run for run in dict.fromkeys(runs) if len(run.record.trace))


def _row(name: str, run: Rollout, known: Known) -> BoundRow:
    record, schedules = run.record, schedules_of(run)
    key = (id(record.trace), schedules)
    if key not in known:
        known[key] = bound_of(record.scenario, record.trace, schedules, record.seed)
    above = jct_above(record, known[key].jct_mean_s)
    return _beside(name, record.seed, above, run.metrics, known[key])


def _beside(
    name: str,
    seed: int,
    above: Fraction | None,
    metrics: Mapping[str, float | int | None],
    bounds: Bounds,
) -> BoundRow:
    shares = {"jct_mean_s": None if above is None else float(above)}
    for metric in BOUNDED[1:]:
        value, bound = metrics[metric], getattr(bounds, metric)
        is_told = value is not None and bound and not metrics["unfinished"]
        shares[metric] = (value or 0.0) / bound - 1 if is_told else None
    return BoundRow(
        policy=name,
        seed=seed,
        schedules=bounds.class_of_schedules,
        **{f"{metric}_bound": getattr(bounds, metric) for metric in BOUNDED},
        **{f"{metric}_above": share for metric, share in shares.items()},
    )
