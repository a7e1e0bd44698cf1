"""Diving: the relaxation is solved again and again, with ever more of it fixed to whole counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.pal.cases import Case, Cases
from optsched.pal.rules import INTEGRAL, Point, Rule, domain_totals

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 100
SHARE_PER_STEP = 0.25  # of the fractional counts, which are rounded up in one step


def dive(cases: Cases, start: Point, seconds_left: Callable[[], float | None]) -> Point:
    """Return a solution of the relaxation in which few domains hold fractions of jobs.

    In each step the counts of jobs, by type and domain below the root, are kept from falling below
    what is whole of them, and those nearest to one more are raised; one in each domain, so that
    they do not fight for the same GPUs.
    """
    point = start
    least: dict[Rule, int] = {}
    for _ in range(STEPS):
        totals = domain_totals(cases.problem, cases.labels, point)
        fractions = {
            rule: count - np.floor(count)
            for rule, count in totals.items()
            if abs(count - round(count)) > INTEGRAL
        }
        if not fractions:
            break
        least |= {rule: int(n + INTEGRAL) for rule, n in totals.items() if n >= 1 - INTEGRAL}
        for rule in _raised(fractions):
            least[rule] = int(np.ceil(totals[rule]))
        path = tuple(Case(cases.number(rule), n - 1, is_above=True) for rule, n in least.items())
        solved = cases.relax(path, seconds_left())
        if solved is None:
            break
        point = cases.point(solved)
    return point


def _raised(fractions: dict[Rule, float]) -> list[Rule]:
    """Return the rules to round up: the largest fractions, one for each domain."""
    most = max(1, int(SHARE_PER_STEP * len(fractions)))
    chosen: dict[int, Rule] = {}
    for rule in sorted(fractions, key=lambda rule: -fractions[rule]):
        chosen.setdefault(rule.domain, rule)
        if len(chosen) >= most:
            break
    return list(chosen.values())
