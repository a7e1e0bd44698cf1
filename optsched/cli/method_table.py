"""The greedy methods beside a result, as `optsched solve` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.cli import console
from optsched.cli.printing import output
from optsched.comparison import compared

if TYPE_CHECKING:
    from optsched.cli.printing.sheets import Sheet
    from optsched.comparison import Options
    from optsched.instance import Instance
    from optsched.results.result import Result


def show(instance: Instance, result: Result, options: Options, solved_s: float) -> None:
    """Print how the greedy methods compare with a result, and which were left out."""
    from optsched.cli.printing import tables

    with console.spinner("comparing") as say:
        made = compared(instance, result, options, solved_s, say)
    if made.refused:
        output.say(f"compared only so far: {made.refused}", err=True)
    parts: list[Sheet | str] = ["", tables.comparison(instance, result, made.tried)]
    if made.left_out:
        names = ", ".join(made.left_out)
        parts.append(f"not compared, to take no longer than the solve: {names}")
    output.show(*parts)
