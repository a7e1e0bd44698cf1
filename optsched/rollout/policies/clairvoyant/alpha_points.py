"""Orders of jobs from a relaxation: when a share of each job's work is done in it.

Source: Goemans, Queyranne, Schulz, Skutella and Wang, "Single machine scheduling with release
dates", SIAM Journal on Discrete Mathematics 2002: the relaxation by mean busy times is solved by
the preemptive schedule with the smallest work per weight first, and lists by alpha-points of that
are good schedules. Here work is GPU-time, and a gang takes as many GPUs as are left, up to its
width: that no gang may run with fewer is relaxed.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.traces.trace import Trace

    Piece = tuple[float, float, int]  # from, to, GPUs


def relaxed_schedule(trace: Trace, gpus: int) -> list[list[Piece]]:
    """Return for each job when it has how many GPUs if gangs may be cut, least GPU-time first."""
    submit, widths = trace.submit_us.tolist(), trace.gpus.tolist()
    left = [float(run) for run in (trace.run_us * trace.gpus).tolist()]
    pieces: list[list[Piece]] = [[] for _ in left]
    keys = [(work, job) for job, work in enumerate(left)]
    active: list[tuple[float, int]] = []
    now, come = 0.0, 0
    while active or come < len(left):
        if not active:
            now = max(now, float(submit[come]))
        while come < len(left) and submit[come] <= now:
            heappush(active, keys[come])
            come += 1
        runs, spare = [], gpus
        while active and spare:
            key = heappop(active)
            share = min(widths[key[1]], spare)
            spare -= share
            runs.append((key, share))
        lasts = min((left[key[1]] / share for key, share in runs), default=0.0)
        until = now + lasts
        if come < len(left):
            until = min(until, float(submit[come]))
        for key, share in runs:
            job, span = key[1], until - now
            pieces[job].append((now, until, share))
            left[job] -= span * share
            if left[job] > 1e-6 * key[0]:
                heappush(active, key)
        now = until
    return pieces


def alpha_order(pieces: Sequence[Sequence[Piece]], alpha: float) -> list[int]:
    """Return the jobs by the moment at which a share of each is done in a relaxed schedule."""
    moments = []
    for parts in pieces:
        need = alpha * sum((until - since) * gpus for since, until, gpus in parts)
        moment = parts[0][0] if parts else 0.0
        for since, until, gpus in parts:
            moment = min(until, since + need / gpus)
            need -= (until - since) * gpus
            if need <= 0:
                break
        moments.append(moment)
    return [int(job) for job in np.argsort(moments, kind="stable")]
