"""The ledger of a budget: what it allows, what was billed, and what is promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable

if TYPE_CHECKING:
    from optsched.rollout.policies.budgets.priced_jobs import LeastUse

FIRST_H = 1.0  # so long it is believed that nothing is idle


class Ledger(Restorable):
    """GPU-seconds that a budget allows, against those billed and promised.

    The budget allows `budget_gpus` for every second since the first arrival, and after that what
    the jobs that came so far, begun at their arrival at their widths of least use, would still
    take: the drain of a stream that ended now.

    Attributes
    ----------
    jobs
        By job, its arrival in seconds and what it takes at widths of least use; jobs that would
        have ended are dropped.
    held_us, ready_us
        GPU-microseconds that jobs held, and those of nodes that were ready.
    """

    changing = ("jobs", "since_s", "held_us", "ready_us", "_last")

    def __init__(self, budget_gpus: float, repay_s: float, give_s: float) -> None:
        self.budget_gpus, self.repay_s, self.give_s = budget_gpus, repay_s, give_s
        self.jobs: dict[int, tuple[float, float, float]] = {}
        self.since_s = -1.0
        self.held_us: float = 0
        self.ready_us: float = 0
        self._last: tuple[int, float, float] = (0, 0, 0)

    def enter(self, job: int, arrival_s: float, least: LeastUse, scale: float) -> None:
        """Enter a job, or enter it again as it is longer or shorter than was known."""
        if self.since_s < 0:
            self.since_s = arrival_s
        self.jobs[job] = (arrival_s, least.seconds * scale, least.gpu_s * scale)

    def pass_time(self, now_us: int) -> None:
        """Count the GPUs held and ready until now."""
        before, held, ready = self._last
        self.held_us += (now_us - before) * held
        self.ready_us += (now_us - before) * ready
        self._last = (now_us, held, ready)

    def hold(self, held: float, ready: float) -> None:
        """Let so many GPUs be held, and ready, from now on."""
        self._last = (self._last[0], held, ready)

    def allowed(self, now_s: float) -> float:
        """Return the GPU-seconds that are allowed if no job comes any more."""
        total = self.budget_gpus * max(now_s - self.since_s, 0.0) if self.since_s >= 0 else 0.0
        for job, (arrival_s, seconds, gpu_s) in list(self.jobs.items()):
            left = 1 - (now_s - arrival_s) / seconds
            if left > 0:
                total += gpu_s * min(left, 1.0)
            else:
                del self.jobs[job]
        return total

    @property
    def waste(self) -> float:
        """GPUs that are ready per GPU held, so far."""
        first = FIRST_H * 3600e6 * self.budget_gpus
        return (max(self.ready_us, self.held_us) + first) / (self.held_us + first)

    def affordable(self, balance: float) -> float:
        """Return how many GPUs new jobs may be billed on average at a balance in GPU-seconds.

        A debt is paid back within `repay_s`, and what was saved is given out within `give_s`. So
        nothing is affordable with a debt of `repay_s` of the budget: the most overdraft.
        """
        if balance <= -self.repay_s * self.budget_gpus:
            return 0.0
        rate = balance / (self.give_s if balance > 0 else self.repay_s)
        return max((self.budget_gpus + rate) / self.waste, 0.0)
