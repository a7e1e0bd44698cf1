"""The commands that list and write out: `optsched instances`, `export`, `methods`, `schema`.

And how commands are given an instance.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli import console

if TYPE_CHECKING:
    from optsched.instance import Instance


class ModelFormat(StrEnum):
    """Formats of files that other solvers read."""

    LP = "lp"
    MPS = "mps"


Source = Annotated[
    str,
    typer.Argument(metavar="INSTANCE", help="A file, or the name of a bundled instance."),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Change a field, e.g. budget_gpus=24 or classes.*.rescale_s=0; null removes it. "
        "May be given several times.",
    ),
]
ProblemName = Annotated[str, typer.Argument(metavar="PROBLEM", help="A problem, such as boa.")]


def instances() -> None:
    """List the bundled instances.

    Example: optsched instances
    """
    from optsched.cli import tables
    from optsched.instance import names, read

    for table in tables.instances([(name, read(name)) for name in names()]):
        console.show_list(table)


def export(
    source: Source,
    file_format: Annotated[ModelFormat, typer.Option("--format")] = ModelFormat.LP,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Default: stdout.")
    ] = None,
    changes: Changes = None,
) -> None:
    """Write the formulation of an instance for another solver.

    Example: optsched export boa/hand --format mps --output hand.mps
    """
    from optsched.documents.json_files import write_text
    from optsched.exporting import export as text_of

    console.check_output(output, (f".{file_format.value}",))
    text = text_of(read_instance(source, changes), file_format.value)
    if output is None:
        console.say(text, nl=False)
    else:
        write_text(output, text)


def methods(name: ProblemName) -> None:
    """List the methods of a problem.

    Example: optsched methods boa
    """
    from optsched.cli import tables

    console.show(tables.methods(name))


def schema(name: ProblemName) -> None:
    """Print the JSON Schema of a problem's instances.

    Example: optsched schema boa
    """
    from optsched.instance import dumps
    from optsched.instance import schema as schema_of

    console.print_json(dumps(schema_of(name)))


def read_instance(source: str, changes: list[str] | None) -> Instance:
    """Read an instance, and change fields of it as asked."""
    from optsched.instance import read

    wanted = console.changes(changes)
    instance = read(source)
    return instance.changed(wanted) if wanted else instance


COMMANDS = (instances, export, methods, schema)
