"""Rounds of policies that share GPUs, over groups that are kept from call to call."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from optsched.rollout.engine.decision import Decision
from optsched.rollout.policies.sharing.across_nodes import next_across
from optsched.rollout.policies.sharing.kept import regrouping_rules, rules
from optsched.rollout.policies.sharing.kept.energy import Energy
from optsched.rollout.policies.sharing.kept.groups import KeptGroups, Member
from optsched.rollout.policies.sharing.kept.mixes import Mixes
from optsched.rollout.policies.sharing.kept.regrouped import Regrouped
from optsched.rollout.policies.sharing.kept.round import Round

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.eaco.greedy.rules import GroupingRule
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.eaco_adapter import EacoInstanceParts

    Gpus = tuple[int, ...]

Rank = Callable[[Member], float]
RULES: dict[str, Callable[..., Any]] = {
    "fifo-exclusive": rules.fifo,
    "random-pairs": rules.fifo,
    "least-utilised": rules.least_utilised,
    "eaco-greedy": rules.eaco,
    "best-fit-memory": rules.best_fit_memory,
    "best-delta-energy": rules.best_delta_energy,
    "sharing-scores": rules.sharing_scores,
    "lucid-ordered": rules.lucid_ordered,
}
"""By the name of the rule. "random-pairs" is this one while all jobs find GPUs of their own."""
REGROUPING: dict[str, Callable[[Regrouped, Sequence[Member]], None]] = {
    "longest-first": regrouping_rules.longest_first,
    "fifo-packed": regrouping_rules.fifo_packed,
}
"""Those that part running jobs anew, too."""
KNOWN = {*RULES, *REGROUPING}
ONLY_IF_ALL_FIT = ("random-pairs",)
STANDING: Rank = attrgetter("rank")


class KeptRounds:
    """What runs and what waits, and what a rule decides of it, for jobs without deadlines.

    Attributes
    ----------
    queue
        The jobs that wait, by their ranks when they came.
    """

    def __init__(
        self,
        view: View,
        parts: EacoInstanceParts,
        rule: GroupingRule,
        thresholds: dict[str, float],
    ) -> None:
        self.rule, self.is_in_order, self.thresholds = rule.name, rule.is_in_order, thresholds
        self.mixes = Mixes(parts)
        self.energy, self.move_s = Energy(self.mixes, parts), parts.migration_s
        self.groups = KeptGroups(view.cluster, self.mixes)
        self.queue: list[Member] = []
        self._limit_gb = view.scenario.sharing.memory_gb
        for job in view.running.tolist():
            self.groups.add(self._member(view, job), view.gpus_of(job))
        for job in view.pending.tolist():
            insort(self.queue, self._member(view, job))

    def _member(self, view: View, job: int) -> Member:
        priorities = view.scenario.priorities
        rank = -priorities.get(view.queue(job), 0.0) if priorities else 0.0
        return Member(rank, job, self.mixes.type_of(view.model(job)), view.demand(job))

    def note(self, view: View) -> None:
        """Take note of what has happened since the last call."""
        for job in (*view.ended, *view.failed):
            if job in self.groups.of:
                self.groups.remove(job)
        for job in view.arrived:
            insort(self.queue, self._member(view, job))

    # --- a decision ---------------------------------------------------------------------------

    def decide(self, view: View, window: int | None, rank: Rank | None) -> Decision | None:
        """Return what changes; None if groups must be formed from an instance.

        Parameters
        ----------
        window
            How many waiting jobs are looked at; None: all.
        rank
            Of a job, at present; None: as when it came.
        """
        if self.rule == "fifo-exclusive":  # each job takes a GPU, or holds up all behind it
            window = min(window or len(self.queue), self.groups.free.total + 1)
        queue = self.queue[:window]
        if rank is not None:
            present = rank
            queue = sorted(self.queue, key=lambda each: (present(each), each.job))[:window]
        self.energy.begin(view)
        if self.rule in REGROUPING:
            return self._regrouped(view, queue)
        return self._joined(view, queue, rank or STANDING) if queue else Decision()

    def _joined(self, view: View, queue: list[Member], rank: Rank) -> Decision | None:
        """Let jobs that wait join others or have GPUs of their own; the running ones stay."""
        groups = self.groups
        across: dict[int, Gpus] = {}
        left = list(queue)
        while True:
            groups.look_at(view.ready, across)
            round_ = Round(groups, rank, self.energy)
            if groups.misfits or not self._by_rule(round_, left):
                round_.undo()
                return None
            round_.take()
            place = round_.places()
            more = self._across(view, round_, left, place)
            if more is None:
                break
            round_.undo()
            member, gpus = more
            groups.free.take(gpus)
            across[member.job] = gpus
            left.remove(member)
        round_.keep()
        for gpus in across.values():
            groups.free.release(gpus)
        self._keep({}, across, queue)
        for member in queue:
            if member.job in place:
                del self.queue[bisect_left(self.queue, member)]
        return Decision(place=place | across)

    def _regrouped(self, view: View, queue: list[Member]) -> Decision:
        """Part all jobs anew, running ones included."""
        groups = self.groups
        across: dict[int, Gpus] = {}
        left = list(queue)
        while True:
            pools = groups.look_at(view.ready, across)
            drafts = Regrouped(groups, self.energy, self.move_s)
            running = (each for group in groups.inside() for each in group.members)
            REGROUPING[self.rule](drafts, sorted([*running, *self._hosted(left)]))
            place, stop = drafts.decided()
            waiting = [member.job for member in left]
            more: dict[int, Gpus] = {}
            if any(job not in place for job in waiting):
                held = {job: group.gpus for job, group in groups.of.items()}
                more = next_across(view, pools, waiting, held, place, in_order=self.is_in_order)
            if not more:
                break
            across |= more
            left = [member for member in left if member.job not in across]
        self._keep(stop, place | across, queue)
        return Decision(place=place | across, stop=tuple(stop))

    def _keep(self, stop: Iterable[int], place: dict[int, Gpus], queue: Sequence[Member]) -> None:
        """Let jobs stop, move and start."""
        groups = self.groups
        coming = {member.job: member for member in queue if member.job in place}
        for job in (*stop, *place):
            if job in groups.of:
                group = groups.of[job]
                coming[job] = next(each for each in group.members if each.job == job)
                groups.remove(job)
            else:
                del self.queue[bisect_left(self.queue, coming[job])]
        for job in stop:
            insort(self.queue, coming[job])
        for job, gpus in place.items():
            groups.add(coming[job], gpus)

    def _by_rule(self, round_: Round, queue: Sequence[Member]) -> bool:
        """Let the rule have the jobs that some pool could hold; tell whether it knows what to do.

        Of the queue, where it is in order, only those before one that none can.
        """
        hosted = self._hosted(queue)
        waiting = RULES[self.rule](round_, hosted, **self.thresholds)
        return not (waiting and self.rule in ONLY_IF_ALL_FIT)

    def _hosted(self, queue: Sequence[Member]) -> list[Member]:
        hosts = self.groups.pools.hosts
        sizes = {gang: hosts(gang) for gang in {member.gang for member in queue}}
        if self.is_in_order:
            return list(takewhile(lambda member: sizes[member.gang], queue))
        return [member for member in queue if sizes[member.gang]]

    # --- across nodes -------------------------------------------------------------------------

    def _across(
        self, view: View, round_: Round, queue: Sequence[Member], place: dict[int, Gpus]
    ) -> tuple[Member, Gpus] | None:
        """Return GPUs of its own for the first job without a place; None if there are none.

        As `optsched.rollout.policies.sharing.across_nodes.next_across`.
        """
        free = self.groups.free
        waiting = [member for member in queue if member.job not in place]
        opened = round_.opened
        total = free.total + sum(group.gang for group in opened)
        if not waiting or min(member.gang for member in waiting) > total:
            return None
        if self.is_in_order and waiting[0].gang > total:
            return None
        for group in opened:
            free.release(group.gpus)
        found = self._found(view, round_, queue, place)
        for gpus in {group.gpus for group in opened}:
            if free.are_free(gpus):
                free.take(gpus)
        return found

    def _found(
        self, view: View, round_: Round, queue: Sequence[Member], place: dict[int, Gpus]
    ) -> tuple[Member, Gpus] | None:
        """Return the first job that finds GPUs, and these; some that were opened may be taken."""
        free, pools = self.groups.free, round_.pools
        usable = sum(1 << node for node, ready in enumerate(view.ready) if ready)
        new = {group.gpus for group in round_.opened}
        none: set[int] = set()  # sizes for which there is nothing, since GPUs were last taken
        for member in queue:
            gpus = place.get(member.job)
            if gpus is not None:
                if gpus in new:
                    new.remove(gpus)
                    free.take(gpus)
                    none.clear()
                continue
            size = member.gang
            if size not in none and self._has_memory(member):
                if self.is_in_order or not pools.has_room(free, usable, size):
                    found = free.gang(size, usable)
                    if found is not None:
                        return member, found
                none.add(size)
            if self.is_in_order:
                break
        return None

    def _has_memory(self, member: Member) -> bool:
        """Tell whether a GPU has the memory that a job takes."""
        return self._limit_gb is None or self.mixes.memory_gb[member.type] <= self._limit_gb
