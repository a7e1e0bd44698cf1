"""The command `optsched bound`, and how `verify` and `compare` tell of bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.cli import console, options
from optsched.cli.instances import scenario_and_trace
from optsched.cli.printing import output
from optsched.cli.printing.sheets import Column, Sheet, facts, sheet

if TYPE_CHECKING:
    from optsched.bounds.certificate import Bounds
    from optsched.bounds.worth import Worth
    from optsched.rollout.results.policy_comparison import Comparison


def bound(
    scenario: options.ScenarioName,
    trace: options.TraceFile = None,
    input_format: options.InputFormat = None,
    workload: options.Workload = None,
    seed: options.Seed = 0,
    changes: options.Changes = None,
    result_file: options.Output = None,
) -> None:
    """Bound what any schedule of a trace could do, with a certificate.

    No schedule of the class that it names has a smaller mean JCT or makespan. Of trials on one GPU
    and jobs that are given up it has none. `optsched verify SCENARIO FILE` proves what -o wrote.

    JSON: bounds with their certificate, and worth: of a GPU, of a node, hours and jobs.

    Example: optsched bound philly-small -o bound.json
    """
    from optsched.bounds.bound import bound as run
    from optsched.bounds.worth import worth
    from optsched.documents.json_files import write_text
    from optsched.rollout.trace_source import jobs_of, with_trace

    console.check_output(result_file, (".json",))
    where, source = scenario_and_trace(scenario, changes, trace, input_format, workload)
    where = with_trace(where, source)
    jobs = jobs_of(where, None, seed)
    with console.spinner(f"bounding {where.name}"):
        found = run(where, trace=jobs, seed=seed)
        said = worth(where, jobs, found)
    if result_file is not None:
        write_text(result_file, found.to_json())
    output.show(
        facts(_told(found, said)),
        records=lambda: [{"jct_mean_s": found.jct_mean_s, "makespan_s": found.makespan_s}],
        document=lambda: found.model_dump(mode="json", by_alias=True) | {"worth": said._asdict()},
    )


COMMANDS = (bound,)


def _told(found: Bounds, said: Worth) -> dict[str, str]:
    """Return bounds, their class, and what prices say, by name."""
    from optsched.rollout.run import metric_text

    hours = ", ".join(f"{hour:,} ({share:.0%})" for hour, share in said.hours)
    jobs = ", ".join(f"{name} ({metric_text(late)} s)" for name, late in said.jobs)
    return {
        "scenario": found.scenario,
        "trace": f"{found.trace}, {found.jobs:,} jobs",
        "schedules": found.class_of_schedules,
        "mean JCT": f"at least {metric_text(found.jct_mean_s)} s",
        "makespan": f"at least {metric_text(found.makespan_s)} s",
        "one more GPU": f"lowers the first by {metric_text(said.gpu_s)} s at most, at these prices",
        "one more node": f"by {metric_text(said.node_s)} s",
        "dearest hours": hours or "none: GPUs are never scarce",
        "jobs kept longest": jobs or "none",
    }


def proven(source: str, changes: list[str] | None, file: str) -> tuple[str, dict[str, Any]]:
    """Prove the bounds in a file; return what is proven in a sentence, and as data.

    Raises
    ------
    Violation
        If they are not so.
    """
    from optsched.bounds.bound_files import read_bounds
    from optsched.bounds.verify.bounds import verify_bounds
    from optsched.rollout.run import metric_text
    from optsched.rollout.trace_source import jobs_of

    bounds = read_bounds(file)
    where, _ = scenario_and_trace(source, changes, None, None, None)
    verify_bounds(where, jobs_of(where, None, bounds.seed), bounds)
    text = (
        f"proven: no schedule of {where.name} ({bounds.class_of_schedules}) has a mean JCT below "
        f"{metric_text(bounds.jct_mean_s)} s or a makespan below {metric_text(bounds.makespan_s)} s"
    )
    told = bounds.model_dump(mode="json", exclude={"jct", "schedules"})
    return text, told | {"proven": True, "statement": text}


def beside(compared: Comparison, wanted: bool) -> list[Sheet | str]:
    """Return how far policies are above their bounds; nothing where that would take long.

    Raises
    ------
    UnknownPhysics
        If bounds are asked for of a scenario of which none are known.
    """
    from optsched.bounds.above import above_bounds, is_quick, record_above_bounds
    from optsched.bounds.schedules import UnknownPhysics
    from optsched.plugins.plugin import short_names
    from optsched.rollout.results.as_recorded import NAME
    from optsched.rollout.run import metric_text

    records = [run.record for runs in compared.rollouts.values() for run in runs]
    if not (wanted or is_quick(records)):
        return []
    try:
        found = above_bounds(compared.rollouts)
    except UnknownPhysics:
        if wanted:
            raise
        return []
    if not found:
        return []
    names = dict(zip(found, short_names(list(found)), strict=True))
    rows = [(names[name], _share(each.jct), _share(each.makespan)) for name, each in found.items()]
    recorded = compared.recorded
    notes = []
    if recorded is not None:
        real = record_above_bounds(recorded)
        rows.append((NAME, _share(real.jct), _share(real.makespan)))
        if min(real.jct or 0.0, real.makespan or 0.0) < 0:
            notes.append(f"{NAME}: below the bound, so that the modelled world is too slow.")
    least = {(each.jct_bound_s, each.makespan_bound_s, each.schedules) for each in found.values()}
    rows += [("bound", f"{metric_text(jct)} s", f"{metric_text(makespan)} s")
             for jct, makespan, _ in sorted(least)]  # fmt: skip
    columns = ("above the bound", Column("mean JCT", right=True), Column("makespan", right=True))
    classes = [f"No schedule is below the bound: {words}." for _, _, words in sorted(least)]
    return ["", sheet(columns, rows), "", *classes, *notes]


def _share(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:+.1%}"
