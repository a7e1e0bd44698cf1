"""The tree of a certificate: its paths against a walk from the root, and what its leaves prove."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.certificates.bound_tree import (
    Cut,
    Paths,
    Split,
    Statement,
    at_leaves,
    cut_faults,
    split_price_faults,
    tree_faults,
    written,
)
from optsched.instance import Document


class Bare(Document):
    """A leaf that proves a figure."""

    figure: int | None = None


@st.composite
def trees(draw):
    """Return the nodes of a tree in which any leaf so far may have been split next."""
    nodes, leaves = [Bare()], [0]
    for _ in range(draw(st.integers(0, 12))):
        n = leaves.pop(draw(st.integers(0, len(leaves) - 1)))
        cases = [len(nodes), len(nodes) + 1]
        leaves += cases
        nodes += [Bare(), Bare()]
        order = tuple(draw(st.permutations(cases)))
        rule, at_most = draw(st.integers(0, 3)), draw(st.integers(0, 5))
        nodes[n] = Split(rule=rule, at_most=at_most, cases=order)
    return nodes


def walked(nodes):
    """Return the path to each node, by a walk from the root."""
    paths, waiting = {}, [(0, [])]
    while waiting:
        n, path = waiting.pop()
        paths[n] = path
        if isinstance(nodes[n], Split):
            waiting += [
                (case, [*path, (nodes[n], side)]) for side, case in enumerate(nodes[n].cases)
            ]
    return paths


@given(trees())
def test_a_path_is_what_a_walk_from_the_root_takes(nodes):
    assert not [*tree_faults(nodes, 4)]
    paths, expected = Paths(nodes), walked(nodes)
    for n in range(len(nodes)):
        assert paths.to(n) == expected[n]
        assert paths.depths[n] == len(expected[n])
    leaves = {n for n, node in enumerate(nodes) if isinstance(node, Bare)}
    seen = at_leaves(nodes, lambda n, leaf, path: (leaf is nodes[n], path))
    assert seen == {n: (True, expected[n]) for n in leaves}


@given(trees(), st.lists(st.integers(0, 5), min_size=4, max_size=4))
def test_every_plan_is_in_exactly_one_leaf(nodes, counts):
    def has(n, leaf, path):
        sides = [counts[split.rule] > split.at_most for split, _ in path]
        return sides == [bool(side) for _, side in path]

    assert sum(at_leaves(nodes, has).values()) == 1


@given(trees().filter(lambda nodes: len(nodes) > 1), st.data())
def test_a_tree_with_another_branch_is_none(nodes, data):
    splits = [n for n, node in enumerate(nodes) if isinstance(node, Split)]
    n = data.draw(st.sampled_from(splits))
    case = data.draw(st.integers(0, len(nodes) + 2).filter(lambda c: c != nodes[n].cases[1]))
    cases = (nodes[n].cases[0], case)
    nodes[n] = nodes[n].model_copy(update={"cases": cases})
    assert {fault.rule for fault in tree_faults(nodes, 4)} == {"tree"}


@pytest.mark.parametrize(
    ("statement", "broken"),
    [
        (Statement(True, 1.0, None), {}),
        (Statement(True, -0.0, None), {}),
        (Statement(True, None, None), {"bound"}),
        (Statement(True, inf, None), {"bound"}),
        (Statement(True, nan, 1.0), {"bound", "left-out"}),
        (Statement(False, None, 0.5), {}),
        (Statement(False, None, 0.0), {"left-out"}),
        (Statement(False, None, nan), {"left-out"}),
        (Statement(False, 1.0, None), {"bound", "left-out"}),
    ],
)
def test_a_statement_is_of_a_bound_or_of_jobs_left_out(statement, broken):
    assert {fault.rule for fault in statement.faults()} == {*broken}


@given(st.dictionaries(st.integers(0, 9), st.none() | st.integers(-50, 50)), st.integers(-50, 50))
def test_the_least_leaf_decides(values, stated):
    proven = [value for value in values.values() if value is not None]
    statement = Statement(True, stated / 4, None)
    faults = [*statement.value_faults(values, stated, 4)]
    assert bool(faults) == (min(proven, default=stated) < stated)
    if faults:
        assert f"proves only {min(proven) / 4!r}, {stated / 4!r} is stated" in faults[0].message


def test_faults_of_prices_say_where_and_what():
    cuts = [Cut(rule=0, price=1.0), Cut(rule=1, price=1.0), Cut(rule=2, price=1.0)]
    said = [f.message for f in cut_faults("nodes[3]", cuts, ["a", 1], str, "which is none")]
    assert said == [
        "nodes[3] cuts by rules[1], which is none",
        "nodes[3] cuts by rules[2], but there are 2",
    ]
    [fault] = split_price_faults("nodes[3]", (0.0, 1.0), 1)
    assert fault.message == "nodes[3] has 2 prices for 1 splits"
    assert not [*split_price_faults("nodes[3]", (0.0,), 1)]


def test_figures_beyond_all_floats_are_written():
    assert (written(10**400), written(-(10**400))) == (
        "more than every float",
        "less than every float",
    )
    assert written(2) == "2.0"
