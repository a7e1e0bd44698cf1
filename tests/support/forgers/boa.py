"""Forged certificates of BOA: bounds above the optimum, by an own oracle in fractions.

    python -m tests.support.forgers.boa 30000      # so many forgeries; prints how many are accepted

Figures are as extreme as the schema allows, or, of instances that were never validated, beyond.
The oracle knows nothing of the verifier: it lists all plans, and takes the best within the limit,
or of all mixtures of two. A forger is told all that the verifier will recompute, such as totals.
"""

from __future__ import annotations

import math
import random
import sys
from fractions import Fraction
from itertools import product

from optsched.boa import Amdahl, BoaInstance, JobClass, Phase, Power, Table
from optsched.boa.plan import BoaCertificate
from optsched.boa.verify import certificate as proof
from optsched.boa.verify import feasibility
from tests.support.forgers import boa_offers

EDGES = [1e-9, 1e-9, 1e12, 1e12, 1.0, 3.0, 1 / 3, 0.1]
BEYOND = [1e-300, 1e300, 5e-324, 1e-160, 1e160]
ROOT_BITS = 700


# --- instances --------------------------------------------------------------------------------


def figure(draw, beyond):
    if beyond and draw.random() < 0.4:
        return draw.choice(BEYOND)
    if draw.random() < 0.5:
        return draw.choice(EDGES)
    return 10 ** draw.uniform(-9, 12) if draw.random() < 0.5 else draw.uniform(0.1, 10)


def curve(draw, beyond):
    kind = draw.random()
    if kind < 0.7:
        gpus = sorted(draw.sample([1, 2, 3, 4, 7, 8, 1000, 99_999, 100_000], draw.randint(1, 3)))
        if draw.random() < 0.3:
            speedup = [draw.choice([0.1, 0.3, 1.0]) * k for k in gpus]  # costs equal up to rounding
        else:
            speedup = [figure(draw, beyond) for _ in gpus]
        return Table.model_construct(gpus=tuple(gpus), speedup=tuple(speedup))
    share = draw.choice([0.0, 0.5, 1.0, 0.25, 1e-300, math.nextafter(1, 0)])
    most = draw.randint(1, 3)
    if kind < 0.9:
        return Amdahl.model_construct(parallel_fraction=share, max_gpus=most)
    return Power.model_construct(exponent=draw.choice([0.0, 0.25, 0.5, 1.0]), max_gpus=most)


MOST_PLANS = 2000


def instance_of(draw):
    """Return an instance whose limit is beside the use of one of its plans, or anywhere."""
    beyond, widths = draw.random() < 0.3, draw.choice(["integer", "integer", "mixed", "continuous"])
    offered = None
    if widths != "continuous" and draw.random() < 0.4:
        offered = boa_offers.offers(draw, lambda: figure(draw, beyond))

    def speedup():
        if offered is None:
            return curve(draw, beyond)
        return boa_offers.by_type(draw, offered, lambda: curve(draw, beyond))

    shared = speedup() if draw.random() < 0.3 else None
    classes = []
    for n in range(draw.randint(1, 3)):
        phases = tuple(
            Phase.model_construct(work_gpu_s=figure(draw, beyond), speedup=shared or speedup())
            for _ in range(draw.randint(1, 2))
        )
        lost = figure(draw, beyond) if draw.random() < 0.4 and widths != "continuous" else 0.0
        classes.append(
            JobClass.model_construct(
                id=f"c{n}",
                arrival_rate_per_h=figure(draw, beyond),
                rescale_s=lost,
                checkpoint_s=draw.choice([None, 60.0, 3600.0]) if offered else None,
                phases=phases,
            )
        )
    budget = "budget_gpus" if offered is None else "budget_usd_per_h"
    key = draw.choice([budget, "target_mean_jct_s"])
    loose = BoaInstance.model_construct(
        widths=widths, classes=tuple(classes), offers=offered, **{key: 1.0}
    )
    plans = points(loose)
    if not 0 < len(plans) <= MOST_PLANS:  # none left by interruptions, or too many pairs
        return instance_of(draw)
    use = draw.choice(plans)[1] * Fraction(draw.choice([1.0, 1.0, 1.2, 3.0]))
    unit = rate(loose) if key == "target_mean_jct_s" else 1
    least, most = (5e-324, 1e308) if beyond else (1e-9, 1e12)
    limit = float(min(max(use / unit, Fraction(least)), Fraction(most)))
    limit = draw.choice([limit, math.nextafter(limit, math.inf), math.nextafter(limit, 0) or limit])
    return loose.model_copy(update={key: limit}), plans


# --- the oracle ---------------------------------------------------------------------------------


def speed(speedup, k):
    """Return the speedup at a width, rounded down where it is irrational."""
    if isinstance(speedup, Table):
        return Fraction(dict(zip(speedup.gpus, speedup.speedup, strict=True))[k])
    if isinstance(speedup, Amdahl):
        share = Fraction(speedup.parallel_fraction)
        return 1 / (1 - share + share / k)
    root = Fraction(k)
    exponent = Fraction(speedup.exponent)
    if exponent in (0, 1):
        return root**exponent.numerator
    for _ in range(exponent.denominator.bit_length() - 1):
        scaled = int(root * 4**ROOT_BITS)
        root = Fraction(math.isqrt(scaled), 2**ROOT_BITS)
    return root


