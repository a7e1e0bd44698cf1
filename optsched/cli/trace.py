"""The commands `optsched trace ...`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli import completion, console, hints, options
from optsched.cli.printing import output
from optsched.cli.printing.sheets import facts

if TYPE_CHECKING:
    from optsched.traces import Trace

TraceOutput = Annotated[
    str, options.file("--output", "-o", metavar="FILE", help="Where the trace goes, as JSON.")
]

Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help="Of format csv: the column that holds a field, such as run=duration. Several times.",
        rich_help_panel=options.DATA,
    ),
]
Units = Annotated[
    list[str] | None,
    typer.Option(
        "--unit",
        metavar="FIELD=UNIT",
        help="Of format csv: us, ms, s, min, h or d, such as run=min. Several times.",
        rich_help_panel=options.DATA,
    ),
]
Zone = Annotated[
    str | None,
    typer.Option(
        metavar="ZONE",
        help="Of dates that have none, such as Europe/Berlin.",
        rich_help_panel=options.DATA,
    ),
]

app = console.group("Import, generate and show traces of jobs.")


@app.command("import", cls=output.Command)
def import_file(
    source: Annotated[str, typer.Argument(metavar="FILE", help="Plain or compressed by gzip.")],
    file_format: Annotated[
        str,
        options.data(
            "--input-format", "--format", metavar="NAME", help="See `optsched trace formats`."
        ),
    ],
    trace_file: TraceOutput,
    workload: options.Workload = None,
    columns: Columns = None,
    units: Units = None,
    zone: Zone = None,
    settings: options.Settings = None,
) -> None:
    """Read the jobs of a public trace or of your own table, and say what was left out of it.

    Example: optsched trace import cluster_job_log --input-format philly -o trace.json

    Example: optsched trace import jobs.csv --format csv --map run=hours --unit run=h -o jobs.json
    """
    from optsched.traces import import_trace, write_trace

    console.check_output(trace_file, (".json",))
    given = keywords(settings)
    for name, flag, entries in (("map", "--map", columns), ("unit", "--unit", units)):
        if entries:
            given[name] = words(flag, entries)
    given |= {"zone": zone} if zone is not None else {}
    trace = import_trace(source, file_format, workload, **given)
    write_trace(trace, trace_file)
    _show(trace)


@app.command(cls=output.Command)
def show(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A file of import or generate.", autocompletion=completion.files
        ),
    ],
) -> None:
    """Show the jobs of a trace: sizes, statuses, run times.

    JSON: summary, groups, notes.

    Example: optsched trace show trace.json
    """
    from optsched.traces import read_trace

    _show(read_trace(source))


@app.command(cls=output.Command)
def formats() -> None:
    """List the formats that can be imported.

    Example: optsched trace formats
    """
    from optsched.cli.printing import tables
    from optsched.traces import FORMATS
    from optsched.traces.importers.registry import format_options, installed_formats

    rows: list[dict[str, Any]] = [
        {"format": name, "summary": known.summary, "options": dict(format_options(name))}
        for name, known in FORMATS.items()
    ]
    rows += [
        {"format": other.name, "summary": other.fault or other.owner, "options": {}}
        for other in installed_formats()
    ]
    entries = ((row["format"], row["summary"], _joined(row["options"])) for row in rows)
    output.show(
        tables.listed(("format", "what it is", "options"), entries),
        document=lambda: {"formats": rows},
    )


@app.command(cls=output.Command)
def generate(
    name: Annotated[str, typer.Argument(help="See `optsched trace generators`.")],
    trace_file: TraceOutput,
    jobs: Annotated[int, options.data(metavar="N", help="How many.")] = 1000,
    seed: options.Seed = 0,
    settings: options.Settings = None,
) -> None:
    """Generate the jobs of a trace; the same arguments give the same bytes.

    Example: optsched trace generate philly-atc19 --jobs 5000 --set max_gpus=32 -o trace.json
    """
    from optsched.traces import generate, write_trace

    console.check_output(trace_file, (".json",))
    trace = generate(name, jobs, seed, **keywords(settings))
    write_trace(trace, trace_file)
    _show(trace)


@app.command(cls=output.Command)
def generators(
    name: Annotated[str | None, typer.Argument(help="Show the options of this one.")] = None,
) -> None:
    """List the generators, or the options of one with their defaults.

    Example: optsched trace generators philly-atc19
    """
    from optsched.cli.printing import tables
    from optsched.traces import GENERATORS, options_of

    if name is not None:
        known_options = options_of(name)
        output.show(
            tables.listed(("option", "default"), known_options.items()),
            document=lambda: {"generator": name, "options": known_options},
        )
        return
    rows = [
        {"generator": key, "summary": known.summary, "source": known.source}
        for key, known in GENERATORS.items()
    ]
    output.show(
        tables.listed(("generator", "what it is", "source"), (row.values() for row in rows)),
        document=lambda: {"generators": rows},
    )


def keywords(options: list[str] | None) -> dict[str, Any]:
    """Return options given as KEY=VALUE; values are JSON, or else words."""
    return console.assignments("--set", "KEY=VALUE", options)


def words(flag: str, entries: list[str]) -> dict[str, str]:
    """Return what was given as FIELD=NAME; names are words, whatever they look like."""
    parts = [entry.partition("=") for entry in entries]
    for entry, (field, sign, value) in zip(entries, parts, strict=True):
        if not (field and sign and value):
            raise typer.BadParameter(f"expected FIELD=NAME, found '{entry}'", param_hint=flag)
    return {field: value for field, _, value in parts}


def _joined(options: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in options.items())


def _show(trace: Trace) -> None:
    """Print what is said of a trace: its summary, and a row for each size and status."""
    from optsched.cli.printing import tables
    from optsched.traces.summary import groups, headline

    hints.tell(hints.of_trace(trace))
    rows, head = groups(trace), headline(trace)
    table = tables.grid(rows[0], (row.values() for row in rows), left=1)
    notes = ["", *trace.notes] if trace.notes else []
    output.show(
        facts(head), "", table, *notes,
        document=lambda: {"summary": head, "groups": rows, "notes": list(trace.notes)},
    )  # fmt: skip
