"""Waiting jobs by size, each size in order: of a size that does not fit, only the first counts."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.rollout.policies.rounds.running_jobs import Standing


class WaitingJobs:
    """Jobs that wait; where they stand does not change while they do.

    Attributes
    ----------
    jobs
        By job its size and where it stands.
    """

    def __init__(self) -> None:
        self._of_size: dict[int, list[Standing]] = {}
        self.jobs: dict[int, tuple[int, Standing]] = {}

    def add(self, size: int, standing: Standing) -> None:
        """Let a job wait."""
        insort(self._of_size.setdefault(size, []), standing)
        self.jobs[standing.job] = size, standing

    def remove(self, job: int) -> None:
        """Let a job wait no more."""
        size, standing = self.jobs.pop(job)
        of_size = self._of_size[size]
        del of_size[bisect_left(of_size, standing)]
        if not of_size:
            del self._of_size[size]

    def scan(self) -> Scan:
        """Return a scan of all who wait, in order."""
        return Scan(self._of_size)


class Scan:
    """Goes through waiting jobs in order, without sizes that are given up.

    Attributes
    ----------
    next
        (standing, size) of the present job; None at the end.
    """

    def __init__(self, of_size: dict[int, list[Standing]]) -> None:
        self._rest: dict[int, Iterator[Standing]] = {
            size: iter(jobs) for size, jobs in of_size.items()
        }
        self._heads = sorted((next(rest), size) for size, rest in self._rest.items())
        self._heads.reverse()

    @property
    def next(self) -> tuple[Standing, int] | None:
        """The present job and its size, None at the end."""
        return self._heads[-1] if self._heads else None

    def go_on(self) -> None:
        """Go on to the next job."""
        _, size = self._heads.pop()
        following = next(self._rest[size], None)
        if following is not None:
            self._heads.append((following, size))
            self._heads.sort(reverse=True)

    def give_up_size(self) -> None:
        """Go on to the next job of another size: none of the present one's fits any more."""
        self._heads.pop()
