"""A forger of what is stated of rounds, and an oracle of its own: brute force in fractions.

`python -m tests.support.forgers.sia 20000` tries so many forgeries and tells how many were
accepted that are false, and how many ended in anything but a verdict.
"""

import itertools
import math
import random
import sys
from collections import Counter
from fractions import Fraction

import numpy as np

from benchmarks.proving.rounds import Choice, Chosen, Round, verify_round
from optsched.certificates.bound_tree import Split
from optsched.sia import ChoiceCertificate
from optsched.sia.verify.certificate import Enumeration, Prices
from optsched.verification import Violation

ODD = (0.0, -0.0, 1.0, 1e300, -1e300, 5e-324, 1.7e308, math.nan, math.inf, -math.inf, 10**400,
       -(2**63), True, "optimal", None, [1], 1j)  # fmt: skip
EXTREME = (0.0, 1.0, 0.1, 0.3, 5e-324, 1e-300, 1e9 / 3, 2.0**53, 1e300)


class Truth:
    """What is so, by looking at every plan."""

    def __init__(self, instance):
        self.costs = {}
        rows = []
        for job in range(len(instance.jobs)):
            first = sum(instance.counts.tolist()[:job])
            rows.append(range(first, first + instance.counts.tolist()[job]))
        cost = [Fraction(value) for value in instance.cost.tolist()]
        use = [[Fraction(value) for value in row] for row in instance.use.tolist()]
        capacity = [Fraction(value) for value in instance.capacity.tolist()]
        for chosen in itertools.product(*rows):
            taken = [sum(use[n][k] for n in chosen) for k in range(len(capacity))]
            if all(a <= b for a, b in zip(taken, capacity, strict=True)):
                plan = tuple(n - own[0] for n, own in zip(chosen, rows, strict=True))
                self.costs[plan] = [cost[n] for n in chosen]
        self.least = min(map(sum, self.costs.values()), default=None)

    def is_so(self, chosen):
        """Whether everything that is stated is true."""
        if not 0 <= chosen.gap_limit < 1 or chosen.programs < 0:
            return False
        if chosen.bound is not None and self.least is not None and chosen.bound > self.least:
            return False
        if chosen.plan is None:
            if (chosen.objective, chosen.gap) != (None, None):
                return False
            if chosen.status == "infeasible":
                return self.least is None and chosen.bound is None
            return chosen.status == "error" and chosen.bound is not None
        costs = self.costs.get(tuple(chosen.plan))
        if costs is None or chosen.objective != float(sum(costs)) or chosen.bound is None:
            return False
        cancelled = min(sum(c for c in costs if c > 0), -sum(c for c in costs if c < 0))
        size = max(abs(sum(costs)), cancelled / 10**6)
        off = Fraction(chosen.objective) - Fraction(chosen.bound)
        gap = off / size if size else Fraction(int(off != 0))
        if chosen.gap is None or abs(Fraction(chosen.gap) - gap) > Fraction(1, 10**12) * (1 + gap):
            return False
        within = chosen.gap <= max(chosen.gap_limit, 1e-9)
        return chosen.status == ("optimal" if within else "feasible")


def a_round(draw):
    """A round of few jobs, tight or without a plan, at times of extreme figures."""
    capacities, extreme = draw.randint(0, 2), draw.random() < 0.25
    figures = EXTREME if extreme else [n / 7 for n in range(30)] + list(range(9))
    options = {}
    for job in range(draw.randint(1, 4)):
        sign = draw.choice((1, 1, -1))
        options[job] = [
            (sign * draw.choice(figures), [draw.choice(figures) for _ in range(capacities)])
            for _ in range(draw.randint(1, 4))
        ]
    capacity = draw.choice((0.4, 0.6, 1.0, 2.0))
    return Round.of(
        options, [capacity * draw.choice(figures) * len(options) / 2 for _ in range(capacities)]
    )


