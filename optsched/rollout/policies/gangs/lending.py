"""Quota that is lent while it is idle, and taken back by preemption."""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace
from typing import TYPE_CHECKING

from optsched.rollout.policies.fifo import Gangs

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.fifo import Gpus, Key
    from optsched.rollout.policies.guidelines.trials import Trials


class LendingGangs(Gangs):
    """Queues borrow what others leave idle; owners take it back where the cluster is nearly full.

    Gangs within the quotas of their queues are tried before those that would borrow. Owners take
    GPUs back only where these are too few, not for a better place, and of those who hold no more
    than what lacks first. Who is preempted would borrow again, so it takes nothing back itself.

    Attributes
    ----------
    reclaim_at
        Share of GPUs in use from which on they do.
    reclaim_after
        Tries in vain after which they do.
    vain
        Gangs tried in vain by the present call.
    tries
        By waiting job the number of its last try, from 0.
    due
        By line when its first job is tried next; now, if it is not there.
    trials
        Those in it have GPUs without running on them.
    """

    retry_us: int
    reclaim_at: float
    reclaim_after: int
    vain: list[int]
    tries: dict[int, int]
    due: dict[Key, int]
    trials: Trials

    def place_waiting(self, view: View) -> dict[int, Gpus]:
        """Return GPUs for jobs at the heads of the lines that are due, and hold them.

        The earliest first, but owners before borrowers.
        """
        if not self.lends:
            return super().place_waiting(view)
        places: dict[int, Gpus] = {}
        now, due, heads = view.now_us, self.due, []
        for key, line in self.lines.items():
            if due.get(key, 0) <= now or not self.backfill:
                heads.append((self._borrows(view, line[0]), line[0], key))
        heapify(heads)
        while heads:
            borrows, job, key = heads[0]
            if not borrows and self._borrows(view, job):  # one before it took what was left
                heapreplace(heads, (True, job, key))
                continue
            heappop(heads)
            gpus = self.find(view, job, view.demand(job)) if self.is_due(view, job) else None
            if gpus is None:
                began = now - self.waited_us(view, job)
                due[key] = began + (self.tries[job] + 1) * self.retry_us if self.retry_us else now
                if not self.backfill:
                    break
                continue
            places[job] = gpus
            self.hold(view, job, gpus)
            self.take_from_line(view, job)
            if key in self.lines:
                first = self.lines[key][0]
                heappush(heads, (self._borrows(view, first), first, key))
        return places

    def arrive(self, view: View, job: int) -> None:
        """Let a job wait in its line, of which the first may be another one from now on."""
        super().arrive(view, job)
        self.due.pop(self.line_of(view, job), None)

    def _borrows(self, view: View, job: int) -> bool:
        return not self.is_within_quota(view.queue(job), view.demand(job))

    def reclaim(self, view: View, placed: dict[int, Gpus]) -> list[int]:
        """Return jobs to preempt for owners that were tried in vain; place and hold these."""
        stopped: list[int] = []
        for job in self.vain:
            queue, size = view.queue(job), view.demand(job)
            if self.nodes.total > (1 - self.reclaim_at) * view.cluster.gpus:
                break
            if size <= self.nodes.total or self.tries.get(job, 0) < self.reclaim_after:
                continue
            if queue not in self._used or not self.is_within_quota(queue, size):
                continue
            out = self._make_room(view, job, size, placed)
            if job in self.held:
                placed[job] = self.held[job]
                self.take_from_line(view, job)
                stopped += out
        for job in stopped:
            self.tries.pop(job, None)
            LendingGangs.arrive(self, view, job)
            self.tries[job] = 0
        return stopped

    def _make_room(self, view: View, job: int, size: int, placed: dict[int, Gpus]) -> list[int]:
        """Hold GPUs for a job of which borrowers are preempted; return these, [] if in vain."""
        out: dict[int, Gpus] = {}
        gpus, stage = None, self.stage(view, job)
        for other in self._last_started(size - self.nodes.total):
            if other in placed or other in self.trials or not self._is_above(view.queue(other)):
                continue
            out[other] = self.held[other]
            self.release(view, other)
            gpus = self.search(size, stage) if self.nodes.total >= size else None
            if gpus is not None:
                break
        if gpus is not None:
            self.hold(view, job, gpus)
        taken = set(gpus or ())
        for other, old in out.items():
            if taken.isdisjoint(old):  # its GPUs are not needed after all
                self.hold(view, other, old)
        return [other for other in out if other not in self.held]

    def _last_started(self, lacking: int) -> list[int]:
        """Return the running jobs, the last started first; those that hold more than lacks last."""
        jobs = list(reversed(self.held))
        jobs.sort(key=lambda job: len(self.held[job]) > lacking)
        return jobs

    def _is_above(self, queue: str) -> bool:
        return queue in self._used and self._used[queue] > self.quotas[queue]

    def take_from_line(self, view: View, job: int) -> None:
        """Let a job wait no more."""
        key = self.line_of(view, job)
        self.lines[key].remove(job)
        self.due.pop(key, None)
        self.relaxing.leave(job)
        if not self.lines[key]:
            del self.lines[key]
