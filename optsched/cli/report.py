"""The commands `optsched report`, `explain` and `doctor`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from optsched.cli import console

if TYPE_CHECKING:
    from optsched.instance import Instance

Instances = Annotated[
    list[str] | None,
    typer.Option(
        "--instance",
        metavar="INSTANCE",
        help="What a result is of, where that is no bundled instance. May be given several times.",
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Changes of fields, where the result names none. May be given several times.",
    ),
]


def report(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT_OR_DIR...",
            help="Results and frontiers written by --output, and folders of rollouts.",
        ),
    ],
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="The page.")
    ] = "report.html",
    title: Annotated[str, typer.Option(help="Of the page.")] = "optsched report",
    instance: Instances = None,
    changes: Changes = None,
) -> None:
    """Write one page with tables, pictures and controls, to show somebody else.

    The page is a single file that needs no network.

    Example: optsched report result.json frontier.json out -o report.html
    """
    from optsched.documents.json_files import write_text
    from optsched.reports.report import report as page_of

    console.check_output(output, (".html",))
    page = page_of(sources, title=title, instances=_instances(instance, changes))
    write_text(output, page)
    console.say(f"{output}: {len(page.encode()) / 1e6:.1f} MB, open it in a browser")


def explain(
    result_file: Annotated[
        str, typer.Argument(metavar="RESULT", help="A file written by --output.")
    ],
    instance: Annotated[
        str | None,
        typer.Option(metavar="INSTANCE", help="What it is of, if that is no bundled instance."),
    ] = None,
    changes: Changes = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="For all solves that this takes.")
    ] = 60.0,
) -> None:
    """Say why there is no plan, or why it is this one and what wider limits would save.

    Example: optsched explain result.json

    Example: optsched explain result.json --instance my.json
    """
    from optsched.explanation.explain import as_solved, instance_of
    from optsched.explanation.explain import explain as explanation
    from optsched.results.result_files import read_result

    result = read_result(result_file)
    if instance or changes:
        given = _instances([instance or result.instance], changes)
        solved = as_solved(given[0], result)
        where = "it was solved with other data than those given"
    else:
        solved = instance_of(result)
        where = f"its instance '{result.instance}' is not at hand; give it with --instance"
    if solved is None:
        raise ValueError(f"{result_file}: {where}")
    with console.spinner(f"explaining {result_file}"):
        text = str(explanation(solved, result.of(solved), time_limit))
    console.say(text)


def doctor(
    cache: Annotated[
        str | None, typer.Option(metavar="DIR", help="A cache whose free space is to be told.")
    ] = None,
) -> None:
    """Tell versions, threads, free memory and disk, and solve what is known: for bug reports.

    Exit code 1 if something is not as it should be.

    Example: optsched doctor
    """
    from optsched.cli import tables
    from optsched.cli.doctor import doctor as examine

    with console.spinner("solving what is known"):
        findings = examine(None if cache is None else Path(cache))
    for topic, group in groupby(findings, key=lambda finding: finding.topic):
        rows = {f.name: f.text if f.is_fine else f"BAD: {f.text}" for f in group}
        console.show(f"{topic}:", tables.rows(rows))
        console.say()
    bad = sum(not finding.is_fine for finding in findings)
    if bad:
        console.fail(f"{bad} of {len(findings)} findings are bad", console.ExitCode.FAILED)
    console.say("all is well")


COMMANDS = (report, explain, doctor)


def _instances(sources: list[str] | None, changes: list[str] | None) -> list[Instance]:
    from optsched.instance import read

    wanted = console.changes(changes)
    instances = [read(source) for source in sources or ()]
    return [each.changed(wanted) if wanted else each for each in instances]
