"""EaCO (Haghshenas and Hashemi, 2024): jobs that share GPUs, from its tables and in rollouts."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from optsched.reproduction.claim import Claim
from optsched.reproduction.claims import eaco_rollouts
from optsched.reproduction.claims.eaco_rollouts import (
    BASELINES,
    BOUND,
    EXACT,
    GREEDY,
    LEARNING,
    TABLES,
    TRIALS,
    WINDOW_H,
    WINDOWS,
    window_key,
)
from optsched.reproduction.estimates import Estimate, Reading, change, estimate, in_common, level
from optsched.reproduction.pictures import bars, curves
from optsched.reproduction.verdicts import Published, printed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.reproduction.estimates import Draw
    from optsched.reproduction.pictures import Drawing
    from optsched.reproduction.studies import Measured, Study

TITLE = "EaCO: jobs that share GPUs"
STUDIES = eaco_rollouts.STUDIES
_, *CLUSTERS, LEARNT = STUDIES
BOUNDED = ("energy_kwh", "jct_mean_s")
PAPER = "EaCO, arXiv 2412.08294"
ASSUMED = (
    "Poisson arrivals at 0.845 an hour, exponential run times of 35.5 h, four models alike, a "
    "slowdown of 1.1 is borne, sleeping nodes take nothing and wake at once"
)
UNPUBLISHED = "trace, arrivals, deadlines and thresholds are not published"


# --- claims -----------------------------------------------------------------------------------

OVERALL = Published(-97, -4.9, "range over baselines and clusters")
JCT = {"eaco-28": (printed(-97), OVERALL, OVERALL), "eaco-64": (OVERALL,) * 3}
ENERGY = {"eaco-28": (-39, -24.5, -8.3), "eaco-64": (-39, -39, -39)}
NODES = {"eaco-28": (-30, -29, -4), "eaco-64": (-47, -47, -47)}


@cache
def claims() -> tuple[Claim, ...]:
    """Return the claims of EaCO."""
    return (*_of_tables(), *_of_rollouts(), *_of_learning())


def _of_tables() -> Iterator[Claim]:
    best = level(EXACT, "saving_pct")
    for key, name, what, figure, exact in (
        ("set-least", "saving_least_pct", "energy saved by a set of jobs, the least", 30, None),
        ("set-most", "saving_most_pct", "energy saved by a set of jobs, the most", 44, best),
        ("utilisation", "utilisation_most_pct", "GPU utilisation of a set, the most", 97, None),
        ("slowdown", "slowdown_most_of_3_pct", "slowdown in sets of 2 or 3, the most", 7.8, None),
    ):
        yield Claim(
            key=f"eaco-{key}", system="eaco", where=f"{PAPER}, section 6 and tables 1 to 4",
            what=what, unit="%", published=printed(figure, "in the text"), study=TABLES,
            setting="the sets that the tables give", ours=level("sets", name), exact=exact,
            note="the text's figure beside the tables'; exact: all four jobs at the least energy, "
            "whatever the slowdown" if exact else "the text's figure beside the tables'",
        )  # fmt: skip


def _of_rollouts() -> Iterator[Claim]:
    for study in CLUSTERS:
        for figures, metric, what in (
            (ENERGY, "energy_kwh", "energy"), (NODES, "utilization", "mean active nodes"),
        ):  # fmt: skip
            for number, (policy, name) in enumerate(BASELINES.items()):
                yield _claim(study, policy, f"{what}, EaCO to {name}",
                             printed(figures[study.name][number]), metric)  # fmt: skip
        for published, (policy, name) in zip(JCT[study.name], BASELINES.items(), strict=True):
            yield _claim(study, policy, f"mean JCT, EaCO to {name}", published, "jct_mean_s")
        yield _run_time(study, GREEDY, "EaCO")
        for policy, words in TRIALS.items():
            yield _claim(study, "fifo-exclusive", f"energy, EaCO with trials, {words}, to FIFO",
                         printed(ENERGY[study.name][0]), "energy_kwh", policy)  # fmt: skip
            yield _run_time(study, policy, f"EaCO with trials, {words}")


def _of_learning() -> Iterator[Claim]:
    """Yield what the exact method is worth where rates are told, and where they are learnt."""
    fifo, trials = "fifo-exclusive", next(iter(TRIALS))
    for key, what, policy, base, exact in (
        ("exact-told", "exact method to FIFO, rates told", EXACT, fifo, None),
        ("exact-learnt", "exact method to FIFO, rates learnt", LEARNING, fifo, None),
        ("greedy-told", "EaCO to FIFO, rates told", GREEDY, fifo, EXACT),
        ("greedy-learnt", "EaCO with trials to FIFO, rates learnt", trials, fifo, LEARNING),
        ("learnt-to-told", "exact method, rates learnt to rates told", LEARNING, EXACT, None),
        ("exact-to-trials", "exact method to EaCO with trials, rates learnt", LEARNING, trials,
         None),
    ):  # fmt: skip
        yield Claim(
            key=f"eaco-learning-{key}", system="eaco", where="none: the same by the exact method",
            what=f"energy, {what}, 28 nodes", unit="%", published=None, setting=LEARNT.world,
            assumed=ASSUMED, study=LEARNT.name, ours=change(policy, base, "energy_kwh"),
            exact=None if exact is None else change(exact, base, "energy_kwh"),
            bound=change(BOUND, base, "energy_kwh"),
            note="the paper has no exact method; what it has of EaCO stands beside eaco-28",
        )  # fmt: skip


def _claim(
    study: Study,
    base: str,
    what: str,
    published: Published | None,
    metric: str,
    policy: str = GREEDY,
) -> Claim:
    return Claim(
        key=_key(study, policy, f"{metric}-{base}"), system="eaco",
        where=f"{PAPER}, section 6.2", what=f"{what}, {study.name[5:]} nodes", unit="%",
        published=published, setting=study.world, assumed=ASSUMED, study=study.name,
        ours=change(policy, base, metric), exact=change(EXACT, base, metric),
        bound=change(BOUND, base, metric) if metric in BOUNDED else None,
        is_setting_published=False,
        note=UNPUBLISHED,
    )  # fmt: skip


def _run_time(study: Study, policy: str, name: str) -> Claim:
    def longer(cell: str) -> Reading:
        def of_draw(draw: Draw) -> float | None:
            value = draw.get(cell, {}).get("run_over_alone")
            return None if value is None else 100 * (value - 1)

        return Reading(of_draw, (cell,))

    return Claim(
        key=_key(study, policy, "run-time"), system="eaco", where=f"{PAPER}, section 6.2",
        what=f"run time of jobs over that alone, {name}, {study.name[5:]} nodes", unit="%",
        published=printed(3.23, "at most"), setting=study.world, assumed=ASSUMED, study=study.name,
        ours=longer(policy), exact=longer(EXACT), is_setting_published=False,
        note=UNPUBLISHED,
    )  # fmt: skip


def _key(study: Study, policy: str, what: str) -> str:
    """Return the key of a row; the policy stands in it unless it is the greedy one."""
    parts = (study.name, "" if policy == GREEDY else policy.removeprefix("eaco-"), what)
    return re.sub("[_:=]", "-", "-".join(filter(None, parts)))


# --- pictures ---------------------------------------------------------------------------------


def drawings(found: Measured) -> Iterator[Drawing]:
    """Yield energy and active nodes relative to FIFO, as in the paper's figures 3 and 4."""
    names = {**BASELINES, GREEDY: "EaCO", "eaco-trials": "EaCO, learning", EXACT: "exact"}
    names[BOUND] = "bound"
    for metric, told in (("energy_kwh", "energy"), ("utilization", "mean active nodes")):
        values: dict[str, dict[str, Estimate | None]] = {}
        for policy, name in list(names.items())[1:]:
            reading = change(policy, next(iter(BASELINES)), metric)
            values[name] = {
                s.name: estimate(reading, in_common(found.of(s.name), names)) for s in CLUSTERS
            }
        values = {name: row for name, row in values.items() if any(row.values())}
        what = f"{told[0].upper()}{told[1:]} of policies relative to FIFO"
        yield from bars(values, f"{told}, change from FIFO, %", what)
    yield from _told_and_learnt(found)
    yield from _nodes_over_time(found)


