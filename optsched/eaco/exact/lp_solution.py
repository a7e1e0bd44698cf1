"""LP solutions, and the Lagrangian value of duals (Geoffrion, Math. Programming Study 2, 1974)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.cuts.cuts_and_branching import NodeCountRow, Rule
from optsched.eaco.settings import SETTINGS
from optsched.mip.branch_and_bound import Branch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from optsched.eaco.exact.master import Duals, Frame, Master
    from optsched.mip.incremental_lp import Solved

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


Path = tuple[Branch[Rule], ...]


class Proof(NamedTuple):
    """Duals of the frame's rows, of the branches on a path, and of cuts."""

    duals: Duals
    split_duals: tuple[float, ...]
    cuts: dict[Rule, float]

    def charges(self, path: Path) -> dict[Rule, float]:
        """Return what a group pays for being counted, by rule."""
        charges = dict(self.cuts)
        for branch, dual in zip(path, self.split_duals, strict=True):
            charges[branch.rule] = charges.get(branch.rule, 0.0) + _signed(branch, dual)
        return charges

    def plus(self, other: Proof, times: float) -> Proof:
        """Return the sum of both, the other one some times."""
        duals, more = self.duals, other.duals
        pairs = zip(self.split_duals, other.split_duals, strict=True)
        cuts = dict(self.cuts)
        for rule, dual in other.cuts.items():
            cuts[rule] = cuts.get(rule, 0.0) + times * dual
        added = duals._replace(
            jobs=duals.jobs + times * more.jobs,
            pools=duals.pools + times * more.pools,
            places=duals.places + times * more.places,
            watt=duals.watt + times * more.watt,
        )
        return Proof(added, tuple(mine + times * his for mine, his in pairs), cuts)


@dataclass
class Point:
    """An optimum of the relaxation, and what its duals prove.

    Attributes
    ----------
    value
        Lagrangian value: no plan of the node costs less.
    proof
        Duals that prove it.
    columns, x
        Which of the columns are not zero, and how much of each.
    nodes
        Counts of nodes.
    unplaced
        Jobs that the point leaves out, against the rules.
    missed
        By how much in all it breaks what may be broken at a penalty only, jobs left out included.
    """

    value: float
    proof: Proof
    columns: Indices
    x: Floats
    nodes: dict[NodeCountRow, float]
    unplaced: float
    missed: float

    @property
    def cuts(self) -> dict[Rule, float]:
        """Duals of cuts."""
        return self.proof.cuts

    def used(self, pool: int, *, asleep: bool) -> float:
        """Return how many nodes of a pool are in use, or woken; infinite if it does not matter."""
        return self.nodes.get(NodeCountRow(pool, asleep), np.inf)

    @property
    def is_whole(self) -> bool:
        """Whether groups and nodes are whole."""
        values = np.append(self.x, list(self.nodes.values()))
        return bool((np.abs(values - np.rint(values)) <= SETTINGS.whole).all())


def lagrangian(
    frame: Frame,
    capacity: Mapping[Rule, float],
    path: Path,
    proof: Proof,
    least_reduced: float,
) -> float:
    """Return what duals prove at a node, less what rounding may have added.

    Parameters
    ----------
    capacity
        Greatest count of each rule that is a cut.
    least_reduced
        The least reduced cost of any group, not above 0.
    """
    duals, split_duals, cuts = proof
    paid = frame.copies * duals.jobs
    waiting = frame.copies * np.minimum(0.0, frame.waiting - duals.jobs)
    terms = [paid, np.where(np.isfinite(waiting), waiting, 0.0), -duals.places]
    terms.append(_least_nodes(frame, path, proof))
    splits = zip(path, split_duals, strict=True)
    terms.append(np.array([-_signed(c, dual) * (c.at_most + c.is_above) for c, dual in splits]))
    terms.append(np.array([-dual * capacity[rule] for rule, dual in cuts.items()]))
    watts = -duals.watt * frame.headroom_w if duals.watt else 0.0
    terms.append(np.array([watts, frame.most_groups * min(0.0, least_reduced)]))
    every = np.concatenate(terms)
    doubt = SETTINGS.term_rounding * (8 + frame.most_groups) * float(np.abs(every).sum())
    return float(every.sum()) - doubt


def _least_nodes(frame: Frame, path: Path, proof: Proof) -> Floats:
    """Return the least cost of each pool's nodes in use, less what groups pay for their GPUs."""
    duals = proof.duals
    on = frame.node_cost - duals.pools * frame.gpus
    if duals.watt:
        on = on + duals.watt * frame.node_w
    wake = frame.wake_cost.copy()
    for branch, dual in zip(path, proof.split_duals, strict=True):
        if isinstance(branch.rule, NodeCountRow):
            (wake if branch.rule.asleep else on)[branch.rule.pool] += _signed(branch, dual)
    asleep = frame.number - frame.awake
    corners = [0 * on, on * frame.awake, on * frame.number + wake * asleep, (on + wake) * asleep]
    return np.asarray(np.min(corners, axis=0))


def _signed(branch: Branch[Rule], dual: float) -> float:
    return -dual if branch.is_above else dual


def nodes_used(master: Master, solved: Solved) -> dict[NodeCountRow, float]:
    """Return how many nodes a solution uses, of those awake and of those asleep, by pool."""
    first, pools = master.classes, master.pools
    return {
        NodeCountRow(p, asleep): float(solved.x[first + asleep * pools + p])
        for asleep in (False, True)
        for p in range(pools)
        if master.frame.matters(p, asleep=asleep)
    }


def priced(proof: Proof, value: float) -> Point:
    """Return a point of which no more than its duals is known."""
    none = np.zeros(0)
    return Point(value, proof, none.astype(np.intp), none, {}, np.inf, np.inf)
