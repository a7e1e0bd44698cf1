"""Points of rollouts beside each other: intervals over seeds, differences to the first policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.results.intervals import bootstrapped
from optsched.sweeps.parameters import ROLLOUT

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats
    from optsched.sweeps.points import Frontier, Point

    Ends = tuple[float, float]
    Columns = dict[str, float | None]


def interval(frontier: Frontier, point: Point) -> Ends | None:
    """Return the 95 % interval of the objective of a point over seeds; None if there is none."""
    draws = _draws(frontier, point)
    return bootstrapped([draws], np.mean) if len(draws) else None


def interval_columns(frontier: Frontier, point: Point) -> Columns:
    """Return the columns of a frame that tell the interval of the objective."""
    return _ends(frontier, "objective", interval(frontier, point))


def paired_columns(frontier: Frontier, point: Point) -> Columns:
    """Return the columns that tell the difference of a point to that of the first policy there."""
    if frontier.problem != ROLLOUT or len(frontier.methods) < 2:
        return {}
    wanted = point.value, frontier.methods[0]
    first = next(p for p in frontier.points if (p.value, p.method) == wanted)
    own, base = point.objective, first.objective
    difference = None if own is None or base is None else own - base
    mine, theirs = _draws(frontier, point), _draws(frontier, first)
    is_known = len(mine) and len(mine) == len(theirs)
    ends = bootstrapped([mine - theirs], np.mean) if is_known else None
    return {"difference": difference, **_ends(frontier, "difference", ends)}


def _draws(frontier: Frontier, point: Point) -> Floats:
    return np.array(point.draws.get(frontier.metric, ()), dtype=np.float64)


def _ends(frontier: Frontier, name: str, ends: Ends | None) -> Columns:
    if not frontier.seeds:
        return {}
    low, high = ends or (None, None)
    return {f"{name}_low": low, f"{name}_high": high}
