"""The greedy methods beside a result, as `optsched solve` prints them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from optsched.cli import console
from optsched.cli.printing import output
from optsched.comparison import MethodComparison, compared

if TYPE_CHECKING:
    from optsched.cli.printing.sheets import Sheet
    from optsched.comparison import Options
    from optsched.instance import Instance
    from optsched.results.result import Result


def show(instance: Instance, result: Result, options: Options, solved_s: float) -> None:
    """Print how the greedy methods compare with a result, and which were left out."""
    from optsched.cli.printing import tables

    if result.plan is None or result.ending.is_interrupted:
        made = MethodComparison(result, [], ())
        if not output.is_data():
            return
    else:
        with console.spinner("comparing") as say:
            made = compared(instance, result, options, solved_s, say)
    if output.is_data():
        output.show(records=lambda: _records(made), document=lambda: _document(made))
        return
    if made.refused:
        output.say(f"compared only so far: {made.refused}", err=True)
    parts: list[Sheet | str] = ["", tables.comparison(instance, result, made.tried)]
    if made.left_out:
        names = ", ".join(made.left_out)
        parts.append(f"not compared, to take no longer than the solve: {names}")
    output.show(*parts)


def _records(made: MethodComparison) -> list[dict[str, Any]]:
    """Return a row for each method, the result's own first."""
    frame = made.frame().astype(object)
    rows = frame.where(frame.notna(), None).to_dict("records")
    return [{str(key): value for key, value in row.items()} for row in rows]


def _document(made: MethodComparison) -> dict[str, Any]:
    return {
        "result": json.loads(made.result.to_json()),
        "compared": _records(made),
        "left_out": list(made.left_out),
        "refused": made.refused,
    }
