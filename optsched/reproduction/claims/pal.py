"""PAL (Jain et al., SC'24): placements by slow GPUs and distance, on Sia-Philly workloads."""

from __future__ import annotations

import csv
import dataclasses
import io
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules
from optsched.bounds.verify.bounds import verify_bounds
from optsched.reproduction.claim import Claim
from optsched.reproduction.estimates import Reading, change, estimate
from optsched.reproduction.pictures import bars, curves
from optsched.reproduction.studies import Level, Study, Task
from optsched.reproduction.verdicts import Basis, Published, printed
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from optsched.traces.files import open_trace
from optsched.traces.importers.registry import import_trace
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.reproduction.estimates import Figures
    from optsched.reproduction.pictures import Drawing
    from optsched.reproduction.studies import Measured
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

BASE, GREEDY, EXACT, FIRST = "packed-sticky", "pal-greedy", "pal", "pm-first"
BOUND = "bound"
RANDOM = ("packed-non-sticky", "random-sticky", "random-non-sticky")
PENALTIES = (1.0, 1.5, 2.0, 2.5, 3.0)
ORDERS = {"las": "order=las,one_dimensional=true", "srtf": "order=srtf"}
FIGURE_12 = {(FIRST, 1.0): -30, (FIRST, 3.0): -9, (GREEDY, 1.0): -30, (GREEDY, 3.0): -20}
"""Change of mean JCT by policy and penalty, in %."""
SEEDS = {Level.QUICK: 2, Level.DEFAULT: 8, Level.FULL: 20}
ABSTRACT = "PAL, SC'24, abstract"
ARTIFACT = "hal-uw/blox-pal, branch artifact, README"
WORLD = (
    "pal-64: 16 nodes of 4 GPUs, rounds of 360 s, FIFO, penalty 1.7 across nodes, slowdowns of "
    "single runs as the released simulator draws them"
)
JOBS = "160 jobs like those of the eight Sia-Philly workloads; --data takes these"


# --- rollouts ---------------------------------------------------------------------------------


def workloads_of(path: str) -> int:
    """Return how many workloads a file in PAL's format holds."""
    return len(_names(path))


def _names(path: str) -> list[str | None]:
    text = open_trace(Path(path), None, "*.csv")[1]
    rows = csv.DictReader(io.StringIO(text))
    if "workload" not in (rows.fieldnames or ()):
        return [None]
    return list(dict.fromkeys(row["workload"] for row in rows))


def jobs(task: Task, scenario: Scenario) -> Trace:
    """Return the jobs of a seed, or those of a workload of the authors."""
    if task.data is None:
        return jobs_of(scenario, None, task.seed)
    return import_trace(task.data, "pal", _names(task.data)[task.seed])


def in_single_runs(task: Task) -> Figures:
    """Measure on slowdowns of single runs."""
    scenario = read_scenario("pal-64")
    return figures(scenario, jobs(task, scenario), task)


def in_medians(task: Task) -> Figures:
    """Measure on slowdowns that last: of each GPU the median of its runs."""
    scenario = read_scenario("pal-64-persistent")
    return figures(scenario, jobs(task, scenario), task)


def half_a_round_later(task: Task) -> Figures:
    """Measure with all submissions half a round later, on the clock of the rounds."""
    scenario = read_scenario("pal-64")
    trace = jobs(task, scenario)
    late = round(scenario.epoch_s * US / 2)
    moved = dataclasses.replace(trace, submit_us=trace.submit_us + late)
    return figures(scenario, moved, task)


def across_nodes(task: Task) -> Figures:
    """Measure a policy at another penalty across nodes, which the cell names."""
    policy, _, penalty = task.cell.partition(" at ")
    scenario = read_scenario("pal-64").changed({"locality": [1.0, float(penalty)]})
    return figures(scenario, jobs(task, scenario), task._replace(cell=policy))


def figures(scenario: Scenario, trace: Trace, task: Task) -> Figures:
    """Return the metrics of a rollout, or the bounds of all schedules."""
    if task.cell != BOUND:
        return simulate(scenario, task.cell, trace=trace, seed=task.seed).metrics
    bounds = bound_of(scenario, trace, Schedules())
    verify_bounds(scenario, trace, bounds)
    return {"jct_mean_s": bounds.jct_mean_s, "makespan_s": bounds.makespan_s}


def crossed(placement: str, order: str) -> str:
    """Return the policy of a placement and an order."""
    return f"{placement}:{ORDERS[order]}"


def _cells(level: Level) -> list[str]:
    ordered = [crossed(p, order) for order in ORDERS for p in (BASE, FIRST, GREEDY)]
    exact = [crossed(EXACT, order) for order in ORDERS if level is not Level.QUICK]
    return [EXACT, *exact, BASE, *RANDOM, FIRST, GREEDY, *ordered, BOUND]


def _few(level: Level) -> list[str]:
    return [EXACT, BASE, FIRST, GREEDY, BOUND]


def _swept(level: Level) -> list[str]:
    return [f"{p} at {x:g}" for x in PENALTIES for p in (BASE, FIRST, GREEDY)]


