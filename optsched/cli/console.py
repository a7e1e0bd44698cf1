"""What every command of the command line shares: exit codes, errors, progress."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperGroup

from optsched.cli import interrupts
from optsched.cli.printing import output
from optsched.cli.printing.output import say
from optsched.cli.printing.sheets import plain
from optsched.documents.json_files import try_to_write
from optsched.registry import UnknownNameError
from optsched.search import SolverDisagreement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor
    from typing import TextIO

    from rich.progress import ProgressColumn


SCHEDULER_S = 10.0
"""How long a Dask scheduler may take to answer."""


class ExitCode(IntEnum):
    """What a command ends with, as `optsched --help` says; those above 128 as shells have it."""

    DONE = 0
    FAILED = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    NO_PLAN = 4
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


class Commands(TyperGroup):
    """Turns what can go wrong in a command into one message on stderr and an exit code."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options; what takes no value is shown without one."""
        return output.without_values(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            with interrupts.caught():
                return super().invoke(ctx)
        except BrokenPipeError:
            _drop_stdout()
            raise typer.Exit(ExitCode.BROKEN_PIPE) from None
        except KeyboardInterrupt:
            fail(*interrupts.told())
        except SolverDisagreement as error:
            fail(f"error: {error}", ExitCode.FAILED)
        except OSError as error:
            if error.strerror and error.filename is None:
                _drop_stdout()
            named = f"{error.filename or 'standard output'}: {error.strerror}"
            fail(f"error: {named if error.strerror else error}", ExitCode.BAD_INPUT)
        except (UnknownNameError, ValueError) as error:
            notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
            fail(f"error: {error}{notes}", ExitCode.BAD_INPUT)
        except MemoryError as error:
            fail(f"error: there is not enough memory {error}".rstrip(), ExitCode.BAD_INPUT)
        except ImportError as error:  # libraries do not load, for want of memory as a rule
            fail(f"error: {error}", ExitCode.BAD_INPUT)


def _drop_stdout() -> None:
    """Send what is still buffered nowhere, so that it does not fail again when the process ends."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str, code: int) -> NoReturn:
    """Print a message on stderr and end the command."""
    say(message, err=True)
    raise typer.Exit(code) from None


@contextlib.contextmanager
def spinner(text: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that something goes on; yields what changes the text."""
    from rich.console import Console

    console = Console(stderr=True, markup=False)
    if not console.is_terminal:
        yield lambda text: None
        return
    with console.status(plain(text)) as status:
        yield lambda text: status.update(plain(text))


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
    return typer.Typer(
        cls=Commands, no_args_is_help=True, help=summary, context_settings=output.HELP_OPTIONS
    )


def share_columns() -> tuple[ProgressColumn, ...]:
    """Return the columns of a bar that shows a share: what, how much, since and until when."""
    from rich.progress import (
        BarColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    text = TextColumn("{task.description}", markup=False)
    return text, BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TimeRemainingColumn()


@contextlib.contextmanager
def progress_bar(text: str) -> Iterator[Callable[[float], None]]:
    """Show a bar on stderr, on a terminal only; yields what takes the share that is done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, markup=False)
    if not console.is_terminal:
        yield lambda share: None
        return
    with Progress(*share_columns(), console=console, transient=True) as bar:
        task = bar.add_task(plain(text), total=1.0)
        yield lambda share: bar.update(task, completed=share)


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Print warnings on stderr as a line each, without places in the code."""

    def tell(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        say(f"warning: {message}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = tell
        yield


FORMATS = (
    *(".json", ".csv", ".html", ".png", ".svg", ".pdf"),
    *(".gz", ".yaml", ".xlsx", ".lp", ".mps"),
)
"""Endings that say a format."""


def check_output(path: str | None, endings: tuple[str, ...], option: str = "--output") -> None:
    """Refuse before the work what could not be written after it.

    Parameters
    ----------
    endings
        Of the formats that are written: a name must have one of them, where there are several, or
        else none of another format.

    Raises
    ------
    ValueError
        If the name says another format.
    OSError
        If no file of that name can be written.
    """
    if path is None:
        return
    try_to_write(path)
    is_choice = len(endings) > 1
    is_other = is_choice or path.lower().endswith(FORMATS)
    if is_other and not (path if is_choice else path.lower()).endswith(endings):
        raise ValueError(f"{option} {path}: expected a name that ends in {' or '.join(endings)}")


@contextlib.contextmanager
def workers(processes: int) -> Iterator[Executor | None]:
    """Yield what runs tasks in so many processes; nothing for one."""
    if processes < 1:
        raise ValueError(f"--processes: must be at least 1, found {processes}")
    if processes == 1:
        yield None
        return
    from optsched.executors.processes import Workers

    with Workers(processes) as pool:
        yield pool


@contextlib.contextmanager
def executor(processes: int | None, scheduler: str | None) -> Iterator[Executor | int | None]:
    """Yield where tasks are computed: in processes, or on the workers of a Dask scheduler.

    Raises
    ------
    ValueError
        If both are asked for, Dask is not there, or no scheduler answers.
    """
    if scheduler is None:
        yield processes
        return
    if processes is not None:
        raise ValueError("--scheduler: its workers do the work; leave out --processes")
    try:
        from distributed import Client
    except ImportError:
        text = "Dask is not installed: pip install 'optsched[distributed]'"
        raise ValueError(f"--scheduler: {text}") from None
    try:
        client: Any = Client(scheduler, timeout=SCHEDULER_S)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"--scheduler {scheduler}: no scheduler answers: {reason}") from None
    with client:
        yield client.get_executor()


def draw(plot: Callable[[Any], object], path: str) -> None:
    """Write a picture, whatever draws it on axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.4), layout="constrained")
    plot(figure.subplots())
    figure.savefig(path, dpi=150)


def article(noun: str) -> str:
    """Return a noun with "a" or "an" before it."""
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"
