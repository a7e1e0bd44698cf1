"""Rounds of policies that share GPUs, over groups that are kept from call to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from optsched.rollout.engine.decision import Decision
from optsched.rollout.policies.free_nodes import ALL
from optsched.rollout.policies.sharing.across_nodes import next_across
from optsched.rollout.policies.sharing.kept import regrouping_rules, rules
from optsched.rollout.policies.sharing.kept.energy import Energy
from optsched.rollout.policies.sharing.kept.groups import KeptGroups, Member
from optsched.rollout.policies.sharing.kept.mixes import Mixes
from optsched.rollout.policies.sharing.kept.regrouped import Regrouped
from optsched.rollout.policies.sharing.kept.round import Round
from optsched.rollout.policies.sharing.kept.waiting_by_kind import Line, WaitingByKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
    "fifo-packed": rules.fifo,
}
"""By the name of the rule. "random-pairs" and "fifo-packed" are these while all jobs find GPUs of
their own."""
REGROUPING: dict[str, Callable[[Regrouped, Sequence[Member]], None]] = {
    "longest-first": regrouping_rules.longest_first,
    "fifo-packed": regrouping_rules.fifo_packed,
}
"""Those that part running jobs anew, too."""
KNOWN = {*RULES, *REGROUPING}
ONLY_IF_ALL_FIT = ("random-pairs", "fifo-packed")
STANDING: Rank = attrgetter("rank")


class KeptRounds:
    """What runs and what waits, and what a rule decides of it, for jobs without deadlines.

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
        self.groups = KeptGroups(view.cluster, self.mixes)
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
        waiting = self.waiting if window is None else self.waiting.first(window, rank)
        self.energy.begin(view)
        if self.rule in REGROUPING:
            started = self._joined(view, waiting, None) if self._all_stay(waiting) else None
            return self._regrouped(view, waiting) if started is None else started
        return self._joined(view, waiting, rank) if waiting else Decision()

    def _all_stay(self, waiting: WaitingByKind) -> bool:
        """Tell whether nobody moves if all that wait find GPUs of their own: each runs alone.

        So it is where a rule places jobs in order, and those that wait come after those that run.
        """
        groups = self.groups
        if self.rule not in ONLY_IF_ALL_FIT or len(groups.of) > len(groups.by_gpus):
            return False
        last = max((group.position for group in groups.by_gpus.values()), default=(-inf, 0))
        return all(member[:2] > last for member in waiting.line(None).heads())

    def _joined(self, view: View, waiting: WaitingByKind, rank: Rank | None) -> Decision | None:
        """Let jobs that wait join others or have GPUs of their own; the running ones stay."""
        groups = self.groups
        across: dict[Member, Gpus] = {}
        while True:
            groups.look_at(view.ready, {member.job: gpus for member, gpus in across.items()})
            round_ = Round(groups, rank or STANDING, self.energy)
            line = waiting.line(rank)
            if groups.misfits or not self._by_rule(round_, line):
                round_.undo()
                self._come_back(waiting, across)
                return None
            round_.take()
            more = self._across(view, round_, line)
            if more is None:
                break
            round_.undo()
            member, gpus = more
            groups.free.take(gpus)
            across[member] = gpus
            self._leave(waiting, [member])
        place = round_.places()
        round_.keep()
        for member, gpus in across.items():
            groups.free.release(gpus)
            groups.add(member, gpus)
            place[member.job] = gpus
        self._leave(waiting, round_.came)
        return Decision(place=place)

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

    def _regrouped(self, view: View, waiting: WaitingByKind) -> Decision:
        """Part all jobs anew, running ones included."""
        groups = self.groups
        across: dict[Member, Gpus] = {}
        left = list(waiting.line(None))
        while True:
            apart = {member.job: gpus for member, gpus in across.items()}
            pools = groups.look_at(view.ready, apart)
            drafts = Regrouped(groups, self.energy, self.move_s)
            running = (each for group in groups.inside() for each in group.members)
            hosted = self._hosted(WaitingByKind(left).line(None))
            REGROUPING[self.rule](drafts, sorted([*running, *hosted]))
            place, stop = drafts.decided()
            jobs = [member.job for member in left]
            more: dict[int, Gpus] = {}
            if any(job not in place for job in jobs):
                held = {job: group.gpus for job, group in groups.of.items()}
                more = next_across(view, pools, jobs, held, place, in_order=self.is_in_order)
            if not more:
                break
            across |= {member: more[member.job] for member in left if member.job in more}
            left = [member for member in left if member not in across]
        place |= {member.job: gpus for member, gpus in across.items()}
        self._keep(stop, place, [*across, *left])
        return Decision(place=place, stop=tuple(stop))

    def _keep(self, stop: Iterable[int], place: dict[int, Gpus], queue: Iterable[Member]) -> None:
        """Let jobs stop, move and start."""
        groups = self.groups
        coming = {member.job: member for member in queue if member.job in place}
        for job in (*stop, *place):
            if job in groups.of:
                group = groups.of[job]
                coming[job] = next(each for each in group.members if each.job == job)
                groups.remove(job)
            else:
                self.waiting.remove(coming[job])
        for job in stop:
            self.waiting.add(coming[job])
        for job, gpus in place.items():
            groups.add(coming[job], gpus)

    def _by_rule(self, round_: Round, line: Line) -> bool:
        """Let the rule have the jobs that some pool could hold; tell whether it knows what to do.

        Of the line, where it is in order, only those before one that none can.
        """
        left = RULES[self.rule](round_, self._hosted(line), **self.thresholds)
        return left is None or self.rule not in ONLY_IF_ALL_FIT

    def _hosted(self, line: Line) -> Line:
        hosts = self.groups.pools.hosts
        return line.held_up(hosts) if self.is_in_order else line.fitting(hosts)

    # --- across nodes -------------------------------------------------------------------------

    def _across(self, view: View, round_: Round, line: Line) -> tuple[Member, Gpus] | None:
        """Return GPUs of its own for the first job without a place; None if there are none.

        As `optsched.rollout.policies.sharing.across_nodes.next_across`.
        """
        free, of = self.groups.free, self.groups.of
        if len(round_.came) == len(line):
            return None
        opened = round_.opened
        total = free.total + sum(group.gang for group in opened)
        if self.is_in_order and next(each for each in line if each.job not in of).gang > total:
            return None
        waiting, everyone = line.apart(round_.came)
        if min(member.gang for member in waiting.heads()) > total:
            return None
        for group in opened:
            free.release(group.gpus)
        found = self._found(view, round_, everyone)
        for gpus in {group.gpus for group in opened}:
            if free.are_free(gpus):
                free.take(gpus)
        return found

    def _found(self, view: View, round_: Round, line: Line) -> tuple[Member, Gpus] | None:
        """Return the first job that finds GPUs, and these; some that were opened may be taken."""
        free, pools, of = self.groups.free, round_.pools, self.groups.of
        usable = (
            ALL if all(view.ready) else sum(1 << n for n, ready in enumerate(view.ready) if ready)
        )
        new = {group.gpus for group in round_.opened}
        none: set[int] = set()  # sizes for which there is nothing, since GPUs were last taken

        def is_vain(member: Member) -> bool:
            if self.is_in_order or member.job in of:
                return False
            return member.gang in none or not self._has_memory(member)

        for member in line.passing(is_vain, lambda: -len(new)):
            if member.job in of:
                gpus = of[member.job].gpus
                if gpus in new:
                    new.remove(gpus)
                    free.take(gpus)
                    none.clear()
                continue
            is_sought = self.is_in_order or not pools.has_room(free, usable, member.gang)
            if is_sought and self._has_memory(member):
                found = free.gang(member.gang, usable)
                if found is not None:
                    return member, found
            none.add(member.gang)
            if self.is_in_order:
                break
        return None

    def _has_memory(self, member: Member) -> bool:
        """Tell whether a GPU has the memory that a job takes."""
        return self._limit_gb is None or self.mixes.memory_gb[member.type] <= self._limit_gb
