"""The commands `optsched trace ...`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli import console

if TYPE_CHECKING:
    from rich.table import Table

    from optsched.traces import Trace

Output = Annotated[
    str, typer.Option("--output", "-o", metavar="FILE", help="Where the trace goes, as JSON.")
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="May be given several times."),
]

app = console.group("Import, generate and show traces of jobs.")


@app.command("import")
def import_file(
    source: Annotated[str, typer.Argument(metavar="FILE", help="Plain or compressed by gzip.")],
    file_format: Annotated[
        str, typer.Option("--format", metavar="NAME", help="See `optsched trace formats`.")
    ],
    output: Output,
    workload: Annotated[
        str | None, typer.Option(metavar="N", help="Which one, where a file holds several.")
    ] = None,
    option: Options = None,
) -> None:
    """Read the jobs of a public trace, and say what was left out of it.

    Example: optsched trace import cluster_job_log --format philly -o trace.json
    """
    from optsched.traces import import_trace, write_trace

    console.check_output(output, (".json",))
    trace = import_trace(source, file_format, workload, **keywords(option))
    write_trace(trace, output)
    console.show(*_shown(trace))


@app.command()
def show(
    source: Annotated[str, typer.Argument(metavar="FILE", help="A file of import or generate.")],
) -> None:
    """Show the jobs of a trace: sizes, statuses, run times.

    Example: optsched trace show trace.json
    """
    from optsched.traces import read_trace

    console.show(*_shown(read_trace(source)))


@app.command()
def formats() -> None:
    """List the formats that can be imported.

    Example: optsched trace formats
    """
    from optsched.cli import tables
    from optsched.traces import FORMATS
    from optsched.traces.importers.registry import format_options

    rows = []
    for name, known in FORMATS.items():
        options = " ".join(f"{key}={value}" for key, value in format_options(name).items())
        rows.append((name, known.summary, options))
    console.show(tables.grid(("format", "what it is", "options"), rows, left=3))


@app.command()
def generate(
    name: Annotated[str, typer.Argument(help="See `optsched trace generators`.")],
    output: Output,
    jobs: Annotated[int, typer.Option(metavar="N", help="How many.")] = 1000,
    seed: Annotated[int, typer.Option(help="Another seed gives another trace.")] = 0,
    option: Options = None,
) -> None:
    """Generate the jobs of a trace; the same arguments give the same bytes.

    Example: optsched trace generate philly-atc19 --jobs 5000 --option max_gpus=32 -o trace.json
    """
    from optsched.traces import generate, write_trace

    console.check_output(output, (".json",))
    trace = generate(name, jobs, seed, **keywords(option))
    write_trace(trace, output)
    console.show(*_shown(trace))


@app.command()
def generators(
    name: Annotated[str | None, typer.Argument(help="Show the options of this one.")] = None,
) -> None:
    """List the generators, or the options of one with their defaults.

    Example: optsched trace generators philly-atc19
    """
    from optsched.cli import tables
    from optsched.traces import GENERATORS, options_of

    if name is not None:
        console.show(tables.rows(options_of(name)))
        return
    texts = {key: f"{known.summary} ({known.source})" for key, known in GENERATORS.items()}
    console.show(tables.rows(texts))


def keywords(options: list[str] | None) -> dict[str, Any]:
    """Return options given as KEY=VALUE; values are JSON, or else words."""
    return console.assignments("--option", "KEY=VALUE", options)


def _shown(trace: Trace) -> list[Table | str]:
    """Return what is said of a trace: its summary, and a row for each size and status."""
    from optsched.cli import tables
    from optsched.traces.summary import groups, headline

    rows = groups(trace)
    table = tables.grid(rows[0], (row.values() for row in rows), left=1)
    parts: list[Table | str] = [tables.rows(headline(trace)), "", table]
    return [*parts, *(["", *trace.notes] if trace.notes else [])]
