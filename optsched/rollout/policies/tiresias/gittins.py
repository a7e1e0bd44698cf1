"""Tiresias where the distribution of service is known: Gittins indices in place of queues' order.

Source: Gu et al., Tiresias, NSDI 2019, section 3.2.2; SymbioticLab/Tiresias, schedule "gittins".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.tiresias.queues import Tiresias
from optsched.traces.trace import FAILED, STATUSES

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats, Integers
    from optsched.traces.trace import Trace


def services_us(trace: Trace) -> Floats:
    """Return the GPU-microseconds that each job needs; of one that fails, what its attempts take.

    Returns
    -------
    numpy.ndarray
        Shape (jobs,), ascending.
    """
    run_us = trace.run_us.astype(float)
    for job in np.flatnonzero(trace.status == STATUSES.index(FAILED)).tolist():
        run_us[job] = sum(failure.run_us for failure in trace.failures.get(job, ()))
    return np.sort(run_us * trace.gpus)


@dataclass(frozen=True)
class GittinsIndex:
    """The index of a job by its attained service: how likely it ends soon, for what it will take.

    G(a) = P(a < S <= a + delta | S > a) / E(min(S - a, delta) | S > a), of services S.

    Attributes
    ----------
    services
        Shape (n,), ascending, of the same unit as `delta`.
    delta
        The service quantum.
    """

    services: Floats
    delta: float

    @cached_property
    def _sums(self) -> Floats:
        return np.concatenate([np.zeros(1), np.cumsum(self.services)])

    def of(self, attained: Integers | Floats) -> Floats:
        """Return the index for each attained service; 0 where no job needs more."""
        sums = self._sums
        first = np.searchsorted(self.services, attained, side="right")
        last = np.searchsorted(self.services, attained + self.delta, side="right")
        inside, beyond = last - first, len(self.services) - last
        expected = sums[last] - sums[first] - inside * attained + beyond * self.delta
        index: Floats = np.divide(inside, expected, out=np.zeros(len(attained)), where=expected > 0)
        return index


@dataclass
class Gittins(Tiresias):
    """Queues by attained GPU-time; in all but the last the largest index first.

    Parameters
    ----------
    index
        What `prepare` makes of a trace.
    """

    index: GittinsIndex | None = field(default=None, init=False, repr=False, compare=False)

    def prepare(self, trace: Trace) -> None:
        """Take the distribution of service from a trace; the quantum is the first threshold."""
        self.index = GittinsIndex(services_us(trace), float(self._limits[0]))

    def urgency(self, served: Floats, queues: Integers) -> Floats | None:
        """Return what comes before the first start within a queue, the least first."""
        if self.index is None:
            return None
        urgency, has_index = np.zeros(len(served)), queues < len(self._limits)
        urgency[has_index] = -self.index.of(served[has_index])
        return urgency
