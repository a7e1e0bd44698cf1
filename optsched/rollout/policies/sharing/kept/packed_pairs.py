"""What "fifo-packed" decides, from the groups that run: only gang sizes that changed are paired.

The rule gives jobs GPUs of their own in order, up to the first that finds none; the others go
beside jobs that are alone. Of the groups that run, those whose first job comes before all second
ones and all that wait keep their GPUs. A job only goes beside one of its gang size. So where
nothing of a size has changed since pairs were formed, and none of it finds other GPUs, its pairs
would be formed again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from heapq import merge
from itertools import chain, dropwhile, islice, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING

from optsched.eaco.greedy.published_rules import THRESHOLDS
from optsched.rollout.policies.sharing.kept.gang_sizes import GangSize, Pairing
from optsched.rollout.policies.sharing.kept.regrouped import Regrouped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from optsched.rollout.policies.sharing.kept.energy import Energy
    from optsched.rollout.policies.sharing.kept.gang_sizes import Alone, Offers, Pair
    from optsched.rollout.policies.sharing.kept.groups import KeptGroup, KeptGroups, Member
    from optsched.rollout.policies.sharing.kept.mixes import Mixes

    Gpus = tuple[int, ...]


class PackedPairs:
    """The groups of the instance by gang size, and pairs of those sizes that have changed."""

    def __init__(self, kept: KeptGroups, energy: Energy, move_s: float) -> None:
        self.kept, self.energy, self.move_s = kept, energy, move_s
        self._sizes: defaultdict[int, GangSize] = defaultdict(GangSize)
        self._partners: dict[str, list[list[str]]] = {}

    # --- what runs ----------------------------------------------------------------------------

    def shelved(self, group: KeptGroup) -> None:
        """Take note of a group."""
        self._sizes[group.gang].add(group)

    def unshelved(self, group: KeptGroup) -> None:
        """Forget a group."""
        self._sizes[group.gang].remove(group)

    def put_into_force(self) -> None:
        """Take note that what was decided last is so."""
        for size in self._sizes.values():
            size.is_in_force = True

    # --- a decision ---------------------------------------------------------------------------

    def decided(self, line: Sequence[Member]) -> tuple[dict[int, Gpus], list[int]]:
        """Return the GPUs of jobs that get others than they hold, and the jobs that are stopped.

        Parameters
        ----------
        line
            The jobs that wait, in order; those before one that no pool could hold count.
        """
        drafts = Regrouped(self.kept, self.energy, self.move_s)
        seconds = [size.others for size in self._sizes.values() if size.others]
        start = min([*(row[0] for row in seconds), *islice(self._hosted(line), 1)], default=None)
        if start is None:
            return {}, []
        late = sorted(chain.from_iterable(size.late(start) for size in self._sizes.values()))
        drafts.part(group for _, group in late)
        firsts = [member for member, _ in late]
        end = _placed_alone(drafts, merge(firsts, *seconds, self._hosted(line)))
        if end is None:
            return drafts.decided()
        formed = {draft.members[0]: draft for draft in drafts.drafts}
        running = max((row[-1] for row in (firsts, *seconds) if row), default=end)
        ahead, behind = _parted(dropwhile(end.__gt__, self._hosted(line)), running)
        found = self._of_sizes(firsts, [*formed], ahead, end)
        pairs, last = self._paired(found, behind)
        if last is not None:
            for row in (firsts, *seconds):
                drafts.waiting += row[bisect_left(row, last) :]
        place = {
            member.job: group.gpus
            for member, group, _ in sorted(pairs, key=itemgetter(2))
            if group is not None
        }
        for member, group, first in pairs:
            if group is None:
                drafts.join(formed[first], member)
        more, stop = drafts.decided()
        return place | more, stop

    def _hosted(self, line: Iterable[Member]) -> Iterator[Member]:
        """Yield the jobs of a line before the first that no pool could hold."""
        hosts = self.kept.pools.hosts
        return takewhile(lambda member: hosts(member.gang), line)

    def _of_sizes(
        self, firsts: list[Member], formed: list[Member], ahead: list[Member], end: Member
    ) -> dict[int, Pairing]:
        """Return the pairs of each gang size of which they are not certain to be in force.

        Parameters
        ----------
        firsts, formed
            Jobs that come first in running groups that are parted, and in groups that were formed.
        ahead
            The jobs that wait and come before some that run.
        """
        told: dict[int, tuple[list[Member], list[Member], list[Member]]] = {}
        for n, members in enumerate((firsts, formed, ahead)):
            for member in members:
                told.setdefault(member.gang, ([], [], []))[n].append(member)
        found = {}
        for gang in told.keys() | {g for g, size in self._sizes.items() if not size.is_in_force}:
            late, opened, early = map(tuple, told.get(gang, ([], [], [])))
            size, key = self._sizes[gang], (late, opened, early)
            if key not in size.known:
                size.known[key] = self._pairing(size, *key, end)
            found[gang] = size.known[key]
        return found

    def _pairing(
        self,
        size: GangSize,
        firsts: tuple[Member, ...],
        formed: tuple[Member, ...],
        ahead: tuple[Member, ...],
        end: Member,
    ) -> Pairing:
        """Let the jobs of a gang size go beside those that are alone."""
        offers = size.offers(firsts)
        for first in formed:
            offers.setdefault(first.type, deque()).append((first, None))
        rest = (row[bisect_left(row, end) :] for row in (firsts, size.others))
        pairs: list[Pair] = []
        for member in sorted((*chain.from_iterable(rest), *ahead)):
            partner = self._partner(offers, member)
            if partner is None:
                return Pairing(pairs, member, offers)
            first, group = partner
            if group is None or self.kept.of.get(member.job) is not group:
                pairs.append((member, group, first))
        return Pairing(pairs, None, offers)

    def _paired(
        self, found: dict[int, Pairing], waiting: Iterable[Member]
    ) -> tuple[list[Pair], Member | None]:
        """Return all pairs, those of jobs that wait behind the others included, and `last`."""
        pairs = sorted(
            chain.from_iterable(each.pairs for each in found.values()), key=itemgetter(0)
        )
        last = min((each.last for each in found.values() if each.last is not None), default=None)
        if last is not None:
            return [pair for pair in pairs if pair[0] < last], last
        left: dict[int, Offers] = {}
        for member in waiting:
            gang = member.gang
            if gang not in left:
                known = found.get(gang)
                left[gang] = self._sizes[gang].alone() if known is None else known.copied()
            partner = self._partner(left[gang], member)
            if partner is None:
                return pairs, member
            first, group = partner
            pairs.append((member, group, first))
        return pairs, None

    def _partner(self, offers: Offers, member: Member) -> Alone | None:
        """Take the first of the best partners of a job; None if there is none."""
        name = member.type
        if name not in self._partners:
            self._partners[name] = partners(self.kept.mixes, name)
        for names in self._partners[name]:
            rows = [offers[other] for other in names if offers.get(other)]
            if rows:
                return min(rows, key=itemgetter(0)).popleft()
        return None


def partners(mixes: Mixes, name: str) -> list[list[str]]:
    """Return the types beside which a job may go, the greatest sum of rates first.

    Those of equal sums are together.
    """
    by_sum: dict[float, list[str]] = {}
    for other in mixes.memory_gb:
        both = mixes.wider((other,), name)
        if both is not None:
            speeds = mixes.of(both).speeds
            by_sum.setdefault(speeds[other] + speeds[name], []).append(other)
    return [by_sum[each] for each in sorted(by_sum, reverse=True) if each > THRESHOLDS.packed_from]


def _placed_alone(drafts: Regrouped, jobs: Iterable[Member]) -> Member | None:
    """Give jobs GPUs of their own up to the first that finds none; return that one."""
    for member in jobs:
        draft = drafts.alone(member)
        if draft is None:
            return member
        drafts.open(draft)
    return None


def _parted(jobs: Iterator[Member], at: Member) -> tuple[list[Member], Iterable[Member]]:
    """Return the jobs before one of them, and the others."""
    ahead: list[Member] = []
    for member in jobs:
        if member >= at:
            return ahead, chain((member,), jobs)
        ahead.append(member)
    return ahead, ()
