"""Texts of pages that are made of registries, limits and measured figures, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.registry import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    cells = ([str(cell).replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells) + "\n"


def problems() -> str:
    """Return the names of the problems."""
    return table(["problem"], [[f"`{name}`"] for name in PROBLEMS])
