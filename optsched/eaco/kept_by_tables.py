"""What follows from tables alone, kept for the next instance that has the very same ones.

Epochs of a rollout share types, interference and GPUs; only their jobs are others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable


class Kept:
    """Figures that follow from the same tables, by the numbers that they follow from as well."""

    def __init__(self, tables: tuple[object, ...]) -> None:
        self._tables = tables  # held, so that no other object can have their identity
        self._figures: dict[Hashable, dict[Any, Any]] = {}

    def are_of(self, tables: tuple[object, ...]) -> bool:
        """Tell whether these are figures of the very same tables."""
        return all(mine is its for mine, its in zip(self._tables, tables, strict=True))

    def of(self, *numbers: Hashable) -> dict[Any, Any]:
        """Return the figures, to be added to, that follow from these numbers as well."""
        return self._figures.setdefault(numbers, {})

    def __len__(self) -> int:
        return sum(map(len, self._figures.values()))


class KeptByTables:
    """Figures of the last tables: frozen objects, the same only if they are the very same.

    Parameters
    ----------
    most_tables, most_figures
        Tables whose figures are kept, since several rollouts may take turns, and figures of each.

    Examples
    --------
    >>> kept, table = KeptByTables(2, 100), ("frozen",)
    >>> kept.of(table).of("squares")[3] = 9
    >>> kept.of(table).of("squares")
    {3: 9}
    >>> kept.of(("another",)).of("squares")
    {}
    """

    def __init__(self, most_tables: int, most_figures: int) -> None:
        self._most_tables, self._most_figures = most_tables, most_figures
        self._last: tuple[Kept, ...] = ()

    def of(self, *tables: object) -> Kept:
        """Return what is kept for some tables; nothing yet if there is too much."""
        for kept in self._last:
            if kept.are_of(tables) and len(kept) <= self._most_figures:
                return kept
        others = [kept for kept in self._last if not kept.are_of(tables)]
        fresh = Kept(tables)
        self._last = (fresh, *others[: self._most_tables - 1])
        return fresh
