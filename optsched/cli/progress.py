"""How far a solve is: a live line on a terminal; elsewhere lines on stderr, for who asks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from optsched.cli.printing import output
from optsched.cli.printing.sheets import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from optsched.progress import Progress


@contextlib.contextmanager
def solving(name: str, *, verbose: bool = False) -> Iterator[Callable[[Progress], None] | None]:
    """Yield what `optsched.solve` tells its progress.

    Parameters
    ----------
    verbose
        Print a line on stderr for each new phase and better figure.
    """
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False)
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


def line(told: Progress) -> str:
    """Return a line of progress: seconds, phase and figures."""
    return f"{told.elapsed_s:8.1f} s  {told.text}"
