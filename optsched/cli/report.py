"""The commands `optsched report`, `explain` and `doctor`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from optsched.cli import completion, console, options
from optsched.cli.printing import output
from optsched.cli.printing.sheets import facts

if TYPE_CHECKING:
    from optsched.cli.printing.sheets import Sheet
    from optsched.explanation.explanation import Explanation
    from optsched.instance import Instance

Instances = Annotated[
    list[str] | None,
    options.data(
        "--instance",
        metavar="INSTANCE",
        help="What a result is of, where that is no bundled instance. May be given several times.",
        autocompletion=completion.instances,
    ),
]


def report(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="RESULT_OR_DIR...",
            help="Results, frontiers and comparisons written by --output, and folders of rollouts.",
            autocompletion=completion.files,
        ),
    ],
    page_file: Annotated[
        str,
        options.file(
            "--output",
            "-o",
            metavar="FILE",
            help="The page.",
        ),
    ] = "report.html",
    title: Annotated[
        str,
        options.file(
            metavar="TEXT",
            help="Of the page.",
        ),
    ] = "optsched report",
    instance: Instances = None,
    changes: options.Changes = None,
    any_versions: Annotated[
        bool,
        options.data(
            "--any-versions",
            help="Show what was made with different versions of packages, too, and say so.",
        ),
    ] = False,
) -> None:
    """Write one page with tables, pictures and controls, to show somebody else.

    The page is a single file that needs no network. JSON: output, bytes, sources.

    Example: optsched report result.json frontier.json out -o report.html

    Example: optsched report compared.json -o report.html
    """
    from optsched.documents.json_files import write_text
    from optsched.reports.report import report as page_of

    console.check_output(page_file, (".html",))
    given = _instances(instance, changes)
    page = page_of(sources, title=title, instances=given, any_versions=any_versions)
    write_text(page_file, page)
    size = len(page.encode())
    told = {"output": page_file, "bytes": size, "sources": list(sources)}
    text = f"{page_file}: {size / 1e6:.1f} MB, open it in a browser"
    if not output.is_data():
        output.say(text)
        return
    output.show(text, records=lambda: [{"output": page_file, "bytes": size}],
                document=lambda: told)  # fmt: skip


def explain(
    result_file: options.ResultFile,
    instance: Annotated[
        str | None,
        options.data(
            metavar="INSTANCE",
            help="What it is of, if that is no bundled instance.",
            autocompletion=completion.instances,
        ),
    ] = None,
    changes: options.Changes = None,
    time_limit: Annotated[
        float,
        options.limit(
            metavar="SECONDS",
            help="For all solves that this takes.",
        ),
    ] = 60.0,
) -> None:
    """Say why there is no plan, or why it is this one and what wider limits would save.

    JSON: instance, status, because, conflict, is_irreducible, binding, prices.

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
        told = explanation(solved, result.of(solved), time_limit)
    prices = [price._asdict() for price in told.prices]
    output.show(str(told), records=lambda: prices, document=lambda: _document(told))


def doctor(
    cache: Annotated[
        str | None,
        options.file(
            metavar="DIR",
            help="A cache whose free space is to be told.",
        ),
    ] = None,
) -> None:
    """Tell versions, threads, free memory and disk, and solve what is known: for bug reports.

    Exit code 1 if something is not as it should be. JSON: is_fine, findings.

    Example: optsched doctor
    """
    from optsched.cli.doctor import doctor as examine

    with console.spinner("solving what is known"):
        findings = examine(None if cache is None else Path(cache))
    bad = sum(not finding.is_fine for finding in findings)
    parts: list[Sheet | str] = []
    for topic, group in groupby(findings, key=lambda finding: finding.topic):
        rows = {f.name: f.text if f.is_fine else f"BAD: {f.text}" for f in group}
        parts += [f"{topic}:", facts(rows), ""]
    rows_told = [finding._asdict() for finding in findings]
    output.show(
        *parts, *([] if bad else ["all is well"]),
        records=lambda: rows_told,
        document=lambda: {"is_fine": not bad, "findings": rows_told},
    )  # fmt: skip
    if bad:
        console.fail(f"{bad} of {len(findings)} findings are bad", console.ExitCode.FAILED)


COMMANDS = (report, explain, doctor)


def _document(told: Explanation) -> dict[str, Any]:
    return {
        "instance": told.instance,
        "status": str(told.status),
        "because": told.because,
        "conflict": [rule._asdict() for rule in told.conflict],
        "is_irreducible": told.is_irreducible,
        "binding": list(told.binding),
        "prices": [price._asdict() for price in told.prices],
    }


def _instances(sources: list[str] | None, changes: list[str] | None) -> list[Instance]:
    from optsched.instance import read

    wanted = console.changes(changes)
    instances = [read(source) for source in sources or ()]
    return [each.changed(wanted) if wanted else each for each in instances]
