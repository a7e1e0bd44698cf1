"""The lower convex hull of points in whole numbers (Andrew's monotone chain, 1979), exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    Point = tuple[int, int]


def lower_hull(points: Iterable[Point]) -> list[Point]:
    """Return the corners of the lower convex hull of points (x, y), by ascending x."""
    corners: list[Point] = []
    for point in sorted(points):
        if corners and corners[-1][0] == point[0]:
            continue  # the least of the same x came before
        while len(corners) > 1 and _is_above(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    return corners


def _is_above(first: Point, middle: Point, last: Point) -> bool:
    """Tell whether the point in the middle lies on or above the line between the others."""
    rise, run = middle[1] - first[1], middle[0] - first[0]
    return rise * (last[0] - first[0]) >= (last[1] - first[1]) * run
