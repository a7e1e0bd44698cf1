"""Which patterns nodes take so that all jobs within nodes have a place, nearly exactly.

An integer program with one row for each node and each kind of jobs. Jobs are of few kinds within
nodes, so its linear relaxation has few fractional nodes (Shapley & Folkman: Starr, Econometrica
1969), and what its dual proves is nearly the optimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import coo_array, csr_array

from optsched.mip import highs
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Floats, Indices
    from optsched.pal.dual_ascent.node_patterns import NodePatterns


class Assignment(NamedTuple):
    """What nodes may take at duals of the kinds.

    Attributes
    ----------
    cost, reduced
        Shape (nodes, patterns).
    duals
        Shape (kinds,).
    bound
        On what the jobs cost together.
    """

    cost: Floats
    reduced: Floats
    duals: Floats
    bound: float


def priced_assignment(
    patterns: NodePatterns,
    opened: Indices,
    asked: Floats,
    duals: Floats,
    stages: tuple[float, ...],
) -> Assignment:
    """Ascend the smoothed dual of giving patterns to nodes (`smoothed_dual`), from some duals on.

    Parameters
    ----------
    asked
        Shape (kinds,): how many jobs there are of each.
    stages
        Of smoothing, relative to what a job costs.
    """
    from scipy.optimize import minimize  # slow to import

    cost, counts = patterns.cost(opened), patterns.counts.astype(float)
    unit = float(np.abs(duals).mean())
    for stage in stages:
        negated = _negated(cost, counts, asked, stage * unit)
        duals = minimize(
            negated,
            duals,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": SETTINGS.assignment_steps, "maxcor": SETTINGS.ascent_memory},
        ).x
    costs = cost - counts @ duals
    least = costs.min(axis=1, keepdims=True)
    return Assignment(cost, costs - least, duals, float(least.sum() + duals @ asked))


def _negated(
    cost: Floats, counts: Floats, asked: Floats, smoothing: float
) -> Callable[[Floats], tuple[float, Floats]]:
    """Return the smoothed dual, negated, with its gradient."""

    def negated(duals: Floats) -> tuple[float, Floats]:
        costs = cost - counts @ duals
        least = costs.min(axis=1, keepdims=True)
        weights = np.exp((least - costs) / smoothing)
        total = weights.sum(axis=1, keepdims=True)
        value = float((least - smoothing * np.log(total)).sum())
        given = (weights / total).sum(axis=0) @ counts
        return -value - float(duals @ asked), given - asked

    return negated


def assigned(
    patterns: NodePatterns, priced: Assignment, asked: Floats, limit: float
) -> Indices | None:
    """Return the pattern (nodes,) of each node at less cost than a limit; None if none is found."""
    nodes = len(priced.cost)
    node, pattern = np.nonzero(priced.reduced < limit - priced.bound)
    columns = np.arange(len(node))
    counts = patterns.counts[pattern]
    column, kind = np.nonzero(counts)
    values = np.r_[np.ones(len(node)), counts[column, kind]]
    places = np.r_[node, nodes + kind], np.r_[columns, column]
    right = np.r_[np.ones(nodes), asked]
    program = highs.Program(
        cost=priced.reduced[node, pattern],
        offset=0.0,
        lower=np.zeros(len(node)),
        upper=np.ones(len(node)),
        matrix=csr_array(coo_array((values, places), shape=(len(right), len(node)))),
        row_lower=right,
        row_upper=right,
        integer=np.ones(len(node), dtype=np.bool_),
    )
    outcome = highs.solve(program, gap=SETTINGS.assignment_gap, most_nodes=SETTINGS.mip_nodes)
    if outcome.x is None:
        return None
    used = outcome.x > 0.5
    if int(used.sum()) != nodes or priced.bound + float(program.cost[used].sum()) >= limit:
        return None
    chosen = np.zeros(nodes, dtype=np.intp)
    chosen[node[used]] = pattern[used]
    return chosen
