"""The commands `optsched rollout`, `compare`, `policies` and `scenarios`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli import completion, console, hints, options
from optsched.cli.bound import beside, rollout_bounds, with_bounds
from optsched.cli.instances import scenario_and_trace
from optsched.cli.printing import output
from optsched.cli.progress import sweeping

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.rollout import Scenario
    from optsched.rollout.results.policy_comparison import Comparison

Resample = Annotated[
    int | None,
    options.data(
        metavar="JOBS",
        help="Draw the trace of each seed from one, such as a file's, in blocks of so many "
        "jobs. Without it, a seed changes nothing there but what policies draw.",
    ),
]
PerSeed = Annotated[
    bool,
    options.file("--per-seed", help="In .csv and --csv: a row for each policy and seed."),
]
Folder = Annotated[
    str | None,
    options.file(
        "--output",
        "-o",
        metavar="DIR",
        help="Write summary.json, jobs.csv, epochs.csv, timing.json.",
    ),
]
Resume = Annotated[
    bool,
    options.file(
        "--resume",
        help="Go on with the rollout that was stopped in DIR.",
    ),
]
Intervals = Annotated[
    bool,
    options.file(
        "--intervals",
        help="Write intervals.csv too: who held which GPUs.",
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
    typer.Argument(metavar="[POLICY]", help="Say all of it.", autocompletion=completion.policies),
]


def rollout(
    scenario: options.ScenarioName,
    policy: options.PolicyName = "fifo",
    trace: options.TraceFile = None,
    input_format: options.InputFormat = None,
    workload: options.Workload = None,
    seed: options.Seeds = "0",
    changes: options.Changes = None,
    folder: Folder = None,
    resume: Resume = False,
    intervals: Intervals = False,
    bound: options.Bound = None,
    picture: options.Picture = None,
) -> None:
    """Run a policy over a trace of jobs on a simulated cluster.

    JSON: what summary.json holds, see `optsched schema rollout`, and bound.

    With several seeds, JSON: policy, seeds, rollouts. CSV: a row for each seed.

    Example: optsched rollout philly-small --policy fifo --output out

    Example: optsched rollout pal-64 --policy pal --set epoch_s=300 --seed 0-4
    """
    from optsched.cli.printing import rollout_figures as figures
    from optsched.plugins.plugin import short_names
    from optsched.rollout.comparison import part
    from optsched.rollout.results.plot import overview
    from optsched.rollout.run import simulate

    console.check_output(picture, options.PICTURES, "--plot")
    where, jobs = scenario_and_trace(scenario, changes, trace, input_format, workload)
    seeds, runs = options.seeds(seed), []
    with (
        console.plain_warnings(),
        console.progress_bar(f"{short_names([policy])[0]} on {where.name}") as progress,
    ):
        for number, each in enumerate(seeds):
            done = simulate(
                where, policy, trace=jobs, seed=each, output=_of_seed(folder, each, seeds),
                resume=resume, keep_intervals=intervals,
                progress=part(progress, number, len(seeds)),
            )  # fmt: skip
            runs.append(done)
    hints.tell([*hints.of_trace(runs[0].record.trace), *_lacking(where, [policy])])
    if picture is not None:
        names = [f"seed {each}" for each in seeds] if len(seeds) > 1 else [policy]
        overview({name: run.record for name, run in zip(names, runs, strict=True)}).savefig(
            picture, dpi=150
        )
    bounds = rollout_bounds(runs, bound)
    output.show(
        *figures.rollout(runs, bounds),
        records=lambda: figures.rollout_records(policy, runs, bounds),
        document=lambda: figures.rollout_document(policy, runs, bounds),
    )


def compare(
    scenario: options.ScenarioName,
    policy: options.Policies = None,
    trace: options.TraceFile = None,
    input_format: options.InputFormat = None,
    workload: options.Workload = None,
    seed: options.Seeds = "0",
    seeds: options.SeedCount = None,
    resample: Resample = None,
    processes: options.AllProcesses = None,
    scheduler: options.Scheduler = None,
    cache: options.Cache = None,
    changes: options.Changes = None,
    table_file: options.TableOutput = None,
    per_seed: PerSeed = False,
    bound: options.Bound = None,
    picture: options.Picture = None,
) -> None:
    """Run policies over the same traces, and show ratios to the first and differences from it.

    JSON: see `optsched schema comparison`; policies has metrics, ratios and intervals, differences
    what is paired seed by seed, runs each rollout, bounds what no schedule can be below. `optsched
    report` takes it.

    Example: optsched compare philly-small --policy fifo,srtf,las --seed 0-4

    Example: optsched compare philly-small --policy fifo,my.py:Fair:alpha=0.5

    Example: optsched compare philly-small --trace jobs.json --seed 0-19 --resample 50

    Example: optsched compare pal-64 --seed 0-19 --cache rollouts -o all.json
    """
    from optsched.cli.printing import rollout_tables as tables
    from optsched.rollout.comparison import compare as run

    console.check_output(table_file, (".json", ".csv"))
    console.check_output(picture, options.PICTURES, "--plot")
    where, source = scenario_and_trace(scenario, changes, trace, input_format, workload)
    names = options.policies(policy) if policy else None
    with (
        console.plain_warnings(),
        console.executor(processes, scheduler) as executor,
        sweeping(f"comparing on {where.name}") as (progress, under_way),
    ):
        compared = run(
            where, names, trace=source, resample=resample, executor=executor, cache=cache,
            seeds=options.seeds(seed) if seeds is None else seeds,
            progress=progress, under_way=under_way,
        )  # fmt: skip
    compared = with_bounds(compared, bound)
    if table_file is not None:
        _write(compared, table_file, per_seed)
    if picture is not None:
        compared.plot().savefig(picture, dpi=150)
    notes = _lacking(where, compared.rollouts)
    hints.tell(notes)
    output.show(
        *tables.comparison(compared),
        *beside(compared),
        *(["", *notes] if notes else []),
        records=lambda: tables.comparison_records(compared, per_seed),
        document=lambda: tables.comparison_document(compared),
    )


def policies(name: PolicyArgument = None, check: Check = False, scenario: Where = None) -> None:
    """List the policies, or say all of one; or check one, such as your own.

    Of one: its options, source, what is faithful, where it differs and why, and what it needs.

    JSON: policies, each with name, summary, needs, source, options; of one: the same and more.

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
        output.show(*tables.policy_page(name), records=lambda: rows,
                    document=lambda: tables.policy_document(name))  # fmt: skip
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


def _write(compared: Comparison, path: str, per_seed: bool) -> None:
    from optsched.documents.json_files import write_text

    if path.endswith(".csv"):
        table = compared.runs() if per_seed else compared.frame().reset_index()
        if compared.became:
            became = [compared.became.get(name, "") for name in table["policy"]]
            table.insert(1, "became", became)
        write_text(path, table.to_csv(index=False, lineterminator="\n"))
    else:
        write_text(path, compared.document().to_json())


def _lacking(where: Scenario, policies: Iterable[str]) -> list[str]:
    """Return what policies need that the scenario has not."""
    from optsched.rollout.declarations.names import unmet

    return [text for name in policies if (text := unmet(where, name))]


def _of_seed(folder: str | None, seed: int, seeds: Sequence[int]) -> Path | None:
    """Return the folder of one of several seeds."""
    if folder is None or len(seeds) == 1:
        return folder if folder is None else Path(folder)
    return Path(folder) / f"seed-{seed}"
