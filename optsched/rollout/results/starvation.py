"""Jobs that a policy would never have started."""

from __future__ import annotations

import warnings
from multiprocessing import parent_process
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.results.record import ACTIVE
from optsched.traces.trace import US

if TYPE_CHECKING:
    from optsched.rollout.results.record import Record


def starvation(record: Record) -> str:
    """Return a line on the jobs that were left when nothing could happen any more; "" if none."""
    left = np.flatnonzero(record.jobs.outcome == ACTIVE)
    if not record.is_starved or not len(left):
        return ""
    trace, first = record.trace, int(left[0])
    size = int(trace.gpus[first])
    asks = f"{size} GPU{'s' if size > 1 else ''}"
    queue = f" in queue '{trace.queue[first]}'" if trace.queue[first] else ""
    return (
        f"policy '{record.policy}' leaves {len(left):,} of {len(trace):,} jobs waiting for ever: "
        f"nothing runs, and nothing else can happen after {record.end_us / US:,.0f} s; "
        f"the first, '{trace.ids[first]}', asks for {asks}{queue}"
    )


def tell_starvation(record: Record) -> None:
    """Warn of jobs that wait for ever; in a worker nothing is said, as nobody reads it there."""
    text = starvation(record)
    if text and parent_process() is None:
        warnings.warn(text, RuntimeWarning, stacklevel=3)
