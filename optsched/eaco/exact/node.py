"""A node of the tree of branch and bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optsched.eaco.cuts.cuts_and_branching import (
        Rule,
    )
    from optsched.eaco.exact.lp_solution import Path, Point


@dataclass
class Node:
    """A node of the tree.

    Attributes
    ----------
    value
        What is proven of it; infinite if it holds no plan.
    unpackable
        Index of the nodes on which its groups do not fit.
    split, branches
        Rule and number of the split, and indices of its two branches, once there is one.
    """

    path: Path
    point: Point
    value: float
    unpackable: int | None = None
    split: tuple[Rule, int] | None = None
    branches: tuple[int, int] = (0, 0)
