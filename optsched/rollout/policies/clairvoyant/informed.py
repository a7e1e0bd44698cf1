"""Foresight that is told which jobs come, and how long all of them are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.foresight.foresight import Coming, Foresight, ForesightOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats
    from optsched.rollout.engine.view import View
    from optsched.traces.trace import Trace

PAIRS = 2_000_000
"""Jobs that are simulated at a decision x jobs of the trace, for decisions grow with these."""


class Informed(Foresight):
    """Orders jobs by the best list of a local search that knows all jobs of a trace.

    Of long traces it looks at the next ones alone: as many as `most_jobs` with those at hand.
    """

    def __init__(self, trace: Trace) -> None:
        simulated = min(1_000_000, PAIRS // max(1, len(trace)))
        super().__init__(ForesightOptions(simulated=simulated, expects_s=0.0))
        self.trace = trace

    def _left_us(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return what jobs still need in truth."""
        done = view.done_us(jobs)
        left: Floats = np.maximum(1.0, self.trace.run_us[list(jobs)] - done)
        return left

    def _coming(self, view: View, at_hand: int) -> list[Coming]:
        """Return the jobs that come next."""
        trace, now = self.trace, view.now_us
        later = np.flatnonzero(trace.submit_us > now)[: self.options.most_jobs - at_hand]
        return [
            Coming(job, width, trace.model[job], run, moment - now)
            for job, width, run, moment in zip(
                later.tolist(),
                trace.gpus[later].tolist(),
                trace.run_us[later].tolist(),
                trace.submit_us[later].tolist(),
                strict=True,
            )
        ]
