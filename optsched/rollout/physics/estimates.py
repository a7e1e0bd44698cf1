"""What policies are told about run times: estimates of a stated kind, never the truth by accident.

The view asks here; no policy has another way to the trace's run times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.random_streams import stream
from optsched.traces.trace import FAILED, STATUSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Indices
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


Key = tuple[str, ...]


class Oracle(Restorable):
    """Estimates of the time that jobs still need on the gang asked for, at reference speed.

    - ``exact``: the truth: run time x share of the work that is left. Of a job that fails, what it
      would take if nothing failed.
    - ``noisy``: the truth times exp(sigma x a standard normal draw), drawn once for each job from
      the seed, so that all policies see the same errors.
    - ``history``: the mean run time of the jobs of the same model and queue that have ended so far,
      less the job's own run time so far; if none has, of those of the same model, else of all jobs;
      NaN before the first. Run times are at reference speed; of a job that failed, the sum over its
      attempts.
    - ``none``: NaN.

    Numbers are at least one microsecond: a job that has not ended needs some time yet.
    """

    changing = ("_seen",)

    def __init__(self, scenario: Scenario, trace: Trace, seed: int) -> None:
        self._kind = scenario.estimates.kind
        self._trace = trace
        self._run_us = trace.run_us.astype(np.float64)
        self._seen: dict[Key, tuple[int, int]] = {}
        if self._kind == "noisy":
            draws = stream(seed, "estimates").standard_normal(len(trace))
            self._run_us = self._run_us * np.exp(scenario.estimates.sigma * draws)

    def remaining_us(self, jobs: Sequence[int], done_share: Sequence[float]) -> Floats:
        """Return estimates for jobs, in microseconds.

        Parameters
        ----------
        jobs
            Their numbers.
        done_share
            For each of them the share of its work that is done, from 0 to 1.
        """
        numbers = np.asarray(jobs, dtype=np.intp)
        done = np.asarray(done_share, dtype=np.float64)
        if self._kind == "none":
            return np.full(len(numbers), np.nan)
        if self._kind == "history":
            left = self._means_us(numbers) - done * self._run_us[numbers]
        else:
            left = self._run_us[numbers] * (1 - done)
        estimates: Floats = np.maximum(left, 1.0)  # NaN stays NaN
        return estimates

    def ended(self, job: int) -> None:
        """Note that a job ended; the engine tells."""
        if self._kind != "history":
            return
        trace = self._trace
        run_us = int(trace.run_us[job])
        if STATUSES[trace.status[job]] == FAILED:
            run_us = sum(failure.run_us for failure in trace.failures.get(job, ()))
        for key in self._keys(job):
            count, total = self._seen.get(key, (0, 0))
            self._seen[key] = (count + 1, total + run_us)

    def _means_us(self, jobs: Indices) -> Floats:
        return np.array([self._mean_us(job) for job in jobs.tolist()], dtype=np.float64)

    def _mean_us(self, job: int) -> float:
        for key in self._keys(job):
            if key in self._seen:
                count, total = self._seen[key]
                return total / count
        return float("nan")

    def _keys(self, job: int) -> tuple[Key, Key, Key]:
        model, queue = self._trace.model[job], self._trace.queue[job]
        return (model, queue), (model,), ()
