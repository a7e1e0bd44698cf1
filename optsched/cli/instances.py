"""The commands that list and write out: `optsched instances`, `methods`, `export`.

And how commands are given an instance, or a scenario and its trace.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli import completion, console, hints, options
from optsched.cli.printing import output

if TYPE_CHECKING:
    from optsched.instance import Instance
    from optsched.rollout import Scenario
    from optsched.rollout.trace_source import TraceLike


class ModelFormat(StrEnum):
    """Formats of files that other solvers read."""

    LP = "lp"
    MPS = "mps"


Problem = Annotated[
    str | None,
    typer.Argument(
        metavar="[PROBLEM]",
        help="Such as boa; by default all.",
        autocompletion=completion.problems,
    ),
]


def instances(name: Problem = None) -> None:
    """List the bundled instances, of a problem or of all.

    JSON: instances, each with name, problem, best_known, unit, is_proven, sizes, description.

    Example: optsched instances
    """
    from optsched.cli.printing import tables
    from optsched.instance import names, read
    from optsched.registry import problem

    known = names() if name is None else names(problem(name).name)
    named = [(each, read(each)) for each in known]
    parts = [part for table in tables.instances(named) for part in (table, "")]
    output.show(
        *parts[:-1],
        records=lambda: tables.instance_records(named),
        document=lambda: {"instances": tables.instance_records(named)},
    )


def methods(name: Problem = None) -> None:
    """List the methods of a problem, or of all.

    JSON: methods, each with problem, name, kind, summary, source.

    Example: optsched methods boa
    """
    from optsched.cli.printing import tables
    from optsched.registry import PROBLEMS

    names = list(PROBLEMS) if name is None else [name]
    shown = tables.methods(names)
    output.show(shown, document=lambda: {"methods": tables.method_records(names)},
                records=lambda: tables.method_records(names))  # fmt: skip


def export(
    source: options.Source,
    file_format: Annotated[
        ModelFormat, typer.Option("--format", help="Of what is written.")
    ] = ModelFormat.LP,
    model_file: Annotated[
        str | None,
        options.file(
            "--output",
            "-o",
            metavar="FILE",
            help="By default it is printed.",
        ),
    ] = None,
    changes: options.Changes = None,
) -> None:
    """Write the formulation of an instance for another solver.

    Example: optsched export boa/hand --format mps --output hand.mps
    """
    from optsched.documents.json_files import write_text
    from optsched.exporting import export as text_of

    console.check_output(model_file, (f".{file_format.value}",))
    instance = read_instance(source, changes)
    text = text_of(instance, file_format.value)
    told = {"instance": instance.name, "format": file_format.value, "output": model_file}
    if model_file is not None:
        write_text(model_file, text)
    if output.is_json():
        output.print_json(told if model_file is not None else told | {"model": text})
    elif model_file is None:
        output.say(text, nl=False)


def read_instance(source: str, changes: list[str] | None) -> Instance:
    """Read an instance, and change fields of it as asked; hint at what looks like a slip."""
    from optsched.instance import names, read

    wanted = console.changes(changes)
    instance = read(source)
    instance = instance.changed(wanted) if wanted else instance
    if wanted or source not in names():
        document = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
        hints.tell(hints.of_document(document))
    return instance


COMMANDS = (instances, methods, export)


def scenario_and_trace(
    source: str,
    changes: list[str] | None,
    trace: str | None,
    file_format: str | None,
    workload: str | None,
) -> tuple[Scenario, TraceLike | None]:
    """Return a scenario with its changes, and the jobs that --trace names."""
    from optsched.rollout.trace_source import scenario_of

    wanted = console.changes(changes)
    scenario = scenario_of(source)
    scenario = scenario.changed(wanted) if wanted else scenario
    return scenario, _trace(scenario, trace, file_format, workload)


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
