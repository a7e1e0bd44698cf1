"""Lagrangian dual with real widths, in closed form (EPEW'24, arXiv 2406.15560, problem 3).

At price mu a phase takes the width that minimises (1 + mu k) / s(k) (docs/math/boa.md, Closed
forms): power k ** a: k = a / ((1 - a) mu); Amdahl with parallel fraction f: k = sqrt(f / ((1 - f)
mu)); a measured table: a vertex of its upper concave hull, as in `lagrangian_dual.py`. Each is cut
off at the ends of the curve. The use falls with the price, so the best price is found by bisection.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from optsched.boa.arrays import complementary, to_plan
from optsched.boa.exact.certificate_writer import infeasible, least_use
from optsched.boa.instance import Power, Table
from optsched.boa.settings import SETTINGS
from optsched.boa.speedup_curves import curves, speedup_at
from optsched.boa.verify import feasibility

if TYPE_CHECKING:
    from optsched.boa.instance import Amdahl, BoaInstance, Speedup
    from optsched.boa.speedup_curves import SpeedupCurves
    from optsched.documents.arrays import Bools, Floats
    from optsched.search import Search


Widths = list[list[float]]

STEPS_BACK = (0.0, *(2.0**n for n in range(-52, 1)))
DOUBLINGS = tuple(2.0**n for n in range(1, 200))


@dataclass(frozen=True)
class Smooth:
    """The phases of all classes, one after the other, as arrays.

    Attributes
    ----------
    load
        Shape (phases,): mean jobs at speedup 1.
    parallel, most
        Shape (phases,): parallel fraction or exponent, and the largest width, of a curve.
    powers
        Shape (phases,): whether a curve is a power.
    tables
        The phases that were measured; their entries above mean nothing.
    limit, gpus_limited
        What may be used, and whether that is GPUs.
    """

    load: Floats
    parallel: Floats
    most: Floats
    powers: Bools
    tables: list[SpeedupCurves]
    limit: float
    gpus_limited: bool

    def respond(self, price: float) -> Floats:
        """Return the real widths that minimise (1 + price * k) / s(k), or (price + k) / s(k)."""
        jobs, gpus = (1.0, price) if self.gpus_limited else (price, 1.0)
        gpu_share, ratio = (1 - self.parallel) * gpus, np.full(len(self.load), np.inf)
        with np.errstate(over="ignore"):
            np.divide(self.parallel * jobs, gpu_share, out=ratio, where=gpu_share > 0)
        widths = np.where(self.powers, ratio, np.sqrt(ratio))
        widths = np.where(self.parallel > 0, np.clip(widths, 1.0, self.most), 1.0)
        for rows, measured, speedup in self.tables:
            widths[rows] = measured[((jobs + gpus * measured) / speedup).argmin(axis=1)]
        return widths

    def terms(self, widths: Floats) -> tuple[Floats, Floats]:
        """Return value and use of each phase."""
        amdahl = 1 / (1 - self.parallel + self.parallel / widths)
        speedup = np.where(self.powers, widths**self.parallel, amdahl)
        for rows, measured, values in self.tables:
            speedup[rows] = _interpolated(widths[rows], measured, values)
        jobs = self.load / speedup
        return (jobs, jobs * widths) if self.gpus_limited else (jobs * widths, jobs)

    def use(self, widths: Floats) -> float:
        """Return what all phases use."""
        return float(self.terms(widths)[1].sum())

    def lagrangian(self, price: float) -> float:
        """Return the least priced value, less what the limit is worth."""
        value, use = self.terms(self.respond(price))
        return float(value.sum() + price * (use.sum() - self.limit))


def smooth(instance: BoaInstance) -> Smooth:
    """Return the phases of an instance as arrays."""
    pairs = [(c.arrival_rate_per_h / 3600, phase) for c in instance.classes for phase in c.phases]
    speedups = [phase.curve for _, phase in pairs]
    measured = [row for row, speedup in enumerate(speedups) if isinstance(speedup, Table)]
    tables = [
        part._replace(rows=[measured[n] for n in part.rows])
        for part in curves(speedups[row] for row in measured)
    ]
    shapes = [(0.0, 1) if isinstance(s, Table) else (_parallel(s), s.max_gpus) for s in speedups]
    parallel, most = np.array(shapes, float).T
    return Smooth(
        load=np.array([rate * phase.work_gpu_s for rate, phase in pairs]),
        parallel=parallel,
        most=most,
        powers=np.array([isinstance(speedup, Power) for speedup in speedups]),
        tables=tables,
        limit=float(feasibility.limit(instance)),
        gpus_limited=instance.budget is not None,
    )


def _parallel(speedup: Amdahl | Power) -> float:
    return speedup.exponent if isinstance(speedup, Power) else speedup.parallel_fraction


def _interpolated(widths: Floats, measured: Floats, speedup: Floats) -> Floats:
    """Return the speedup of each row at a width of its own."""
    if len(measured) == 1:
        return speedup[:, 0]
    rows = np.arange(len(widths))
    below = np.searchsorted(measured, widths, side="right").clip(1, len(measured) - 1) - 1
    share = (widths - measured[below]) / (measured[below + 1] - measured[below])
    values: Floats = (1 - share) * speedup[rows, below] + share * speedup[rows, below + 1]
    return values


def solve(instance: BoaInstance, search: Search) -> float:
    """Offer the optimal plan to the search and return its price.

    Raises
    ------
    Infeasible
        If not even the least use keeps within the limit.
    """
    if least_use(instance) > feasibility.limit(instance):
        raise infeasible(instance)
    phases = smooth(instance)
    if _offer(instance, search, phases, phases.respond(0.0)):
        return 0.0
    low, high = _bracket(phases, search)
    for step in (*STEPS_BACK, *DOUBLINGS):  # `high` may be a rounding beyond the limit
        within = phases.respond(high * (1 + step))
        if _offer(instance, search, phases, within):
            if not search.out_of_time():
                _offer_between(instance, search, phases, within, phases.respond(low))
            break
    return max((low, high), key=phases.lagrangian)


def _bracket(phases: Smooth, search: Search) -> tuple[float, float]:
    """Return neighbouring prices, the use above the limit at the lower and within at the higher.

    A rounding above the limit counts as within: else a limit that is the least use has no price.
    When time is up, they may lie far from each other.
    """
    limit = phases.limit * (1 + SETTINGS.limit_tolerance)
    low, high = SETTINGS.least_price, SETTINGS.most_price
    for _ in range(200):
        middle = math.sqrt(low * high)
        if not low < middle < high or search.out_of_time():
            break
        if phases.use(phases.respond(middle)) > limit:
            low = middle
        else:
            high = middle
    return low, high


def _offer_between(
    instance: BoaInstance, search: Search, phases: Smooth, low: Floats, high: Floats
) -> None:
    """Offer the plan that uses up the limit: from `low` to `high` by phases, the last in part."""
    before, after = phases.terms(low)[1], phases.terms(high)[1]
    changed = np.flatnonzero(low != high)
    uses = before.sum() + np.r_[0.0, np.cumsum((after - before)[changed])]
    beyond = np.flatnonzero(uses[1:] > phases.limit * (1 - SETTINGS.limit_tolerance))
    if not len(beyond) or uses[-1] - uses[0] <= phases.limit * SETTINGS.limit_tolerance:
        return
    last = int(beyond[0])
    below = low.copy()
    below[changed[:last]] = high[changed[:last]]
    above, use, most = below.copy(), uses[last], uses[last + 1]
    above[changed[last]] = high[changed[last]]
    share = float((phases.limit - use) / (most - use)) if most > use else 0.0
    _offer_split(instance, search, _rows(instance, below), _rows(instance, above), share)


def _rows(instance: BoaInstance, widths: Floats) -> Widths:
    """Return the widths class by class."""
    listed = iter(widths.tolist())
    return [[next(listed) for _ in job_class.phases] for job_class in instance.classes]


def _offer_split(
    instance: BoaInstance, search: Search, low: Widths, high: Widths, share: float
) -> None:
    """Offer a mixture, or the single real width that equals it, as near to the limit as may be."""
    less, most = (
        feasibility.used(instance, to_plan(instance, [(1.0, row)])) for row in (low, high)
    )
    slack = feasibility.rounded_down(feasibility.limit(instance)) + 1 - less.below
    for step in STEPS_BACK:
        part = max(0.0, share - step)
        upper, lower = complementary(part)
        if Fraction(upper) * (most.below - less.above) > slack:
            continue  # surely beyond the limit
        if search.offer(to_plan(instance, [(1.0, _joined(instance, low, high, part))])):
            return
        if search.offer(to_plan(instance, [(lower, low), (upper, high)])) or search.out_of_time():
            return


def _joined(instance: BoaInstance, low: Widths, high: Widths, share: float) -> Widths:
    """Replace a mixture of two widths by its time-weighted mean width.

    On a concave stretch of the curve that is no worse (EPEW'24 lemma 1); where it is worse, the
    plan is over the limit or is beaten by the mixture.
    """
    joined = []
    for job_class, row, other in zip(instance.classes, low, high, strict=True):
        joined.append(
            [
                a if a == b else _mean_width(phase.curve, a, b, share)
                for phase, a, b in zip(job_class.phases, row, other, strict=True)
            ]
        )
    return joined


def _mean_width(speedup: Speedup, a: float, b: float, share: float) -> float:
    time_a = (1 - share) / speedup_at(speedup, a)
    time_b = share / speedup_at(speedup, b)
    return (a * time_a + b * time_b) / (time_a + time_b)


def _offer(instance: BoaInstance, search: Search, phases: Smooth, widths: Floats) -> bool:
    """Offer a plan, unless floats see it far beyond the limit."""
    if phases.use(widths) > phases.limit * (1 + SETTINGS.float_tolerance):
        return False
    return search.offer(to_plan(instance, [(1.0, _rows(instance, widths))]))
