"""What every command of the command line shares: exit codes, errors, progress, tables."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperGroup

from optsched.registry import UnknownNameError
from optsched.search import SolverDisagreement
from optsched.verification import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from rich.console import RenderableType


class ExitCode(IntEnum):
    """What a command ends with, as `optsched --help` says; those above 128 as shells have it."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    NO_PLAN = 4
    INTERRUPTED = 130
    BROKEN_PIPE = 141


class Commands(TyperGroup):
    """Turns what can go wrong in a command into one message on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _drop_stdout()
            raise typer.Exit(ExitCode.BROKEN_PIPE) from None
        except KeyboardInterrupt:
            fail("interrupted", ExitCode.INTERRUPTED)
        except SolverDisagreement as error:
            fail(f"error: {error}", ExitCode.FAILED)
        except OSError as error:
            if error.strerror and error.filename is None:
                _drop_stdout()
            named = f"{error.filename or 'standard output'}: {error.strerror}"
            fail(f"error: {named if error.strerror else error}", ExitCode.BAD_INPUT)
        except (UnknownNameError, ValueError) as error:
            fail(f"error: {error}", ExitCode.BAD_INPUT)


def _drop_stdout() -> None:
    """Send what is still buffered nowhere, so that it does not fail again when the process ends."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str, code: int) -> NoReturn:
    """Print a message on stderr and end the command."""
    typer.echo(message, err=True)
    raise typer.Exit(code) from None


@contextlib.contextmanager
def verifying() -> Iterator[None]:
    """Print broken rules as what they are: the outcome of the command."""
    try:
        yield
    except Violation as violation:
        typer.echo(str(violation))
        raise typer.Exit(ExitCode.FAILED) from None


@contextlib.contextmanager
def spinner(text: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that something goes on; yields what changes the text."""
    from rich.console import Console

    console = Console(stderr=True, markup=False)
    if not console.is_terminal:
        yield lambda text: None
        return
    with console.status(text) as status:
        yield status.update


def changes(texts: list[str] | None) -> dict[str, Any]:
    """Return the changes of fields that options PATH=VALUE ask for; values are JSON or words."""
    return assignments("--set", "PATH=VALUE, for example budget_gpus=24", texts)


def assignments(option: str, expected: str, texts: list[str] | None) -> dict[str, Any]:
    """Return what an option that may be given several times assigns; values are JSON or words."""
    values: dict[str, Any] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{option} {text}: expected {expected}")
        try:
            values[key] = json.loads(value)
        except (ValueError, RecursionError):
            values[key] = value
    return values


def group(summary: str) -> typer.Typer:
    """Return commands that stand under a name of their own."""
    return typer.Typer(cls=Commands, no_args_is_help=True, help=summary, rich_markup_mode=None)


@contextlib.contextmanager
def progress_bar(text: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on stderr, on a terminal only; yields what takes the share that is done."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True, markup=False)
    if not console.is_terminal:
        yield lambda share: None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(),
               TimeElapsedColumn(), TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(text, total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextlib.contextmanager
def workers(processes: int) -> Iterator[Executor | None]:
    """Yield what runs tasks in so many processes; nothing for one."""
    if processes < 1:
        raise ValueError(f"--processes: must be at least 1, found {processes}")
    if processes == 1:
        yield None
        return
    from optsched.sweeps.processes import Workers

    with Workers(processes) as pool:
        yield pool


def show_list(table: RenderableType) -> None:
    """Print a list, of which every entry keeps its line where stdout is not a terminal."""
    show(table, pipe_width=1000)


def show(*parts: RenderableType, pipe_width: int | None = None) -> None:
    """Print tables on stdout, in colour on a terminal only, without blanks at the ends of lines.

    Parameters
    ----------
    pipe_width
        Columns where stdout is not a terminal; by default 80, or what COLUMNS says.
    """
    from rich.console import Console

    # Names and ids come from files: they are not markup.
    console = Console(markup=False, emoji=False, highlight=False)
    if pipe_width is not None and not console.is_terminal:
        console.width = pipe_width
    with console.capture() as capture:
        console.print(*parts, sep="\n")
    typer.echo("\n".join(line.rstrip() for line in capture.get().rstrip("\n").split("\n")))