def by_hand(instance, truth, gap):
    """Return the best plan, and the bound that no prices prove; None beyond floats."""
    plan = min(truth.costs, key=lambda plan: sum(truth.costs[plan]), default=None)
    nothing = Prices(prices=(0.0,) * len(instance.capacity))
    least = sum(map(Fraction, np.minimum.reduceat(instance.cost, instance.first).tolist()))
    bound = max(math.nextafter(float(least), -math.inf), -1.7e308)
    status = "error" if plan is None else "feasible"
    certificate = ChoiceCertificate(bound=bound, nodes=(nothing,))
    chosen = Chosen(None, None, bound, None, status, certificate, 0, gap)
    if plan is not None:
        chosen = chosen._replace(plan=np.array(plan), objective=instance.objective(plan))
        size = max(abs(chosen.objective), instance.gap_scale(plan))
        off = chosen.objective - bound
        gap_is = off / size if size else float(off != 0)
        status = "optimal" if gap_is <= max(gap, 1e-9) else "feasible"
        chosen = chosen._replace(gap=gap_is, status=status)
        if not math.isfinite(gap_is):
            return None
    return chosen


def forged(draw, instance, chosen, truth):
    """Return what is stated of a round, with something changed."""
    kind = draw.choice(
        ("field", "field", "certificate", "certificate", "both", "plan", "swap", "above", "above")
    )
    if kind == "above":
        return _above(draw, instance, chosen, truth)
    if kind in ("field", "both"):
        name = draw.choice(chosen._fields)
        chosen = chosen._replace(**{name: _other(draw, name, getattr(chosen, name))})
    if kind in ("certificate", "both") and isinstance(chosen.certificate, ChoiceCertificate):
        certificate = _certificate(draw, instance, chosen.certificate)
        bound = getattr(certificate, "bound", None)
        chosen = chosen._replace(certificate=certificate)
        if draw.random() < 0.8:
            chosen = _fitting(draw, instance, chosen._replace(bound=bound))
    if kind == "plan":
        plan = [draw.randrange(count) for count in instance.counts.tolist()]
        chosen = _fitting(draw, instance, chosen._replace(plan=np.array(plan)))
    if kind == "swap":
        status = draw.choice(("infeasible", "error", "optimal", "feasible"))
        chosen = chosen._replace(plan=None, objective=None, gap=None, status=status)
        if draw.random() < 0.7:
            nothing = ChoiceCertificate(bound=None, nodes=chosen.certificate.nodes)
            chosen = chosen._replace(bound=None, certificate=nothing)
    return chosen


def _above(draw, instance, chosen, truth):
    """State a bound above the best plan, by little, or that there is none; prices are near good."""
    nodes = list(chosen.certificate.nodes)
    if draw.random() < 0.6:
        rows = [node for node in nodes if isinstance(node, Prices)]
        rows += [row for node in nodes if isinstance(node, Enumeration) for row in node.rows]
        rows += [_prices(draw, len(instance.capacity)) for _ in range(draw.randint(0, 3))]
        leaf = draw.choice((Enumeration(rows=tuple(rows)), draw.choice(rows)))
        nodes = nodes if draw.random() < 0.3 else [leaf]
        nodes[-1] = leaf
    bound = None
    if truth.least is not None and draw.random() < 0.8:
        least = float(truth.least)
        bound = draw.choice((math.nextafter(least, math.inf), least + 1e-9, least * 1.01))
        if bound <= truth.least:
            bound = math.nextafter(math.nextafter(least, math.inf), math.inf)
    certificate = ChoiceCertificate.model_construct(bound=bound, nodes=tuple(nodes))
    chosen = chosen._replace(bound=bound, certificate=certificate)
    worse = [plan for plan, costs in truth.costs.items() if bound and sum(costs) >= bound]
    if worse and draw.random() < 0.5:
        return _fitting(draw, instance, chosen._replace(plan=np.array(draw.choice(worse))))
    status = "infeasible" if bound is None else "error"
    return chosen._replace(plan=None, objective=None, gap=None, status=status)


def _fitting(draw, instance, chosen):
    """Let objective, gap and status go with a plan and a bound, as a careful forger does."""
    try:
        objective = instance.objective(chosen.plan)
        gap = (objective - chosen.bound) / max(abs(objective), instance.gap_scale(chosen.plan))
        status = "optimal" if gap <= chosen.gap_limit else "feasible"
        return chosen._replace(objective=objective, gap=gap, status=status)
    except (TypeError, ValueError, ArithmeticError, IndexError):
        return chosen


