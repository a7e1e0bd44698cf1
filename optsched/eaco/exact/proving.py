"""Branch-and-cut over a pool of groups (Barnhart et al., Operations Research 46, 1998)."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.eaco.exact.branch_and_bound import GroupingTree
from optsched.eaco.exact.certificate_writer import Writer
from optsched.eaco.exact.heuristics import (
    dived_plan,
    offer_columns,
    restricted_plan,
    resumed,
    root_duals,
)
from optsched.eaco.exact.master import frame
from optsched.eaco.groups.columns import columns
from optsched.eaco.groups.enumeration import job_classes
from optsched.eaco.settings import SETTINGS
from optsched.search import Infeasible

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.eaco.exact.branch_and_bound import GroupingNode
    from optsched.eaco.exact.master import Frame
    from optsched.eaco.groups.columns import Columns
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import EacoInstance
    from optsched.eaco.plan import EacoCertificate
    from optsched.search import Search


def _late_text(classes: list[JobClass]) -> str:
    """Name the jobs that must not wait and cannot meet their deadlines, as part of a message."""
    late = [
        name
        for c in classes
        if c.due is not None
        and c.due > Fraction(c.job.deadline_s or 0)
        and c.job.waiting_penalty_kwh is None
        for name in c.jobs
    ]
    if not late:
        return ""
    more = f" and {len(late) - SETTINGS.named_jobs} more" if len(late) > SETTINGS.named_jobs else ""
    names = ", ".join(f"'{name}'" for name in late[: SETTINGS.named_jobs])
    return f"; due at the earliest end that they can have alone: {names}{more}"


class Solver:
    """A search for plans and duals on one instance.

    Parameters
    ----------
    pool
        The groups that may matter; all if None.
    """

    def __init__(self, instance: EacoInstance, search: Search, pool: Columns | None) -> None:
        self.instance, self.search = instance, search
        self.classes = job_classes(instance)
        self.frame = frame(instance, self.classes)
        stops = search.out_of_time
        listed = columns(instance, self.classes, stops) if pool is None else pool
        self.columns = self._capped(listed)
        self.tree = self._tree(self.frame, self.columns, self._penalty())
        self.proven = self.tree
        self.writer = Writer(instance, self.classes)
        self.claimed = np.inf

    def _tree(self, frame: Frame, pool: Columns, penalty: float) -> GroupingTree:
        search = self.search
        clock = search.seconds_for_program
        return GroupingTree(frame, pool, penalty, search.seed, clock, self._try)

    def _capped(self, pool: Columns) -> Columns:
        """Return columns that cost at most twice what they can in a plan as good as the best.

        To lower a cost leaves every bound valid, and plans are compared by their own costs. A group
        that costs more by orders would set the tolerances of the program for all others.
        """
        best, frame = self.search.objective, self.frame
        if best is None or not len(pool.cost):
            return pool
        waits = np.where(frame.must, 0.0, np.minimum(frame.waiting, 0.0))
        others = frame.most_groups * min(0.0, float(pool.cost.min())) + float(frame.copies @ waits)
        most = 2 * (abs(best) - others) + frame.gross
        return pool._replace(cost=np.minimum(pool.cost, most)) if most > 0 else pool

    def _penalty(self) -> float:
        frame = self.frame
        costs = frame.most_groups * np.abs(self.columns.cost).max(initial=0.0)
        costs += frame.number @ (frame.node_cost + frame.wake_cost)
        costs += frame.copies @ np.where(frame.must, 0.0, frame.waiting)
        return SETTINGS.penalty_factor * float(costs + abs(self.search.objective or 0.0)) or 1.0

    def goal(self) -> float:
        """Return what must be proven."""
        goal = self.search.goal(SETTINGS.gap_share, slack=SETTINGS.stated_slack * self.frame.gross)
        return float(min(self.claimed, goal))

    def run(self, claimed: float, most_nodes: int) -> None:
        """Solve the root, and go on from there."""
        if self.solve_root(claimed, looks_first=most_nodes > 1):
            self.finish(most_nodes)

    def solve_root(self, claimed: float, *, looks_first: bool = False) -> bool:
        """Solve the root, with a plan looked for before cuts; tell whether there was time."""
        self.claimed = claimed
        if self._resumed():
            return True
        if not self.tree.solve_root():
            self.search.out_of_time()
            return False
        if looks_first and not self._is_proven() and self.search.gap > SETTINGS.tree_gap:
            self._look_first()
        if not (self._is_proven() or self.search.is_interrupted):  # a second at most is left then
            self.tree.tighten(self.goal())
        return True

    def _look_first(self) -> None:
        """Look for a plan before cuts: down to one that could be better they take far longer."""
        self._dive()
        is_fair = self.search.is_closed(self.tree.bound, SETTINGS.poor_gap / self.search.gap)
        if not (is_fair or self._is_proven()):
            self._look_among_few()

    def _resumed(self) -> bool:
        """Begin with what the previous epoch left; tell whether that is enough."""
        arguments = self.instance, self.classes, self.tree.relaxation
        point = resumed(self.search, *arguments)
        if point is None:
            return False
        self.tree.begin(point)
        self.search.is_warm = self._is_proven()
        return self.search.is_warm

    def warm_start(self) -> Any:
        """Return what the next epoch may begin with."""
        root = self.proven.root
        assert root is not None
        return root_duals(self.instance, self.classes, root.proof)

    def _is_proven(self) -> bool:
        return self.best().bound >= self.goal()

    def _dive(self) -> None:
        """Offer the plan of a dive from the root, over the columns of least reduced cost.

        Unless a tree follows anyway, all columns are dived over where these make no plan.
        """
        tree, most = self.tree, SETTINGS.cut_columns
        if len(tree.pool.cost) > 2 * most:
            assert tree.root is not None
            reduced = tree.reduced()
            few = tree.fixed_by_reduced_cost(tree.root.value + np.partition(reduced, most)[most])
            if few.relaxation.solve((), tree.seconds_left) is None:
                return
            if self._dived_over(few) or self.search.gap <= SETTINGS.tree_gap:
                return
        self._dived_over(tree)

    def _dived_over(self, tree: GroupingTree) -> bool:
        """Offer the plan of a dive from the root of a tree; tell whether there is one."""
        dived = dived_plan(tree.relaxation)
        if dived is not None:
            self._offer(tree.pool.take(dived[0]), dived[1], {})
        return dived is not None

    def _branch_a_little(self, most_nodes: int) -> None:
        """Explore a small tree where little is missing: it takes less than an integer program."""
        root, share = self.tree, SETTINGS.small_tree_share
        if self.search.is_closed(root.bound, share):
            self._deepen(min(most_nodes, SETTINGS.small_tree_nodes))
            self.tree = root

    def _look_among_few(self) -> None:
        """Offer the plan of the restricted master heuristic."""
        restricted = restricted_plan(self.tree, self.search)
        if restricted is not None:
            self._offer(self.tree.pool.take(restricted[0]), restricted[1], {})

    def finish(self, most_nodes: int) -> None:
        """Look for a plan, fix by reduced cost, and branch and bound."""
        search = self.search
        search.certificate = self.certificate()
        if self.tree.nodes[0].point.is_whole:
            self._try(self.tree, self.tree.nodes[0])
        if search.plan is None:
            self._find_any()
        if most_nodes == 1 or self._is_proven():
            return
        self._dive()
        try:
            if search.gap > SETTINGS.tree_gap and not self._is_proven():
                self._branch_a_little(most_nodes)
            if search.gap > SETTINGS.tree_gap and not self._is_proven():
                self._look_among_few()
            if not self._is_proven():
                search.enter("branch and bound")
                self._deepen(most_nodes)
        finally:
            search.certificate = self.certificate()
        if self.proven.bound < self.goal() and not search.out_of_time():
            search.gave_up = self._reason(most_nodes)

    def _reason(self, most_nodes: int) -> str:
        """Return why the tree ended before it proved enough."""
        if len(self.tree.nodes) >= most_nodes:
            return f"the tree has {len(self.tree.nodes):,} nodes, as many as it may have"
        return "the costs differ by so much that floats cannot tell the nodes that are left apart"

    def _deepen(self, most_nodes: int) -> None:
        """Explore trees over the groups of ever costlier plans, until one of them proves enough."""
        search, root, near = self.search, self.tree, SETTINGS.near_groups
        ahead = np.sort(root.reduced()) + root.bound
        while True:
            best = np.inf if self.search.objective is None else self.search.objective
            limit = min(best, float(ahead[near])) if near < len(ahead) else best
            self.tree = root.fixed_by_reduced_cost(limit)
            goal = partial(self._goal_below, limit)
            self.tree.tell = search.bounded
            self.tree.explore(goal, lambda _: None, most_nodes)
            self.proven = self.best()
            if self.tree.bound < limit or self.tree.bound >= self.goal():
                return
            if near == SETTINGS.near_groups and search.gap <= SETTINGS.tree_gap:
                self._look_among_few()
            near *= SETTINGS.near_growth

    def _goal_below(self, limit: float) -> float:
        return min(self.goal(), limit)

    def best(self) -> GroupingTree:
        """Return the tree that proves most."""
        return max(self.proven, self.tree, key=lambda tree: tree.bound)

    def certificate(self) -> EacoCertificate:
        """Return what is proven so far."""
        best = self.search.objective
        return self.writer.written(self.best(), "prices", np.inf if best is None else best)

    def _find_any(self) -> None:
        """Offer a plan that places all jobs, or prove that there is none."""
        nothing = np.zeros(len(self.frame.gpus))
        waiting = np.where(self.frame.must, 1.0, 0.0)
        bare = self.frame._replace(  # jobs left out are counted: no joule, and none to round by
            waiting=waiting, node_cost=nothing, wake_cost=nothing, gross=0.0
        )
        free = self.columns._replace(cost=np.zeros(len(self.columns.cost)))
        tree = self._tree(bare, free, 1.0)

        def goal() -> float:
            return SETTINGS.left_out if self.search.plan is None else -np.inf

        if not tree.solve_root():
            return
        tree.explore(goal, lambda _: None, SETTINGS.most_nodes)
        if self.search.plan is None and tree.bound >= SETTINGS.left_out:
            raise Infeasible(
                f"{self.instance.name}: no plan places all jobs that must not wait within the "
                f"tolerances, the nodes and the power cap{_late_text(self.classes)}",
                self.writer.written(tree, "infeasible", float(len(self.instance.jobs))),
            )
        if self.search.plan is None:
            self.search.out_of_time()

    # --- plans ---------------------------------------------------------------------------------

    def _try(self, tree: GroupingTree, node: GroupingNode) -> int | None:
        """Offer the plan of a point that is whole; return where it does not fit for certain."""
        point = node.point
        if point.unplaced > 0.5:
            return None
        limits = {
            nodes.id: (
                round(min(point.used(n, asleep=False), nodes.count)),
                round(min(point.used(n, asleep=True), nodes.count - nodes.awake)),
            )
            for n, nodes in enumerate(self.instance.nodes)
        }
        return self._offer(tree.pool.take(point.columns), point.x, limits)

    def _offer(
        self, chosen: Columns, x: NDArray[np.float64], limits: dict[str, tuple[int, int]]
    ) -> int | None:
        where = offer_columns(self.search, self.classes, chosen, x, limits)
        names = [nodes.id for nodes in self.instance.nodes]
        return None if where is None else names.index(where)
