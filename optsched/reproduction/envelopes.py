"""Curves of time against cost: what a policy with a parameter reaches for each bill."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

Point = tuple[float, float]


def lower_hull(points: Iterable[Point]) -> list[Point]:
    """Return the lower convex hull of points (cost, time), as far as time falls; costs ascend."""
    hull: list[Point] = []
    for x, y in sorted(points):
        if hull and y >= hull[-1][1]:
            continue
        while len(hull) > 1 and _is_above(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    return hull


def _is_above(a: Point, b: Point, c: Point) -> bool:
    """Tell whether the point in the middle lies on or above the line between the others."""
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])


def at_cost(points: Iterable[Point], cost: float) -> float | None:
    """Return the least time on the hull at a cost; None below it.

    Beyond its dearest point more money buys no more.
    """
    hull = lower_hull(points)
    if not hull or cost < hull[0][0]:
        return None
    costs, times = zip(*hull, strict=True)
    return float(np.interp(cost, costs, times))


def common_costs(curves: Iterable[Iterable[Point]]) -> tuple[float, float] | None:
    """Return the least and the greatest cost between which all curves have points; None if none.

    Curves are taken as their lower hulls.
    """
    hulls = [lower_hull(points) for points in curves]
    if not all(hulls):
        return None
    least = max(hull[0][0] for hull in hulls)
    most = min(hull[-1][0] for hull in hulls)
    return (least, most) if least < most else None
