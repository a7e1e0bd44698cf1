"""PAL (Jain et al., SC'24): placements by slow GPUs and distance, on Sia-Philly workloads."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from optsched.reproduction.claim import Claim
from optsched.reproduction.claims import pal_clusters, pal_overhead, pal_rollouts
from optsched.reproduction.claims.pal_clusters import LOADS, ORDERED_LOAD
from optsched.reproduction.claims.pal_rollouts import (
    BASE,
    BOUND,
    EXACT,
    FIRST,
    GREEDY,
    ORDERS,
    PENALTIES,
    RANDOM,
    WORLD,
    crossed,
)
from optsched.reproduction.estimates import Estimate, Reading, change, estimate, in_common
from optsched.reproduction.pictures import bars, curves
from optsched.reproduction.studies import Level
from optsched.reproduction.verdicts import Published, printed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.reproduction.pictures import Drawing
    from optsched.reproduction.studies import Measured

TITLE = "PAL: slow GPUs and distance"
STUDIES = (*pal_rollouts.STUDIES, *pal_clusters.STUDIES, pal_overhead.STUDY)
SYNERGY, FRONTERA = pal_clusters.STUDIES
OVERHEAD = pal_overhead.STUDY
ABSTRACT = "PAL, SC'24, abstract"
ARTIFACT = "hal-uw/blox-pal, branch artifact, README"
JOBS = "160 jobs like those of the eight Sia-Philly workloads; --data takes these"
UNREAD = "are neither in the abstract nor in the artifact, and the text could not be read"
FIGURE_12 = {(FIRST, 1.0): -30, (FIRST, 3.0): -9, (GREEDY, 1.0): -30, (GREEDY, 3.0): -20}
"""Change of mean JCT by policy and penalty, in %."""


@cache
def claims() -> tuple[Claim, ...]:
    """Return the claims of PAL."""
    return (
        *_headlines(),
        *_others(),
        *_utilisations(),
        *_profiles(),
        *_penalties(),
        *_orders(),
        *_synergy(),
        *_testbed(),
    )


def _headlines() -> Iterator[Claim]:
    jct, span = "jct_mean_s", "makespan_s"
    yield _claim("jct", ABSTRACT, "mean JCT, PAL to Packed-Sticky", printed(-42), jct, bound=True)
    yield _claim("makespan", ABSTRACT, "makespan, PAL to Packed-Sticky", printed(-47), span,
                 bound=True)  # fmt: skip
    yield _claim("jct-simulated", ARTIFACT, "mean JCT, PAL to Packed-Sticky (figure 10)",
                 printed(-43), jct, bound=True)  # fmt: skip
    yield _claim("pm-first", ARTIFACT, "mean JCT, PM-First to Packed-Sticky (figure 10)",
                 printed(-40), jct, FIRST, bound=True)  # fmt: skip


def _others() -> Iterator[Claim]:
    for policy in RANDOM:
        what = f"mean JCT, {policy} to Packed-Sticky (figure 10)"
        note = "the README gives figure 10's means of PM-First and PAL alone"
        yield _claim(policy, ARTIFACT, what, None, "jct_mean_s", policy, note=note, is_detail=True)


def _utilisations() -> Iterator[Claim]:
    """Yield the claim on utilisation by each definition that comes into question."""
    for key, words in {
        "utilization": "GPUs with a job / GPUs, first submission to last end",
        "steady_utilization": "GPUs with a job / GPUs, first to last submission",
        "utilization_effective": "GPUs that compute / GPUs, first submission to last end",
        "work_per_held_gpu_h": "work done / GPU-hours held",
        "work_per_gpu_h": "work done / GPU-hours, first submission to last end",
    }.items():
        what = f"utilisation, PAL to Packed-Sticky: {words}"
        yield _claim(key.replace("_", "-"), ABSTRACT, what, printed(28), key,
                     note="which definition of utilisation is meant is not said")  # fmt: skip


def _profiles() -> Iterator[Claim]:
    jct = "jct_mean_s"
    for study, words, note in (
        ("pal-medians", "slowdowns that last: medians of each GPU's runs",
         "an experiment of ours: how much hangs on the draw of slowdowns"),
        ("pal-shifted", "submissions half a round later",
         "an experiment of ours: how much hangs on luck with the clock"),
    ):  # fmt: skip
        for policy, name in ((GREEDY, "PAL"), (FIRST, "PM-First")):
            yield _claim(f"{study}-{policy}", "none: the same with other data",
                         f"mean JCT, {name} to Packed-Sticky; {words}", None, jct, policy,
                         study=study, bound=True, note=note)  # fmt: skip


def _penalties() -> Iterator[Claim]:
    for penalty in PENALTIES:
        for policy, name in ((FIRST, "PM-First"), (GREEDY, "PAL")):
            known = FIGURE_12.get((policy, penalty))
            note = "the script of the artifact sweeps one workload (trace 6), here it is all"
            if known is None:
                note = f"the README gives the two ends of the sweep alone; {note}"
            yield Claim(
                key=f"pal-penalty-{policy}-{penalty:g}", system="pal",
                where="hal-uw/blox-pal, branch artifact, README (figure 12)",
                what=f"mean JCT, {name} to Packed-Sticky; penalty {penalty:g}", unit="%",
                published=None if known is None else printed(known), setting=WORLD, assumed=JOBS,
                study="pal-penalty",
                ours=change(f"{policy} at {penalty:g}", f"{BASE} at {penalty:g}", "jct_mean_s"),
                note=note, is_detail=known is None,
            )  # fmt: skip


def _orders() -> Iterator[Claim]:
    for order in ORDERS:
        for policy, name in ((GREEDY, "PAL"), (FIRST, "PM-First")):
            yield Claim(
                key=f"pal-{order}-{policy}", system="pal", where="PAL, SC'24, section V.C",
                what=f"mean JCT, {name} to Packed-Sticky; order {order.upper()}", unit="%",
                published=None, setting=WORLD, assumed=JOBS, study="pal",
                ours=change(crossed(policy, order), crossed(BASE, order), "jct_mean_s"),
                exact=change(crossed(EXACT, order), crossed(BASE, order), "jct_mean_s"),
                bound=change(BOUND, crossed(BASE, order), "jct_mean_s"),
                note=f"figures by scheduler {UNREAD}",
            )  # fmt: skip


def _synergy() -> Iterator[Claim]:
    """Yield what figures 13, 15 and 16 are of: loads under FIFO, and the other orders at one."""
    told = [(load, "", "FIFO") for load in LOADS]
    told += [(ORDERED_LOAD, f":{text}", order.upper()) for order, text in ORDERS.items()]
    for load, options, order in told:
        for policy, name in ((GREEDY, "PAL"), (FIRST, "PM-First")):
            base = f"{BASE}{options} at {load}"
            exact = None if options else change(f"{EXACT} at {load}", base, "jct_mean_s")
            yield Claim(
                key=f"pal-synergy-{policy}-{order.lower()}-{load}", system="pal",
                where="PAL, SC'24, section V.C (figures 13, 15, 16)", unit="%", published=None,
                what=f"mean JCT, {name} to Packed-Sticky; Synergy, {load} jobs an hour, {order}",
                setting=SYNERGY.world, study=SYNERGY.name, exact=exact,
                ours=change(f"{policy}{options} at {load}", base, "jct_mean_s"),
                assumed="gangs as in Philly up to 16; jobs are 600, not the 2,000th to 3,000th",
                note=f"figures by load and scheduler {UNREAD}",
                is_detail=policy == FIRST or load != 10,
            )  # fmt: skip


def _testbed() -> Iterator[Claim]:
    for policy, name in ((GREEDY, "PAL"), (FIRST, "PM-First")):
        yield Claim(
            key=f"pal-testbed-{policy}", system="pal", where="PAL, SC'24, testbed on Frontera",
            what=f"mean JCT, {name} to Packed-Sticky; 32 GPUs of Frontera", unit="%",
            published=None, setting=FRONTERA.world, study=FRONTERA.name,
            ours=change(policy, BASE, "jct_mean_s"), exact=change(EXACT, BASE, "jct_mean_s"),
            assumed="50 jobs, since the reduced trace of the scripts is not at hand",
            note=f"the testbed's figures {UNREAD}",
        )  # fmt: skip
    yield Claim(
        key="pal-overhead", system="pal", where="PAL, SC'24", unit="ms", published=None,
        what="time of a placement decision against the size of the cluster",
        setting=OVERHEAD.world, study=OVERHEAD.name,
        timed=tuple(OVERHEAD.cells(Level.DEFAULT)),
        note=f"the paper's figures {UNREAD}",
    )  # fmt: skip


def _claim(
    key: str,
    where: str,
    what: str,
    published: Published | None,
    metric: str,
    policy: str = GREEDY,
    *,
    study: str = "pal",
    bound: bool = False,
    note: str = "",
    is_detail: bool = False,
) -> Claim:
    """Return a claim on a change from Packed-Sticky, geometric mean over workloads."""
    limit: Reading | None = change(BOUND, BASE, metric) if bound else None
    return Claim(
        key=f"pal-{key}".replace("pal-pal-", "pal-"), system="pal", where=where, what=what,
        unit="%", published=published, setting=WORLD, assumed=JOBS, study=study,
        ours=change(policy, BASE, metric), exact=change(EXACT, BASE, metric), bound=limit,
        note=note, is_detail=is_detail,
    )  # fmt: skip


# --- pictures ---------------------------------------------------------------------------------


def drawings(found: Measured) -> Iterator[Drawing]:
    """Yield PAL's figures 10 and 12 from what was measured."""
    draws = found.of("pal")
    orders = {"FIFO": "{}", **{name.upper(): f"{{}}:{text}" for name, text in ORDERS.items()}}
    names = {FIRST: "PM-First", GREEDY: "PAL", EXACT: "exact", BOUND: "bound"}
    measured = {
        order: in_common(draws, [form.format(name) for name in (BASE, FIRST, GREEDY, EXACT)])
        for order, form in orders.items()
    }
    by_order = {
        told: {
            order: estimate(change(form.format(name) if name != BOUND else name,
                                   form.format(BASE), "jct_mean_s"), measured[order])
            for order, form in orders.items()
        }
        for name, told in names.items()
    }  # fmt: skip
    yield from bars(by_order, "mean JCT, change from Packed-Sticky, %",
                    "Mean JCT of placements by order, relative to Packed-Sticky")  # fmt: skip
    swept, shown = found.of("pal-penalty"), {FIRST: "PM-First", GREEDY: "PAL"}
    lines = {
        told: [
            (x, estimate(change(f"{name} at {x:g}", f"{BASE} at {x:g}", "jct_mean_s"), swept))
            for x in PENALTIES
        ]
        for name, told in shown.items()
    }
    marks = {
        told: [(x, y) for (name, x), y in FIGURE_12.items() if name == key]
        for key, told in shown.items()
    }
    yield from curves(
        lines, ("penalty across nodes", "mean JCT, change from Packed-Sticky, %"),
        "Mean JCT against the penalty; diamonds: published", marks,
    )  # fmt: skip
    yield from _overhead(found)


def _overhead(found: Measured) -> Iterator[Drawing]:
    """Yield what decisions take, the first of a rollout and the mean of those after it."""
    timings = found.timings.get(OVERHEAD.name, {})
    lines: dict[str, list[tuple[float, Estimate | None]]] = {}
    for policy, name in pal_overhead.POLICIES.items():
        for key, words in (("first_ms", "first round"), ("next_ms", "next rounds")):
            times = [
                (size, timings.get(pal_overhead.cell_of(policy, size), {}).get(key))
                for size in pal_overhead.SIZES
            ]
            lines[f"{name}, {words}"] = [
                (size, None if ms is None else Estimate(ms, ms, ms, 1)) for size, ms in times
            ]
    yield from curves(
        lines, ("GPUs of the cluster", "CPU time of a decision, ms"),
        "CPU time of a decision against the size of the cluster; it differs from run to run",
        is_log=True, is_log_x=True,
    )  # fmt: skip
