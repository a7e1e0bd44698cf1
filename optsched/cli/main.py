"""The command line: `optsched --help`.

Exit codes: 0 done, 1 a check or proof failed, 2 bad input, 3 infeasible, 4 no plan within the
limits, 130 interrupted, 143 terminated.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli import console, interrupts, rollout, streams, topology
from optsched.cli import frontier as cli_frontier
from optsched.cli import instances as cli_instances
from optsched.cli import report as cli_report
from optsched.cli import trace as cli_trace
from optsched.cli.console import ExitCode
from optsched.cli.instances import Changes, Source, read_instance
from optsched.documents.faults import InstanceError
from optsched.results.result import Result, Status, versions
from optsched.results.result_files import read_result

if TYPE_CHECKING:
    from optsched.instance import Instance

EXIT_CODES = {
    Status.OPTIMAL: ExitCode.DONE,
    Status.FEASIBLE: ExitCode.DONE,
    Status.INFEASIBLE: ExitCode.INFEASIBLE,
    Status.ERROR: ExitCode.NO_PLAN,
}


ResultFile = Annotated[str, typer.Argument(metavar="RESULT", help="A file written by --output.")]
MethodName = Annotated[
    str | None, typer.Option(help="See `optsched methods`; the default is the exact one.")
]
TimeLimit = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Stop with the best plan so far.")
]
Gap = Annotated[float, typer.Option(help="Relative gap at which to stop, 0.01 for one per cent.")]
Memory = Annotated[
    float | None, typer.Option(metavar="GIB", help="May be taken; by default what is free.")
]
Start = Annotated[
    str | None,
    typer.Option(metavar="RESULT", help="Begin with the result of the previous epoch."),
]
Processes = Annotated[
    int, typer.Option(metavar="N", help="Processes for methods that part their work.")
]
ResultOutput = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write the result there, as JSON."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
AndCompare = Annotated[
    bool,
    typer.Option(
        "--compare/--no-compare",
        help="Run the greedy methods too, for as long as the solve took.",
    ),
]
app = typer.Typer(
    cls=console.Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
app.add_typer(topology.app, name="topology")
app.add_typer(cli_trace.app, name="trace")


def main() -> None:
    """Run the command line."""
    interrupts.install()
    streams.prepare()
    try:
        app(prog_name="optsched")
    except SystemExit as end:
        if interrupts.has_come():
            interrupts.leave(end.code if isinstance(end.code, int) else ExitCode.FAILED)
        raise


def _print_version(wanted: bool) -> None:
    if wanted:
        console.say(f"optsched {versions()['optsched']}")
        raise typer.Exit


@app.callback()
def _optsched(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Provably optimal scheduling of deep-learning jobs on GPU clusters.

    Exit codes: 0 done, 1 a check or proof failed, 2 bad input, 3 infeasible,
    4 no plan within the time limit, 130 interrupted, 143 terminated.
    """


@app.command()
def solve(
    source: Source,
    method: MethodName = None,
    time_limit: TimeLimit = None,
    gap: Gap = 1e-6,
    seed: Annotated[int, typer.Option(help="Seed of everything that is drawn.")] = 0,
    threads: Annotated[int, typer.Option(help="Threads for HiGHS.")] = 1,
    memory: Memory = None,
    start: Start = None,
    processes: Processes = 1,
    changes: Changes = None,
    output: ResultOutput = None,
    as_json: AsJson = False,
    compare: AndCompare = True,
) -> None:
    """Solve an instance, and compare the greedy methods.

    Example: optsched solve boa/cbd-85 --set budget_gpus=30

    Example: optsched solve my.json --method milp --time-limit 10 --output r.json

    Example: optsched solve next-epoch.json --start r.json
    """
    from optsched.cli import comparison
    from optsched.instance import write
    from optsched.solving import solve as solve_instance

    console.check_output(output, (".json",))
    instance = read_instance(source, changes)
    before = None if start is None else _of_same_problem(start, instance)
    begun = time.process_time()
    with console.workers(processes) as executor, console.spinner(f"solving {instance.name}"):
        result = solve_instance(
            instance,
            method,
            time_limit_s=time_limit,
            gap=gap,
            seed=seed,
            threads=threads,
            start=before,
            executor=executor,
            memory_gib=memory,
        )
    solved_s = time.process_time() - begun
    try:
        _print_result(instance, result, as_json)
    finally:
        if output is not None:
            write(result, output)
    if compare and result.plan is not None and not as_json and not result.ending.is_interrupted:
        options = comparison.Options(time_limit, seed, threads, memory)
        comparison.show(instance, result, options, solved_s)
    if result.status is Status.ERROR and result.ending.is_interrupted:
        console.fail(*interrupts.told())
    if result.plan is None:
        console.say(f"{result.status}: {result.message}", err=True)
    raise typer.Exit(EXIT_CODES[result.status])


