"""Rounds of policies that share GPUs, over groups that are kept from call to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from optsched.rollout.engine.decision import Decision
from optsched.rollout.policies.sharing.kept import regrouping_rules, rules
from optsched.rollout.policies.sharing.kept.beside_places import next_beside, usable_nodes
from optsched.rollout.policies.sharing.kept.groups import Member
from optsched.rollout.policies.sharing.kept.present_jobs import PresentJobs
from optsched.rollout.policies.sharing.kept.regrouped import Regrouped
from optsched.rollout.policies.sharing.kept.round import Round

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.sharing.kept.waiting_by_kind import Line, WaitingByKind

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
REGROUPING: dict[str, Callable[[Regrouped, Sequence[Member], int], None]] = {
    "longest-first": regrouping_rules.longest_first,
    "random-pairs": regrouping_rules.random_pairs,
}
"""Those that part running jobs anew, too; some draw, by a seed. "random-pairs" is one of them as
soon as some job finds no GPUs of its own, "fifo-packed" is `PackedPairs` then."""
ONLY_IF_ALL_FIT = ("random-pairs", "fifo-packed")
KNOWN = {*RULES, *REGROUPING}
STANDING: Rank = attrgetter("rank")


class KeptRounds(PresentJobs):
    """What runs and what waits, and what a rule decides of it, for jobs without deadlines."""

    # --- a decision ---------------------------------------------------------------------------

    def decide(
        self, view: View, window: int | None, rank: Rank | None, seed: int
    ) -> Decision | None:
        """Return what changes; None if groups must be formed from an instance.

        Parameters
        ----------
        window
            How many waiting jobs are looked at; None: all.
        rank
            Of a job, at present; None: as when it came.
        seed
            Of what the rule draws in this call.
        """
        waiting = self.waiting if window is None else self.waiting.first(window, rank)
        self.energy.begin(view)
        if self.rule in RULES and self.rule not in ONLY_IF_ALL_FIT:
            return self._joined(view, waiting, rank) if waiting else Decision()
        if self.rule == "random-pairs":
            started = self._joined(view, waiting, rank) if waiting else Decision()
        else:
            started = self._all_alone(view, waiting)
        return self._regrouped(view, waiting, seed) if started is None else started

    def _all_alone(self, view: View, waiting: WaitingByKind) -> Decision | None:
        """Give all jobs that wait GPUs of their own; None where nobody knows that they get them.

        So it is where a rule places jobs in order, and those that wait come after those that run.
        """
        if self.rule not in ONLY_IF_ALL_FIT or len(self.groups.of) > len(self.groups.by_gpus):
            return None
        if not waiting:
            return Decision()
        early = self._early(waiting)
        if not self._can_come_late(view, early):
            return None
        return self._joined(view, waiting, None, only_inside=bool(early))

    def _early(self, waiting: WaitingByKind) -> list[Member]:
        """Return the waiting jobs that a rule places before some of those that run alone."""
        last = self.groups.last
        return list(takewhile(lambda member: member[:2] < last, waiting.line(None)))

    def _can_come_late(self, view: View, early: Sequence[Member]) -> bool:
        """Tell whether jobs find what they would if they were placed after all that run alone.

        Provided that then all jobs that wait find GPUs of their own: as these jobs are of one size,
        and nodes of equal ones, they do so beside any part of those that run, too, and leave each
        of those its GPUs.
        """
        if not early:
            return True
        gang, torn = early[0].gang, self.groups.look_at(view.ready, {}).torn
        return all(member.gang == gang for member in early) and not (torn and torn[-1][0] >= gang)

    def _joined(
        self, view: View, waiting: WaitingByKind, rank: Rank | None, *, only_inside: bool = False
    ) -> Decision | None:
        """Let jobs that wait join others or have GPUs of their own; the running ones stay.

        With `only_inside` it is None, too, if not all find a place that an instance knows.
        """
        groups = self.groups
        across: dict[Member, Gpus] = {}
        while True:
            groups.look_at(view.ready, {member.job: gpus for member, gpus in across.items()})
            round_ = Round(groups, rank or STANDING, self.energy)
            line = waiting.line(rank)
            is_known = not groups.misfits and self._by_rule(round_, line)
            if not is_known or (only_inside and len(round_.came) < len(line)):
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

    def _regrouped(self, view: View, waiting: WaitingByKind, seed: int) -> Decision | None:
        """Part all jobs anew, running ones included; None if that must be done by an instance."""
        groups = self.groups
        across: dict[Member, Gpus] = {}
        stays = self.rule == "random-pairs"
        while True:
            apart = {member.job: gpus for member, gpus in across.items()}
            groups.look_at(view.ready, apart)
            if stays and groups.misfits:
                self._come_back(waiting, across)
                return None
            place, stop = self._decided(waiting, seed)
            more = next_beside(
                groups,
                waiting.in_order,
                place,
                usable_nodes(view.ready),
                self._has_memory,
                in_order=self.is_in_order,
            )
            if more is None:
                break
            member, gpus = more
            groups.free.take(gpus)
            across[member] = gpus
            self._leave(waiting, [member])
            self.longest_first.all_run = False  # the groups just formed are not put into force
        self._keep(stop, place)
        for member, gpus in across.items():
            groups.free.release(gpus)
            groups.add(member, gpus)
            place[member.job] = gpus
        return Decision(place=place, stop=tuple(stop))

    def _decided(self, waiting: WaitingByKind, seed: int) -> tuple[dict[int, Gpus], list[int]]:
        """Return the GPUs of jobs that get others than they hold, and the jobs that are stopped."""
        if self.rule == "fifo-packed":
            return self.packed_pairs.decided(waiting.in_order)
        return self._drafts(waiting, seed).decided()

    def _drafts(self, waiting: WaitingByKind, seed: int) -> Regrouped:
        """Return the groups of a rule, as far as they are others than those that run."""
        groups, hosted = self.groups, self._hosted(waiting.line(None))
        if self.rule == "longest-first":
            drafts = self.longest_first.regrouped(hosted.in_any_order())
            if drafts is not None:
                return drafts
        drafts = Regrouped(groups, self.energy, self.move_s)
        if self.rule == "longest-first":
            running = (each for group in groups.inside() for each in group.members)
            regrouping_rules.longest_first(drafts, sorted([*running, *hosted.in_any_order()]))
        elif self._all_fit(hosted):
            regrouping_rules.all_apart(drafts, list(hosted))
        else:
            first = waiting.in_order[: len(hosted)]  # the rule is in order
            regrouping_rules.random_pairs(drafts, first, seed)
        return drafts

    def _all_fit(self, line: Line) -> bool:
        """Tell whether all jobs find GPUs of their own beside those that run."""
        round_ = Round(self.groups, STANDING, self.energy)
        fits = not rules.fifo(round_, line)
        round_.undo()
        return fits

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
        usable = usable_nodes(view.ready)
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
