"""The verifier's label setting: it looks for a plan that a stated bound of BOA forgets.

For integer widths an enumeration of the partial plans that a price leaves open makes its bound
sharp. What classes and free phases leave open is combined into two lists of labels, (use, value),
and a plan is looked for among the pairs (meet in the middle): equal exchange rates leave millions
of labels in one list, but only some thousands in each of two. Integers and fractions only, each a
lower bound; labels are left out only where no plan through them can be within the limit and below
the bound, or where another label has neither more use nor more value.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optsched.boa.verify.feasibility import SCALE, rounded_down
from optsched.boa.verify.phase_graphs import (
    NOTHING,
    PhaseGraph,
    PriceWeights,
    WidthNode,
    chains,
    completions,
    nodes_at_a_time,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from optsched.boa.instance import BoaInstance
    from optsched.boa.verify.options import Option

MAX_LABELS = 10_000_000  # made in all: half a minute
MAX_KEPT = 500_000  # at a time, in each list; some 200 bytes each, so at most a few hundred MB

Label = tuple[int, int]  # use and value of a partial plan, both rounded down
Labels = list[Label]


class TooMuch(Exception):
    """Raised where a certificate asks for more partial plans than are followed."""


class _Effort:
    """Counts labels before they are made, and gives up on certificates that ask for too many."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.count = 0
        self.open = 0  # labels of what is still to be combined

    def spend(self, count: int) -> None:
        self.count += count
        if self.count > self.most:
            raise TooMuch(f"more than {self.most:,} partial plans would have to be followed")

    def hold(self, count: int) -> None:
        if count > MAX_KEPT:
            raise TooMuch(f"more than {MAX_KEPT:,} partial plans would have to be kept at a time")


@dataclass(frozen=True)
class _Goal:
    """What a plan would have to be to refute the bound.

    Attributes
    ----------
    weights
        Weigh value and use as the price does.
    cutoff
        The priced value of such a plan is below it, as a multiple of 2**-192.
    use, value
        Its use is at most the one, its value below the other: multiples of 2**-192.
    """

    weights: PriceWeights
    cutoff: int
    use: int
    value: int


@dataclass
class _Side:
    """The labels of some classes and free phases together, and the least weight of these."""

    labels: Labels = field(default_factory=lambda: [(0, 0)])
    least: int = 0


def counterexample(
    instance: BoaInstance,
    price: Fraction,
    total: int,
    sought: tuple[Fraction, Fraction],
    most_labels: int = MAX_LABELS,
) -> str | None:
    """Look for a plan that refutes a bound; return what refutes it, or why the search ended.

    Parameters
    ----------
    total
        The least priced total, as `phase_graphs.least_total` gives it at this price.
    sought
        The limit on the use of such a plan, and the bound, which its value is below.
    most_labels
        After how many partial plans to give up; never more than `MAX_LABELS` are followed.
    """
    limit, stated = sought
    unit = SCALE * price.denominator
    ceiling = stated * unit + price.numerator * SCALE * limit  # on value + price * use
    goal = _Goal(
        weights=PriceWeights(price.denominator, price.numerator),
        cutoff=_up(ceiling),  # whole weights below the ceiling are below this
        use=rounded_down(limit),  # whole uses up to the limit are up to this
        value=_up(stated * SCALE),
    )
    try:
        refuted = _refuted(instance, goal, total, _Effort(min(most_labels, MAX_LABELS)))
    except TooMuch as reason:
        return str(reason)
    return "a plan that may lie within the limit has a smaller objective" if refuted else None


