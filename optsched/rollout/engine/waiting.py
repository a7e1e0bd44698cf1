"""Why jobs wait: clocks per queue and gang size, so that a change costs nothing per job."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from optsched.rollout.checkpoints.restorable import Restorable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from optsched.rollout.engine.state import State


class _Clocks(Restorable):
    """For each gang size, for how long fewer GPUs than that have been free to a group of jobs."""

    changing = ("total", "since", "enough")

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sorted(sizes)
        self.total = [0] * len(sizes)
        self.since = [0] * len(sizes)
        self.enough = len(sizes)  # the sizes before this one are not larger than what is free

    def set_free(self, free: int, now: int) -> None:
        enough, old = bisect_right(self.sizes, free), self.enough
        if enough == old:
            return
        self.enough = enough
        for n in range(old, enough):
            self.total[n] += now - self.since[n]
        for n in range(enough, old):
            self.since[n] = now

    def read(self, size: int, now: int) -> int:
        n = bisect_left(self.sizes, size)
        return self.total[n] + (now - self.since[n] if n >= self.enough else 0)


class Waiting(Restorable):
    """Splits waiting into its kinds (ATC'19, section 3.1.1, table 2).

    fair share: fewer GPUs are free, to the job's queue if it has a quota, than the job asks for.
    fragmentation: enough are free, and yet it is not placed. The delay between a failure and the
    queue is neither.
    """

    changing = ("held", "fair_share", "fragmentation", "read_at", "since", "_free")

    def __init__(self, state: State, queues: Sequence[str], quotas: Mapping[str, int]) -> None:
        self.state = state
        self.group_of = [queue if queue in quotas else "" for queue in queues]
        self.quotas = dict(quotas)
        self.held = dict.fromkeys(quotas, 0)
        sizes: dict[str, set[int]] = {}
        for group, size in set(zip(self.group_of, state.demand, strict=True)):
            sizes.setdefault(group, set()).add(size)
        self.clocks = {group: _Clocks(sorted(sizes[group])) for group in sorted(sizes)}
        self.fair_share = [0] * len(queues)
        self.fragmentation = [0] * len(queues)
        self.read_at = [0] * len(queues)
        self.since = [0] * len(queues)
        self._free = -1
        self.update(0)

    def snapshot(self) -> dict[str, Any]:
        """Return what changes, the clocks included."""
        clocks = {group: clocks.snapshot() for group, clocks in self.clocks.items()}
        return super().snapshot() | {"clocks": clocks}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        own = dict(state)
        clocks = own.pop("clocks")
        super().restore(own)
        for group, each in self.clocks.items():
            each.restore(clocks[group])

    def enter(self, job: int, now: int) -> None:
        """Note that a job begins to wait in the queue."""
        self.since[job] = now
        self.read_at[job] = self._read(job, now)

    def leave(self, job: int, now: int) -> None:
        """Note that a job leaves the queue."""
        fair, waited = self.split(job, now)
        self.fair_share[job] = fair
        self.fragmentation[job] = waited

    def split(self, job: int, now: int) -> tuple[int, int]:
        """Return the microseconds of both kinds until now of a job that waits."""
        fair = self._read(job, now) - self.read_at[job]
        other = now - self.since[job] - fair
        return self.fair_share[job] + fair, self.fragmentation[job] + other

    def hold(self, job: int, gpus: int) -> None:
        """Note that a job's queue holds more GPUs, or fewer if negative."""
        group = self.group_of[job]
        if group:
            self.held[group] += gpus

    def update(self, now: int) -> None:
        """Note what is free from now on."""
        free = self.state.free_gpus
        if free == self._free and not self.quotas:
            return
        self._free = free
        for group, clocks in self.clocks.items():
            mine = min(free, self.quotas[group] - self.held[group]) if group else free
            clocks.set_free(mine, now)

    def _read(self, job: int, now: int) -> int:
        return self.clocks[self.group_of[job]].read(self.state.demand[job], now)
