"""Reliability branching: which rule to branch a node by (Achterberg, Koch & Martin 2005).

A rule that was never split is tried: both of its cases are solved. What a rule's cases gained
there, per unit of the fraction that they take away, is its pseudo-cost, and stands for it from then
on. Source: Achterberg, Koch, Martin, "Branching rules revisited", Operations Research Letters 33
(2005); here one trial makes a rule reliable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from optsched.pal.exact.cuts_and_branching import Rule

TRIED = 20  # rules of a case, at most
SHARE = 8  # at most one of so many nodes of a tree is worth trying for its sake
PATIENCE = 8  # of them in a row that are no better than the best
LEAST_GAIN = 1e-9


class Bounded(Protocol):
    """A case of a tree: what it proves."""

    bound: float


Node = TypeVar("Node", bound=Bounded)


class Gains(NamedTuple):
    """By how much the bounds of the two cases of a rule lie above the case they are split from."""

    below: float
    above: float

    def score(self, worth: float) -> float:
        """Return how good a split is, where no gain above `worth` counts."""
        below, above = (min(max(gain, LEAST_GAIN), worth) for gain in self)
        return below * above


class PseudoCosts:
    """Mean gain per unit of fraction, by rule."""

    def __init__(self) -> None:
        self._sums: dict[Rule, list[float]] = {}

    def __contains__(self, rule: Rule) -> bool:
        return rule in self._sums

    def learn(self, rule: Rule, count: float, gains: Gains) -> None:
        """Remember what a split gained."""
        fraction = count - np.floor(count)
        sums = self._sums.setdefault(rule, [0.0, 0.0, 0.0])
        sums[0] += gains.below / fraction
        sums[1] += gains.above / (1 - fraction)
        sums[2] += 1

    def expected(self, rule: Rule, count: float) -> Gains:
        """Return what a split by a rule that was tried should gain."""
        fraction = count - np.floor(count)
        below, above, times = self._sums[rule]
        return Gains(below / times * fraction, above / times * (1 - fraction))


class Chosen(NamedTuple, Generic[Node]):
    """A rule, the count at which it is split, and its two cases."""

    rule: Rule
    at: float
    children: tuple[Node, Node]


class Branching(Generic[Node]):
    """Chooses splits of a tree that may have so many nodes.

    `solve` gives the two cases of a rule, or None if there is no time.
    """

    def __init__(
        self, solve: Callable[[Node, Rule, float], tuple[Node, Node] | None], most_nodes: int
    ) -> None:
        self._solve = solve
        self._tried = min(TRIED, max(1, most_nodes // SHARE))
        self._costs = PseudoCosts()

    def choose(
        self, node: Node, candidates: Sequence[tuple[Rule, float]], goal: float
    ) -> Chosen[Node] | None:
        """Return the best split of a case; None if there is no time.

        Parameters
        ----------
        candidates
            Rules and their counts, the most promising first; at least one.
        goal
            What is to be proven.
        """
        worth = goal - node.bound
        known = [pair for pair in candidates if pair[0] in self._costs]
        scores = [self._costs.expected(*pair).score(worth) for pair in known]
        best, most, failures = None, max(scores, default=-1.0), 0
        unknown = [pair for pair in candidates if pair[0] not in self._costs]
        for rule, count in unknown[: self._tried]:
            split = self._try(node, rule, count, worth)
            if split is None:
                return None
            score = _gains(node, split.children, worth).score(worth)
            failures += 1
            if score > most:
                best, most, failures = split, score, 0
            if score >= worth * worth or failures == PATIENCE:
                break
        if best is not None:
            return best
        return self._try(node, *known[scores.index(max(scores))], worth)

    def _try(self, node: Node, rule: Rule, count: float, worth: float) -> Chosen[Node] | None:
        children = self._solve(node, rule, count)
        if children is None:
            return None
        self._costs.learn(rule, count, _gains(node, children, worth))
        return Chosen(rule, count, children)


def _gains(node: Bounded, children: tuple[Node, Node], worth: float) -> Gains:
    below, above = (min(child.bound - node.bound, 2 * worth) for child in children)
    return Gains(below, above)
