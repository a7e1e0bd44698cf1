"""Certificates of branch and bound, for the verifier (VIPR: Cheung et al., IPCO 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from optsched.eaco import plan
from optsched.eaco.cuts import cuts_and_branching
from optsched.eaco.exact.lp_solution import Point
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.eaco.exact.branch_and_bound import GroupingNode, GroupingTree
    from optsched.eaco.exact.lp_solution import Proof
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import EacoInstance


class Writer:
    """Writes the certificates of an instance.

    Parameters
    ----------
    classes
        Its classes of equal jobs, in the order of the tree's columns.
    """

    def __init__(self, instance: EacoInstance, classes: list[JobClass]) -> None:
        self.instance, self.classes = instance, classes
        first = {job.id: n for n, job in enumerate(instance.jobs)}
        self._order = sorted(range(len(classes)), key=lambda c: first[classes[c].jobs[0]])

    def written(
        self, tree: GroupingTree, kind: Literal["prices", "infeasible"], most: float
    ) -> plan.EacoCertificate:
        """Return what a tree proves, but no more than `most`."""
        assert tree.root is not None
        used = self._used(tree)
        number = {rule: n for n, rule in enumerate(used)}
        scale = abs(tree.bound) if tree.bound < float("inf") else 1.0
        stated = min(tree.bound, most) - SETTINGS.stated_slack * max(scale, tree.frame.gross)
        return plan.EacoCertificate(
            kind=kind,
            bound=stated if kind == "prices" else None,
            left_out=stated if kind == "infeasible" else None,
            everywhere=self._prices(tree.root, number) if len(tree.nodes) > 1 else None,
            rules=tuple(self._rule(rule) for rule in used),
            nodes=tuple(self._node(node, number) for node in tree.standing),
        )

    def single(self, proof: Proof, value: float, most: float) -> plan.EacoCertificate:
        """Return what duals prove without any branch, but no more than `most`."""
        nothing = np.zeros(0)
        point = Point(value, proof, nothing.astype(np.intp), nothing, {}, 0.0, 0.0)
        number = {rule: n for n, rule in enumerate(proof.cuts)}
        stated = min(value, most) - SETTINGS.stated_slack * abs(value)
        return plan.EacoCertificate(
            kind="prices",
            bound=stated,
            rules=tuple(self._rule(rule) for rule in proof.cuts),
            nodes=(plan.Leaf(prices=self._prices(point, number)),),
        )

    def _used(self, tree: GroupingTree) -> list[cuts_and_branching.Rule]:
        assert tree.root is not None
        used: dict[cuts_and_branching.Rule, None] = {}
        if len(tree.nodes) > 1:
            used |= dict.fromkeys(tree.root.cuts)
        for node in tree.standing:
            split = node.disjunction
            rules = list(node.point.cuts) if split is None else [split.rule]
            used |= dict.fromkeys(rules)
        return list(used)

    def _node(
        self, node: GroupingNode, number: dict[cuts_and_branching.Rule, int]
    ) -> plan.Split | plan.Leaf | plan.Unpackable:
        if node.disjunction is not None:
            rule, at_most, cases = node.disjunction
            return plan.Split(rule=number[rule], at_most=at_most, cases=cases)
        if node.unpackable is not None:
            return plan.Unpackable(nodes=self.instance.nodes[node.unpackable].id)
        point = node.point
        return plan.Leaf(prices=self._prices(point, number), split_prices=point.proof.split_duals)

    def _prices(self, point: Point, number: dict[cuts_and_branching.Rule, int]) -> plan.Prices:
        duals = point.proof.duals
        cuts = [plan.Cut(rule=number[rule], price=price) for rule, price in point.cuts.items()]
        return plan.Prices(
            jobs=tuple(duals.jobs[self._order].tolist()),
            gpus=tuple(duals.pools.tolist()),
            locations=tuple(duals.places.tolist()),
            watt=duals.watt,
            cuts=tuple(cuts),
        )

    def _rule(self, rule: cuts_and_branching.Rule) -> plan.Together | plan.Rounded | plan.NodesUsed:
        if isinstance(rule, cuts_and_branching.NodeCountRow):
            return plan.NodesUsed(nodes=self.instance.nodes[rule.pool].id, asleep=rule.asleep)
        names = tuple(self.classes[c].jobs[0] for c in rule.classes)
        if isinstance(rule, cuts_and_branching.Rank1CutRow):
            return plan.Rounded(jobs=names, divisor=rule.divisor)
        return plan.Together(
            jobs=names,
            nodes=None if rule.pool is None else self.instance.nodes[rule.pool].id,
            gpus=rule.gang,
            level=self._level(rule),
            location=self._location(rule),
        )

    def _level(self, rule: cuts_and_branching.GroupCountRow) -> str | None:
        if rule.level is None or rule.level < 0:
            return None if rule.level is None else ""
        assert rule.pool is not None
        gpu = self.instance.nodes[rule.pool].gpu
        gpu_type = next(entry for entry in self.instance.gpu_types if entry.id == gpu)
        return gpu_type.levels[rule.level].id

    def _location(self, rule: cuts_and_branching.GroupCountRow) -> str | None:
        if rule.place is None or rule.place < 0:
            return None if rule.place is None else ""
        return self.instance.running[rule.place].id
