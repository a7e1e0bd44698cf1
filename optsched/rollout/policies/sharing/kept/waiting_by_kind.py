"""The jobs that wait, by kind, and lines of them: in order, without being put in order.

Jobs of a kind are alike but for their places in the line. Where one of them finds nothing, so do
those behind it, as long as nothing changes: a kind is then set aside as a whole, so that what a
look at the line takes depends on how many kinds there are, not on how many jobs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from optsched.rollout.policies.sharing.kept.groups import Member

    Key = tuple[float, float, int]


class WaitingByKind:
    """Jobs by kind and gang size, those of a kind in order.

    Attributes
    ----------
    of
        By number.
    in_order
        All of them as `line` has them by the ranks that they came with.
    """

    def __init__(self, members: Iterable[Member] = ()) -> None:
        self.of: dict[int, Member] = {}
        self.in_order: list[Member] = []
        self._rows: dict[Any, list[Member]] = {}
        for member in members:
            self.add(member)

    def __bool__(self) -> bool:
        """Tell whether any job waits."""
        return bool(self._rows)

    def add(self, member: Member) -> None:
        """Let a job wait."""
        self.of[member.job] = member
        insort(self.in_order, member)
        insort(self._rows.setdefault((member.kind, member.gang), []), member)

    def remove(self, member: Member) -> None:
        """Let a job wait no more."""
        del self.of[member.job]
        del self.in_order[bisect_left(self.in_order, member)]
        row = self._rows[member.kind, member.gang]
        del row[bisect_left(row, member)]
        if not row:
            del self._rows[member.kind, member.gang]

    def line(self, rank: Callable[[Member], float] | None) -> Line:
        """Return all of them in order.

        Parameters
        ----------
        rank
            Of the jobs of a kind, at present; None: each has its own, as when it came.
        """
        rows = self._rows.values()
        return Line([KindRow(row, None if rank is None else rank(row[0])) for row in rows])

    def first(self, count: int, rank: Callable[[Member], float] | None) -> WaitingByKind:
        """Return the first jobs of the line."""
        return WaitingByKind(islice(self.line(rank), count))


@dataclass(slots=True)
class KindRow:
    """Jobs of a kind, in order.

    Attributes
    ----------
    rank
        Theirs at present; None: each has its own.
    before
        What counts more than ranks: less is earlier.
    start
        Those before this one are left out.
    """

    members: Sequence[Member]
    rank: float | None = None
    before: float = 0.0
    start: int = 0

    @property
    def head(self) -> Member:
        """Return the first job."""
        return self.members[self.start]

    def has(self, member: Member) -> bool:
        """Tell whether a job is of this kind."""
        head = self.members[0]
        return (head.kind, head.gang) == (member.kind, member.gang)

    def key(self, n: int) -> Key:
        """Return where a job stands in the line."""
        member = self.members[n]
        return self.before, member.rank if self.rank is None else self.rank, member.job

    def part(self, members: Sequence[Member], start: int = 0) -> KindRow:
        """Return some of the jobs, which stand in the line as before."""
        return KindRow(members, self.rank, self.before, start)

    def behind(self, key: Key) -> int:
        """Return the first job behind a place in the line."""
        before, rank, job = key
        if self.before != before:
            return self.start if self.before > before else len(self.members)
        if self.rank is not None:
            if self.rank != rank:
                return self.start if self.rank > rank else len(self.members)
            rank = self.members[0].rank
        return max(self.start, bisect_left(self.members, (rank, job + 1)))


class Line:
    """Jobs in order.

    Parameters
    ----------
    rows
        By kind.
    """

    def __init__(self, rows: Iterable[KindRow]) -> None:
        self.rows = [row for row in rows if row.start < len(row.members)]

    def __len__(self) -> int:
        """Return how many there are."""
        return sum(len(row.members) - row.start for row in self.rows)

    def heads(self) -> list[Member]:
        """Return the first job of each kind."""
        return [row.head for row in self.rows]

    def in_any_order(self) -> Iterator[Member]:
        """Yield them as they come."""
        return chain.from_iterable(islice(row.members, row.start, None) for row in self.rows)

    def __iter__(self) -> Iterator[Member]:
        """Yield them in order."""
        return self.passing(lambda _: False, lambda: 0)

    def passing(
        self, is_vain: Callable[[Member], bool], stamp: Callable[[], int]
    ) -> Iterator[Member]:
        """Yield them in order, but those for which it is in vain.

        Parameters
        ----------
        is_vain
            Whether a job can be passed over. If so, those of its kind behind it can be, too, as
            long as `stamp` stays the same.
        """
        rows, aside = self.rows, list[int]()
        heap = [(row.key(row.start), n, row.start) for n, row in enumerate(rows)]
        heapify(heap)
        seen = stamp()
        while heap:
            key, n, at = heappop(heap)
            if is_vain(rows[n].members[at]):
                aside.append(n)
                continue
            yield rows[n].members[at]
            if at + 1 < len(rows[n].members):
                heappush(heap, (rows[n].key(at + 1), n, at + 1))
            if stamp() != seen:
                seen = stamp()
                for other in aside:
                    start = rows[other].behind(key)
                    if start < len(rows[other].members):
                        heappush(heap, (rows[other].key(start), other, start))
                aside.clear()

    # --- parts of it --------------------------------------------------------------------------

    def fitting(self, fits: Callable[[int], bool]) -> Line:
        """Return the jobs whose gangs fit."""
        return Line([row for row in self.rows if fits(row.head.gang)])

    def held_up(self, fits: Callable[[int], bool]) -> Line:
        """Return the jobs before the first whose gang does not fit."""
        ends = [row.key(row.start) for row in self.rows if not fits(row.head.gang)]
        if not ends:
            return self
        end = min(ends)
        return Line(
            [row.part(row.members[: row.behind(end)], row.start) for row in self.fitting(fits).rows]
        )

    def since(self, member: Member) -> Line:
        """Return a job of the line, and those behind it."""
        row = next(row for row in self.rows if row.has(member))
        before, rank, job = row.key(bisect_left(row.members, member))
        return Line(
            [row.part(row.members, row.behind((before, rank, job - 1))) for row in self.rows]
        )

    def by(self, before: Callable[[Member], float]) -> Line:
        """Return them in the order of something that all jobs of a kind have alike."""
        return Line(
            [KindRow(row.members, row.rank, before(row.head), row.start) for row in self.rows]
        )

    def apart(self, members: Sequence[Member]) -> tuple[Line, Line]:
        """Return the line without some jobs, and with each of them as a kind of its own."""
        rest, singles = list[KindRow](), list[KindRow]()
        for row in self.rows:
            mine = [member for member in members if row.has(member)]
            if not mine:
                rest.append(row)
                continue
            left = list(row.members[row.start :])
            for member in mine:
                del left[bisect_left(left, member)]
            rest.append(row.part(left))
            singles += [row.part([member]) for member in mine]
        return Line(rest), Line([*rest, *singles])
