"""Points of rollouts with several seeds: means, with what was drawn beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.instance import Instance

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from optsched.rollout.scenario import Scenario
    from optsched.sweeps.points import Point


def checked_seeds(
    subject: Instance | Scenario, seeds: int | Iterable[int] | None, options: Mapping[str, Any]
) -> tuple[int, ...]:
    """Return the seeds of each point; none if there is one rollout, with the seed of the options.

    Raises
    ------
    ValueError
        If an instance is to have several, or seeds are none, negative or given twice.
    """
    if seeds is None:
        return ()
    from optsched.rollout.comparison import numbered

    if isinstance(subject, Instance):
        raise ValueError("seeds: several are for scenarios; an instance is solved with one, `seed`")
    if "seed" in options:
        raise ValueError("seeds: stand for seed; give the one or the others")
    return numbered(seeds)


def averaged(points: Mapping[int, Point], seeds: int) -> dict[int, Point]:
    """Return a point for so many points each, which differ by their seed alone."""
    numbers = sorted({number // seeds for number in points})
    return {n: _mean([points[n * seeds + s] for s in range(seeds)]) for n in numbers}


def _mean(points: Sequence[Point]) -> Point:
    """Return the mean of points; if one is invalid, that one."""
    for point in points:
        if point.status != "simulated":
            return point
    names = [name for name in points[0].metrics if all(name in p.metrics for p in points)]
    draws = {name: tuple(point.metrics[name] for point in points) for name in names}
    reasons = [point.reason for point in points if point.reason]
    more = f" (so or alike with {len(reasons)} of {len(points)} seeds)" if reasons else ""
    return points[0].model_copy(
        update={
            "metrics": {name: float(np.mean(values)) for name, values in draws.items()},
            "draws": draws,
            "seconds": sum(point.seconds for point in points),
            "reason": f"{reasons[0]}{more}" if reasons else "",
        }
    )
