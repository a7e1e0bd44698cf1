"""Reliability branching: which rule to branch a node by (Achterberg, Koch & Martin 2005).

A rule that was not tried often is tried: what its two branches gain is probed, or both are solved.
Gains per unit of the fraction that a branch takes away are the rule's pseudo-costs, which stand for
it once it is reliable. Source: Achterberg, Koch, Martin, "Branching rules revisited", Operations
Research Letters 33 (2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

Candidate = tuple[Any, float]  # a rule, hashable, and its count, which is not whole


class Bounded(Protocol):
    """A node of a tree: what it proves."""

    bound: float


Node = TypeVar("Node", bound=Bounded)


@dataclass(frozen=True)
class ReliabilitySettings:
    """How much is tried before a rule is chosen.

    Attributes
    ----------
    most_tried
        Rules of a node that are tried, at most.
    nodes_per_trial
        At most one of so many nodes of a tree is worth trying for its sake.
    patience
        Rules in a row that are no better than the best, after which trying ends.
    trials
        After so many of a rule its pseudo-costs stand for it; infinite for strong branching alone.
    least_gain
        What a branch counts as gaining at least, in the unit of the bound.
    most_gain
        Gains count up to so many times what is missing to the goal.
    """

    most_tried: int = 20
    nodes_per_trial: int = 8
    patience: int = 8
    trials: float = 1
    least_gain: float = 1e-9
    most_gain: float = 1.0


DEFAULT = ReliabilitySettings()


class BranchGains(NamedTuple):
    """By how much the bounds of the two branches of a rule lie above that of their node."""

    below: float
    above: float

    def score(self, worth: float, least: float = DEFAULT.least_gain) -> float:
        """Return how good a rule is, where no gain above `worth` or below `least` counts."""
        below, above = (min(max(gain, least), worth) for gain in self)
        return below * above


class PseudoCosts:
    """Mean gain per unit of fraction, by rule."""

    def __init__(self) -> None:
        self._sums: dict[Hashable, list[float]] = {}

    def trials(self, rule: Hashable) -> float:
        """Return how often something was learnt of a rule."""
        return self._sums[rule][2] if rule in self._sums else 0

    def learn(self, rule: Hashable, count: float, gains: BranchGains) -> None:
        """Remember what the branches of a rule gained."""
        fraction = count - np.floor(count)
        sums = self._sums.setdefault(rule, [0.0, 0.0, 0.0])
        sums[0] += gains.below / fraction
        sums[1] += gains.above / (1 - fraction)
        sums[2] += 1

    def expected(self, rule: Hashable, count: float) -> BranchGains:
        """Return what the branches of a rule that was tried should gain."""
        fraction = count - np.floor(count)
        below, above, times = self._sums[rule]
        return BranchGains(below / times * fraction, above / times * (1 - fraction))


class Trial(NamedTuple, Generic[Node]):
    """A rule with its count, what its branches gain, and these if they are solved."""

    candidate: Candidate
    gains: BranchGains
    children: tuple[Node, Node] | None


class ReliabilityBranching(Generic[Node]):
    """Chooses the rules by which the nodes of a tree are branched.

    Parameters
    ----------
    solve
        Gives the two branches of a node by a rule, at a count.
    probe
        Gives estimates of how much the two branches of each of some rules gain; None where these
        are to be solved instead.
    """

    def __init__(
        self,
        solve: Callable[[Node, Any, float], tuple[Node, Node]],
        probe: Callable[[Node, Sequence[Candidate]], Iterator[tuple[float, float]] | None],
        settings: ReliabilitySettings = DEFAULT,
    ) -> None:
        self._solve, self._probe, self.settings = solve, probe, settings
        self._costs = PseudoCosts()

    def choose(
        self, node: Node, candidates: Sequence[Candidate], goal: float, most_nodes: int
    ) -> tuple[Node, Node]:
        """Return the two branches of a node by the best rule.

        Parameters
        ----------
        candidates
            Rules and their counts, the most promising first; at least one.
        goal
            What is to be proven.
        most_nodes
            That the tree may have.
        """
        settings = self.settings
        worth = settings.most_gain * (goal - node.bound)
        if len(candidates) == 1:
            return self._solved(node, *candidates[0], worth)
        known = [c for c in candidates if self._costs.trials(c[0]) >= settings.trials]
        unknown = [c for c in candidates if self._costs.trials(c[0]) < settings.trials]
        scores = [self._score(self._costs.expected(*c), worth) for c in known]
        unknown = self._likeliest_first(unknown, worth)
        best, most, failures = None, max(scores, default=-1.0), 0
        tried = min(settings.most_tried, max(1, most_nodes // settings.nodes_per_trial))
        for trial in self._trials(node, unknown[:tried], worth):
            score = self._score(trial.gains, worth)
            failures += 1
            if score > most:
                best, most, failures = trial, score, 0
            if score >= worth * worth or failures == settings.patience:
                break
        if best is None:
            return self._solved(node, *known[scores.index(most)], worth)
        if best.children is None:
            return self._solved(node, *best.candidate, worth)
        return best.children

    def _likeliest_first(self, candidates: list[Candidate], worth: float) -> list[Candidate]:
        """Return those that were tried before first, the one expected to be best at the front."""
        tried = [c for c in candidates if self._costs.trials(c[0])]
        tried.sort(key=lambda c: -self._score(self._costs.expected(*c), worth))
        return tried + [c for c in candidates if not self._costs.trials(c[0])]

    def _score(self, gains: BranchGains, worth: float) -> float:
        return gains.score(worth, self.settings.least_gain)

    def _trials(
        self, node: Node, candidates: Sequence[Candidate], worth: float
    ) -> Iterator[Trial[Node]]:
        """Yield what candidates gain, and remember it."""
        probed = self._probe(node, candidates)
        if probed is None:
            for rule, count in candidates:
                children = self._solved(node, rule, count, worth)
                yield Trial((rule, count), _gains(node, children, worth), children)
            return
        for (rule, count), (below, above) in zip(candidates, probed, strict=True):
            gains = BranchGains(min(below, 2 * worth), min(above, 2 * worth))
            self._costs.learn(rule, count, gains)
            yield Trial((rule, count), gains, None)

    def _solved(self, node: Node, rule: Any, count: float, worth: float) -> tuple[Node, Node]:
        """Return the solved branches of a rule; what these gain is remembered."""
        children = self._solve(node, rule, count)
        self._costs.learn(rule, count, _gains(node, children, worth))
        return children


def _gains(node: Bounded, children: tuple[Node, Node], worth: float) -> BranchGains:
    below, above = (min(child.bound - node.bound, 2 * worth) for child in children)
    return BranchGains(below, above)
