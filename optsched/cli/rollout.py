"""The commands `optsched rollout`, `compare`, `policies` and `scenarios`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli import completion, console, hints, options
from optsched.cli.printing import output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.rollout import Scenario
    from optsched.rollout.results.policy_comparison import Comparison
    from optsched.rollout.trace_source import TraceLike

Resample = Annotated[
    int | None,
    typer.Option(
        metavar="JOBS",
        help="Draw the trace of each seed from one, such as a file's, in blocks of so many "
        "jobs. Without it, a seed changes nothing there but what policies draw.",
        rich_help_panel=options.DATA,
    ),
]
Folder = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Write summary.json, jobs.csv, epochs.csv, timing.json.",
        rich_help_panel=options.FILES,
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Go on with the rollout that was stopped in DIR.",
        rich_help_panel=options.FILES,
    ),
]
Intervals = Annotated[
    bool,
    typer.Option(
        "--intervals",
        help="Write intervals.csv too: who held which GPUs.",
        rich_help_panel=options.FILES,
    ),
]
Check = Annotated[
    bool, typer.Option("--check", help="Run the checks of optsched.testing, for some seconds.")
]
Where = Annotated[
    str | None,
    typer.Option(
        "--scenario",
        metavar="SCENARIO",
        help="With --check: in this scenario, too.",
        autocompletion=completion.scenarios,
    ),
]
PolicyArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[POLICY]", help="List its options.", autocompletion=completion.policies
    ),
]


def rollout(
    scenario: options.ScenarioName,
    policy: options.PolicyName = "fifo",
    trace: options.TraceFile = None,
    input_format: options.InputFormat = None,
    workload: options.Workload = None,
    seed: options.Seed = 0,
    changes: options.Changes = None,
    folder: Folder = None,
    resume: Resume = False,
    intervals: Intervals = False,
    picture: options.Picture = None,
) -> None:
    """Run a policy over a trace of jobs on a simulated cluster.

    JSON: what summary.json holds, see `optsched schema rollout`.

    Example: optsched rollout philly-small --policy fifo --output out

    Example: optsched rollout pal-64 --policy pal --set epoch_s=300
    """
    from optsched.cli.printing.rollout_tables import figures
    from optsched.documents.json_files import dumps
    from optsched.rollout.results.outputs import summary
    from optsched.rollout.run import simulate

    console.check_output(picture, options.PICTURES, "--plot")
    where = _scenario(scenario, changes)
    jobs = _trace(where, trace, input_format, workload)
    with (
        console.plain_warnings(),
        console.progress_bar(f"{policy} on {where.name}") as progress,
    ):
        done = simulate(
            where, policy, trace=jobs, seed=seed, output=folder, resume=resume,
            progress=progress, keep_intervals=intervals,
        )  # fmt: skip
    hints.tell([*hints.of_trace(done.record.trace), *_lacking(where, [policy])])
    if picture is not None:
        done.plot().savefig(picture, dpi=150)
    ran, measured = figures(done)
    output.show(
        ran, "", measured,
        records=lambda: [{"policy": policy, **done.metrics}],
        document=lambda: dumps(summary(done.record)),
    )  # fmt: skip


def compare(
    scenario: options.ScenarioName,
    policy: options.Policies = None,
    trace: options.TraceFile = None,
    input_format: options.InputFormat = None,
    workload: options.Workload = None,
    seeds: options.Seeds = 1,
    resample: Resample = None,
    processes: options.Processes = 1,
    changes: options.Changes = None,
    table_file: options.TableOutput = None,
    picture: options.Picture = None,
) -> None:
    """Run policies over the same traces, and show ratios to the first.

    JSON: first, seeds, basis, unfinished (in words), and policies, each with all metrics, their
    ratios and intervals.

    Example: optsched compare philly-small --policy fifo,srtf,las --seeds 5

    Example: optsched compare philly-small --policy fifo,my.py:Fair:alpha=0.5

    Example: optsched compare philly-small --trace jobs.json --seeds 20 --resample 50
    """
    from optsched.cli.printing import rollout_tables as tables
    from optsched.rollout.comparison import compare as run

    console.check_output(table_file, (".json", ".csv"))
    console.check_output(picture, options.PICTURES, "--plot")
    where = _scenario(scenario, changes)
    source = _trace(where, trace, input_format, workload)
    names = options.policies(policy) if policy else None
    with (
        console.plain_warnings(),
        console.workers(processes) as executor,
        console.progress_bar(f"comparing on {where.name}") as progress,
    ):
        compared = run(
            where, names, trace=source, seeds=seeds, resample=resample, executor=executor,
            progress=progress,
        )  # fmt: skip
    if table_file is not None:
        _write(compared, table_file)
    if picture is not None:
        compared.plot().savefig(picture, dpi=150)
    notes = _lacking(where, compared.rollouts)
    hints.tell(notes)
    output.show(
        *tables.comparison(compared),
        *(["", *notes] if notes else []),
        records=lambda: tables.comparison_records(compared),
        document=lambda: tables.comparison_document(compared),
    )


def policies(name: PolicyArgument = None, check: Check = False, scenario: Where = None) -> None:
    """List the policies, or the options of one; or check one, such as your own.

    JSON: policies, each with name, summary, needs, source, options; of one: policy, options.

    Example: optsched policies

    Example: optsched policies philly

    Example: optsched policies my.py:Fair --check
    """
    from optsched.cli.printing import rollout_tables as tables

    if check or scenario is not None:
        _check(name, scenario)
        return
    if name is not None:
        rows = tables.option_records(name)
        output.show(tables.policy_options(name), records=lambda: rows,
                    document=lambda: {"policy": name, "options": rows})  # fmt: skip
        return
    output.show(tables.policies(), document=lambda: {"policies": tables.policy_records()})


def scenarios() -> None:
    """List the bundled scenarios.

    JSON: scenarios, each with name, gpus, trace, jobs, policies, description.

    Example: optsched scenarios
    """
    from optsched.cli.printing import rollout_tables as tables
    from optsched.rollout.scenario_files import read_scenario, scenario_names

    named = [(name, read_scenario(name)) for name in scenario_names()]
    output.show(
        tables.scenarios(named), document=lambda: {"scenarios": tables.scenario_records(named)}
    )


COMMANDS = (rollout, compare, policies, scenarios)


def _check(name: str | None, scenario: str | None) -> None:
    """Print what the checks of a policy found; fail if one of them did."""
    from optsched.cli.printing import rollout_tables as tables
    from optsched.testing import conformance

    if name is None:
        raise ValueError("--check: name the policy, too: optsched policies my.py:Fair --check")
    with console.spinner(f"checking {name}"):
        found = conformance(name, scenario)
    rows = [vars(each) for each in found]
    output.show(tables.findings(found), records=lambda: rows,
                document=lambda: {"policy": name, "findings": rows})  # fmt: skip
    if any(each.outcome == "failed" for each in found):
        raise typer.Exit(console.ExitCode.FAILED)


def _write(compared: Comparison, path: str) -> None:
    from optsched.cli.printing import rollout_tables as tables
    from optsched.documents.json_files import dumps, write_text

    is_csv = path.endswith(".csv")
    text = compared.frame().to_csv(lineterminator="\n") if is_csv else ""
    write_text(path, text or dumps(tables.comparison_document(compared)))


def _lacking(where: Scenario, policies: Iterable[str]) -> list[str]:
    """Return what policies need that the scenario has not."""
    from optsched.rollout.policy_needs import unmet

    return [text for name in policies if (text := unmet(where, name))]


def _scenario(source: str, changes: list[str] | None) -> Scenario:
    from optsched.rollout.trace_source import scenario_of

    wanted = console.changes(changes)
    scenario = scenario_of(source)
    return scenario.changed(wanted) if wanted else scenario


def _trace(
    where: Scenario, path: str | None, file_format: str | None, workload: str | None
) -> TraceLike | None:
    """Return what --trace names; what the scenario says of larger jobs holds for these, too."""
    from optsched.rollout import TraceSource

    if path is not None:
        return TraceSource(
            file=path,
            format=file_format,
            workload=workload,
            drop_larger=where.trace.drop_larger,
        )
    if file_format is not None or workload is not None:
        raise ValueError("--input-format and --workload are of a file: give --trace FILE")
    return None
