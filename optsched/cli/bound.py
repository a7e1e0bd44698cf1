"""The command `optsched bound`, and how `verify` and `compare` tell of bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from optsched.cli import console, options
from optsched.cli.instances import scenario_and_trace
from optsched.cli.printing import output
from optsched.cli.printing.sheets import Column, Sheet, facts, sheet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.bounds.certificate import Bounds
    from optsched.bounds.worth import Worth
    from optsched.rollout.results.bounds.rows import BoundRow
    from optsched.rollout.results.policy_comparison import Comparison
    from optsched.rollout.run import Rollout

WithinSlowdowns = Annotated[
    bool,
    options.limit(
        "--within-slowdowns",
        help="Of schedules in which no job is slower beside others than its users bear.",
    ),
]

Moves = Annotated[
    bool,
    options.limit(
        "--moves/--no-moves",
        help="Of schedules in which running jobs may move to as many other GPUs.",
    ),
]

Bills = Annotated[
    list[float] | None,
    options.limit(
        "--bill",
        metavar="HOURS",
        help="GPU-hours billed for rented nodes at which mean JCT is bounded with their starts, "
        "too; some 20 s for each. May be given more than once.",
    ),
]


def bound(
    scenario: options.ScenarioName,
    trace: options.TraceFile = None,
    input_format: options.InputFormat = None,
    workload: options.Workload = None,
    seed: options.Seed = 0,
    changes: options.Changes = None,
    within_slowdowns: WithinSlowdowns = False,
    moves: Moves = True,
    bills: Bills = None,
    result_file: options.Output = None,
) -> None:
    """Bound what any schedule of a trace could do, with a certificate.

    No schedule of the class that it names has a smaller mean JCT or makespan, or takes less energy,
    GPU time or money. Where jobs are elastic it says what mean JCT GPU-hours can buy; with --bill,
    what a bill of rented nodes can, paid for while they start. Of trials on one GPU, and of jobs
    that are given up, it has none. `optsched verify SCENARIO FILE` proves what -o wrote.

    JSON: bounds with their certificate, and worth: of a GPU, of a node, hours and jobs.

    Example: optsched bound philly-small -o bound.json
    """
    from optsched.bounds.bound import bound as run
    from optsched.bounds.schedules import Schedules
    from optsched.bounds.worth import worth
    from optsched.documents.json_files import write_text
    from optsched.rollout.trace_source import jobs_of, with_trace

    console.check_output(result_file, (".json",))
    where, source = scenario_and_trace(scenario, changes, trace, input_format, workload)
    where = with_trace(where, source)
    jobs = jobs_of(where, None, seed)
    with console.spinner(f"bounding {where.name}"):
        schedules = Schedules(within_slowdowns=within_slowdowns, moves=moves)
        found = run(where, trace=jobs, seed=seed, schedules=schedules, bills=bills or ())
        said = worth(where, jobs, found)
    if result_file is not None:
        write_text(result_file, found.to_json())
    output.show(
        facts(_told(found, said, bills or ())),
        records=lambda: [{name: getattr(found, name) for name in METRICS}],
        document=lambda: found.model_dump(mode="json", by_alias=True) | {"worth": said._asdict()},
    )


COMMANDS = (bound,)
METRICS = {
    "jct_mean_s": ("mean JCT", "s"),
    "makespan_s": ("makespan", "s"),
    "energy_kwh": ("energy", "kWh"),
    "rented_gpu_hours": ("GPU time paid for", "GPU-h"),
    "cost_usd": ("cost", "USD"),
}
"""The metrics that have bounds: what they are called, and their units."""
MORE_GPU_HOURS = (1.1, 1.5, 2.0)
"""Over the least, of which the command tells the mean JCT."""


def _told(found: Bounds, said: Worth, bills: Sequence[float]) -> dict[str, str]:
    """Return bounds, their class, and what prices say, by name."""
    from optsched.rollout.run import metric_text

    hours = ", ".join(f"{hour:,} ({share:.0%})" for hour, share in said.hours)
    jobs = ", ".join(f"{name} ({metric_text(late)} s)" for name, late in said.jobs)
    least = {name: f"at least {text}" for name, text in _figures(found).items()}
    return {
        "scenario": found.scenario,
        "trace": f"{found.trace}, {found.jobs:,} jobs",
        "schedules": found.class_of_schedules,
        **least,
        **_traded(found),
        **_billed(found, bills),
        "one more GPU": f"lowers the first by {metric_text(said.gpu_s)} s at most, at these prices",
        "one more node": f"by {metric_text(said.node_s)} s",
        "dearest hours": hours or "none: GPUs are never scarce",
        "jobs kept longest": jobs or "none",
    }


def _figures(found: Bounds) -> dict[str, str]:
    """Return the bounds that there are, by the names of their metrics in a sentence."""
    from optsched.rollout.run import metric_text

    told = {name: (getattr(found, key), unit) for key, (name, unit) in METRICS.items()}
    return {
        name: f"{metric_text(value)} {unit}"
        for name, (value, unit) in told.items()
        if value is not None
    }


def _traded(found: Bounds) -> dict[str, str]:
    """Return what mean JCT some numbers of GPU-hours can buy at best, where jobs are elastic."""
    from optsched.rollout.run import metric_text

    if found.trade is None or not found.rented_gpu_hours:
        return {}
    told = []
    for more in MORE_GPU_HOURS:
        hours = more * found.rented_gpu_hours
        least = max(found.trade.jct_mean_s_at(hours, found.jobs), found.jct_mean_s or 0.0)
        told.append(f"{metric_text(least)} s at {hours:,.0f} GPU-h")
    return {"mean JCT at a bill": f"at least {', '.join(told)}"}


def _billed(found: Bounds, bills: Sequence[float]) -> dict[str, str]:
    """Return what mean JCT bills can buy at best, starts of nodes among what is paid for."""
    from optsched.rollout.run import metric_text

    told = (f"{metric_text(found.jct_mean_s_at_bill(h))} s at {h:,g} GPU-h" for h in bills)
    return {"with starts of nodes": f"at least {', '.join(told)}"} if bills else {}


def proven(
    source: str,
    changes: list[str] | None,
    file: str,
    trace: str | None = None,
    input_format: str | None = None,
    workload: str | None = None,
) -> tuple[str, dict[str, Any]]:
    """Prove the bounds in a file; return what is proven in a sentence, and as data.

    Parameters
    ----------
    trace, input_format, workload
        The file of the trace that the bounds were made with, instead of the scenario's own.

    Raises
    ------
    Violation
        If they are not so.
    """
    from optsched.bounds.bound_files import read_bounds
    from optsched.bounds.verify.bounds import verify_bounds
    from optsched.rollout.trace_source import jobs_of, with_trace

    bounds = read_bounds(file)
    where, jobs = scenario_and_trace(source, changes, trace, input_format, workload)
    where = with_trace(where, jobs)
    verify_bounds(where, jobs_of(where, None, bounds.seed), bounds)
    below = " or ".join(f"{name} below {least}" for name, least in _figures(bounds).items())
    text = f"proven: no schedule of {where.name} ({bounds.class_of_schedules}) has {below}"
    told = bounds.model_dump(mode="json", exclude={"jct", "energy", "trade", "starts", "schedules"})
    return text, told | {"proven": True, "statement": text}


def with_bounds(compared: Comparison, wanted: bool | None) -> Comparison:
    """Return a comparison with bounds: if they are wanted, or quick where nobody says.

    Raises
    ------
    UnknownPhysics
        If bounds are asked for of a scenario of which none are known.
    """
    runs = [run for runs in compared.rollouts.values() for run in runs]
    return compared.bounded() if _are_told(runs, wanted) else compared


def rollout_bounds(runs: Sequence[Rollout], wanted: bool | None) -> list[BoundRow]:
    """Return the bounds of rollouts of one policy by seed, as `with_bounds` does; else none."""
    from optsched.bounds.above import rows_above

    return list(rows_above({runs[0].record.policy: runs})) if _are_told(runs, wanted) else []


def _are_told(runs: Sequence[Rollout], wanted: bool | None) -> bool:
    """Tell whether bounds are, and are known where nobody asks for them."""
    from optsched.bounds.above import is_quick
    from optsched.bounds.schedules import UnknownPhysics, refuse_unknown_physics

    if wanted is not None:
        return wanted
    try:
        refuse_unknown_physics(runs[0].record.scenario)
    except UnknownPhysics:
        return False
    return is_quick(run.record.trace for run in runs)


def beside(compared: Comparison) -> list[Sheet | str]:
    """Return a table of how far policies are above their bounds, if these were asked for."""
    from optsched.plugins.plugin import short_names
    from optsched.rollout.results.bounds.rows import bounded, classes, means
    from optsched.rollout.run import metric_text

    if not compared.bounds:
        return []
    by_policy: dict[str, list[BoundRow]] = {}
    for each in compared.bounds:
        by_policy.setdefault(each.policy, []).append(each)
    found = {name: means(rows) for name, rows in by_policy.items()}
    known = bounded(next(iter(found.values())))
    short = zip(found.values(), short_names(list(found)), strict=True)
    rows = [(name, *(_share(told[f"{metric}_above"]) for metric in known)) for told, name in short]
    least = dict.fromkeys(
        (*(f"{metric_text(told[f'{metric}_bound'])} {METRICS[metric][1]}" for metric in known),
         classes(by_policy[name]))
        for name, told in found.items()
    )  # fmt: skip
    rows += [("bound", *texts) for *texts, _ in least]
    heads = (Column(METRICS[metric][0], right=True) for metric in known)
    columns: list[Column | str] = ["above the bound", *heads]
    words = dict.fromkeys(f"No schedule is below the bound: {words}." for *_, words in least)
    return ["", sheet(columns, rows), "", *words]


def _share(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:+.1%}"
