"""The commands `optsched show` and `schema`: files of every kind, and their JSON Schemas."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli import completion, console, options
from optsched.cli.printing import described, output
from optsched.registry import PROBLEMS, UnknownNameError

if TYPE_CHECKING:
    from pathlib import Path

KINDS = {
    **{name: f"an instance of {name}" for name in PROBLEMS},
    "scenario": "a simulated cluster, its jobs and policies",
    "topology": "a cluster: its levels, nodes and GPUs",
    "trace": "jobs that come over time",
    "result": "what solve --output writes",
    "frontier": "what frontier --output writes",
    "rollout": "summary.json, which rollout --output writes",
}
"""What a file of optsched can be, by the word in its "schema"."""

_CLASSES = {
    "topology": ("optsched.cluster", "Topology"),
    "trace": ("optsched.traces.json_traces", "TraceDocument"),
    "result": ("optsched.results.result", "Result"),
    "frontier": ("optsched.sweeps.points", "Frontier"),
}


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="Of files, such as boa or trace; without it they are listed.",
            autocompletion=lambda: list(KINDS),
        ),
    ] = None,
) -> None:
    """Print the JSON Schema of a kind of files.

    Example: optsched schema boa
    """
    from optsched.cli.printing import tables

    if name is not None:
        output.print_json(schema_of(name))
        return
    rows = [{"kind": kind, "what it is": text} for kind, text in KINDS.items()]
    output.show(
        tables.listed(("kind", "what it is"), KINDS.items()), document=lambda: {"schemas": rows}
    )


def show(
    source: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Of a bundled instance or scenario, or a file.",
            autocompletion=completion.subjects,
        ),
    ],
    changes: options.Changes = None,
    copy_file: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write a copy there, to edit.",
            rich_help_panel=options.FILES,
        ),
    ] = None,
) -> None:
    """Show what a file holds, bundled or your own; with --output get a copy to edit.

    Example: optsched show boa/hand

    Example: optsched show philly-small --output my-scenario.json
    """
    from optsched.documents.json_files import dumps, write_text

    console.check_output(copy_file, (".json",))
    document = _document(source, changes)
    if copy_file is not None:
        write_text(copy_file, dumps(document))
    output.show(*described.parts(document), document=lambda: document)


COMMANDS = (show, schema)


def schema_of(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of files.

    Raises
    ------
    UnknownNameError
        If there is no such kind.
    """
    if name not in KINDS:
        raise UnknownNameError("kind of files", name, list(KINDS))
    if name in PROBLEMS:
        from optsched.instance import schema

        return schema(name)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return head | _class_of(name)


def _class_of(name: str) -> dict[str, Any]:
    """Return the schema of a kind that is no instance."""
    if name == "scenario":
        from optsched.rollout.scenario_files import scenario_schema

        return scenario_schema()
    if name == "rollout":
        from optsched.rollout.results.outputs import summary_schema

        return summary_schema()
    module, cls = _CLASSES[name]
    body: dict[str, Any] = getattr(import_module(module), cls).model_json_schema(by_alias=True)
    return {"$id": body["properties"]["schema"]["const"]} | body


def _document(source: str, changes: list[str] | None) -> dict[str, Any]:
    """Return what a file holds; where fields are changed, what is valid after that."""
    from optsched.documents.faults import InstanceError, shown
    from optsched.documents.json_files import load
    from optsched.instance import find_bundled, names, read
    from optsched.rollout.scenario_files import read_scenario, scenario_names

    known = [*names(), *scenario_names()]
    path = find_bundled(
        source, _folder(source), "file, bundled instance or scenario", lambda: known
    )
    document = load(path)
    if not isinstance(document, dict):
        raise InstanceError(source, [f"document: expected an object, found {shown(document)}"])
    wanted = console.changes(changes)
    if not wanted:
        return document
    is_scenario = str(document.get("schema")).startswith("optsched/scenario/")
    thing = read_scenario(path) if is_scenario else read(path)
    return thing.changed_document(wanted)


def _folder(source: str) -> Path:
    from optsched.instance import BUNDLED

    return BUNDLED if "/" in source else BUNDLED / "scenarios"