def rate(instance):
    return sum(Fraction(c.arrival_rate_per_h) for c in instance.classes) / 3600


def points(instance):
    """Return value and use, at most, of all plans of one option for each phase."""
    totals = [(Fraction(0), Fraction(0))]
    for c in instance.classes:
        per_s, ways = Fraction(c.arrival_rate_per_h) / 3600, []
        choices = [list(boa_offers.options(instance, c, phase, speed)) for phase in c.phases]
        for way in product(*choices):
            jobs = held = Fraction(0)
            before = None
            for option, rent, seconds in way:
                lost = billed = Fraction(0)
                if option != before:
                    lost, billed = boa_offers.start(instance, c, option)
                jobs += per_s * (seconds + lost)
                held, before = held + per_s * (seconds + billed) * rent, option
            ways.append((jobs, held) if instance.target_mean_jct_s is None else (held, jobs))
        totals = [(v + a, u + b) for v, u in totals for a, b in ways]
    return totals


def optimum(instance, plans):
    """Return the least objective of the plans, mixed if they may be; None without any."""
    is_target = instance.target_mean_jct_s is not None
    budget = instance.budget_gpus if instance.offers is None else instance.budget_usd_per_h
    limit = Fraction(instance.target_mean_jct_s or budget)
    limit *= rate(instance) if is_target else 1
    within = [(v, u) for v, u in plans if u <= limit]
    if not within:
        return None
    best = min(v for v, _ in within)
    if instance.widths != "integer":
        beyond = [(v, u) for v, u in plans if u > limit and v < best]
        for v, u in within:
            for w, t in beyond:
                best = min(best, v + (w - v) * (limit - u) / (t - u))
    return best / (1 if is_target else rate(instance))


# --- forgeries ----------------------------------------------------------------------------------


def prices(draw, instance, plans):
    """Return exchange rates between plans, such figures a rounding beside, and extreme ones."""
    figures = [0.0, 5e-324, 1e-30, 1.0, 1e30, 1e300, 1.7e308]
    for _ in range(4):
        (v, u), (w, t) = draw.choice(plans), draw.choice(plans)
        if u != t and (v - w) / (t - u) > 0:
            exact = min((v - w) / (t - u), Fraction(10) ** 308)
            figures += [float(exact), math.nextafter(float(exact), math.inf)]
    return draw.sample(figures, min(len(figures), 4))


def above(draw, best):
    """Return floats above a figure: the next ones, and some far beyond."""
    try:
        nearest = float(best)
    except OverflowError:
        return []
    if Fraction(nearest) <= best:
        nearest = math.nextafter(nearest, math.inf)
    figures = [
        nearest,
        math.nextafter(nearest, math.inf),
        nearest * (1 + 1e-12),
        nearest * 2,
        1e300,
    ]
    return [b for b in figures if math.isfinite(b) and Fraction(b) > best]


def forgeries(draw, instance, plans, best):
    """Yield certificates that state what is not so."""
    for price in prices(draw, instance, plans):
        total = str(proof.priced_total(instance, Fraction(price)) // Fraction(price).denominator)
        for bound in above(draw, best):
            labels = draw.choice([None, 0, 10**6, 10**30])
            yield BoaCertificate.model_construct(
                kind="price",
                price=price,
                priced_total=total,
                bound=bound,
                least=None,
                labels=labels,
            )
        for bound in (math.nan, math.inf):
            yield BoaCertificate.model_construct(
                kind="price", price=price, priced_total=total, bound=bound, least=None, labels=None
            )
    least = proof.least_use(instance)
    for stated in (
        0.0,
        math.inf,
        math.nan,
        min(float(min(least, Fraction(10**300))), 1e300),
        1e308,
    ):
        yield BoaCertificate.model_construct(
            kind="least",
            price=0.0,
            priced_total=str(feasibility.rounded_down(least)),
            bound=None,
            least=stated,
            labels=None,
        )


def run(count, seed=0):
    """Forge so many certificates; return how many were, which were accepted, and true ones."""
    draw, made, accepted, confirmed, drawn = random.Random(seed), 0, [], 0, 0
    while made < count:
        instance, plans = instance_of(draw)
        best = optimum(instance, plans)
        if best is None:
            continue
        drawn += 1
        for certificate in forgeries(draw, instance, plans, best):
            made += 1
            if not proof.prove(instance, certificate):
                accepted.append((instance, certificate))
        confirmed += is_confirmed(instance, best)
    return made, accepted, confirmed, drawn


def is_confirmed(instance, best):
    """Tell whether a true bound a little below the optimum is proven, at some price of integers."""
    if instance.widths != "integer":
        return False
    bound = float(min(best, Fraction(10) ** 300)) * (1 - 1e-9)
    total = str(proof.priced_total(instance, Fraction(0)))
    certificate = BoaCertificate.model_construct(
        kind="price", price=0.0, priced_total=total, bound=bound, least=None, labels=None
    )
    return not proof.prove(instance, certificate)


if __name__ == "__main__":
    made, accepted, confirmed, drawn = run(int(sys.argv[1]))
    print(f"{made:,} forgeries on {drawn:,} instances: {len(accepted)} accepted")
    print(f"true bounds of integer widths confirmed: {confirmed:,}")
    for instance, certificate in accepted[:5]:
        print(instance, certificate, sep="\n")
