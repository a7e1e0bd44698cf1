"""Branch and bound on the 0/1 knapsack: its optimum, its trees, and what a limit leaves proven."""

import itertools
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.certificates.bound_tree import Split, tree_faults
from optsched.instance import Document
from optsched.mip import branch_and_bound
from optsched.mip.branch_and_bound import Branch, BranchAndBound, TreeNode, tightest
from optsched.mip.reliability_branching import ReliabilitySettings
from tests.support.strategies.common import law

INFINITE = float("inf")


class Knapsack(NamedTuple):
    """Items by value and weight; the value of what is packed counts negatively."""

    values: tuple[int, ...]
    weights: tuple[int, ...]
    capacity: int

    def free(self, path):
        """The items that a path leaves open, those that it packs, and the capacity left."""
        packed = [b.rule for b in path if b.is_above]
        barred = [b.rule for b in path if not b.is_above]
        free = [n for n in range(len(self.values)) if n not in packed and n not in barred]
        return free, packed, self.capacity - sum(self.weights[n] for n in packed)

    def value(self, path, price):
        """The Lagrangian value of a price of the capacity at a node."""
        free, packed, left = self.free(path)
        if left < 0:
            return INFINITE
        gains = (self.values[n] - price * self.weights[n] for n in free)
        return -price * left - sum(gain for gain in gains if gain > 0) - self.worth(packed)

    def worth(self, items):
        return sum(self.values[n] for n in items)

    def optimum(self, path=()):
        return optimum(self, path)


@cache
def optimum(knapsack, path):
    """The least value of all that may be packed at a node, tried one by one."""
    free, packed, left = knapsack.free(path)
    fitting = [
        knapsack.worth(chosen)
        for count in range(len(free) + 1)
        for chosen in itertools.combinations(free, count)
        if sum(knapsack.weights[n] for n in chosen) <= left
    ]
    return -knapsack.worth(packed) - max(fitting) if left >= 0 else INFINITE


class Price(Document):
    """A leaf of a certificate."""

    price: float


@dataclass(eq=False)
class Node(TreeNode[int]):
    price: Fraction
    packed: tuple[int, ...]
    split: tuple[int, Fraction] | None

    def inherit(self, parent):
        self.bound, self.price = parent.bound, parent.price


class KnapsackTree(BranchAndBound[Node]):
    """Relaxed by Dantzig's rule: the densest items first, the last one in part."""

    def __init__(self, knapsack, programs=10**9):
        super().__init__(lambda: None)
        self.knapsack, self.best, self.programs = knapsack, 0, programs
        self.plant(self.relax((), None))

    def relax(self, path, parent):
        self.programs -= 1
        if self.programs < 0:
            return None
        values, weights, _ = self.knapsack
        free, packed, left = self.knapsack.free(path)
        if left < 0:
            return Node(path, INFINITE, Fraction(0), (), None)
        for n in sorted(free, key=lambda n: -Fraction(values[n], weights[n])):
            if weights[n] > left:
                price = Fraction(values[n], weights[n])
                split = (n, Fraction(left, weights[n])) if left else None
                return Node(path, self.knapsack.value(path, price), price, tuple(packed), split)
            packed, left = [*packed, n], left - weights[n]
        return Node(path, -self.knapsack.worth(packed), Fraction(0), tuple(packed), None)

    def candidates(self, node):
        """The item in part, and others, as if they were in part, too."""
        if node.split is None:
            return []
        others = [n for n in self.knapsack.free(node.path)[0] if n != node.split[0]]
        return [node.split, *((n, Fraction(1, 2)) for n in others)]

    def offer(self, node):
        if node.bound < INFINITE:
            self.best = min(self.best, -self.knapsack.worth(node.packed))

    def run(self, most_nodes):
        self.offer(self.nodes[0])
        self.explore(lambda: self.best, self.offer, most_nodes)


class ProbingTree(KnapsackTree):
    """Estimates gains by what the parent's price says; the newest of equal nodes first."""

    newest_first = True
    reliability = ReliabilitySettings(trials=2, nodes_per_trial=1)

    def probe(self, node, candidates):
        for n, _ in candidates:
            paths = [(*node.path, Branch(n, 0, is_above)) for is_above in (False, True)]
            below, above = (self.knapsack.value(path, node.price) - node.bound for path in paths)
            yield below, above


