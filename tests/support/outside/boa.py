"""BOA from its mathematics alone: documents go in, fractions come out, nothing of the project.

Powers are irrational: every figure is a pair, from speeds a hair too fast and a hair too slow.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise, product

HAIR = Fraction(1, 10**60)
DIGITS = Context(prec=80, Emin=-999_999_999, Emax=999_999_999)
FAST, SLOW = 1, -1


def speed(curve, width, side):
    """The speedup at a width, rational or real; too fast or too slow by a hair if irrational."""
    k = Fraction(width)
    if curve["kind"] == "table":
        points = sorted(set(zip(map(Fraction, curve["gpus"]), curve["speedup"], strict=True)))
        for (k0, s0), (k1, s1) in pairwise([*points, points[-1]]):
            if k0 <= k <= k1:
                along = (k - k0) / (k1 - k0) if k1 > k0 else Fraction(0)
                return Fraction(s0) + along * (Fraction(s1) - Fraction(s0))
    if curve["kind"] == "amdahl":
        f = Fraction(curve["parallel_fraction"])
        return 1 / (1 - f + f / k)
    exponent = curve["exponent"]
    if k == 1 or exponent in (0, 1):
        return k if exponent == 1 else Fraction(1)
    quotient = DIGITS.divide(Decimal(k.numerator), Decimal(k.denominator))
    power = DIGITS.exp(DIGITS.multiply(DIGITS.ln(quotient), Decimal(exponent)))
    return Fraction(power) * (1 + side * HAIR)


def whole_widths(curve):
    if curve["kind"] == "table":
        return sorted(set(curve["gpus"]))
    return list(range(1, curve["max_gpus"] + 1))


def rate(job_class):
    return Fraction(job_class["arrival_rate_per_h"]) / 3600


def total_rate(document):
    return sum(map(rate, document["classes"]))


def limit(document):
    """GPUs that may be rented, or mean jobs in the system where the JCT is limited (Little)."""
    if document.get("budget_gpus") is not None:
        return Fraction(document["budget_gpus"])
    if document.get("budget_usd_per_h") is not None:
        return Fraction(document["budget_usd_per_h"]) / Fraction(document["price_usd_per_gpu_h"])
    return Fraction(document["target_mean_jct_s"]) * total_rate(document)


def is_flipped(document):
    return document.get("target_mean_jct_s") is not None


def way(job_class, widths, side):
    """Mean jobs and mean GPUs of a class whose jobs all go through these widths."""
    jobs = gpus = Fraction(0)
    before = None
    for phase, k in zip(job_class["phases"], widths, strict=True):
        seconds = Fraction(phase["work_gpu_s"]) / speed(phase["speedup"], k, side)
        if k != before:
            seconds += Fraction(job_class.get("rescale_s", 0))
        jobs += rate(job_class) * seconds
        gpus += rate(job_class) * seconds * Fraction(k)
        before = k
    return jobs, gpus


def points(document, job_class, side):
    """(use of what is limited, value of what is minimised) of every way in whole widths."""
    choices = product(*(whole_widths(phase["speedup"]) for phase in job_class["phases"]))
    pairs = {way(job_class, widths, side) for widths in choices}
    return {(jobs, gpus) if is_flipped(document) else (gpus, jobs) for jobs, gpus in pairs}


def frontier(pairs):
    kept = []
    for use, value in sorted(pairs):
        if not kept or value < kept[-1][1]:
            kept.append((use, value))
    return kept


def hull(pairs):
    """The lower left hull of points, from the least use on."""
    kept = []
    for use, value in frontier(pairs):
        while len(kept) > 1:
            (u0, v0), (u1, v1) = kept[-2:]
            if (v1 - v0) * (use - u1) < (value - v1) * (u1 - u0):
                break
            kept.pop()
        kept.append((use, value))
    return kept


def _integer(document, side, limit):
    sums = [(Fraction(0), Fraction(0))]
    for c in document["classes"]:
        own = frontier(points(document, c, side))
        sums = frontier((u + use, v + value) for u, v in sums for use, value in own)
    return min((value for use, value in sums if use <= limit), default=None)


def _mixed(document, side, limit):
    hulls = [hull(points(document, c, side)) for c in document["classes"]]
    use, value = (sum(h[0][n] for h in hulls) for n in (0, 1))
    if use > limit:
        return None
    steps = [(b[0] - a[0], b[1] - a[1]) for h in hulls for a, b in pairwise(h)]
    for more, change in sorted(steps, key=lambda step: step[1] / step[0]):
        share = min(Fraction(1), (limit - use) / more)
        use, value = use + share * more, value + share * change
    return value


# --- continuous widths ----------------------------------------------------------------------------


def _best_width(curve, gpu_price, job_price):
    """A width of least (job_price + gpu_price * k) / speed(k), right to the last digits."""
    if curve["kind"] == "table":
        cost = {k: (job_price + gpu_price * k) / speed(curve, k, SLOW) for k in set(curve["gpus"])}
        return min(cost, key=cost.get)
    most = curve["max_gpus"]
    f = Fraction(curve["parallel_fraction" if curve["kind"] == "amdahl" else "exponent"])
    if f == 1 or not gpu_price:  # an exponent of 0 gains nothing by width, and loses nothing
        return most if f else 1
    k = f * job_price / ((1 - f) * gpu_price)
    if curve["kind"] == "amdahl":
        k = Fraction(math.isqrt(int(k * 10**40)), 10**20)
    return min(max(k, Fraction(1)), Fraction(most))


def _at_price(document, price, side):
    """(use, value) of the ways of least value + price * use."""
    gpu_price, job_price = (Fraction(1), price) if is_flipped(document) else (price, Fraction(1))
    use = value = Fraction(0)
    for c in document["classes"]:
        widths = [_best_width(p["speedup"], gpu_price, job_price) for p in c["phases"]]
        jobs, gpus = way({**c, "rescale_s": 0}, widths, side)
        use += jobs if is_flipped(document) else gpus
        value += gpus if is_flipped(document) else jobs
    return use, value


def _continuous(document, side, limit):
    """A lower bound by the best price found (FAST), or what a mixture of plans costs (SLOW)."""
    low, high = -200.0, 200.0  # logarithms of prices
    thrifty, lavish = (_at_price(document, _price(log), side) for log in (high, low))
    if thrifty[0] > limit:
        return None
    if lavish[0] <= limit:  # to the last digits nothing is gained by more
        return lavish[1] - (_price(low) * limit if side == FAST else 0)
    bound = Fraction(0)
    for _ in range(70):
        middle = (low + high) / 2
        use, value = _at_price(document, _price(middle), side)
        bound = max(bound, value + _price(middle) * (use - limit))
        if use <= limit:
            high, thrifty = middle, (use, value)
        else:
            low, lavish = middle, (use, value)
    if side == FAST:
        return bound * (1 - Fraction(1, 10**25))
    share = (limit - thrifty[0]) / (lavish[0] - thrifty[0])
    return thrifty[1] + share * (lavish[1] - thrifty[1])


def _price(log):
    return Fraction(2.0 ** (log % 1)) * Fraction(2) ** math.floor(log)


# --- what an oracle tells -------------------------------------------------------------------------


def optimum(document):
    """The least objective, between two fractions; None for each that has no plan."""
    solve = {"integer": _integer, "mixed": _mixed, "continuous": _continuous}
    method = solve[document.get("widths", "integer")]
    values = [method(document, side, limit(document)) for side in (FAST, SLOW)]
    unit = 1 if is_flipped(document) else total_rate(document)
    return tuple(None if value is None else value / unit for value in values)


def extreme_uses(document):
    """The least and the greatest use of plans in whole widths, in the unit of what is limited."""
    uses = [[use for use, _ in points(document, c, SLOW)] for c in document["classes"]]
    unit = total_rate(document) if is_flipped(document) else 1
    return sum(map(min, uses)) / unit, sum(map(max, uses)) / unit


def examine(document, plan):
    """Every rule that a plan breaks, and its objective between two fractions."""
    faults, classes = [], {c["id"]: c for c in document["classes"]}
    if sorted(c["id"] for c in plan["classes"]) != sorted(classes):
        return ["every class once"], None
    kind = document.get("widths", "integer")
    totals = {side: [Fraction(0), Fraction(0)] for side in (FAST, SLOW)}
    for planned in plan["classes"]:
        job_class, ways = classes[planned["id"]], planned["sequences"]
        if sum(Fraction(w["share"]) for w in ways) != 1 or any(w["share"] < 0 for w in ways):
            faults.append("shares")
        if kind == "integer" and len(ways) != 1:
            faults.append("one way")
        for sequence in ways:
            widths = sequence["gpus"]
            if len(widths) != len(job_class["phases"]) or any(
                not _allowed(phase["speedup"], k, kind)
                for phase, k in zip(job_class["phases"], widths, strict=False)
            ):
                return ["widths"], None
            for side, sums in totals.items():
                figures = way(job_class, widths, side)
                for n in (0, 1):
                    sums[n] += Fraction(sequence["share"]) * figures[n]
    limited, wanted = (0, 1) if is_flipped(document) else (1, 0)
    if totals[FAST][limited] > limit(document):
        faults.append("limit")
    unit = 1 if is_flipped(document) else total_rate(document)
    return faults, tuple(totals[side][wanted] / unit for side in (FAST, SLOW))


def _allowed(curve, k, kind):
    widths = whole_widths(curve)
    return widths[0] <= k <= widths[-1] if kind == "continuous" else k in widths


def unit(document):
    return "GPUs" if is_flipped(document) else "s"


def gap_scale(document, plan):
    return Fraction(0)
