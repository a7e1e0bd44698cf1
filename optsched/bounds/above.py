"""How far rollouts are above what no schedule of their class can be below."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from optsched.bounds.bound import bound_of
from optsched.bounds.relaxation.prices import SETTINGS
from optsched.bounds.schedules import Schedules

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.bounds.certificate import Bounds
    from optsched.rollout.results.as_recorded import RecordedSchedule
    from optsched.rollout.results.record import Record
    from optsched.rollout.run import Rollout

MOST_PAIRS = 1_000_000
"""Jobs x slots up to which bounds are told without being asked for."""


class Above(NamedTuple):
    """A policy's mean JCT and makespan over their bounds, means over seeds.

    Attributes
    ----------
    jct, makespan
        Ratios less 1; None where a rollout left jobs unfinished.
    jct_bound_s, makespan_bound_s
        Means of the bounds.
    schedules
        In words, the class of schedules of the bounds: one that holds the rollouts.
    """

    jct: float | None
    makespan: float | None
    jct_bound_s: float
    makespan_bound_s: float
    schedules: str


def is_quick(records: Sequence[Record]) -> bool:
    """Tell whether bounds of these rollouts' traces are told without being asked for."""
    jobs = max(len(record.trace) for record in records)
    return jobs * min(SETTINGS.slots, SETTINGS.per_job * jobs) < MOST_PAIRS


def above_bounds(rollouts: Mapping[str, Sequence[Rollout]]) -> dict[str, Above]:
    """Return by policy how far its rollouts are above bounds that the verifier has confirmed.

    Each rollout is compared with the bound of the least class of schedules that it is in: with
    trials if it made some, with jobs given up if it gave some up.

    Raises
    ------
    UnknownPhysics
        If no bound is known for their scenario.
    """
    known: dict[tuple[int, Schedules], Bounds] = {}
    return {
        name: _above([(run, _bounds(run, known)) for run in runs])
        for name, runs in rollouts.items()
        if len(runs[0].record.trace)
    }


def record_above_bounds(recorded: RecordedSchedule) -> Above:
    """Return how far a recorded schedule is above bounds of the modelled world, or below them.

    Where it is below, the modelled world is slower than the one that was recorded.
    """
    bounds = bound_of(recorded.scenario, recorded.trace, Schedules())
    return _above([(recorded, bounds)])


def _bounds(run: Rollout, known: dict[tuple[int, Schedules], Bounds]) -> Bounds:
    figures, record = run.metrics, run.record
    schedules = Schedules(trials=bool(figures["pre_run_gpu_h"]), gives_up=bool(figures["given_up"]))
    key = (id(record.trace), schedules)
    if key not in known:
        known[key] = bound_of(record.scenario, record.trace, schedules, record.seed)
    return known[key]


def _above(runs: Sequence[tuple[Rollout | RecordedSchedule, Bounds]]) -> Above:
    jct = [_ratio(run, "jct_mean_s", bounds.jct_mean_s) for run, bounds in runs]
    makespan = [_ratio(run, "makespan_s", bounds.makespan_s) for run, bounds in runs]
    return Above(
        _mean(jct),
        _mean(makespan),
        sum(bounds.jct_mean_s or 0.0 for _, bounds in runs) / len(runs),
        sum(bounds.makespan_s for _, bounds in runs) / len(runs),
        "; or: ".join(dict.fromkeys(bounds.class_of_schedules for _, bounds in runs)),
    )


def _ratio(run: Rollout | RecordedSchedule, key: str, bound: float | None) -> float | None:
    value = run.metrics[key]
    if run.metrics["unfinished"] or value is None or not bound:
        return None
    return value / bound - 1


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) and known else None
