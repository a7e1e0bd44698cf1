"""Cuts among the jobs of a gang size (subset rows: Jepsen et al., Operations Research 56, 2008).

A cluster has few jobs that hold most GPUs, and so few can be shared out only in parts by the
relaxation that no plan comes near it. Groups of one gang size alone matter to each other, but for
GPUs, watts and locations; these are priced as column generation does. So all groups of few jobs are
listed, and their own small program is cut.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.eaco.cuts.cuts_and_branching import Rank1CutRow, Rule
from optsched.eaco.exact.branch_and_bound import GroupingTree
from optsched.eaco.exact.lp_solution import Proof, lagrangian
from optsched.eaco.exact.master import Duals
from optsched.eaco.exact.rule_counts import RuleCounts
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.documents.arrays import Indices
    from optsched.eaco.exact.branch_and_bound import GroupingNode
    from optsched.eaco.exact.column_generation import ColumnGeneration
    from optsched.eaco.exact.lp_solution import Point
    from optsched.eaco.exact.master import Frame
    from optsched.search import Search

    Clock = Callable[[], float | None]


class CutBound:
    """What is proven of a program that grows: by its duals, or more with cuts.

    Parameters
    ----------
    search
        Whose gap says how much is asked for. Where it is tight, a tree with cuts of its own
        follows.
    """

    def __init__(self, generation: ColumnGeneration, search: Search) -> None:
        self._generation, self._search = generation, search
        self._cut, self._value = Proof(generation.bound.duals, (), {}), -np.inf

    @property
    def proof(self) -> tuple[Proof, float]:
        """The duals that prove most, and their Lagrangian value."""
        bound = self._generation.bound
        if self._value > bound.value:
            return self._cut, self._value
        return Proof(bound.duals, (), {}), bound.value

    def tighten(self) -> None:
        """Cut among the jobs of one gang size after the other, the largest first."""
        generation, search = self._generation, self._search
        if search.gap <= SETTINGS.tight_gap or not np.isfinite(generation.bound.value):
            return
        proof, value = Proof(generation.bound.duals, (), {}), generation.bound.value
        for gang in sizes_to_cut(generation):
            more = search.goal(SETTINGS.gap_share) - value
            if more <= 0 or search.out_of_time():
                break
            cut, rise = tightened(generation, proof, gang, more, search.seed, search.seconds_left)
            if rise > value:
                proof, value = cut, rise
        if value > self._value:
            self._cut, self._value = proof, value


def sizes_to_cut(generation: ColumnGeneration) -> list[int]:
    """Return the gang sizes of so few jobs that all their groups can be listed, largest first."""
    most, copies = generation.pool.members.shape[1], generation.frame.copies
    sizes = []
    for gang in np.unique(generation.gangs)[::-1].tolist():
        jobs = int(copies[generation.gangs == gang].sum())
        groups = sum(comb(jobs, size) for size in range(1, most + 1))
        if jobs > 2 and groups <= SETTINGS.most_cut_groups:
            sizes.append(gang)
    return sizes


def tightened(
    generation: ColumnGeneration, proof: Proof, gang: int, more: float, seed: int, clock: Clock
) -> tuple[Proof, float]:
    """Return a proof with cuts among the jobs of a gang size, and its Lagrangian value.

    Parameters
    ----------
    proof
        Duals of column generation; maybe with cuts among jobs of other sizes.
    more
        How much the value need not rise beyond.
    """
    part = _Part(generation, proof.duals, gang)
    tree = GroupingTree(part.frame, part.pool, generation.penalty, seed, clock, _pack_nothing)
    if not tree.solve_root():
        return proof, -np.inf
    assert tree.root is not None
    tree.tighten(tree.root.value + more)
    return part.merged(proof, tree.root)


def _pack_nothing(tree: GroupingTree, node: GroupingNode) -> None:
    return None


class _Part:
    """The program of the jobs of a gang size, with what GPUs and watts cost at some duals."""

    def __init__(self, generation: ColumnGeneration, duals: Duals, gang: int) -> None:
        self._whole = generation.frame
        self._classes = np.flatnonzero(generation.gangs == gang)
        self._groups = generation.known_groups(_all_groups(generation, self._classes))
        self._is_kept = np.zeros(len(duals.places), dtype=bool)
        self._is_kept[self._groups.place[self._groups.place >= 0]] = True
        at = np.full(len(generation.gangs) + 1, len(self._classes))
        at[self._classes] = np.arange(len(self._classes))
        paid = duals._replace(jobs=0 * duals.jobs, places=0 * duals.places)
        cost = paid.reduced(self._groups)
        self.pool = self._groups._replace(members=at[self._groups.members], cost=cost)
        self.frame = self._part_frame()

    def _part_frame(self) -> Frame:
        whole, classes = self._whole, self._classes
        number = np.full(len(whole.gpus), float(self._groups.gang.max(initial=1)))
        number *= whole.copies[classes].sum()  # of nodes there are enough: they are paid for
        return whole._replace(
            copies=whole.copies[classes],
            waiting=whole.waiting[classes],
            must=whole.must[classes],
            number=number,
            awake=number,
            node_cost=0 * number,
            wake_cost=0 * number,
            headroom_w=np.inf,
            most_groups=int(whole.copies[classes].sum()),
            gross=0.0,
        )

    def merged(self, proof: Proof, root: Point) -> tuple[Proof, float]:
        """Return the whole proof with the duals of these jobs, their locations and cuts."""
        duals, own = proof.duals, root.proof
        jobs, places = duals.jobs.copy(), duals.places.copy()
        jobs[self._classes] = own.duals.jobs
        places[self._is_kept] = own.duals.places[self._is_kept]
        cuts: dict[Rule, float] = {}
        for rule, dual in own.cuts.items():
            assert isinstance(rule, Rank1CutRow)
            named = tuple(self._classes[list(rule.classes)].tolist())
            cuts[Rank1CutRow(named, rule.divisor)] = dual
        whole = Proof(duals._replace(jobs=jobs, places=places), (), proof.cuts | cuts)
        whole = self._lowered(whole, cuts)
        return whole, value_of(self._whole, whole)

    def _lowered(self, proof: Proof, cuts: dict[Rule, float]) -> Proof:
        """Let jobs pay less until no group costs less than they do, whatever was rounded."""
        duals, groups = proof.duals, self._groups
        charged = RuleCounts(groups, len(duals.jobs)).summed(cuts)
        doubt = SETTINGS.column_doubt * (duals.summands(groups) + charged)
        reduced = duals.reduced(groups) + charged - doubt
        drop = np.zeros(len(duals.jobs))
        np.maximum.at(drop, groups.members[:, 0], -np.minimum(reduced, 0.0))
        return proof._replace(duals=duals._replace(jobs=duals.jobs - drop))


def lowered(frame: Frame, proof: Proof, value: float, slack: float) -> tuple[Proof, float]:
    """Return lower duals that prove less by most of the slack: so verifying takes less."""
    share = 1 - SETTINGS.lowered_share * slack / (max(abs(value), slack) or 1.0)
    parts: list[Any] = [share * part for part in proof.duals]
    cuts = {rule: share * dual for rule, dual in proof.cuts.items()}
    lower = Proof(Duals(*parts), (), cuts)
    return lower, value_of(frame, lower)


def value_of(frame: Frame, proof: Proof) -> float:
    """Return the Lagrangian value of duals at which no group costs less than its jobs pay."""
    cuts = [rule for rule in proof.cuts if isinstance(rule, Rank1CutRow)]
    capacity: dict[Rule, float] = {rule: rule.most(frame.copies) for rule in cuts}
    return lagrangian(frame, capacity, (), proof, 0.0)


def _all_groups(generation: ColumnGeneration, classes: Indices) -> Indices:
    """Return the members of all groups of some classes, filled up; allowed or not."""
    copies = np.rint(generation.frame.copies[classes]).astype(int)
    jobs, most = np.repeat(classes, copies), generation.pool.members.shape[1]
    parts = []
    for size in range(1, most + 1):
        rows = np.array(list(combinations(jobs.tolist(), size)), dtype=np.intp)
        rows = rows.reshape(-1, size)
        pad = np.full((len(rows), most - size), len(generation.gangs))
        parts.append(np.hstack([rows, pad]))
    rows = np.concatenate(parts)
    return np.unique(rows, axis=0) if (copies > 1).any() else rows
