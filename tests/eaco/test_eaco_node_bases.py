"""Nodes of the tree that are taken up again: they start where their own solve ended."""

import pytest

import optsched
from benchmarks.generators import sharing
from optsched.eaco.exact.branch_and_bound import GroupingTree
from optsched.eaco.exact.node_bases import NodeBases


def watched(monkeypatch):
    """Simplex iterations that it takes to return to each node that has a basis of its own."""
    counts, restore = [], GroupingTree._restore

    def returning(tree, node, basis):
        restore(tree, node, basis)
        if basis is None or basis is not node.basis:
            return
        tree.relaxation.bound_rows(node.path)
        tree.relaxation.master.solve(None)
        counts.append(tree.relaxation.master._highs.getInfo().simplex_iteration_count)

    monkeypatch.setattr(GroupingTree, "_restore", returning)
    return counts


def test_a_node_that_is_taken_up_again_starts_from_its_own_basis(monkeypatch):
    instance = sharing(36, 4, 0.25, 4)
    counts = watched(monkeypatch)
    result = optsched.solve(instance, gap=1e-6)
    own = list(counts)
    counts.clear()
    monkeypatch.setattr(NodeBases, "start_from", lambda bases, basis: None)
    without = optsched.solve(instance, gap=1e-6)
    assert result.status == without.status == "optimal"
    assert result.objective == pytest.approx(without.objective, rel=2e-6)
    assert len(own) >= 3
    assert sum(own) / len(own) < 0.5 * sum(counts) / len(counts)
