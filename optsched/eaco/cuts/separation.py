"""Separation of rank-one cuts: few jobs together, odd sets (Padberg & Rao, Math. OR 7, 1982)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.cuts.cuts_and_branching import Rank1CutRow
from optsched.eaco.cuts.fractional import fractional_part
from optsched.eaco.cuts.mod_k import mod_k_sets
from optsched.eaco.cuts.rank1 import weighted_sets
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import networkx as nx

    from optsched.documents.arrays import Floats
    from optsched.eaco.cuts.cut_pool import CutPool
    from optsched.eaco.exact.master import Frame
    from optsched.eaco.groups.columns import Columns


def violated_cuts(frame: Frame, pool: CutPool, support: Columns, x: Floats) -> list[Rank1CutRow]:
    """Return cuts that a point violates, the most violated first.

    Parameters
    ----------
    pool
        Cuts that are known; it gets those that are found.
    support
        The columns that are not zero at the point, and `x` how much of each.
    """
    violations = pool.violated(support, x)
    if len(violations) < SETTINGS.enough_pooled:
        found = _separated(frame, support, x)
        pool.add(found)
        violations |= found
    return sorted(violations, key=lambda rule: (-violations[rule], rule))


def _separated(frame: Frame, support: Columns, x: Floats) -> dict[Rank1CutRow, float]:
    """Return cuts that a point violates, and how much for their size."""
    violations: dict[Rank1CutRow, float] = {}
    held = _held(support, len(frame.copies))
    if held.sum(axis=1).max(initial=0) > 2:
        weighted = weighted_sets(held, x, frame.copies)
        if len(weighted) < SETTINGS.rank1_few:
            weighted |= mod_k_sets(held, x, frame.copies)
        if weighted:
            return {Rank1CutRow(m, d): e / np.sqrt(len(m)) for (m, d), e in weighted.items()}
    for candidates, divisor in _candidates(held, x, frame.copies):
        sizes = np.array([len(members) for members in candidates])
        flat = np.concatenate([np.array(members) for members in candidates])
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        totals = np.add.reduceat(held.T[flat], starts, axis=0)
        values = np.floor(totals / divisor) @ x
        for members, value in zip(candidates, values, strict=True):
            rule = Rank1CutRow(members, divisor)
            excess = float(value) - rule.most(frame.copies)
            if excess > SETTINGS.least_violation:
                violations[rule] = excess / np.sqrt(len(members))
    return violations


def _held(support: Columns, classes: int) -> Floats:
    """Return how many jobs of each class each column holds."""
    held = np.zeros((len(support.cost), classes + 1))
    rows = np.arange(len(support.cost))
    for n in range(support.members.shape[1]):
        np.add.at(held, (rows, support.members[:, n]), 1.0)
    return held[:, :-1]


def _candidates(
    held: Floats, x: Floats, copies: Floats
) -> Iterator[tuple[list[tuple[int, ...]], int]]:
    """Yield sets of classes by divisor: few together, and odd ones that hang together."""
    loose, touched, _, _ = fractional_part(held, x)
    together = np.minimum(held[loose], 1).T @ np.minimum(held[loose], 1) > 0
    sets: list[tuple[int, ...]] = [(int(c),) for c in touched if copies[c] > 1]
    pairs = [(a, b) for a, b in itertools.combinations(touched.tolist(), 2) if together[a, b]]
    sets += [pair for pair in pairs if (copies[list(pair)] > 1).any()]
    triples = (
        (a, b, int(c)) for a, b in pairs for c in np.flatnonzero(together[a] & together[b]) if c > b
    )
    sets += itertools.islice(triples, SETTINGS.most_triples)
    if held.sum(axis=1).max(initial=0) <= 2:
        sets += _odd_sets(held, x, copies)
    odd = [members for members in sets if copies[list(members)].sum() % 2 == 1]
    if odd:
        yield from ((odd[n : n + 20_000], 2) for n in range(0, len(odd), 20_000))
    most = int(held.sum(axis=1).max(initial=0))
    for divisor in range(3, most + 1):
        short = [members for members in sets if copies[list(members)].sum() % divisor]
        short = [members for members in short if copies[list(members)].sum() > divisor]
        if short:
            yield short, divisor


def _odd_sets(held: Floats, x: Floats, copies: Floats) -> list[tuple[int, ...]]:
    """Return sets of an odd number of single jobs that few pairs leave: the least odd cuts.

    Exact where groups have two jobs at most (Padberg and Rao): every cut of the tree of Gomory and
    Hu that is odd. Larger groups count as pairs of their jobs in parts.
    """
    import networkx as nx  # slow to import

    single = (copies == 1) & ((held.T * np.abs(x - np.rint(x))).sum(axis=1) > SETTINGS.whole)
    which = np.flatnonzero(single)
    graph: nx.Graph[int] = nx.Graph()
    inside = np.minimum(held[:, which], 1)
    size = held.sum(axis=1)
    share = np.where(size > 1, x / np.maximum(size - 1, 1), 0.0)
    weights = (inside * share[:, None]).T @ inside
    for a, b in np.argwhere(np.triu(weights, 1) > SETTINGS.whole).tolist():
        graph.add_edge(a, b, capacity=float(weights[a, b]))
    outside = 1.0 - (weights.sum(axis=1) - np.diag(weights))
    sets = []
    for part in [sorted(part) for part in nx.connected_components(graph)]:
        if len(part) % 2:
            sets.append(tuple(int(which[n]) for n in part))
        inner = graph.subgraph(part).copy()
        for n in part:
            if outside[n] > SETTINGS.whole:
                inner.add_edge(n, -1, capacity=float(outside[n]))
        if 3 < len(inner) <= SETTINGS.most_in_cut_tree:
            sets += [tuple(int(which[n]) for n in side) for side in _odd_sides(inner)]
    return sets


def _odd_sides(graph: nx.Graph[int]) -> Iterator[list[int]]:
    """Yield the odd sides, without the node -1, of cuts below 1."""
    import networkx as nx

    tree = nx.gomory_hu_tree(graph)
    for a, b in list(tree.edges):
        weight = float(tree[a][b]["weight"])
        if weight >= 1 - SETTINGS.least_violation:
            continue
        tree.remove_edge(a, b)
        side = nx.node_connected_component(tree, a)
        tree.add_edge(a, b, weight=weight)
        side = set(graph) - side if -1 in side else side
        if len(side) % 2 and len(side) > 1:
            yield sorted(side)