def _told_and_learnt(found: Measured) -> Iterator[Drawing]:
    """Yield what the exact method saves where rates are told, and where they are learnt."""
    shown = {
        "EaCO": {"rates told": GREEDY, "rates learnt": next(iter(TRIALS))},
        "exact": {"rates told": EXACT, "rates learnt": LEARNING},
    }
    draws, fifo = found.of(LEARNT.name), next(iter(BASELINES))
    values = {
        name: {
            rates: estimate(change(policy, fifo, "energy_kwh"), draws)
            for rates, policy in policies.items()
        }
        for name, policies in shown.items()
    }
    text = "Energy relative to FIFO, with rates of groups told, and learnt as jobs share"
    yield from bars(values, "energy, change from FIFO, %", text)


def _nodes_over_time(found: Measured) -> Iterator[Drawing]:
    """Yield how many nodes are active, from the first submission on, on both clusters."""
    names = {**BASELINES, GREEDY: "EaCO", "eaco-trials": "EaCO, learning", EXACT: "exact"}
    for study in CLUSTERS:
        draws = in_common(found.of(study.name), names)
        told = [[estimate(level(policy, window_key(n)), draws) for policy in names]
                for n in range(WINDOWS)]  # fmt: skip
        used = [n for n, row in enumerate(told) if any(each and each.value for each in row)]
        lines = {
            name: [((n + 0.5) * WINDOW_H, told[n][k]) for n in range(max(used, default=-1) + 1)]
            for k, name in enumerate(names.values())
        }
        yield from curves(
            lines, ("hours since the first submission", "active nodes"),
            f"Active nodes over time on {study.name[5:]} nodes, means of windows of {WINDOW_H} "
            "hours",
        )  # fmt: skip
