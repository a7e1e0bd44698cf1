"""The commands `optsched check` and `verify`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import typer

from optsched.cli import console, options
from optsched.cli.bound import proven as proven_bounds
from optsched.cli.console import ExitCode
from optsched.cli.instances import read_instance
from optsched.cli.printing import output
from optsched.cli.printing.sheets import Sheet, facts
from optsched.cli.solve import of_same_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.instance import Instance
    from optsched.results.result import Result


def check(
    source: options.Source, result_file: options.ResultFile, changes: options.Changes = None
) -> None:
    """Check the plan of a result against every rule.

    Changes of fields that the result was solved with need not be named again.

    JSON: instance, changes, feasible, and broken_rules if it is not.

    Example: optsched check boa/cbd-85 result.json
    """
    from optsched.verification import check as check_plan

    instance, result = _solved(source, changes, result_file)
    if result.plan is None:
        console.fail(f"{result_file}: holds no plan to check", ExitCode.FAILED)
    told: dict[str, Any] = {"instance": instance.name, "changes": dict(instance.changes)}
    with _verifying(told, "feasible"):
        check_plan(instance, result.plan)
    _tell(f"feasible: the plan keeps every rule of {_named(instance)}", told | {"feasible": True})


def verify(
    source: options.Source,
    result_file: options.ResultFile,
    changes: options.Changes = None,
    trace: options.TraceFile = None,
    input_format: options.InputFormat = None,
    workload: options.Workload = None,
) -> None:
    """Prove the bound of a result, of a trace, or of each point of a frontier, without a solver.

    Changes of fields that the result was solved with need not be named again. Bounds need the
    trace that they are of, where that was named, too.

    JSON: instance, changes, proven, statement, status, objective, bound, gap, unit;
    or broken_rules.

    Example: optsched verify boa/cbd-85 result.json

    Example: optsched verify philly-small bound.json

    Example: optsched verify mine.json bound.json --trace jobs.json
    """
    from optsched.verification import verify as prove

    if _is_of("frontier", result_file):
        _verify_frontier(source, changes, result_file)
        return
    if _is_of("bound", result_file):
        told: dict[str, Any] = {"scenario": source}
        with _verifying(told, "proven"), console.spinner("verifying"):
            given = (trace, input_format, workload)
            text, told = proven_bounds(source, changes, result_file, *given)
        _tell(text, told)
        return
    if trace or input_format or workload:
        raise ValueError("--trace, --input-format, --workload: of bounds; this file holds none")
    instance, result = _solved(source, changes, result_file)
    told = {"instance": instance.name, "changes": dict(instance.changes)}
    with _verifying(told, "proven"):
        prove(instance, result)
    told |= {"proven": True, "status": str(result.status), "objective": result.objective,
             "bound": result.bound, "gap": result.gap, "unit": result.objective_unit}  # fmt: skip
    text, shown = _proven(instance, result)
    _tell(text, told | {"statement": text}, shown)


COMMANDS = (check, verify)


def _proven(instance: Instance, result: Result) -> tuple[str, dict[str, str]]:
    """Return what is proven, in a sentence, and the figures that belong to it."""
    from optsched.cli.printing import tables

    if result.bound is None:
        return f"proven: no plan keeps every rule of {_named(instance)}", {}
    unit, name = result.objective_unit, tables.objective_name(instance)
    where = f" for {_named(instance)}" if instance.changes else ""
    text = f"proven: no plan has {console.article(name)} below {result.bound:,} {unit}{where}"
    if result.objective is None:
        return text, {}
    objective = f"{result.objective:,} {unit}, recomputed from the plan"
    return text, {"objective": objective, "gap": result.summary()["gap"]}


@contextlib.contextmanager
def _verifying(told: dict[str, Any], word: str) -> Iterator[None]:
    """Print broken rules as what they are: the outcome of the command."""
    from optsched.verification import Violation

    try:
        yield
    except Violation as violation:
        broken = [str(rule) for rule in violation.broken]
        _tell(str(violation), told | {word: False, "broken_rules": broken})
        raise typer.Exit(ExitCode.FAILED) from None


def _tell(text: str, document: dict[str, Any], shown: dict[str, str] | None = None) -> None:
    """Print an outcome: a sentence and figures, or what a program reads."""
    simple = {key: value for key, value in document.items() if not isinstance(value, list | dict)}
    parts: list[Sheet | str] = [text, *([facts(shown)] if shown else [])]
    if output.is_data():
        output.show(*parts, records=lambda: [simple], document=lambda: document)
    else:
        output.say(text)
        if shown:
            output.show(*parts[1:])


def _solved(source: str, changes: list[str] | None, result_file: str) -> tuple[Instance, Result]:
    """Read a result and its instance; the changes that the result names are made if none are."""
    from optsched.explanation.explain import as_solved

    instance = read_instance(source, changes)
    result = of_same_problem(result_file, instance)
    return as_solved(instance, result) or instance, result


def _is_of(kind: str, source: str) -> bool:
    """Tell whether a file is a frontier, or bounds, by its schema."""
    from optsched.instance import find, load

    document = load(find(source))
    schema = document.get("schema") if isinstance(document, dict) else None
    return isinstance(schema, str) and schema.startswith(f"optsched/{kind}/")


def _verify_frontier(source: str, changes: list[str] | None, frontier_file: str) -> None:
    from optsched.explanation.explain import with_digest
    from optsched.sweeps.frontier_files import read_frontier
    from optsched.sweeps.verified_points import verify_frontier

    instance, frontier = read_instance(source, changes), read_frontier(frontier_file)
    instance = with_digest(instance, frontier) or instance
    told: dict[str, Any] = {"instance": instance.name, "changes": dict(instance.changes)}
    with (
        _verifying(told, "proven"),
        console.spinner(f"verifying {len(frontier.points)} points"),
    ):
        verify_frontier(instance, frontier)
    text = f"proven: every bound of {len(frontier.points)} points of {_named(instance)}"
    told |= {"proven": True, "points": len(frontier.points), "statement": text}
    _tell(text, told, frontier.summary())


def _named(instance: Instance) -> str:
    """Return the name of an instance, and the changes that were made to it."""
    made = ", ".join(f"{path}={value}" for path, value in instance.changes.items())
    return f"{instance.name} with {made}" if made else instance.name
