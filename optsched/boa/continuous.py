"""Real widths: the dual of EPEW'24 problem (3), in closed form for Amdahl and power curves.

At price mu a phase takes the width that minimises (1 + mu k) / s(k) (boa.md 1.4 item 2, 4.3):
power k ** a: k = a / ((1 - a) mu); Amdahl with parallel fraction f: k = sqrt(f / ((1 - f) mu));
a measured table: a vertex of its upper concave hull, as in `price.py`. Each is cut off at the ends
of the curve. The use falls with the price, so the best price is found by bisection.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from optsched.boa import check, proof
from optsched.boa.arrays import complementary, curve, to_plan
from optsched.boa.instance import Amdahl, Power, Table
from optsched.boa.plan import BoaCertificate
from optsched.boa.price import HAIR
from optsched.solve import Infeasible

if TYPE_CHECKING:
    from optsched.boa.instance import BoaInstance, Speedup
    from optsched.solve import Search

Widths = list[list[float]]

LARGEST_PRICE = 1e30
SMALLEST_PRICE = 1e-30
STEPS_BACK = (0.0, *(2.0**n for n in range(-52, 1)))
DOUBLINGS = tuple(2.0**n for n in range(1, 200))


def solve(instance: BoaInstance, search: Search) -> float:
    """Offer the optimal plan to the search and return its price.

    Raises
    ------
    Infeasible
        If not even the least use keeps within the limit.
    """
    if proof.least_use(instance) > check.limit(instance):
        raise infeasible(instance)
    if _offer(instance, search, _respond(instance, 0.0)):
        return 0.0
    low, high = _bracket(instance)
    for step in (*STEPS_BACK, *DOUBLINGS):  # `high` may be a rounding beyond the limit
        within = _respond(instance, high * (1 + step))
        if _offer(instance, search, within):
            _offer_between(instance, search, within, _respond(instance, low))
            break
    return max((low, high), key=lambda price: _lagrangian(instance, price))


def infeasible(instance: BoaInstance) -> Infeasible:
    """Return the proof that not even the least use keeps within the limit, with that use."""
    least = proof.least_use(instance)
    figure = nearest_below(least / check.limit_divisor(instance))
    evidence = BoaCertificate(
        kind="least", priced_total=str(math.floor(least * check.SCALE)), least=figure
    )
    shown = -nearest_below(-least / check.limit_divisor(instance))  # enough, as a new limit
    if instance.target_mean_jct_s is not None:
        target = f"{instance.target_mean_jct_s!r} s"
        text = f"no plan reaches a mean JCT of {target}; the least is {shown!r} s"
        return Infeasible(text, evidence)
    text = f"the budget of {float(check.limit(instance))!r} GPUs is below the least possible cost"
    text += f" of {shown!r} GPUs"
    if instance.price_usd_per_gpu_h is not None:
        cost = -nearest_below(-least * Fraction(instance.price_usd_per_gpu_h))
        text += f" ({cost!r} USD/h)"
    return Infeasible(text, evidence)


def nearest_below(value: Fraction) -> float:
    """Return the greatest float at or below a value."""
    nearest = float(value)
    return nearest if Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)


def best_width(speedup: Speedup, jobs: float, gpus: float) -> float:
    """Return the real width that minimises (jobs + gpus * k) / s(k)."""
    if isinstance(speedup, Table):
        widths, values = curve(speedup)
        return float(widths[np.argmin((jobs + gpus * widths) / values)])
    parallel = speedup.exponent if isinstance(speedup, Power) else speedup.parallel_fraction
    if not parallel:
        return 1.0
    dearer = (1 - parallel) * gpus
    ratio = parallel * jobs / dearer if dearer else math.inf
    best = ratio if isinstance(speedup, Power) else math.sqrt(ratio)
    return min(max(best, 1.0), float(speedup.max_gpus))


def speedup_at(speedup: Speedup, gpus: float) -> float:
    """Return the speedup at a real width."""
    if isinstance(speedup, Table):
        return float(np.interp(gpus, *curve(speedup)))
    if isinstance(speedup, Amdahl):
        return 1 / (1 - speedup.parallel_fraction + speedup.parallel_fraction / gpus)
    return float(gpus**speedup.exponent)


def _respond(instance: BoaInstance, price: float) -> Widths:
    jobs, gpus = (1.0, price) if instance.budget is not None else (price, 1.0)
    return [
        [best_width(phase.speedup, jobs, gpus) for phase in job_class.phases]
        for job_class in instance.classes
    ]


def _totals(instance: BoaInstance, widths: Widths) -> tuple[float, float]:
    """Return value and use of one width per phase."""
    jobs = gpus = 0.0
    for job_class, row in zip(instance.classes, widths, strict=True):
        for phase, k in zip(job_class.phases, row, strict=True):
            mean = job_class.arrival_rate_per_h / 3600 * phase.work_gpu_s
            mean /= speedup_at(phase.speedup, k)
            jobs, gpus = jobs + mean, gpus + k * mean
    return (jobs, gpus) if instance.budget is not None else (gpus, jobs)


def _lagrangian(instance: BoaInstance, price: float) -> float:
    value, use = _totals(instance, _respond(instance, price))
    return value + price * (use - float(check.limit(instance)))


def _bracket(instance: BoaInstance) -> tuple[float, float]:
    """Return neighbouring prices, the use above the limit at the lower and within at the higher.

    A hair above the limit counts as within: else a limit that is the least use has no price.
    """
    limit = float(check.limit(instance)) * (1 + HAIR)
    low, high = SMALLEST_PRICE, LARGEST_PRICE
    for _ in range(200):
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        if _totals(instance, _respond(instance, middle))[1] > limit:
            low = middle
        else:
            high = middle
    return low, high


def _offer_between(instance: BoaInstance, search: Search, low: Widths, high: Widths) -> None:
    """Offer the plan that uses up the limit: from `low` to `high` by phases, the last in part."""
    limit = float(check.limit(instance))
    below = [row[:] for row in low]
    for i, row in enumerate(high):
        for e, k in enumerate(row):
            if k == below[i][e]:
                continue
            use = _totals(instance, below)[1]
            before, below[i][e] = below[i][e], k
            above = _totals(instance, below)[1]
            if above > limit * (1 - HAIR):
                split = [r[:] for r in below]
                below[i][e] = before
                share = (limit - use) / (above - use) if above > use else 0.0
                _offer_split(instance, search, below, split, share)
                return


def _offer_split(
    instance: BoaInstance, search: Search, low: Widths, high: Widths, share: float
) -> None:
    """Offer a mixture, or the single real width that equals it, as near to the limit as may be."""
    for step in STEPS_BACK:
        part = max(0.0, share - step)
        if _offer(instance, search, _joined(instance, low, high, part)):
            return
        upper, lower = complementary(part)
        if search.offer(to_plan(instance, [(lower, low), (upper, high)])):
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
                a if a == b else _mean_width(phase.speedup, a, b, share)
                for phase, a, b in zip(job_class.phases, row, other, strict=True)
            ]
        )
    return joined


def _mean_width(speedup: Speedup, a: float, b: float, share: float) -> float:
    time_a = (1 - share) / speedup_at(speedup, a)
    time_b = share / speedup_at(speedup, b)
    return (a * time_a + b * time_b) / (time_a + time_b)


def _offer(instance: BoaInstance, search: Search, widths: Widths) -> bool:
    return search.offer(to_plan(instance, [(1.0, widths)]))