def assert_proven(tree):
    """The nodes are a tree, and no leaf says more than its price proves, or than is true."""
    nodes = [
        Price(price=float(node.price))
        if node.disjunction is None
        else Split(**node.disjunction._asdict())
        for node in tree.standing
    ]
    assert not list(tree_faults(nodes, len(tree.knapsack.values)))
    for node in tree.standing:
        if node.disjunction is None:
            assert node.bound <= tree.knapsack.value(node.path, node.price)
            assert node.bound <= tree.knapsack.optimum(node.path)
    leaves = [node.bound for node in tree.standing if node.disjunction is None]
    assert tree.bound == min(leaves) <= tree.knapsack.optimum()


@st.composite
def knapsacks(draw):
    items = draw(
        st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=8)
    )
    values, weights = zip(*items, strict=True)
    return Knapsack(values, weights, draw(st.integers(0, sum(weights))))


TREES = st.sampled_from([KnapsackTree, ProbingTree])


@law(200)
@given(knapsacks(), TREES)
def test_the_optimum_is_that_of_brute_force(knapsack, kind):
    tree = kind(knapsack)
    tree.run(10**4)
    assert tree.best == tree.bound == knapsack.optimum()
    assert_proven(tree)


@law(200)
@given(knapsacks(), TREES, st.integers(1, 12))
def test_a_limit_of_nodes_leaves_a_bound(knapsack, kind, most_nodes):
    tree = kind(knapsack)
    tree.run(most_nodes)
    assert len(tree.nodes) <= most_nodes + 1
    assert bool(tree.ended) == (tree.bound < tree.best or len(tree.nodes) >= most_nodes)
    assert_proven(tree)


@law(200)
@given(knapsacks(), TREES, st.integers(1, 12))
def test_programs_that_run_out_leave_a_bound_from_which_it_goes_on(knapsack, kind, programs):
    tree = kind(knapsack, programs)
    tree.run(10**4)
    assert_proven(tree)
    assert tree.bound == tree.best or tree.ended == "a linear program was not solved"
    tree.programs = 10**9
    tree.run(10**4)
    assert tree.best == tree.bound == knapsack.optimum()


def run_to_line(tree, line):
    """Press Ctrl-C before a line of the module, the lines counted as they are run."""
    left, before = iter(range(line)), sys.gettrace()

    def trace(frame, event, _):
        if frame.f_code.co_filename != branch_and_bound.__file__:
            return None
        if event == "line" and next(left, None) is None:
            raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        tree.run(10**4)
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("kind", [KnapsackTree, ProbingTree])
def test_ctrl_c_at_any_line_leaves_a_bound(kind):
    knapsack = Knapsack((12, 21, 29, 15, 28, 25), (7, 21, 29, 10, 28, 22), 68)
    for line in range(10**4):
        tree = kind(knapsack)
        try:
            run_to_line(tree, line)
        except KeyboardInterrupt:
            assert_proven(tree)
        else:
            break
    assert tree.bound == tree.best
    assert len(tree.nodes) == 9
    assert line > 100


def test_time_ends_it():
    tree = KnapsackTree(Knapsack((5, 4, 3), (4, 3, 2), 6))
    tree.seconds_left = lambda: 0.0
    tree.run(10**4)
    assert (len(tree.nodes), tree.ended) == (1, "")
    assert tree.bound < tree.best


BRANCHES = st.builds(Branch, st.integers(0, 2), st.integers(0, 3), st.booleans())


@law(200)
@given(st.lists(BRANCHES, max_size=8))
def test_the_tightest_branch_of_each_rule_and_side_is_all_that_a_path_says(path):
    def allowed(branches, rule):
        return {
            count
            for count in range(-1, 6)
            if all(
                (count > b.at_most) if b.is_above else (count <= b.at_most)
                for b in branches
                if b.rule == rule
            )
        }

    places = tightest(path)
    chosen = [path[n] for n in places.values()]
    assert len({(b.rule, b.is_above) for b in chosen}) == len(chosen) == len(places)
    for rule in range(3):
        assert allowed(chosen, rule) == allowed(path, rule)


@pytest.mark.parametrize("kind", [KnapsackTree, ProbingTree])
def test_a_child_takes_the_parents_duals_where_they_prove_more(kind):
    tree = kind(Knapsack((6, 5), (3, 4), 5))

    def relax(path, parent):
        return Node(path, -100, Fraction(50), (), None)

    tree.relax = relax
    root = tree.nodes[0]
    for child in tree.children(root, 0, 0.5):
        assert (child.bound, child.price) == (root.bound, root.price)
