"""Quota that is lent while it is idle, and taken back by preemption."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.policies.fifo import Gangs

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.fifo import Gpus
    from optsched.rollout.policies.guidelines.trials import Trials


class LendingGangs(Gangs):
    """Queues borrow what others leave idle; owners take it back where the cluster is nearly full.

    Attributes
    ----------
    reclaim_at
        Share of GPUs in use from which on they do.
    vain
        Gangs tried in vain by the present call.
    tries
        By waiting job the number of its last try, from 0.
    trials
        Those in it have GPUs without running on them.
    """

    reclaim_at: float
    vain: list[int]
    tries: dict[int, int]
    trials: Trials

    def reclaim(self, view: View, placed: dict[int, Gpus]) -> list[int]:
        """Return jobs to preempt for owners that were tried in vain; place and hold these."""
        stopped: list[int] = []
        for job in self.vain:
            if self.nodes.total > (1 - self.reclaim_at) * view.cluster.gpus:
                break
            queue, size = view.queue(job), view.demand(job)
            if queue not in self._used or not self.is_within_quota(queue, size):
                continue
            out = self._make_room(view, job, size, placed)
            if job in self.held:
                placed[job] = self.held[job]
                self.take_from_line(view, job)
                stopped += out
        for job in stopped:
            self.tries.pop(job, None)
            super().arrive(view, job)
            self.tries[job] = 0
        return stopped

    def _make_room(self, view: View, job: int, size: int, placed: dict[int, Gpus]) -> list[int]:
        """Hold GPUs for a job of which borrowers are preempted; return these, [] if in vain."""
        out: dict[int, Gpus] = {}
        gpus, stage = None, self.stage(view, job)
        for other in reversed(list(self.held)):
            if other in placed or other in self.trials or not self._borrows(view.queue(other)):
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

    def _borrows(self, queue: str) -> bool:
        return queue in self._used and self._used[queue] > self.quotas[queue]

    def take_from_line(self, view: View, job: int) -> None:
        """Let a job wait no more."""
        key = (view.queue(job) if self.quotas else "", view.demand(job) if self.backfill else 0)
        self.lines[key].remove(job)
        self.relaxing.leave(job)
        if not self.lines[key]:
            del self.lines[key]
