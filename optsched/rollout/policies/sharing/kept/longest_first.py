"""The groups of "longest-first" from those of the call before, which run."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, chain, islice
from math import inf
from operator import eq, lt
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.sharing.kept.energy import NEAR
from optsched.rollout.policies.sharing.kept.first_fit import FirstFit, Group
from optsched.rollout.policies.sharing.kept.regrouped import Draft, Regrouped

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from optsched.rollout.policies.sharing.kept.energy import Energy, Joining
    from optsched.rollout.policies.sharing.kept.groups import KeptGroup, KeptGroups, Member

    Types = tuple[str, ...]


class LongestFirst:
    """The groups that the rule forms while each job joins the first that it may.

    Those that run are formed again on their GPUs, where it is certain that their jobs cost less
    together; only others need to be formed. That is so while nodes are whole and enough of them
    empty: then nobody takes another's room, and only jobs of the same gang size meet.

    Attributes
    ----------
    all_run
        Whether all groups of the last call run, but for jobs that have left since.
    """

    def __init__(self, kept: KeptGroups, energy: Energy, move_s: float) -> None:
        self.kept, self.energy, self.move_s = kept, energy, move_s
        self.all_run = False
        self._forget()

    def _forget(self) -> None:
        self._of_gang: dict[int, FirstFit] = {}
        self._members: dict[int, Member] = {}
        self._least_reach = inf
        self._reaches: dict[Types, float] = {}

    def regrouped(self, waiting: Iterable[Member]) -> Regrouped | None:
        """Return the groups that do not run yet, formed; None if all must be formed anew.

        Parameters
        ----------
        waiting
            The jobs that wait, each of which some pool could hold.
        """
        all_run, self.all_run = self.all_run, False
        if self.kept.pools.torn:
            return None
        coming = {member.job: member for member in waiting}
        all_run &= self._members.keys().isdisjoint(coming)
        changed = self._changed(self._lines(coming))
        if changed is None:
            self._forget()
            return None
        if not all_run:
            known = chain.from_iterable(each.groups() for each in self._of_gang.values())
            changed.update(group for group in known if not self._runs(group))
        drafts = self._formed(changed)
        self.all_run = drafts is not None
        return drafts

    # --- which groups there are ---------------------------------------------------------------

    def _lines(self, coming: Mapping[int, Member]) -> dict[int, list[int]]:
        """Return by gang size the jobs that are there now, the new ones last."""
        of, members, outside = self.kept.of, self._members, self.kept.outside
        inside = of.keys() - outside if outside else of.keys()
        lines = {gang: known.jobs for gang, known in self._of_gang.items()}
        for job in members.keys() - inside - coming.keys():
            gang = members.pop(job).gang
            lines[gang] = [*lines[gang]]
            lines[gang].remove(job)
        new = [member for job, member in coming.items() if job not in members]
        if len(members) + len(new) < len(inside) + len(coming):
            unknown = inside - members.keys()
            new += [each for job in unknown for each in of[job].members if each.job == job]
        for member in new:
            lines[member.gang] = [*lines.get(member.gang, ()), member.job]
            members[member.job] = member
        members |= coming
        for gang in [gang for gang, jobs in lines.items() if not jobs]:
            del lines[gang], self._of_gang[gang]
        return lines

    def _changed(self, lines: Mapping[int, list[int]]) -> set[Group] | None:
        """Return groups that were none, or that are not certain; None if too many may still grow.

        Where the same jobs are in the same order, and far enough apart, all groups are as before.
        """
        disturbed = self._disturbed(lines)
        times, changed = self._times(), set[Group]()
        for gang, jobs in lines.items():
            known = self._of_gang.setdefault(gang, FirstFit(self.kept.mixes))
            if jobs is known.jobs and gang not in disturbed:
                continue
            order = self._in_order(jobs, times)
            if order != known.jobs:
                new = known.arrange(order, self._members)
                if new is None:
                    return None
                changed.update(new)
                self._least_reach = min([self._least_reach, *map(self._reach_of, new)])
            changed.update(self._uncertain(known))
        return changed

    def _disturbed(self, lines: Mapping[int, list[int]]) -> Collection[int]:
        """Return the gangs whose lines may be in another order, or groups of them not certain."""
        if not lines:
            return ()
        left = self.energy.ask([*chain.from_iterable(lines.values())])
        if left.max() > self._least_reach * left.min():
            return lines.keys()
        before, after = left[:-1], left[1:]
        falls = (after * (1 + NEAR) < before) & (after + self.move_s < before + self.move_s)
        ends = [*accumulate(map(len, lines.values()))]
        falls[[end - 1 for end in ends[:-1]]] = True
        gangs = [*lines]
        return {gangs[bisect_right(ends, n)] for n in np.flatnonzero(~falls).tolist()}

    def _times(self) -> Mapping[int, float]:
        """Return how long each job takes alone, moved if it runs."""
        left, of, move_s = self.energy.left, self.kept.of, self.move_s
        if not move_s:
            return left
        return {job: left[job] + move_s if job in of else left[job] for job in self._members}

    def _in_order(self, jobs: Sequence[int], times: Mapping[int, float]) -> list[int]:
        """Return jobs by falling time, equal ones as they stand in the queue."""
        order = sorted(jobs, key=times.__getitem__, reverse=True)
        falling = [times[job] for job in order]
        if any(map(eq, falling, islice(falling, 1, None))):
            queue = sorted(jobs, key=self._members.__getitem__)
            order = sorted(queue, key=times.__getitem__, reverse=True)
        return order

    # --- what is certain ----------------------------------------------------------------------

    def _uncertain(self, known: FirstFit) -> Iterable[Group]:
        """Return groups of which it is not certain that joining pays where they run."""
        left, of = [self.energy.left[job] for job in known.jobs], self.kept.of
        shorter = (seconds * (1 + NEAR) for seconds in islice(left, 1, None))
        if max(left) <= self._least_reach * min(left) and all(map(lt, shorter, left)):
            return ()
        return [g for g in known.groups() if not self._is_certain(g, of.get(g.jobs[0]))]

    def _is_certain(self, group: Group, home: KeptGroup | None) -> bool:
        """Tell whether joining pays for each job of a group on the GPUs of a running one."""
        left, of, move_s = self.energy.left, self.kept.of, self.move_s
        longest, shortest, types = 0.0, inf, tuple[str, ...]()
        for job in group.jobs:
            name, apart_s, now = self._members[job].type, left[job], of.get(job)
            beside_s = apart_s if now is None or now is home else apart_s + move_s
            if types:
                joining = self._joining(types, name)
                if joining is None or not joining.is_cheaper(beside_s, apart_s, shortest, longest):
                    return False
            longest, shortest = max(longest, beside_s), min(shortest, beside_s)
            types = tuple(sorted((*types, name)))
        return True

    def _reach_of(self, group: Group) -> float:
        """Return the least reach of those who joined a group."""
        names = tuple([self._members[job].type for job in group.jobs])
        if names not in self._reaches:
            joinings = [
                self._joining(tuple(sorted(names[:n])), names[n]) for n in range(1, len(names))
            ]
            reaches = [0.0 if joining is None else joining.reach for joining in joinings]
            self._reaches[names] = min(reaches, default=inf)
        return self._reaches[names]

    def _joining(self, types: Types, name: str) -> Joining | None:
        width = self.kept.pools.width
        return self.energy.joining(types, name, width, width)

    # --- what changes -------------------------------------------------------------------------

    def _runs(self, group: Group) -> bool:
        """Tell whether the jobs of a group run together, and no others with them."""
        of, jobs = self.kept.of, group.jobs
        now = of.get(jobs[0])
        return (
            now is not None
            and len(now.members) == len(jobs)
            and all(of.get(job) is now for job in jobs)
        )

    def _formed(self, groups: Iterable[Group]) -> Regrouped | None:
        """Form groups, the longest first; None if one of them is not formed as it should."""
        of, members, times = self.kept.of, self._members, self._times()
        order = sorted(groups, key=lambda each: (-times[each.jobs[0]], members[each.jobs[0]]))
        drafts = Regrouped(self.kept, self.energy, self.move_s)
        if not self._has_room([members[group.jobs[0]].gang for group in order]):
            return None
        drafts.part(of[job] for group in order for job in group.jobs if job in of)
        for group in order:
            homes = (of[job] for job in group.jobs if job in of)
            home = next((each for each in homes if each not in drafts.taken), None)
            inside = [members[job] for job in group.jobs]
            if self._is_certain(group, home) and self.kept.mixes.allows((inside[0].type,)):
                drafts.open(Draft(sorted(inside), group.types, home, -1))
            elif not _is_formed(drafts, *inside):
                return None
        return drafts

    def _has_room(self, gangs: Iterable[int]) -> bool:
        """Tell whether gangs find room in any order, all of them on other GPUs than they have.

        And one more, as what a job would cost apart is asked, too. It is so if empty nodes for all
        stand in a row: of such a row, each takes the first ones.
        """
        width, free = self.kept.pools.width, self.kept.free
        needs = [max(1, gang // width) for gang in gangs]
        row = free.nodes_with[width] & self.kept.whole
        for _ in range(sum(needs) + max(needs, default=0) - 1):
            row &= row >> 1
        return bool(row) or not needs


def _is_formed(drafts: Regrouped, first: Member, *others: Member) -> bool:
    """Form a group, and tell whether it pays for each job to join it."""
    draft = drafts.alone(first)
    if draft is None:
        return False
    drafts.open(draft)
    for member in others:
        if not drafts.pays(draft, member):
            return False
        drafts.join(draft, member)
    return True
