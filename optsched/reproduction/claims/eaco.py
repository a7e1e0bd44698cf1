"""EaCO (Haghshenas and Hashemi, 2024): jobs that share GPUs, from its tables and in rollouts."""

from __future__ import annotations

import re
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.bounds.bound import bound_of
from optsched.bounds.schedules import Schedules
from optsched.bounds.verify.bounds import verify_bounds
from optsched.instance import read
from optsched.reproduction.claim import Claim
from optsched.reproduction.estimates import Estimate, Reading, change, estimate, level
from optsched.reproduction.pictures import bars
from optsched.reproduction.studies import Level, Study, Task
from optsched.reproduction.verdicts import Basis, Published, printed
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of
from optsched.solving import solve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.eaco import EacoInstance
    from optsched.reproduction.estimates import Draw, Figures
    from optsched.reproduction.pictures import Drawing
    from optsched.reproduction.studies import Measured
    from optsched.rollout.results.record import Record

TITLE = "EaCO: jobs that share GPUs"
TABLES = "eaco-tables"
FOUR = "eaco/paper-four"
BOUND, BOUNDED = "bound", ("energy_kwh", "jct_mean_s")
GREEDY, EXACT = "eaco-greedy", "eaco"
TRIALS = {
    "eaco-trials": "learning all rates",
    "eaco-trials:begins_with=told": "told measured rates",
}
"""EaCO's algorithm to its end: watched for an epoch, and undone where a rule is broken."""
BASELINES = {"fifo-exclusive": "FIFO", "fifo-packed": "FIFO_packed", "random-pairs": "Gandiva"}
PAPER = "EaCO, arXiv 2412.08294"
ASSUMED = (
    "Poisson arrivals at 0.845 an hour, exponential run times of 35.5 h, four models alike, a "
    "slowdown of 1.1 is borne, sleeping nodes take nothing and wake at once"
)


# --- the tables -------------------------------------------------------------------------------


def in_tables(task: Task) -> Figures:
    """Return what sharing saves by the tables: of each measured set, and of the best plan."""
    instance: Any = read(FOUR)
    if task.cell == EXACT:
        alone = sum(_kwh(instance, (name,)) for name in _models(instance))
        best = solve(instance).objective
        return {"saving_pct": None if best is None else 100 * (1 - best / alone)}
    sets = [group for group in instance.interference.groups if len(group.types) > 1]
    saved = [_saving(instance, tuple(group.types)) for group in sets]
    used = [group.utilisation for group in instance.interference.groups]
    return {
        "saving_least_pct": min(saved),
        "saving_most_pct": max(saved),
        "utilisation_most_pct": 100 * max(share for share in used if share is not None),
        "slowdown_most_of_3_pct": max(
            100 * (1 / min(group.rates) - 1) for group in sets if len(group.types) <= 3
        ),
    }


def _models(instance: EacoInstance) -> list[str]:
    return [kind.id for kind in instance.types]


def _saving(instance: EacoInstance, models: tuple[str, ...]) -> float:
    """Return how much less energy a set takes than its jobs alone, in %."""
    alone = sum(_kwh(instance, (name,)) for name in models)
    return 100 * (1 - _kwh(instance, models) / alone)


def _kwh(instance: EacoInstance, models: tuple[str, ...]) -> float:
    """Return the energy of a measured set, whose jobs all have the same work."""
    groups = {tuple(group.types): group for group in instance.interference.groups}
    group, job = groups[models], instance.jobs[0]
    assert group.gpu_power_w is not None, "the tables have the watts of all sets"
    hours = job.work_s / 3600 / min(group.rates)
    return group.gpu_power_w * job.gpus * hours / 1000


# --- rollouts ---------------------------------------------------------------------------------


def on_nodes(name: str, task: Task) -> Figures:
    """Measure a policy on one of the two clusters, or what no schedule can save."""
    scenario = read_scenario(name)
    if task.level is Level.QUICK:
        scenario = scenario.changed({"trace.jobs": 80})
    trace = jobs_of(scenario, None, task.seed)
    if task.cell == BOUND:
        bounds = bound_of(scenario, trace, Schedules())
        verify_bounds(scenario, trace, bounds)
        return {"energy_kwh": bounds.energy_kwh, "jct_mean_s": bounds.jct_mean_s}
    run = simulate(scenario, task.cell, trace=trace, seed=task.seed)
    return dict(run.metrics) | {"run_over_alone": run_over_alone(run.record)}


def run_over_alone(record: Record) -> float:
    """Return the time for which jobs ran over their run times alone, mean over jobs."""
    return float(np.mean(record.jobs.running_us / record.trace.run_us))


def _policies(level: Level) -> list[str]:
    exact = [] if level is Level.QUICK else [EXACT]
    return [*exact, *BASELINES, GREEDY, *TRIALS, BOUND]


def _once(level: Level) -> list[str]:
    return ["sets", EXACT]


ONE = dict.fromkeys(Level, 1)
SEEDS = {Level.QUICK: 2, Level.DEFAULT: 5, Level.FULL: 20}
STUDIES = (
    Study(
        TABLES, Basis.TABLES, "the ten measured sets of tables 1 to 4", _once, in_tables, ONE,
    ),
    *(
        Study(
            name,
            Basis.GENERATED,
            f"{name}: {nodes} nodes of 8 V100s, 240 jobs of 8 GPUs (--quick: 80)",
            _policies,
            partial(on_nodes, name),
            SEEDS,
            frozenset({EXACT}),
        )
        for name, nodes in (("eaco-28", 28), ("eaco-64", 64))
    ),
)  # fmt: skip


# --- claims -----------------------------------------------------------------------------------

ENERGY = {"eaco-28": (-39, -24.5, -8.3), "eaco-64": (-39, -39, -39)}
NODES = {"eaco-28": (-30, -29, -4), "eaco-64": (-47, -47, -47)}


@cache
def claims() -> tuple[Claim, ...]:
    """Return the claims of EaCO."""
    return (*_of_tables(), *_of_rollouts())


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
    for study in STUDIES[1:]:
        for figures, metric, what in (
            (ENERGY, "energy_kwh", "energy"), (NODES, "utilization", "mean active nodes"),
        ):  # fmt: skip
            for number, (policy, name) in enumerate(BASELINES.items()):
                yield _claim(study, policy, f"{what}, EaCO to {name}",
                             printed(figures[study.name][number]), metric)  # fmt: skip
        yield _claim(study, "fifo-exclusive", "mean JCT, EaCO to FIFO",
                     printed(-97) if study.name == "eaco-28" else None, "jct_mean_s")  # fmt: skip
        yield _run_time(study, GREEDY, "EaCO")
        for policy, words in TRIALS.items():
            yield _claim(study, "fifo-exclusive", f"energy, EaCO with trials, {words}, to FIFO",
                         printed(ENERGY[study.name][0]), "energy_kwh", policy)  # fmt: skip
            yield _run_time(study, policy, f"EaCO with trials, {words}")


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
        note="trace, arrivals, deadlines and thresholds are not published",
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
        note="trace, arrivals, deadlines and thresholds are not published",
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
            values[name] = {s.name: estimate(reading, found.of(s.name)) for s in STUDIES[1:]}
        values = {name: row for name, row in values.items() if any(row.values())}
        what = f"{told[0].upper()}{told[1:]} of policies relative to FIFO"
        yield from bars(values, f"{told}, change from FIFO, %", what)
