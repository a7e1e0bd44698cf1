"""Tiresias' order: a few queues by attained service; in each the first started first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Keys
    from optsched.rollout.scenario import Scenario

NEVER = 1 << 62
"""A moment that does not come, in microseconds."""


@dataclass
class Tiresias(Restorable):
    """Discretised 2D-LAS: a few queues by attained GPU-time; in each the first started first.

    Jobs that have not started come behind those of their queue that have, by submission. So jobs of
    one queue do not take turns.

    Parameters
    ----------
    thresholds_gpu_s
        GPU-seconds at which a job falls into the next queue; a number for one threshold, or words
        such as ``"3250/36000"`` for several.
    promote
        A waiting job that has waited for `promote` times as long as it has run since its last
        promotion goes back to the first queue, and its service counts from zero; 0 for never.
    lease_us
        For so long after a start a job comes before all others: nobody takes its GPUs.

    Notes
    -----
    Source: Gu et al., NSDI 2019; SymbioticLab/Tiresias, simulator/jobs.py: two queues, parted at
    3,250 GPU-seconds, and a knob that is off by default. There all waiting since the last promotion
    counts, here the wait since the job last held GPUs.
    """

    is_exact: ClassVar[bool] = True
    changing = ("_forgiven", "_first_us", "_since_us", "_called_us")

    thresholds_gpu_s: float | str = 3250.0
    promote: float = 0.0
    lease_us: int = 0
    _forgiven: dict[int, tuple[int, int]] = field(default_factory=dict, init=False, repr=False)
    _first_us: dict[int, int] = field(default_factory=dict, init=False, repr=False)
    _since_us: dict[int, int] = field(default_factory=dict, init=False, repr=False)
    _called_us: int = field(default=-1, init=False, repr=False)

    def __post_init__(self) -> None:
        parts = str(self.thresholds_gpu_s).split("/")
        self._limits = np.array(sorted(float(part) * US for part in parts))

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs by queue, those with a lease before all; in each by first start."""
        numbers = sorted(jobs)
        self.look(view, numbers)
        seen = self.seen(view, numbers)
        queues = self._queues(seen[0])
        if self.promote:
            self._promote(view, numbers, seen[0], queues)
        keys = self._keys(seen, queues, view.now_us)
        return [numbers[n] for n in np.lexsort(keys[::-1]).tolist()]

    def _promote(self, view: View, jobs: list[int], served: Floats, queues: Integers) -> None:
        """Bring jobs that have waited long for what they ran back to the first queue."""
        ran = view.attained_us(jobs)
        for n in np.flatnonzero(queues).tolist():
            job = jobs[n]
            forgiven, before = self._forgiven.get(job, (0, 0))
            since = int(ran[n]) - before
            if since > 0 and view.waited_us(job) >= self.promote * since:
                self._forgiven[job] = forgiven + int(served[n]), int(ran[n])
                queues[n] = 0

    def _queues(self, served: Floats) -> Integers:
        queues: Integers = np.searchsorted(self._limits, served, side="right")
        return queues

    def urgency(self, served: Floats, queues: Integers) -> Floats | None:
        """Return what comes before the first start within a queue, the least first; None: that."""
        return None

    # --- by keys ------------------------------------------------------------------------------

    def steady(self, scenario: Scenario) -> Tiresias | None:
        """Return itself, unless jobs are promoted while they wait."""
        return None if self.promote else self

    def look(self, view: View, jobs: Sequence[int]) -> None:
        """Take note of starts: a job that runs and did not at the last call began then."""
        if self._called_us < 0:  # what ran before there was this order began at some time
            pairs = zip(jobs, view.attained_us(jobs).tolist(), strict=True)
            self._first_us = {job: view.submit_us(job) for job, ran in pairs if ran}
        running = set(view.running.tolist())
        gone = {*view.failed, *view.arrived}
        began = (job for job in sorted(running) if job in gone or job not in self._since_us)
        self.note(view, list(began), self._since_us.keys() - running)

    def note(self, view: View, started: Iterable[int], stopped: Iterable[int]) -> None:
        """Take note of what has happened since the last call, at which jobs started and stopped."""
        for job in (*view.failed, *view.arrived, *stopped):
            self._since_us.pop(job, None)
        for job in view.ended:
            for known in (self._forgiven, self._first_us, self._since_us):
                known.pop(job, None)
        began = max(0, self._called_us)
        for job in started:
            if view.gpus_of(job):
                self._since_us[job] = began
                self._first_us.setdefault(job, began)
        self._called_us = view.now_us

    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return the service that counts, the first start, and when the lease ends."""
        first, since = self._first_us, self._since_us
        starts = [first.get(job, NEVER) for job in jobs]
        ends = [since[job] + self.lease_us if job in since else 0 for job in jobs]
        seen = np.array([view.attained_gpu_us(jobs), starts, ends], dtype=np.float64)
        if self._forgiven:
            seen[0] -= [self._forgiven.get(job, (0, 0))[0] for job in jobs]
        return seen

    def keys(self, seen: Floats, now: int, held_us: Integers, widths: Integers) -> Keys:
        """Return whether there is no lease, the queue and the first start."""
        served = seen[0] + held_us * widths
        return self._keys((served, *seen[1:]), self._queues(served), now)

    def _keys(self, seen: Iterable[Floats], queues: Integers, now: int) -> Keys:
        served, first, lease_end = seen
        urgency = self.urgency(served, queues)
        rest = (first,) if urgency is None else (urgency, first)
        return ((lease_end <= now).astype(np.float64), queues.astype(np.float64), *rest)
