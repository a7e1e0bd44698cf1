"""What runs and what waits, as policies that share GPUs keep it from call to call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.sharing.kept.energy import Energy
from optsched.rollout.policies.sharing.kept.groups import KeptGroups, Member
from optsched.rollout.policies.sharing.kept.longest_first import LongestFirst
from optsched.rollout.policies.sharing.kept.mixes import Mixes
from optsched.rollout.policies.sharing.kept.packed_pairs import PackedPairs
from optsched.rollout.policies.sharing.kept.waiting_by_kind import WaitingByKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from optsched.eaco.greedy.rules import GroupingRule
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.eaco_adapter import EacoInstanceParts

    Gpus = tuple[int, ...]


class PresentJobs:
    """Jobs without deadlines in groups and in the queue, and how they come and go.

    Parameters
    ----------
    kind
        What the present rank of a job depends on.

    Attributes
    ----------
    waiting
        The jobs that wait.
    """

    def __init__(
        self,
        view: View,
        parts: EacoInstanceParts,
        rule: GroupingRule,
        thresholds: dict[str, float],
        kind: Callable[[View, int], tuple[str, ...]],
    ) -> None:
        self.rule, self.is_in_order, self.thresholds = rule.name, rule.is_in_order, thresholds
        self.mixes = Mixes(parts)
        self.energy, self.move_s = Energy(self.mixes, parts), parts.migration_s
        has_shelves = rule.name != "longest-first"  # it looks at all jobs, wherever they run
        self.groups = KeptGroups(view.cluster, self.mixes, has_shelves=has_shelves)
        self.longest_first = LongestFirst(self.groups, self.energy, self.move_s)
        self.packed_pairs = PackedPairs(self.groups, self.energy, self.move_s)
        if rule.name == "fifo-packed":
            self.groups.pairs = self.packed_pairs
        self.kind = kind
        self._limit_gb = view.scenario.sharing.memory_gb
        for job in view.running.tolist():
            self.groups.add(self._member(view, job), view.gpus_of(job))
        self.waiting = WaitingByKind(self._member(view, job) for job in view.pending.tolist())

    def _member(self, view: View, job: int) -> Member:
        priorities = view.scenario.priorities
        rank = -priorities.get(view.queue(job), 0.0) if priorities else 0.0
        type_ = self.mixes.type_of(view.model(job))
        return Member(rank, job, type_, view.demand(job), (type_, *self.kind(view, job)))

    def note(self, view: View) -> None:
        """Take note of what has happened since the last call."""
        for job in (*view.ended, *view.failed):
            if job in self.groups.of:
                self.groups.remove(job)
        for job in view.arrived:
            self.waiting.add(self._member(view, job))

    # --- as decided ---------------------------------------------------------------------------

    def _leave(self, waiting: WaitingByKind, members: Iterable[Member]) -> None:
        """Let jobs of those that are looked at wait no more."""
        for member in members:
            waiting.remove(member)
            if waiting is not self.waiting:
                self.waiting.remove(member)

    def _come_back(self, waiting: WaitingByKind, across: Mapping[Member, Gpus]) -> None:
        """Let jobs that were to be across nodes wait again."""
        for member, gpus in across.items():
            self.groups.free.release(gpus)
            waiting.add(member)
            if waiting is not self.waiting:
                self.waiting.add(member)

    def _keep(self, stop: Iterable[int], place: dict[int, Gpus]) -> None:
        """Let jobs stop, move and start."""
        groups, coming = self.groups, dict[int, Member]()
        for job in (*stop, *place):
            if job in groups.of:
                group = groups.of[job]
                coming[job] = next(each for each in group.members if each.job == job)
                groups.remove(job)
            else:
                coming[job] = self.waiting.of[job]
                self.waiting.remove(coming[job])
        for job in stop:
            self.waiting.add(coming[job])
        for job, gpus in place.items():
            groups.add(coming[job], gpus)
        self.packed_pairs.put_into_force()
