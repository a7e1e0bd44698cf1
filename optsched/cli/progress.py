"""How far a solve is: a live line on a terminal; elsewhere lines on stderr, for who asks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from optsched.cli.console import share_columns
from optsched.cli.printing import output
from optsched.cli.printing.sheets import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.progress import TaskID

    from optsched.executors.under_way import UnderWay
    from optsched.progress import Progress


@contextlib.contextmanager
def solving(name: str, *, verbose: bool = False) -> Iterator[Callable[[Progress], None] | None]:
    """Yield what `optsched.solve` tells its progress.

    Parameters
    ----------
    verbose
        Print a line on stderr for each new phase and better figure.
    """
    console = _console()
    if not console.is_terminal:
        yield (lambda told: output.say(line(told), err=True)) if verbose else None
        return
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(plain(f"solving {name}"), total=None)

        def tell(told: Progress) -> None:
            bar.update(task, description=plain(told.text))
            if verbose:
                console.print(line(told))

        yield tell


@contextlib.contextmanager
def sweeping(
    text: str, *, verbose: bool = False
) -> Iterator[tuple[Callable[[float], None], Callable[[list[UnderWay]], None] | None]]:
    """Yield what `optsched.frontier` tells its progress: the share done, and points under way.

    Parameters
    ----------
    verbose
        Print a line on stderr for each new phase and better figure.
    """
    console = _console()
    if not console.is_terminal:
        yield (
            (lambda share: None),
            (_lines(lambda each: output.say(each, err=True)) if verbose else None),
        )
        return
    from rich.console import Group
    from rich.live import Live
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    whole = Bar(*share_columns())
    cut = Column(no_wrap=True, overflow="ellipsis")
    points = Bar(SpinnerColumn(), TimeElapsedColumn(),
                 TextColumn("{task.description}", markup=False, table_column=cut))  # fmt: skip
    with Live(Group(whole, points), console=console, transient=True):
        task = whole.add_task(plain(text), total=1.0)
        shown: dict[tuple[str, str], TaskID] = {}
        tell_lines = _lines(console.print) if verbose else None

        def tell(told: list[UnderWay]) -> None:
            now = {(point.called, point.method): point for point in told}
            for key in [key for key in shown if key not in now]:
                points.remove_task(shown.pop(key))
            for key, point in now.items():
                if key not in shown:
                    shown[key] = points.add_task("", total=None)
                points.update(shown[key], description=plain(_point(point)))
            if tell_lines is not None:
                tell_lines(told)

        yield (lambda share: whole.update(task, completed=share)), tell


def _console() -> Console:
    """Return stderr, where names show as they are."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False)


def _lines(say: Callable[[str], object]) -> Callable[[list[UnderWay]], None]:
    """Return what prints a line for each point that tells something new."""
    told_last: dict[tuple[str, str], str] = {}

    def tell(told: list[UnderWay]) -> None:
        for point in told:
            key = (point.called, point.method)
            if point.text and told_last.get(key) != point.text:
                say(f"{point.elapsed_s:8.1f} s  {_point(point)}")
            told_last[key] = point.text

    return tell


def _point(told: UnderWay) -> str:
    begun = told.text.startswith(told.method)  # a first phase is called as its method is
    text = told.text if begun or not told.text else f"{told.method}: {told.text}"
    return f"{told.called}: {text or told.method}"


def line(told: Progress) -> str:
    """Return a line of progress: seconds, phase and figures."""
    return f"{told.elapsed_s:8.1f} s  {told.text}"