STUDIES = (
    Study("pal", Basis.GENERATED, WORLD, _cells, in_single_runs, SEEDS, workloads_of),
    Study(
        "pal-medians",
        Basis.GENERATED,
        "pal-64-persistent: the same, each GPU with the median of the runs of a measured GPU",
        _few,
        in_medians,
        SEEDS,
        workloads_of,
    ),
    Study(
        "pal-shifted",
        Basis.GENERATED,
        "pal-64 with all submissions 180 s later, half a round",
        _few,
        half_a_round_later,
        SEEDS,
        workloads_of,
    ),
    Study(
        "pal-penalty",
        Basis.GENERATED,
        "pal-64 with penalties across nodes from 1.0 to 3.0",
        _swept,
        across_nodes,
        SEEDS,
        workloads_of,
    ),
)


# --- claims -----------------------------------------------------------------------------------


@cache
def claims() -> tuple[Claim, ...]:
    """Return the claims of PAL."""
    return (*_headlines(), *_utilisations(), *_profiles(), *_penalties(), *_orders())


def _headlines() -> Iterator[Claim]:
    jct, span = "jct_mean_s", "makespan_s"
    yield _claim("jct", ABSTRACT, "mean JCT, PAL to Packed-Sticky", printed(-42), jct, bound=True)
    yield _claim("makespan", ABSTRACT, "makespan, PAL to Packed-Sticky", printed(-47), span,
                 bound=True)  # fmt: skip
    yield _claim("jct-simulated", ARTIFACT, "mean JCT, PAL to Packed-Sticky (figure 10)",
                 printed(-43), jct, bound=True)  # fmt: skip
    yield _claim("pm-first", ARTIFACT, "mean JCT, PM-First to Packed-Sticky (figure 10)",
                 printed(-40), jct, FIRST, bound=True)  # fmt: skip


def _utilisations() -> Iterator[Claim]:
    """Yield the claim on utilisation by each definition that comes into question."""
    for key, words in {
        "utilization": "GPUs with a job / GPUs, first submission to last end",
        "steady_utilization": "GPUs with a job / GPUs, first to last submission",
        "utilization_effective": "GPUs that compute / GPUs, first submission to last end",
    }.items():
        what = f"utilisation, PAL to Packed-Sticky: {words}"
        yield _claim(key.replace("_", "-"), ABSTRACT, what, printed(28), key,
                     note="which definition of utilisation is meant is not said")  # fmt: skip


def _profiles() -> Iterator[Claim]:
    jct, note = "jct_mean_s", "how much hangs on the draw of slowdowns and on luck with the clock"
    for study, words in {
        "pal-medians": "slowdowns that last: medians of each GPU's runs",
        "pal-shifted": "submissions half a round later",
    }.items():
        for policy, name in ((GREEDY, "PAL"), (FIRST, "PM-First")):
            yield _claim(f"{study}-{policy}", "none: the same with other data",
                         f"mean JCT, {name} to Packed-Sticky; {words}", None, jct, policy,
                         study=study, bound=True, note=note)  # fmt: skip


def _penalties() -> Iterator[Claim]:
    for penalty in PENALTIES:
        for policy, name in ((FIRST, "PM-First"), (GREEDY, "PAL")):
            known = FIGURE_12.get((policy, penalty))
            yield Claim(
                key=f"pal-penalty-{policy}-{penalty:g}", system="pal",
                where="hal-uw/blox-pal, branch artifact, README (figure 12)",
                what=f"mean JCT, {name} to Packed-Sticky; penalty {penalty:g}", unit="%",
                published=None if known is None else printed(known), setting=WORLD, assumed=JOBS,
                study="pal-penalty",
                ours=change(f"{policy} at {penalty:g}", f"{BASE} at {penalty:g}", "jct_mean_s"),
                note="the script of the artifact sweeps one workload (trace 6), here it is all",
                is_detail=known is None,
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
                note="the paper's figures by scheduler could not be read",
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
) -> Claim:
    """Return a claim on a change from Packed-Sticky, geometric mean over workloads."""
    limit: Reading | None = change(BOUND, BASE, metric) if bound else None
    return Claim(
        key=f"pal-{key}".replace("pal-pal-", "pal-"), system="pal", where=where, what=what,
        unit="%", published=published, setting=WORLD, assumed=JOBS, study=study,
        ours=change(policy, BASE, metric), exact=change(EXACT, BASE, metric), bound=limit,
        note=note,
    )  # fmt: skip


# --- pictures ---------------------------------------------------------------------------------


def drawings(found: Measured) -> Iterator[Drawing]:
    """Yield PAL's figures 10 and 12 from what was measured."""
    draws = found.of("pal")
    orders = {"FIFO": "{}", **{name.upper(): f"{{}}:{text}" for name, text in ORDERS.items()}}
    names = {FIRST: "PM-First", GREEDY: "PAL", EXACT: "exact", BOUND: "bound"}
    by_order = {
        told: {
            order: estimate(change(form.format(name) if name != BOUND else name,
                                   form.format(BASE), "jct_mean_s"), draws)
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
