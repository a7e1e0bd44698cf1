"""The commands `optsched new`, `show` and `schema`: files of every kind, and their schemas."""

from __future__ import annotations

import shlex
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from optsched.cli import completion, console, options
from optsched.cli.printing import described, output
from optsched.registry import PROBLEMS, UnknownNameError

KINDS = {
    **{name: f"an instance of {name}" for name in PROBLEMS},
    "scenario": "a simulated cluster, its jobs and policies",
    "topology": "a cluster: its levels, nodes and GPUs",
    "trace": "jobs that come over time",
    "result": "what solve --output writes",
    "frontier": "what frontier --output writes",
    "rollout": "summary.json, which rollout --output writes",
    "comparison": "what compare --output writes",
    "bound": "what bound --output writes",
}
"""What a file of optsched can be, by the word in its "schema"."""

TEMPLATES = {
    **dict.fromkeys(PROBLEMS, "optsched solve {}"),
    "scenario": "optsched compare {}",
    "topology": "optsched topology show {}",
    "trace": "optsched trace show {}",
}
"""What can be begun with `optsched new`, and the command that takes it."""
_CLASSES = {
    "topology": ("optsched.cluster", "Topology"),
    "trace": ("optsched.traces.json_traces", "TraceDocument"),
    "result": ("optsched.results.result", "Result"),
    "frontier": ("optsched.sweeps.points", "Frontier"),
    "comparison": ("optsched.rollout.results.comparison_files", "ComparisonDocument"),
    "bound": ("optsched.bounds.certificate", "Bounds"),
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


def new(
    name: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help=f"One of {', '.join(TEMPLATES)}.",
            autocompletion=lambda: list(TEMPLATES),
        ),
    ],
    file: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write it there: .yaml with comments, or .json; by default it is printed.",
            rich_help_panel=options.FILES,
        ),
    ] = None,
) -> None:
    """Begin a file of your own: one with comments, to fill in, that works as it stands.

    Example: optsched new boa --output my.yaml
    """
    from optsched.documents.json_files import dumps, load, write_text
    from optsched.instance import BUNDLED

    console.check_output(file, (".yaml", ".yml", ".json"))
    if name not in TEMPLATES:
        raise UnknownNameError("kind of files to begin", name, list(TEMPLATES))
    path = BUNDLED / "templates" / f"{name}.yaml"
    if file is not None and Path(file).exists():
        raise FileExistsError(f"--output {file}: there is such a file already")
    text = path.read_text(encoding="utf-8").replace(" FILE", f" {shlex.quote(file or 'FILE')}")
    data = dumps(load(path))
    is_data = output.is_json() if file is None else file.lower().endswith(".json")
    text = data if is_data else text
    if file is None:
        output.say(text, nl=False)
        return
    write_text(file, text)
    told = f"{file}: edit it; then `{TEMPLATES[name].format(shlex.quote(file))}`"
    if output.is_json():
        output.print_json(data)
    else:
        output.say(told)


COMMANDS = (new, show, schema)


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
        from optsched.registry import schema

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