def _up(value: Fraction) -> int:
    return -((-value.numerator) // value.denominator)


def _refuted(instance: BoaInstance, goal: _Goal, total: int, effort: _Effort) -> bool:
    """Tell whether a plan may be within the limit and below the bound."""
    for job_class in instance.classes:
        effort.hold(nodes_at_a_time(instance, job_class))
    settled, alternatives = _Side(), []
    for least, chain in chains(instance, goal.weights):
        paths = _paths(chain, goal.cutoff - (total - least), goal, effort)
        if len(paths) == 1:
            [(use, value)], [path] = settled.labels, paths
            settled = _Side([(use + path[0], value + path[1])], settled.least + least)
        elif paths:
            effort.open += len(paths)
            effort.hold(effort.open)
            alternatives.append((least, paths))
        else:  # every plan takes a path through each chain
            return False
    return _meet(*_combined(settled, alternatives, goal, total, effort), goal)


def _combined(
    settled: _Side, alternatives: list[tuple[int, Labels]], goal: _Goal, total: int, effort: _Effort
) -> tuple[Labels, Labels]:
    """Return the labels of two sides that together take one path from each class.

    Alternatives are the least weight of a class or free phase and its paths; the short ones come
    first, each to the side that has fewer labels.
    """
    sides = [settled, _Side()]
    # Labels and paths are by growing use and falling value: what all are above the goal at best.
    [(use, value)] = settled.labels
    spare_use = goal.use - use - sum(paths[0][0] for _, paths in alternatives)
    spare_value = goal.value - value - sum(paths[-1][1] for _, paths in alternatives)
    for least, paths in sorted(alternatives, key=lambda alternative: len(alternative[1])):
        sides.sort(key=lambda side: len(side.labels))
        side = sides[0]
        ends = _Goal(
            goal.weights,
            goal.cutoff - (total - side.least - least),  # at least what all others weigh
            spare_use + side.labels[0][0] + paths[0][0],
            spare_value + side.labels[-1][1] + paths[-1][1],
        )
        labels = _product(side.labels, paths, ends, effort)
        if not labels:
            return [], []
        sides[0] = _Side(labels, side.least + least)
        spare_use, spare_value = ends.use - labels[0][0], ends.value - labels[-1][1]
    return sides[0].labels, sides[1].labels


def _paths(chain: PhaseGraph, ceiling: int, goal: _Goal, effort: _Effort) -> Labels:
    """Return the paths through a chain whose weight is below a ceiling."""
    if len(chain.phases) == 1:
        return _widths(chain, ceiling, goal)
    d, m = goal.weights
    after = completions(chain, goal.weights)
    entering: Labels = [(0, 0)]
    staying: dict[Option, Labels] = {}
    for nodes, rest in zip(chain.phases, after, strict=True):
        leaving: dict[Option, Labels] = {}
        kept = 0
        lightest = min((v * d + u * m for u, v in entering), default=0)
        for k, node in nodes.items():
            cutoff = ceiling - rest[k]
            if lightest + node.weighed(goal.weights) >= cutoff:
                continue  # whatever stays at k is among `entering`, or dominated there
            stayed = staying.get(k, [])
            effort.spend(len(entering) + len(stayed))
            extended = _extended(entering, node, chain.rescaling[k], cutoff, goal)
            extended += _extended(stayed, node, NOTHING, cutoff, goal)
            if extended:
                leaving[k] = _undominated(extended)
                kept += len(leaving[k])
                effort.hold(kept)
        staying = leaving
        entering = _undominated([label for part in leaving.values() for label in part])
    return entering


def _widths(chain: PhaseGraph, ceiling: int, goal: _Goal) -> Labels:
    """Return the widths of a single phase that weigh less than a ceiling."""
    [nodes] = chain.phases
    labels = []
    for k, node in nodes.items():
        switch = chain.rescaling[k]
        use, value = node.use + switch.use, node.value + switch.value
        if value * goal.weights.value + use * goal.weights.use < ceiling and use <= goal.use:
            labels.append((use, value))
    return _undominated(labels)


def _extended(
    labels: Labels, node: WidthNode, switch: WidthNode, cutoff: int, goal: _Goal
) -> Labels:
    """Append a node to each partial plan; keep those that weigh less than `cutoff`."""
    use, value = node.use + switch.use, node.value + switch.value
    d, m = goal.weights
    cutoff -= value * d + use * m
    most = goal.use - use
    return [(u + use, v + value) for u, v in labels if v * d + u * m < cutoff and u <= most]


def _product(labels: Labels, paths: Labels, ends: _Goal, effort: _Effort) -> Labels:
    """Return each label with each path, where they keep to the ends of weight, use and value."""
    d, m = ends.weights
    by_weight = sorted((v * d + u * m, u, v) for u, v in paths)
    extended: Labels = []
    for use, value in labels:
        fitting = bisect_left(by_weight, (ends.cutoff - value * d - use * m,))
        effort.spend(fitting)
        most, below = ends.use - use, ends.value - value
        extended += [
            (use + u, value + v) for _, u, v in by_weight[:fitting] if u <= most and v < below
        ]
        if len(extended) > 2 * MAX_KEPT:
            extended = _undominated(extended)
            effort.hold(len(extended))
    extended = _undominated(extended)
    effort.hold(len(extended))
    return extended


def _undominated(labels: Labels) -> Labels:
    """Return the labels, by growing use and falling value, that no other equals or beats."""
    if len(labels) == 1:
        return labels
    kept: Labels = []
    for use, value in sorted(labels):
        if not kept or value < kept[-1][1]:
            kept.append((use, value))
    return kept


def _meet(one: Labels, other: Labels, goal: _Goal) -> bool:
    """Tell whether a label of each list together keep the limit and lie below the bound.

    Both lists are by growing use and falling value, so that the best partner of a label is the last
    that still fits.
    """
    partner = len(other) - 1
    for use, value in one:
        while partner >= 0 and use + other[partner][0] > goal.use:
            partner -= 1
        if partner < 0:
            return False
        if value + other[partner][1] < goal.value:
            return True
    return False