def _other(draw, name, value):
    if name == "status":
        return draw.choice(("optimal", "feasible", "infeasible", "error", "proven", 1, None))
    if name == "plan" and value is not None and draw.random() < 0.5:
        return draw.choice((value + 0.5, value[:-1], -value - 1, [*value, 0], [[0]], [10**30]))
    number = isinstance(value, float) and math.isfinite(value)
    if number and draw.random() < 0.6:
        toward = draw.choice((math.inf, -math.inf, 0.0))
        return draw.choice((math.nextafter(value, toward), value * 1.001, -value, value + 1e-9))
    return draw.choice(ODD)


def _certificate(draw, instance, certificate):
    bound, nodes = certificate.bound, list(certificate.nodes)
    for _ in range(draw.randint(1, 2)):
        n = draw.randrange(len(nodes))
        how = draw.choice(("bound", "bound", "none", "prices", "prices", "tree", "rows", "raw"))
        if how == "bound" and bound is not None:
            more = draw.choice((math.ulp(bound), 1e-12, 1e-6, 0.1, 1e300))
            bound = draw.choice((bound + more, math.nan, math.inf)) if draw.random() < 0.9 else 0.0
        elif how == "none":
            bound = draw.choice((None, 0.0))
        elif how == "prices" and isinstance(nodes[n], Prices):
            nodes[n] = _prices(draw, len(instance.capacity))
        elif how == "tree":
            rule, count = draw.randrange(len(instance.cost) + 1), len(nodes)
            nodes.append(nodes[n])
            nodes.append(_prices(draw, len(instance.capacity)))
            nodes[n] = Split(rule=rule, at_most=draw.choice((0, 0, 1)), cases=(count, count + 1))
        elif how == "rows":
            rows = [_prices(draw, len(instance.capacity)) for _ in range(draw.randint(0, 3))]
            nodes[n] = Enumeration(rows=tuple(rows))
        elif how == "raw":
            nodes[n] = draw.choice((
                Prices.model_construct(kind="cost", prices=(draw.choice(ODD), -1.0)),
                Prices.model_construct(kind="other", prices=(-1.0,) * len(instance.capacity)),
                Split.model_construct(rule=-1, at_most=0, cases=(n, n)),
                Enumeration.model_construct(rows=draw.choice(ODD)),
                None,
            ))  # fmt: skip
    return ChoiceCertificate.model_construct(bound=bound, nodes=tuple(nodes))


def _prices(draw, capacities):
    figures = (0.0, 0.5, 1.0, 3.0, 1e-9, 5e-324, 1e300, draw.random())
    prices = [draw.choice(figures) for _ in range(capacities)]
    return Prices(kind=draw.choice(("cost", "infeasible")), prices=prices)


def try_forgeries(many, seed=0):
    """Return counts: forgeries, those refused, true ones, false ones accepted, and other ends."""
    draw, counts = random.Random(seed), Counter()
    while counts["tried"] < many:
        instance = a_round(draw)
        truth = Truth(instance)
        nodes = draw.choice((1, 200, 200))
        gap = draw.choice((0.0, 1e-6, 0.1))
        try:
            chosen = Choice(gap=gap, most_nodes=nodes).decide(instance)
        except ValueError:  # of extreme figures
            chosen = by_hand(instance, truth, gap)
        if chosen is None:
            continue
        verify_round(instance, chosen)
        assert truth.is_so(chosen)
        for _ in range(20):
            counts["tried"] += 1
            stated = forged(draw, instance, chosen, truth)
            try:
                verify_round(instance, stated)
            except Violation:
                counts["refused"] += 1
            except Exception as error:
                counts[f"ended in {type(error).__name__}"] += 1
            else:
                counts["true" if truth.is_so(stated) else "accepted"] += 1
    return counts


if __name__ == "__main__":
    print(dict(try_forgeries(int(sys.argv[1]), *map(int, sys.argv[2:]))))
