"""What "fifo-packed" decides, from the groups that run: only gang sizes that changed are paired.

The rule gives jobs GPUs of their own in order, up to the first that finds none; the others go
beside jobs that are alone. Of the groups that run, those whose first job comes before all second
ones and all that wait keep their GPUs. A job only goes beside one of its gang size. So where
nothing of a size has changed since pairs were formed, and none of it finds other GPUs, its pairs
would be formed again.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field
from heapq import merge
from itertools import chain, dropwhile, islice
from operator import itemgetter
from typing import TYPE_CHECKING

from optsched.eaco.greedy.published_rules import THRESHOLDS
from optsched.rollout.policies.sharing.kept.regrouped import Draft, Regrouped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from optsched.rollout.policies.sharing.kept.energy import Energy
    from optsched.rollout.policies.sharing.kept.groups import KeptGroup, KeptGroups, Member
    from optsched.rollout.policies.sharing.kept.mixes import Mixes

    Gpus = tuple[int, ...]
    Line = Callable[[], Iterator[Member]]
    First = tuple[Member, KeptGroup]
    Offers = Mapping[str, deque[tuple[Member, KeptGroup | Draft]]]


@dataclass(slots=True)
class GangSize:
    """Groups of a gang size.

    Attributes
    ----------
    firsts
        By type the jobs that come first in their groups, with these, in order.
    others
        The other jobs, in order.
    """

    firsts: dict[str, list[First]] = field(default_factory=dict)
    others: list[Member] = field(default_factory=list)

    def late(self, start: Member) -> list[First]:
        """Return the jobs that come first in their groups, but not before a job."""
        late: list[First] = []
        for row in self.firsts.values():
            if row and row[-1][0] > start:
                late += row[bisect_left(row, (start,)) :]
        return late


class PackedPairs:
    """The groups of the instance by gang size, and which sizes must be paired anew."""

    def __init__(self, kept: KeptGroups, energy: Energy, move_s: float) -> None:
        self.kept, self.energy, self.move_s = kept, energy, move_s
        self._sizes: dict[int, GangSize] = {}
        self._changed: set[int] = set()  # sizes, since pairs were last put into force
        self._partners: dict[str, list[list[str]]] = {}

    # --- what runs ----------------------------------------------------------------------------

    def shelved(self, group: KeptGroup) -> None:
        """Take note of a group."""
        size = self._sizes.setdefault(group.gang, GangSize())
        first, *others = group.members
        insort(size.firsts.setdefault(first.type, []), (first, group))
        for member in others:
            insort(size.others, member)
        self._changed.add(group.gang)

    def unshelved(self, group: KeptGroup) -> None:
        """Forget a group."""
        size = self._sizes[group.gang]
        first, *others = group.members
        row = size.firsts[first.type]
        del row[bisect_left(row, (first,))]
        for member in others:
            del size.others[bisect_left(size.others, member)]
        self._changed.add(group.gang)

    def put_into_force(self) -> None:
        """Take note that what was decided last is so."""
        self._changed.clear()

    # --- a decision ---------------------------------------------------------------------------

    def decided(self, line: Line) -> tuple[dict[int, Gpus], list[int]]:
        """Return the GPUs of jobs that get others than they hold, and the jobs that are stopped.

        Parameters
        ----------
        line
            Begins the jobs that wait, in order, each of which some pool could hold.
        """
        drafts = Regrouped(self.kept, self.energy, self.move_s)
        seconds = [size.others for size in self._sizes.values() if size.others]
        start = min([*(row[0] for row in seconds), *islice(line(), 1)], default=None)
        if start is None:
            return {}, []
        late = sorted(chain.from_iterable(size.late(start) for size in self._sizes.values()))
        drafts.part(group for _, group in late)
        firsts = [member for member, _ in late]
        end = _placed_alone(drafts, merge(firsts, *seconds, line()))
        if end is None:
            return drafts.decided()
        place, last = self._paired(drafts, start, end, firsts, line)
        if last is not None:
            for row in (firsts, *seconds):
                drafts.waiting += row[bisect_left(row, last) :]
        more, stop = drafts.decided()
        return place | more, stop

    def _paired(
        self, drafts: Regrouped, start: Member, end: Member, firsts: Sequence[Member], line: Line
    ) -> tuple[dict[int, Gpus], Member | None]:
        """Let jobs go beside those that are alone, up to the first that finds no partner.

        Return the GPUs of those that come to groups whose first job stays, and that first one.
        """
        came = deque(islice(dropwhile(end.__gt__, line()), 1))
        anew = {draft.gang for draft in drafts.drafts} | {member.gang for member in firsts}
        anew |= self._changed
        anew |= {
            gang
            for gang, size in self._sizes.items()
            if came and size.others and size.others[-1] > came[0]
        }
        running = [firsts, *(self._sizes[gang].others for gang in anew if gang in self._sizes)]
        rest = sorted(chain.from_iterable(row[bisect_left(row, end) :] for row in running))
        offers: dict[int, Offers] = {}
        moved: list[tuple[Member, int, Gpus]] = []
        last = None
        for member in merge(rest, dropwhile(end.__gt__, line())):
            gang = member.gang
            if gang not in offers:
                offers[gang] = self._offers(drafts, start, gang, is_anew=gang in anew)
            partner = self._partner(offers[gang], member.type)
            if partner is None:
                last = member
                break
            if isinstance(partner, Draft):
                drafts.join(partner, member)
            elif self.kept.of.get(member.job) is not partner:
                moved.append((partner.members[0], member.job, partner.gpus))
        return {job: gpus for _, job, gpus in sorted(moved)}, last

    def _offers(self, drafts: Regrouped, start: Member, gang: int, *, is_anew: bool) -> Offers:
        """Return by type the jobs of a gang size that are alone, in order, each with its group."""
        offers: dict[str, deque[tuple[Member, KeptGroup | Draft]]] = {}
        size = self._sizes.get(gang, GangSize())
        for name, row in size.firsts.items():
            if is_anew:
                offers[name] = deque(row[: bisect_left(row, (start,))])
            else:
                offers[name] = deque(entry for entry in row if len(entry[1].members) == 1)
        for draft in drafts.drafts:
            if draft.gang == gang:
                offers.setdefault(draft.types[0], deque()).append((draft.members[0], draft))
        return offers

    def _partner(self, offers: Offers, name: str) -> KeptGroup | Draft | None:
        """Take the first of the best partners of a job of some type; None if there is none."""
        if name not in self._partners:
            self._partners[name] = partners(self.kept.mixes, name)
        for names in self._partners[name]:
            rows = [offers[other] for other in names if offers.get(other)]
            if rows:
                return min(rows, key=itemgetter(0)).popleft()[1]
        return None


def partners(mixes: Mixes, name: str) -> list[list[str]]:
    """Return the types beside which a job may go, those of equal sums of rates together.

    The greatest sum comes first.
    """
    by_sum: dict[float, list[str]] = {}
    for other in mixes.memory_gb:
        both = mixes.wider((other,), name)
        if both is not None:
            speeds = mixes.of(both).speeds
            by_sum.setdefault(speeds[other] + speeds[name], []).append(other)
    return [by_sum[each] for each in sorted(by_sum, reverse=True) if each > THRESHOLDS.packed_from]


def _placed_alone(drafts: Regrouped, jobs: Iterator[Member]) -> Member | None:
    """Give jobs GPUs of their own up to the first that finds none; return that one."""
    for member in jobs:
        draft = drafts.alone(member)
        if draft is None:
            return member
        drafts.open(draft)
    return None
