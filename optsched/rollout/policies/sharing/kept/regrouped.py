"""Groups formed of all jobs anew, running ones included, over what is kept of who runs where."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

from optsched.rollout.policies.sharing.kept.pool_packing import PoolPacking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from optsched.rollout.policies.sharing.kept.energy import Energy
    from optsched.rollout.policies.sharing.kept.groups import KeptGroup, KeptGroups, Member

    Gpus = tuple[int, ...]


class Draft:
    """A group without GPUs yet, as `optsched.eaco.greedy.group_costs.Draft`.

    Attributes
    ----------
    members
        In order.
    types
        Of its members, sorted.
    home
        The running group whose GPUs it takes over; None for other GPUs.
    node
        The node that is its pool; -1 for the pool of whole nodes.
    works, limits
        How long each of them takes alone there, by type, once that was asked; least and most.
    """

    __slots__ = ("gang", "home", "kwh", "limits", "members", "node", "types", "works")

    def __init__(
        self, members: list[Member], types: tuple[str, ...], home: KeptGroup | None, node: int
    ) -> None:
        self.members, self.types, self.home, self.node = members, types, home, node
        self.gang = members[0].gang
        self.works: list[tuple[str, float]] = []
        self.limits = (0.0, 0.0)
        self.kwh: float | None = None


class Regrouped:
    """Groups that keep every rule, while a rule forms them, and the jobs that wait.

    Attributes
    ----------
    drafts
        In the order in which they were opened.
    parted
        Running groups that are parted; the others stay as they are and are no drafts.
    taken
        Those of them whose GPUs some draft has.
    """

    def __init__(self, kept: KeptGroups, energy: Energy, move_s: float) -> None:
        self.kept, self.mixes, self.energy, self.move_s = kept, kept.mixes, energy, move_s
        self.drafts: list[Draft] = []
        self.parted: set[KeptGroup] = set()
        self.taken: set[KeptGroup] = set()
        self.waiting: list[Member] = []
        self._hosts: dict[int, int | None] = {}  # by size, as long as nothing changes
        self._packing: PoolPacking | None = None

    # --- places -------------------------------------------------------------------------------

    def part(self, groups: Iterable[KeptGroup]) -> None:
        """Let running groups be parted: drafts may have their GPUs."""
        self.parted = set(groups)

    @property
    def packing(self) -> PoolPacking:
        """What is held, and the drafts that are still to be put somewhere; made when it is asked.

        It is not where all drafts take over GPUs, and nobody asks for room.
        """
        if self._packing is None:
            kept = self.kept
            self._packing = PoolPacking(kept.pools, kept.cluster, kept.whole, kept.free)
            for group in self.parted - self.taken:
                self._packing.release(group.gpus)
            for draft in self.drafts:
                if draft.home is None:
                    self._packing.add(draft.node, draft.gang)
        return self._packing

    def alone(self, member: Member) -> Draft | None:
        """Return a new group of one job: on its own GPUs if it runs, else on other ones."""
        home = self._home(member)
        if home is not None and self.packing.has_room_at(home.gpus):
            return Draft([member], (member.type,), home, self.packing.pool_of(home.gpus))
        node = self.host(member.type, member.gang)
        return None if node is None else Draft([member], (member.type,), None, node)

    def host(self, name: str, gang: int) -> int | None:
        """Return the first pool that has room for one more job alone; None if none has."""
        if not self.mixes.allows((name,)):
            return None
        hosts = self._hosts
        return hosts[gang] if gang in hosts else hosts.setdefault(gang, self.packing.host(gang))

    def _home(self, member: Member) -> KeptGroup | None:
        """Return the group in which a job runs if its GPUs may be taken over, else None."""
        home = self.kept.of.get(member.job)
        return home if home in self.parted and home not in self.taken else None

    def open(self, draft: Draft) -> None:
        """Let a group be one of the drafts."""
        self._settle(draft)
        self.drafts.append(draft)

    def _settle(self, draft: Draft) -> None:
        self._hosts.clear()
        if draft.home is not None:
            self.taken.add(draft.home)
        if self._packing is None:
            return
        if draft.home is None:
            self._packing.add(draft.node, draft.gang)
        else:
            self._packing.hold(draft.home.gpus)

    def pair(self, draft: Draft, member: Member) -> None:
        """Put a job into a group of one that is not open yet."""
        draft.home = self.home_beside(draft, member, is_open=False)
        insort(draft.members, member)
        draft.types = tuple(sorted((*draft.types, member.type)))

    def home_beside(
        self, draft: Draft, member: Member, *, is_open: bool = True
    ) -> KeptGroup | None:
        """Return the running group whose GPUs a draft has with one more job; None: other GPUs."""
        if draft.home is not None:
            return draft.home
        home = self._home(member)
        if home is None or self.packing.pool_of(home.gpus) != draft.node:
            return None
        without = draft.gang if is_open else 0
        return home if self.packing.has_room_at(home.gpus, without=without) else None

    def join(self, draft: Draft, member: Member) -> None:
        """Put a job into a group."""
        home = self.home_beside(draft, member)
        if home is not draft.home:
            self.packing.remove(draft.node, draft.gang)
            draft.home = home
            draft.works = []
            self._settle(draft)
        if draft.works:
            work, (least, most) = self._work_s(member, home), draft.limits
            draft.works.append((member.type, work))
            draft.limits = min(least, work), max(most, work)
        insort(draft.members, member)
        wider = self.mixes.wider(draft.types, member.type)
        assert wider is not None, "they may be a group"
        draft.types = wider
        draft.kwh = None

    # --- costs --------------------------------------------------------------------------------

    def times_left_s(self, members: Sequence[Member]) -> list[float]:
        """Return how long each job takes alone, moved if it runs."""
        running, left, move_s = self.kept.of, self.energy.left_s, self.move_s
        return [left(each) + move_s if each.job in running else left(each) for each in members]

    def kwh(self, draft: Draft) -> float:
        """Return what a group costs."""
        if draft.kwh is None:
            gpus = self.packing.gpus_of(draft.node)
            draft.kwh = self.energy.kwh(self._works(draft), draft.gang, gpus)
        return draft.kwh

    def kwh_with(self, draft: Draft, member: Member) -> float:
        """Return what a group costs with one more job."""
        home = self.home_beside(draft, member)
        works = [(each.type, self._work_s(each, home)) for each in (*draft.members, member)]
        return self.energy.kwh(works, draft.gang, self.packing.gpus_of(draft.node))

    def pays(self, draft: Draft, member: Member) -> bool:
        """Tell whether a job beside others costs less than apart, if it can be apart at all."""
        stays = draft.home is not None or self.home_beside(draft, member) is None
        least = (self.energy.left_s(member), self.kept.pools.width)  # of what it takes apart
        if stays and self._is_cheaper(draft, member, *least):
            return True
        alone = self.alone(member)
        if alone is None:
            return True
        if stays:
            apart = (self._work_s(member, alone.home), self.packing.gpus_of(alone.node))
            is_cheaper = self._is_cheaper(draft, member, *apart)
            if is_cheaper is not None:
                return is_cheaper
        return self.kwh_with(draft, member) < self.kwh(draft) + self.kwh(alone)

    def _is_cheaper(self, draft: Draft, member: Member, apart_s: float, gpus: int) -> bool | None:
        """Tell whether a job beside others costs less than apart, if that is certain."""
        here = self.packing.gpus_of(draft.node)
        joining = self.energy.joining(draft.types, member.type, here, gpus)
        if joining is None:
            return None
        self._works(draft)
        beside_s = self._work_s(member, draft.home)
        return joining.is_cheaper(beside_s, apart_s, *draft.limits)

    def _works(self, draft: Draft) -> list[tuple[str, float]]:
        if not draft.works:
            draft.works = [(each.type, self._work_s(each, draft.home)) for each in draft.members]
            works = [work for _, work in draft.works]
            draft.limits = min(works), max(works)
        return draft.works

    def _work_s(self, member: Member, home: KeptGroup | None) -> float:
        """Return how long a job takes alone on the GPUs of a running group, or on others."""
        now, left = self.kept.of.get(member.job), self.energy.left_s(member)
        return left if now is None or now is home else left + self.move_s

    # --- the end ------------------------------------------------------------------------------

    def gpus(self) -> Iterator[tuple[Draft, Gpus]]:
        """Yield the GPUs of each draft: first of those that take over others' GPUs."""
        held = [draft for draft in self.drafts if draft.home is not None]
        for draft in held:
            assert draft.home is not None
            yield draft, draft.home.gpus
        new = [draft for draft in self.drafts if draft.home is None]
        if not new:
            return
        nodes = self.packing.nodes([(draft.node, draft.gang) for draft in new])
        left = {gpu for group in self.parted - self.taken for gpu in group.gpus}
        cluster, are_free, busy = self.kept.cluster, self.kept.free.are_free, set[int]()
        for draft, chosen in zip(new, nodes, strict=True):
            inside = (cluster.first[n] + g for n in chosen for g in range(cluster.size[n]))
            idle = (gpu for gpu in inside if gpu in left or are_free((gpu,)))
            gpus = tuple([gpu for gpu in idle if gpu not in busy][: draft.gang])
            busy.update(gpus)
            yield draft, gpus

    def decided(self) -> tuple[dict[int, Gpus], list[int]]:
        """Return the GPUs of jobs that get others than they hold, and the jobs that are stopped."""
        place = {}
        for draft, gpus in self.gpus():
            for member in draft.members:
                now = self.kept.of.get(member.job)
                if now is None or now.gpus != gpus:
                    place[member.job] = gpus
        return place, [member.job for member in sorted(self.waiting) if member.job in self.kept.of]
