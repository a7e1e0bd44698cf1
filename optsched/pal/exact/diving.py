"""Diving (Berthold, TU Berlin 2006): ever more of the relaxation is fixed to whole counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.mip.branch_and_bound import Branch
from optsched.pal.exact.cuts_and_branching import CountRule, LpPoint, domain_totals
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.pal.exact.branch_and_bound import NodeRelaxation


class Dive:
    """Counts of jobs by type and domain below the root, fixed step by step.

    Attributes
    ----------
    point
        Solution of the relaxation within what is fixed so far.
    """

    def __init__(self, relaxation: NodeRelaxation, start: LpPoint) -> None:
        self.relaxation = relaxation
        self.point = start
        self._cost = self._cost_of(start)
        self._least: dict[CountRule, int] = {}
        self._most: dict[CountRule, int] = {}

    def run(self, seconds_left: Callable[[], float | None]) -> LpPoint:
        """Dive until every count is whole, or no step leads on."""
        for _ in range(SETTINGS.dive_steps):
            totals = domain_totals(self.relaxation.problem, self.relaxation.options, self.point)
            counts = {rule: int(n + SETTINGS.integral) for rule, n in totals.items()}
            least = self._least | {rule: n for rule, n in counts.items() if n}
            raised = self._raised(totals, least)
            if not raised or seconds_left() == 0:
                break
            while raised:
                up = {rule: int(np.ceil(totals[rule])) for rule in raised}
                if self._step(least | up, self._most, seconds_left):
                    break
                if len(raised) == 1:
                    self._most |= {raised[0]: up[raised[0]] - 1}
                raised = raised[: len(raised) // 2]
            if not raised and not self._step(least, self._most, seconds_left):
                break
        return self.point

    def _step(
        self,
        least: dict[CountRule, int],
        most: dict[CountRule, int],
        seconds_left: Callable[[], float | None],
    ) -> bool:
        number = self.relaxation.number
        path = (
            *(Branch(number(rule), n - 1, is_above=True) for rule, n in least.items()),
            *(Branch(number(rule), n, is_above=False) for rule, n in most.items()),
        )
        solved = self.relaxation.relax(path, seconds_left())
        if solved is None or solved.objective > SETTINGS.dive_costlier * self._cost:
            return False
        self.point = self.relaxation.point(solved)
        self._least, self._most = least, most
        return True

    def _raised(
        self, totals: dict[CountRule, float], least: dict[CountRule, int]
    ) -> list[CountRule]:
        """Return the counts to round up, the nearest to one more first.

        One for each domain, so that they do not fight for the same GPUs, if enough are free;
        and of each type only as many as its fractions add up to.
        """
        free = self._free_gpus(least)
        sizes = [jobs.gpus for jobs in self.relaxation.problem.types]
        fraction = {
            rule: count - np.floor(count)
            for rule, count in totals.items()
            if abs(count - round(count)) > SETTINGS.integral
        }
        left: dict[int, float] = {}
        for rule, share in fraction.items():
            left[rule.types[0]] = left.get(rule.types[0], 0.0) + share
        left = {t: max(1.0, share + SETTINGS.integral) for t, share in left.items()}
        chosen: dict[int, CountRule] = {}
        for rule in sorted(fraction, key=lambda rule: -fraction[rule]):
            if free.get(rule.domain, np.inf) < sizes[rule.types[0]]:
                self._most[rule] = int(totals[rule])
            elif rule.domain not in chosen and left[rule.types[0]] >= 1:
                left[rule.types[0]] -= 1
                chosen[rule.domain] = rule
        return list(chosen.values())[: max(1, int(SETTINGS.dive_share * len(fraction)))]

    def _free_gpus(self, least: dict[CountRule, int]) -> dict[int, int]:
        """Return how many GPUs of a domain are not taken by what is fixed in it."""
        problem = self.relaxation.problem
        free: dict[int, int] = {}
        for rule, count in least.items():
            d = rule.domain
            gpus = int(problem.domains.stop[d] - problem.domains.start[d])
            free[d] = free.get(d, gpus) - count * problem.types[rule.types[0]].gpus
        return free

    def _cost_of(self, point: LpPoint) -> float:
        return float(self.relaxation.options.cost[point.columns] @ point.share)


def dive(
    relaxation: NodeRelaxation, start: LpPoint, seconds_left: Callable[[], float | None]
) -> LpPoint:
    """Return a solution of the relaxation in which few domains hold fractions of jobs."""
    return Dive(relaxation, start).run(seconds_left)