@app.command()
def check(source: Source, result_file: ResultFile, changes: Changes = None) -> None:
    """Check the plan of a result against every rule.

    Changes of fields that the result was solved with need not be named again.

    Example: optsched check boa/cbd-85 result.json
    """
    from optsched.verification import check as check_plan

    instance, result = _solved(source, changes, result_file)
    if result.plan is None:
        console.fail(f"{result_file}: holds no plan to check", ExitCode.FAILED)
    with console.verifying():
        check_plan(instance, result.plan)
    console.say(f"feasible: the plan keeps every rule of {_named(instance)}")


@app.command()
def verify(source: Source, result_file: ResultFile, changes: Changes = None) -> None:
    """Prove the bound of a result, or of each point of a frontier, without a solver.

    Changes of fields that the result was solved with need not be named again.

    Example: optsched verify boa/cbd-85 result.json
    """
    from optsched.cli import tables
    from optsched.verification import verify as prove

    if _is_frontier(result_file):
        _verify_frontier(source, changes, result_file)
        return
    instance, result = _solved(source, changes, result_file)
    with console.verifying():
        prove(instance, result)
    if result.bound is None:
        console.say(f"proven: no plan keeps every rule of {_named(instance)}")
        return
    unit, name = result.objective_unit, tables.objective_name(instance)
    article = "an" if name[0] in "aeiou" else "a"
    where = f" for {_named(instance)}" if instance.changes else ""
    console.say(f"proven: no plan has {article} {name} below {result.bound:,} {unit}{where}")
    if result.objective is not None:
        objective = f"{result.objective:,} {unit}, recomputed from the plan"
        console.show(tables.rows({"objective": objective, "gap": result.summary()["gap"]}))


for module in (cli_instances, rollout, cli_frontier, cli_report):
    for command in module.COMMANDS:
        app.command()(command)


def _solved(source: str, changes: list[str] | None, result_file: str) -> tuple[Instance, Result]:
    """Read a result and its instance; the changes that the result names are made if none are."""
    from optsched.explanation.explain import as_solved

    instance = read_instance(source, changes)
    result = _of_same_problem(result_file, instance)
    return as_solved(instance, result) or instance, result


def _is_frontier(source: str) -> bool:
    from optsched.instance import find, load

    document = load(find(source))
    schema = document.get("schema") if isinstance(document, dict) else None
    return isinstance(schema, str) and schema.startswith("optsched/frontier/")


def _verify_frontier(source: str, changes: list[str] | None, frontier_file: str) -> None:
    from optsched.cli import tables
    from optsched.explanation.explain import with_digest
    from optsched.sweeps.points import read_frontier
    from optsched.sweeps.verified_points import verify_frontier

    instance, frontier = read_instance(source, changes), read_frontier(frontier_file)
    instance = with_digest(instance, frontier) or instance
    with console.verifying(), console.spinner(f"verifying {len(frontier.points)} points"):
        verify_frontier(instance, frontier)
    console.say(f"proven: every bound of {len(frontier.points)} points of {_named(instance)}")
    console.show(tables.rows(frontier.summary()))


def _named(instance: Instance) -> str:
    """Return the name of an instance, and the changes that were made to it."""
    made = ", ".join(f"{path}={value}" for path, value in instance.changes.items())
    return f"{instance.name} with {made}" if made else instance.name


def _of_same_problem(source: str, instance: Instance) -> Result:
    result = read_result(source)
    if result.problem != instance.problem:
        text = f"problem: a result of '{result.problem}', the instance is of '{instance.problem}'"
        raise InstanceError(source, [text])
    return result


def _print_result(instance: Instance, result: Result, as_json: bool) -> None:
    from optsched.cli import tables

    if as_json:
        console.print_json(result.to_json())
    elif result.plan is not None:
        console.show(tables.rows(result.summary()), "", tables.decisions(instance, result))
