"""Reliability branching: which rules are tried, what is learnt, and what is chosen."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.mip import reliability_branching
from optsched.mip.reliability_branching import Branching, Gains, PseudoCosts
from optsched.pal.exact.cuts_and_branching import Rule
from tests.support.strategies.common import law


def rule(n):
    return Rule((n,), 0, np.inf)


@dataclass
class Case:
    bound: float


@dataclass
class Solver:
    """Gives the branches of rules from a table of gains; None when its solves run out."""

    gains: dict
    left: int = 1000
    asked: list = field(default_factory=list)

    def __call__(self, node, wanted, count):
        self.asked.append(wanted)
        self.left -= 1
        below, above = self.gains[wanted]
        return None if self.left < 0 else (Case(node.bound + below), Case(node.bound + above))


def test_gains_count_up_to_what_is_worth_it():
    assert Gains(3.0, 0.5).score(1.0) == 0.5
    assert Gains(0.0, 2.0).score(1.0) == reliability_branching.LEAST_GAIN


def test_pseudo_costs_are_means_per_unit_of_fraction():
    costs = PseudoCosts()
    costs.learn(rule(0), 1.25, Gains(1.0, 3.0))
    costs.learn(rule(0), 4.5, Gains(4.0, 1.0))
    assert costs.expected(rule(0), 7.5) == pytest.approx(Gains(3.0, 1.5))
    assert rule(1) not in costs


def test_the_best_of_the_rules_tried_is_chosen():
    solver = Solver({rule(0): (0.1, 0.1), rule(1): (0.3, 0.4), rule(2): (0.0, 9.0)})
    candidates = [(rule(n), 0.5) for n in range(3)]
    split = Branching(solver, 1000).choose(Case(1.0), candidates, 2.0)
    assert split.rule == rule(1)
    assert [child.bound for child in split.children] == [1.3, 1.4]
    assert solver.asked == [rule(0), rule(1), rule(2)]


def test_a_rule_is_tried_once_and_then_believed():
    solver = Solver({rule(0): (0.4, 0.4), rule(1): (0.1, 0.1)})
    chooser = Branching(solver, 1000)
    for bound in (0.0, 0.2):
        split = chooser.choose(Case(bound), [(rule(0), 0.5), (rule(1), 0.5)], 1.0)
        assert split.rule == rule(0)
    assert solver.asked == [rule(0), rule(1), rule(0)]


def test_a_rule_that_closes_both_cases_ends_the_search():
    solver = Solver({rule(0): (5.0, 5.0), rule(1): (9.0, 9.0)})
    split = Branching(solver, 1000).choose(Case(0.0), [(rule(0), 0.5), (rule(1), 0.5)], 1.0)
    assert (split.rule, solver.asked) == (rule(0), [rule(0)])


def test_small_trees_try_few_rules():
    solver = Solver({rule(n): (n, n) for n in range(50)})
    Branching(solver, 8 * 3).choose(Case(0.0), [(rule(n), 0.5) for n in range(50)], 100.0)
    assert len(solver.asked) == 3


def test_patience_ends():
    solver = Solver({rule(n): (1.0 / (1 + n), 1.0) for n in range(50)})
    Branching(solver, 10**6).choose(Case(0.0), [(rule(n), 0.5) for n in range(50)], 100.0)
    assert len(solver.asked) == 1 + reliability_branching.PATIENCE


def test_no_time_no_split():
    solver = Solver({rule(0): (0.1, 0.1), rule(1): (0.1, 0.1)}, left=1)
    candidates = [(rule(0), 0.5), (rule(1), 0.5)]
    assert Branching(solver, 1000).choose(Case(0.0), candidates, 1.0) is None


@law(200)
@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3), st.floats(0.1, 0.9)), min_size=1))
def test_what_is_chosen_is_a_candidate_with_its_own_cases(rows):
    solver = Solver({rule(n): (below, above) for n, (below, above, _) in enumerate(rows)})
    candidates = [(rule(n), count) for n, (_, _, count) in enumerate(rows)]
    chooser = Branching(solver, 10**6)
    for _ in range(3):
        split = chooser.choose(Case(0.0), candidates, 1.0)
        assert (split.rule, split.at) in candidates
        assert tuple(child.bound for child in split.children) == solver.gains[split.rule]
