"""Reliability branching: which rules are tried, what is learnt, and what is chosen."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.mip.branch_and_bound import OutOfTime
from optsched.mip.reliability_branching import (
    DEFAULT,
    BranchGains,
    PseudoCosts,
    ReliabilityBranching,
    ReliabilitySettings,
)
from tests.support.strategies.common import law


def rule(n):
    return f"rule {n}"


@dataclass
class Case:
    bound: float
    rule: str = ""


@dataclass
class Solver:
    """Gives the branches of rules from a table of gains; `OutOfTime` when its solves run out."""

    gains: dict
    left: int = 1000
    asked: list = field(default_factory=list)
    probed: list = field(default_factory=list)

    def solve(self, node, wanted, count):
        self.asked.append(wanted)
        self.left -= 1
        if self.left < 0:
            raise OutOfTime
        below, above = self.gains[wanted]
        return Case(node.bound + below, wanted), Case(node.bound + above, wanted)

    def probe(self, node, candidates):
        for wanted, _ in candidates:
            self.probed.append(wanted)
            yield self.gains[wanted]


def branching(solver, settings=DEFAULT):
    return ReliabilityBranching(solver.solve, lambda node, candidates: None, settings)


def test_gains_count_up_to_what_is_worth_it():
    assert BranchGains(3.0, 0.5).score(1.0) == 0.5
    assert BranchGains(0.0, 2.0).score(1.0) == DEFAULT.least_gain


def test_pseudo_costs_are_means_per_unit_of_fraction():
    costs = PseudoCosts()
    costs.learn(rule(0), 1.25, BranchGains(1.0, 3.0))
    costs.learn(rule(0), 4.5, BranchGains(4.0, 1.0))
    assert costs.expected(rule(0), 7.5) == pytest.approx(BranchGains(3.0, 1.5))
    assert [costs.trials(rule(n)) for n in range(2)] == [2, 0]


def test_the_best_of_the_rules_tried_is_chosen():
    solver = Solver({rule(0): (0.1, 0.1), rule(1): (0.3, 0.4), rule(2): (0.0, 9.0)})
    candidates = [(rule(n), 0.5) for n in range(3)]
    children = branching(solver).choose(Case(1.0), candidates, 2.0, 1000)
    assert children == (Case(1.3, rule(1)), Case(1.4, rule(1)))
    assert solver.asked == [rule(0), rule(1), rule(2)]


def test_a_rule_is_tried_once_and_then_believed():
    solver = Solver({rule(0): (0.4, 0.4), rule(1): (0.1, 0.1)})
    chooser = branching(solver)
    for bound in (0.0, 0.2):
        below, _ = chooser.choose(Case(bound), [(rule(0), 0.5), (rule(1), 0.5)], 1.0, 1000)
        assert below.rule == rule(0)
    assert solver.asked == [rule(0), rule(1), rule(0)]


def test_a_rule_that_closes_both_cases_ends_the_search():
    solver = Solver({rule(0): (5.0, 5.0), rule(1): (9.0, 9.0)})
    candidates = [(rule(0), 0.5), (rule(1), 0.5)]
    below, _ = branching(solver).choose(Case(0.0), candidates, 1.0, 1000)
    assert (below.rule, solver.asked) == (rule(0), [rule(0)])


def test_small_trees_try_few_rules():
    solver = Solver({rule(n): (n, n) for n in range(50)})
    candidates = [(rule(n), 0.5) for n in range(50)]
    branching(solver).choose(Case(0.0), candidates, 100.0, 3 * DEFAULT.nodes_per_trial)
    assert len(solver.asked) == 3


def test_patience_ends():
    solver = Solver({rule(n): (1.0 / (1 + n), 1.0) for n in range(50)})
    candidates = [(rule(n), 0.5) for n in range(50)]
    branching(solver).choose(Case(0.0), candidates, 100.0, 10**6)
    assert len(solver.asked) == 1 + DEFAULT.patience


def test_no_time_no_split():
    solver = Solver({rule(0): (0.1, 0.1), rule(1): (0.1, 0.1)}, left=1)
    candidates = [(rule(0), 0.5), (rule(1), 0.5)]
    with pytest.raises(OutOfTime):
        branching(solver).choose(Case(0.0), candidates, 1.0, 1000)


def test_what_is_probed_is_solved_only_if_it_is_chosen():
    solver = Solver({rule(0): (0.1, 0.1), rule(1): (0.3, 0.4), rule(2): (0.2, 0.2)})
    chooser = ReliabilityBranching(solver.solve, solver.probe, DEFAULT)
    candidates = [(rule(n), 0.5) for n in range(3)]
    below, above = chooser.choose(Case(1.0), candidates, 2.0, 1000)
    assert (below.rule, above.rule) == (rule(1), rule(1))
    assert (solver.probed, solver.asked) == ([rule(n) for n in range(3)], [rule(1)])


@pytest.mark.parametrize("trials", [1, 2, 4])
def test_a_rule_is_probed_until_it_is_reliable(trials):
    solver = Solver({rule(0): (0.4, 0.4), rule(1): (0.1, 0.1)})
    chooser = ReliabilityBranching(solver.solve, solver.probe, ReliabilitySettings(trials=trials))
    for _ in range(6):
        below, _ = chooser.choose(Case(0.0), [(rule(0), 0.5), (rule(1), 0.5)], 1.0, 1000)
        assert below.rule == rule(0)
    assert solver.probed.count(rule(1)) == trials  # the other one is solved, too, as it is chosen
    assert solver.probed.count(rule(0)) == -(-trials // 2)


def test_the_only_candidate_is_not_tried():
    solver = Solver({rule(0): (0.4, 0.4)})
    chooser = ReliabilityBranching(solver.solve, solver.probe, DEFAULT)
    below, _ = chooser.choose(Case(0.0), [(rule(0), 0.5)], 1.0, 1000)
    assert (below.rule, solver.probed, solver.asked) == (rule(0), [], [rule(0)])


@law(200)
@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0, 3), st.floats(0.1, 0.9)), min_size=1))
def test_what_is_chosen_is_a_candidate_with_its_own_cases(rows):
    solver = Solver({rule(n): (below, above) for n, (below, above, _) in enumerate(rows)})
    candidates = [(rule(n), count) for n, (_, _, count) in enumerate(rows)]
    chooser = branching(solver)
    for _ in range(3):
        below, above = chooser.choose(Case(0.0), candidates, 1.0, 10**6)
        assert (below.bound, above.bound) == solver.gains[below.rule]
        assert below.rule == above.rule
