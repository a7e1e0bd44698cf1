"""The ledger of a budget: what it allows, what was billed, and what is promised."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.policies.budgets.priced_jobs import LeastUse

LULL = 10.0  # gaps between arrivals after which none may come any more
FIRST_H = 1.0  # so long it is believed that nothing is idle


class Ledger(Restorable):
    """GPU-seconds that a budget allows, against those billed and promised.

    The budget allows `budget_gpus` for every second from the first arrival to the last, and after
    that what the jobs that came so far, begun at their arrival at their widths of least use, would
    still take: the drain of a stream.

    Attributes
    ----------
    jobs
        By job, its arrival in seconds and what it takes at widths of least use: seconds, and
        GPU-seconds, or USD per hour times seconds; those that would have ended before the last
        arrival are dropped.
    since_s, last_s
        When the first job came, and the last one so far; -1 before.
    held_us, ready_us
        GPU-microseconds that jobs held, and those of nodes that were ready.
    """

    changing = ("jobs", "since_s", "last_s", "held_us", "ready_us", "_last")

    def __init__(self, budget_gpus: float) -> None:
        self.budget_gpus = budget_gpus
        self.jobs: dict[int, tuple[float, float, float]] = {}
        self.since_s = self.last_s = -1.0
        self.held_us: float = 0
        self.ready_us: float = 0
        self._last: tuple[int, float, float] = (0, 0, 0)

    def enter(self, job: int, arrival_s: float, least: LeastUse, scale: float) -> None:
        """Enter a job, or enter it again as it is longer or shorter than was known."""
        if self.since_s < 0:
            self.since_s = arrival_s
        if arrival_s > self.last_s:
            self.last_s = arrival_s
            self.jobs = {n: entry for n, entry in self.jobs.items() if _left(entry, arrival_s) > 0}
        entry = (arrival_s, least.seconds * scale, least.gpu_s * scale)
        if _left(entry, self.last_s) > 0:
            self.jobs[job] = entry
        else:
            self.jobs.pop(job, None)

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
        """Return the GPU-seconds that are allowed if the last job so far comes at a moment.

        At the last arrival this is what is allowed if no job comes any more.
        """
        if self.since_s < 0:
            return 0.0
        drain = sum(_left(entry, now_s) for entry in self.jobs.values())
        return self.budget_gpus * (now_s - self.since_s) + drain

    def sure(self, now_s: float) -> float:
        """Return the GPU-seconds that are allowed whether another job comes now or none ever.

        A lull allows nothing before it is over, as it may be the end; and what a job that comes
        takes away, time in which others would have drained, is not there to be spent either.
        """
        return min(self.allowed(self.last_s), self.allowed(now_s))

    @property
    def silence_s(self) -> float:
        """Seconds without an arrival."""
        return max(self._last[0] / US - self.last_s, 0.0) if self.last_s >= 0 else 0.0

    @property
    def waste(self) -> float:
        """GPUs that are ready per GPU held, so far."""
        first = FIRST_H * 3600e6 * self.budget_gpus
        return (max(self.ready_us, self.held_us) + first) / (self.held_us + first)


def _left(entry: tuple[float, float, float], now_s: float) -> float:
    """Return what a job would still take, had it run at its widths of least use since it came."""
    arrival_s, seconds, gpu_s = entry
    return gpu_s * min(max(1 - (now_s - arrival_s) / seconds, 0.0), 1.0)
