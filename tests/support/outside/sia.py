"""Rounds of choice from their mathematics alone: every combination of options, in fractions.

A document is {"options": [per job [[cost, [use of each capacity]], ...]], "capacity": [...]}.
"""

from __future__ import annotations

from fractions import Fraction


def optimum(document):
    """The least cost, twice; (None, None) if there is no plan."""
    capacity = tuple(map(Fraction, document["capacity"]))
    best = {tuple(Fraction(0) for _ in capacity): Fraction(0)}
    for options in document["options"]:
        after = {}
        for used, so_far in best.items():
            for cost, use in options:
                key = tuple(u + Fraction(v) for u, v in zip(used, use, strict=True))
                if all(u <= r for u, r in zip(key, capacity, strict=True)):
                    total = so_far + Fraction(cost)
                    after[key] = min(total, after.get(key, total))
        best = after
    least = min(best.values(), default=None)
    return least, least


def examine(document, plan):
    """Every rule that a plan breaks, and its cost, twice."""
    if len(plan) != len(document["options"]):
        return ["one option each"], None
    if any(not 0 <= n < len(own) for n, own in zip(plan, document["options"], strict=True)):
        return ["its own option"], None
    chosen = [own[n] for n, own in zip(plan, document["options"], strict=True)]
    for kind, capacity in enumerate(document["capacity"]):
        if sum(Fraction(use[kind]) for _, use in chosen) > Fraction(capacity):
            return ["capacity"], None
    cost = sum(Fraction(cost) for cost, _ in chosen)
    return [], (cost, cost)


def unit(document):
    return ""


def gap_scale(document, plan):
    """A millionth of what cancels in a plan whose costs have both signs."""
    pairs = zip(plan or (), document["options"], strict=False)
    costs = [Fraction(own[n][0]) for n, own in pairs if 0 <= n < len(own)]
    above, below = sum(c for c in costs if c > 0), -sum(c for c in costs if c < 0)
    return Fraction(1, 10**6) * min(above, below)
