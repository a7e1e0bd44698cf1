"""What every command prints with, and the options that say how: --format, --json and --wide."""

from __future__ import annotations

import os
import re
import textwrap
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from optsched.cli.printing import streams
from optsched.cli.printing.dropped_options import dropped
from optsched.cli.printing.sheets import Sheet, csv_text, folded, plain
from optsched.documents.json_files import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from rich.console import Console

PANEL = "Output"
HELP_OPTIONS = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


class Format(StrEnum):
    """How tables are printed."""

    TABLE = "table"
    CSV = "csv"
    LATEX = "latex"
    JSON = "json"
    MARKDOWN = "markdown"


class _Chosen:
    """How this process prints: it has one command."""

    form: Format = Format.TABLE
    is_wide: bool = False


def is_json() -> bool:
    """Tell whether one JSON object is to be printed, and nothing else."""
    return _Chosen.form is Format.JSON


def is_data() -> bool:
    """Tell whether another program reads what is printed: JSON or CSV."""
    return _Chosen.form in (Format.JSON, Format.CSV)


NARROW = 60
"""Columns of a terminal below which boxes would cut names of options: help has none then."""


class Command(TyperCommand):
    """A command that prints tables: it takes the options that say how."""

    def __init__(self, *args: Any, params: list[Any] | None = None, **kwargs: Any) -> None:
        taken = {option for param in params or () for option in param.opts}
        more = [param for param in _options() if not taken & {*param.opts}]
        super().__init__(*args, params=[*(params or ()), *more], **kwargs)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options; say what came for those that were given up."""
        known = {option for param in self.params for option in param.opts}
        reads = any({"--format", "--input-format"} <= {*param.opts} for param in self.params)
        text = dropped(args, known, [] if reads else _formats())
        if text:
            raise ValueError(text)
        given = list(args)  # parsing takes from it
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            text = _number_fault(error, given) or _extra_fault(error, known)
            if not text:
                raise
            raise ValueError(text) from None

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments; what takes no value is shown without one."""
        return without_values(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: without boxes where the terminal is too narrow for them."""
        if screen().width < NARROW:
            self.rich_markup_mode = None
        super().format_help(ctx, formatter)

    def invoke(self, ctx: Any) -> Any:
        """Run it, printing as asked."""
        form, as_json = ctx.params.pop("table_format", None), ctx.params.pop("as_json", False)
        _choose(form, as_json, ctx.params.pop("wide", False))
        return super().invoke(ctx)


def without_values(params: list[Any]) -> list[Any]:
    """Return options, those that take no value without the name of one."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    return params


def _number_fault(error: Exception, given: Sequence[str]) -> str:
    """Return what to say of an option whose value is no number: which, and what was found."""
    param, message = getattr(error, "param", None), str(getattr(error, "message", ""))
    match = re.search("valid (integer|number|float)", message)
    if param is None or match is None:
        return ""
    expected = "a whole number" if match[1] == "integer" else "a number"
    for number, word in enumerate(given):
        option, equals, value = word.partition("=")
        if option in param.opts:
            found = value if equals else next(iter(given[number + 1 :]), "")
            unit = f" ({param.metavar})" if param.metavar and len(param.metavar) > 1 else ""
            return f"{option} {found}: expected {expected}{unit}"
    return ""


def _extra_fault(error: Exception, known: Collection[str]) -> str:
    """Return what to say of policies that were given without their option."""
    match = re.search(r"unexpected extra arguments? ?\(?s?\)? \((.*)\)", str(error))
    if match is None or "--policy" not in known:
        return ""
    named = ",".join(match[1].split())
    return f"{match[1]}: what is it? Policies follow their option: --policy {named}"


def _choose(form: str | None, as_json: bool, is_wide: bool) -> None:
    known = [each.value for each in Format]
    if form is not None and form not in known:
        raise ValueError(
            f"--format {form}: expected one of {', '.join(known)}, for what is printed; "
            "the format of a file that is read goes to --input-format"
        )
    if as_json and form not in (None, Format.JSON):
        raise ValueError(f"--json is --format json; --format {form} asks for something else")
    _Chosen.form = Format.JSON if as_json else Format(form or Format.TABLE)
    _Chosen.is_wide = is_wide


def _formats() -> list[str]:
    return [form.value for form in Format]


def _options() -> list[Any]:
    """Return the options of all commands, each time anew."""
    app = typer.Typer(add_completion=False)

    @app.command()
    def _(
        table_format: Annotated[
            str | None,
            typer.Option(
                "--format",
                metavar="NAME",
                help="How tables are printed: table, csv, latex, json or markdown.",
                rich_help_panel=PANEL,
                autocompletion=_formats,
            ),
        ] = None,
        as_json: Annotated[
            bool,
            typer.Option("--json", help="One JSON object and nothing else.", rich_help_panel=PANEL),
        ] = False,
        wide: Annotated[
            bool,
            typer.Option(
                "--wide", help="All columns, however wide the terminal is.", rich_help_panel=PANEL
            ),
        ] = False,
    ) -> None: ...

    return list(getattr(typer.main.get_command(app), "params"))[:3]  # noqa: B009 - of any click


def say(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text, control characters made visible; all that commands print goes through here."""
    typer.echo(plain(text), err=err, nl=nl)


def print_json(document: Any) -> None:
    """Print JSON on stdout, whatever characters that can say; a text is JSON already."""
    text = document if isinstance(document, str) else dumps(document)
    say(streams.escaped(text), nl=False)


def show(
    *parts: Sheet | str,
    records: Callable[[], Sequence[Mapping[Any, Any]]] | None = None,
    document: Callable[[], Any] | None = None,
) -> None:
    """Print tables and texts in the format that was asked for.

    Parameters
    ----------
    records
        What CSV has, a row each; by default the first table as it is printed.
    document
        What JSON has: an object, or its text.
    """
    form = _Chosen.form
    tables = [part for part in parts if isinstance(part, Sheet)]
    if form is Format.JSON and document is not None:
        print_json(document())
    elif form is Format.CSV:
        headed = [table for table in tables if table.has_heading] or tables
        say(csv_text(records() if records else headed[0].records() if headed else []), nl=False)
    elif form in (Format.LATEX, Format.MARKDOWN):
        texts = (table.latex() if form is Format.LATEX else table.markdown() for table in tables)
        say("\n" * (parts[:1] == ("",)) + "\n\n".join(texts))
    elif form is Format.TABLE:
        _print(*parts)


def screen() -> Console:
    """Return what draws on standard output: names and ids come from files, and are no markup."""
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False)
    if console.width < 1:  # what some editors set COLUMNS to
        console.width = 80
    return console


def _print(*parts: Sheet | str) -> None:
    """Print tables, in colour on a terminal only, without blanks at the ends of lines.

    Standard output that is no terminal gets a line for each row, unless COLUMNS is set: that asks
    for what a terminal of this width shows.
    """
    console = screen()
    is_screen = console.is_terminal or os.environ.get("COLUMNS", "").strip("0").isdecimal()
    width = console.width
    if _Chosen.is_wide or not is_screen:
        console.width = 100_000
    omitted: dict[str, None] = {}
    with console.capture() as capture:
        for part in parts:
            if isinstance(part, Sheet) and not is_screen:
                heads = [part.title] if part.title else []
                console.print(*heads, *part.drawn(console.width, ruled=False), sep="\n")
            elif isinstance(part, Sheet):
                omitted |= dict.fromkeys(part.omitted(console.width))
                console.print(part)
            else:
                console.print(_wrapped(plain(part), width) if is_screen else plain(part))
    lines = [line.rstrip() for line in capture.get().rstrip("\n").split("\n")]
    if omitted:
        text = f"not shown for want of width: {', '.join(omitted)}; --wide shows all"
        lines += ["", folded(text, console.width, " ")]
    typer.echo("\n".join(lines))


def _wrapped(text: str, width: int) -> str:
    """Return a text folded between words, the rest of a line further in than its beginning."""
    return "\n".join(
        textwrap.fill(
            line, width, subsequent_indent=" " * _indent(line), replace_whitespace=False,
            break_long_words=False, break_on_hyphens=False,
        )
        for line in text.split("\n")
    )  # fmt: skip


def _indent(line: str) -> int:
    left = len(line) - len(line.lstrip())
    return left + 2 if left else 0
