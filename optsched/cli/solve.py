"""The command `optsched solve`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import typer

from optsched.cli import console, interrupts, options, progress
from optsched.cli.console import ExitCode
from optsched.cli.instances import read_instance
from optsched.cli.printing import output

if TYPE_CHECKING:
    from optsched.instance import Instance
    from optsched.results.result import Result


def solve(
    source: options.Source,
    method: options.MethodName = None,
    time_limit: options.TimeLimit = None,
    gap: options.Gap = None,
    seed: options.Seed = 0,
    threads: options.Threads = 1,
    memory: options.Memory = None,
    start: options.Start = None,
    processes: options.Processes = 1,
    changes: options.Changes = None,
    result_file: options.Output = None,
    picture: options.Picture = None,
    compare: options.AndCompare = None,
    verbose: options.Verbose = False,
) -> None:
    """Solve an instance, and compare the greedy methods for as long as the solve took.

    JSON: the result, see `optsched schema result`. CSV: the plan.

    With --compare, JSON: result, compared, left_out, refused. CSV: the methods.

    Example: optsched solve boa/cbd-85 --set budget_gpus=30

    Example: optsched solve my.json --method milp --time-limit 10 --output r.json

    Example: optsched solve next-epoch.json --start r.json --verbose
    """
    from optsched.cli.printing import method_table
    from optsched.comparison import Options

    console.check_output(result_file, (".json",))
    console.check_output(picture, options.PICTURES, "--plot")
    instance = read_instance(source, changes)
    before = None if start is None else of_same_problem(start, instance)
    begun = time.process_time()
    limits = {"time_limit_s": time_limit, "gap": 1e-6 if gap is None else gap, "seed": seed,
              "threads": threads, "memory_gib": memory}  # fmt: skip
    result = _solved(instance, method, before, processes, limits, verbose=verbose)
    solved_s = time.process_time() - begun
    is_one = output.is_data() and compare is True  # both are printed as one document
    try:
        if not is_one:
            _print(instance, result)
    finally:
        _write(result, result_file, picture)
    if is_one or (compare is not False and not output.is_data()):
        given = Options(time_limit, seed, threads, memory)
        method_table.show(instance, result, given, solved_s)
    raise typer.Exit(_ended(result))


COMMANDS = (solve,)


def of_same_problem(source: str, instance: Instance) -> Result:
    """Read a result, and refuse one of another problem than the instance's."""
    from optsched.documents.faults import InstanceError
    from optsched.results.result_files import read_result

    result = read_result(source)
    if result.problem != instance.problem:
        text = f"problem: a result of '{result.problem}', the instance is of '{instance.problem}'"
        raise InstanceError(source, [text])
    return result


def _solved(
    instance: Instance,
    method: str | None,
    start: Result | None,
    processes: int,
    limits: dict[str, Any],
    *,
    verbose: bool,
) -> Result:
    from optsched.solving import solve as solve_instance

    with (
        console.workers(processes) as executor,
        progress.solving(instance.name, verbose=verbose) as tell,
    ):
        return solve_instance(
            instance, method, start=start, executor=executor, progress=tell, **limits
        )


def _print(instance: Instance, result: Result) -> None:
    from optsched.cli.printing import tables
    from optsched.cli.printing.sheets import facts

    parts: tuple[Any, ...] = ()
    if result.plan is not None:
        parts = (facts(result.summary()), "", tables.decisions(instance, result))
    if parts or output.is_json():
        output.show(
            *parts, records=lambda: result.frame().to_dict("records"), document=result.to_json
        )


def _write(result: Result, result_file: str | None, picture: str | None) -> None:
    from optsched.instance import write

    if result_file is not None:
        write(result, result_file)
    if picture is not None and result.plan is not None:
        console.draw(result.plot, picture)


def _ended(result: Result) -> ExitCode:
    """Return the exit code; tell why where there is no plan."""
    from optsched.results.result import Status

    if result.status is Status.ERROR and result.ending.is_interrupted:
        console.fail(*interrupts.told())
    if result.plan is not None:
        return ExitCode.DONE
    output.say(f"{result.status}: {result.message}", err=True)
    return ExitCode.INFEASIBLE if result.status is Status.INFEASIBLE else ExitCode.NO_PLAN
