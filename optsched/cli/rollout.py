"""The commands `optsched rollout`, `compare`, `policies` and `scenarios`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli import console

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.rollout import Scenario
    from optsched.rollout.trace_source import TraceLike

ScenarioName = Annotated[
    str, typer.Argument(metavar="SCENARIO", help="A file, or one of `optsched scenarios`.")
]
TraceFile = Annotated[
    str | None,
    typer.Option("--trace", metavar="FILE", help="Jobs instead of the scenario's own."),
]
TraceFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="Of FILE: one of `optsched trace formats`; by default what `optsched trace` writes.",
    ),
]
Workload = Annotated[
    str | None, typer.Option(metavar="N", help="Which one, where FILE holds several.")
]
DropLarger = Annotated[
    bool,
    typer.Option("--drop-larger", help="Leave out jobs that ask for more GPUs than there are."),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change a field of the scenario, e.g. epoch_s=360 or trace.jobs=1000; null removes "
        "it. May be given several times.",
    ),
]


Policies = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B,...",
        help="The first is what the others are compared with. What follows a colon, up to the "
        "next name, are options: fifo:relax_s=600,backfill=true,las is two policies. May be "
        "given several times; by default those of the scenario.",
    ),
]
Resample = Annotated[
    int | None,
    typer.Option(
        metavar="JOBS",
        help="Draw the trace of each seed from one, such as a file's, in blocks of so many "
        "jobs. Without it, a seed changes nothing there but what policies draw.",
    ),
]


def rollout(
    scenario: ScenarioName,
    policy: Annotated[
        str,
        typer.Option(help="With options, e.g. fifo:backfill=yes; see `optsched policies NAME`."),
    ] = "fifo",
    trace: TraceFile = None,
    trace_format: TraceFormat = None,
    workload: Workload = None,
    drop_larger: DropLarger = False,
    seed: Annotated[int, typer.Option(help="Seed of everything that is drawn.")] = 0,
    changes: Changes = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Write summary.json, jobs.csv, epochs.csv, timing.json.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the rollout that was stopped in DIR.")
    ] = False,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="Write intervals.csv too: who held which GPUs.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what summary.json holds and nothing else.")
    ] = False,
) -> None:
    """Run a policy over a trace of jobs on a simulated cluster.

    Example: optsched rollout philly-small --policy fifo --output out

    Example: optsched rollout pal-64 --policy pal --set epoch_s=300
    """
    from optsched.documents.json_files import dumps
    from optsched.rollout.results.outputs import summary
    from optsched.rollout.results.tables import figures
    from optsched.rollout.run import simulate

    where = _scenario(scenario, changes, drop_larger)
    jobs = _trace(trace, trace_format, workload, drop_larger)
    with console.progress_bar(f"{policy} on {where.name}") as progress:
        done = simulate(
            where, policy, trace=jobs, seed=seed, output=output, resume=resume,
            progress=progress, keep_intervals=intervals,
        )  # fmt: skip
    if as_json:
        console.print_json(dumps(summary(done.record)))
    else:
        console.show(figures(done))


def compare(
    scenario: ScenarioName,
    policies: Policies = None,
    trace: TraceFile = None,
    trace_format: TraceFormat = None,
    workload: Workload = None,
    drop_larger: DropLarger = False,
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Runs of each policy, with seeds 0 to N - 1.")
    ] = 1,
    resample: Resample = None,
    jobs: Annotated[
        int, typer.Option("--processes", metavar="N", help="Rollouts that run at the same time.")
    ] = 1,
    changes: Changes = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write all metrics there, as CSV."),
    ] = None,
) -> None:
    """Run policies over the same traces, and show ratios to the first.

    Example: optsched compare philly-small --policies fifo,srtf,las --seeds 5

    Example: optsched compare philly-small --trace jobs.json --seeds 20 --resample 50
    """
    from optsched.documents.json_files import write_text
    from optsched.rollout.comparison import compare as run
    from optsched.rollout.results.tables import comparison

    console.check_output(output, (".csv",))
    where = _scenario(scenario, changes, drop_larger)
    source = _trace(trace, trace_format, workload, drop_larger)
    names = split_policies(policies) if policies else None
    with (
        console.plain_warnings(),
        console.workers(jobs) as executor,
        console.progress_bar(f"comparing on {where.name}") as progress,
    ):
        compared = run(
            where, names, trace=source, seeds=seeds, resample=resample, executor=executor,
            progress=progress,
        )  # fmt: skip
    if output is not None:
        write_text(output, compared.frame().to_csv(lineterminator="\n"))
    console.show(*comparison(compared), pipe_width=120)


def policies(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Of a policy: list its options.")
    ] = None,
) -> None:
    """List the policies, or the options of one.

    Example: optsched policies

    Example: optsched policies philly
    """
    from optsched.rollout.results.tables import policies as table
    from optsched.rollout.results.tables import policy_options

    console.show(table() if name is None else policy_options(name))


def scenarios() -> None:
    """List the bundled scenarios.

    Example: optsched scenarios
    """
    from optsched.rollout.results.tables import scenarios as table
    from optsched.rollout.scenario_files import read_scenario, scenario_names

    named = [(name, read_scenario(name)) for name in scenario_names()]
    console.show_list(table(named))


COMMANDS = (rollout, compare, policies, scenarios)


def split_policies(texts: Iterable[str]) -> list[str]:
    """Return the policies in lists such as ``"fifo:relax_s=600,backfill=true,las"``.

    What stands between two commas is an option of the policy before it if it is ``key=value``
    without a colon in the key.
    """
    policies: list[str] = []
    for text in texts:
        policies += _split(text)
    return policies


def _split(text: str) -> list[str]:
    names: list[str] = []
    for part in text.split(","):
        key, equals, _ = part.partition("=")
        if not equals or ":" in key:
            names.append(part.strip())
        elif not names or ":" not in names[-1]:
            raise ValueError(f"--policies {text}: option '{part.strip()}' follows no policy:")
        else:
            names[-1] += f",{part.strip()}"
    return [name for name in names if name]


def _scenario(source: str, changes: list[str] | None, drop_larger: bool) -> Scenario:
    from optsched.rollout.trace_source import scenario_of

    wanted = console.changes(changes)
    if drop_larger:
        wanted["trace.drop_larger"] = True
    scenario = scenario_of(source)
    return scenario.changed(wanted) if wanted else scenario


def _trace(
    path: str | None, file_format: str | None, workload: str | None, drop_larger: bool
) -> TraceLike | None:
    from optsched.rollout import TraceSource

    if path is not None:
        return TraceSource(
            file=path, format=file_format, workload=workload, drop_larger=drop_larger
        )
    if file_format is not None or workload is not None:
        raise ValueError("--format and --workload are of a file: give --trace FILE")
    return None
