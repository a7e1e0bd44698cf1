"""How much wider a limit has to be for a plan to exist, by bisection over instances."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from optsched.explanation.explanation import Remedy
    from optsched.instance import Instance

    HasPlan = Callable[[Instance, float | None], bool | None]

DIGITS = 3
"""Limits that are real numbers are told to so many figures."""
MOST_DOUBLINGS = 12


def told(remedies: Iterable[Remedy], has_plan: HasPlan, deadline: float | None) -> Iterator[str]:
    """Yield what would do, in words; nothing of limits that do not help, or for which no time is.

    Parameters
    ----------
    has_plan
        Whether an instance has a plan, found out by a moment; None if that is not known.
    deadline
        Of `time.perf_counter`; each remedy has an equal part of the time that is left.
    """
    listed = list(remedies)
    for number, remedy in enumerate(listed):
        until = _share(deadline, len(listed) - number)
        least, too_small = _bisected(remedy, has_plan, until)
        if least is not None:
            yield remedy.words(least, too_small)


def _share(deadline: float | None, parts: int) -> float | None:
    if deadline is None:
        return None
    now = time.perf_counter()
    return now + max(0.0, deadline - now) / parts


def _bisected(
    remedy: Remedy, has_plan: HasPlan, deadline: float | None
) -> tuple[float | None, float]:
    """Return a value with which there is a plan, and the largest one known to be too small."""
    low, high = remedy.now, _enough(remedy, has_plan, deadline)
    while high is not None:
        middle = remedy.between(low, high, DIGITS)
        if middle is None:
            break
        found = has_plan(remedy.instance(middle), deadline)
        if found is None:
            break
        low, high = (low, middle) if found else (middle, high)
    return high, low


def _enough(remedy: Remedy, has_plan: HasPlan, deadline: float | None) -> float | None:
    """Return a value with which there is a plan, by doubling what is added to the one of now."""
    step = remedy.step
    for _ in range(MOST_DOUBLINGS):
        value = remedy.now + step
        found = has_plan(remedy.instance(value), deadline)
        if found or found is None:
            return value if found else None
        step *= 2
    return None
