"""Traces drawn from one trace, in blocks of consecutive jobs: a circular block bootstrap.

Source: Politis and Romano, "A circular block-resampling procedure for stationary data", 1992.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.rollout.engine.random_streams import stream

if TYPE_CHECKING:
    from optsched.traces.trace import Trace


def resampled(trace: Trace, block: int, seed: int) -> Trace:
    """Return a trace of as many jobs, made of blocks that are drawn from a trace.

    Each block is `block` consecutive jobs in the order of arrival, from a start that is drawn; what
    follows the last job is the first one. A job keeps all that it asks for and does, the gap in
    time before it, and the time from its submission to its deadline. Before the trace's first job,
    where there is no gap, the mean one stands. The last block is cut short.

    Parameters
    ----------
    block
        From 1 to the number of jobs. What happens within so many arrivals, such as a rush or a
        user's series of alike jobs, stays together.
    seed
        The same seed gives the same trace.

    Raises
    ------
    ValueError
        If the block is not from 1 to the number of jobs.
    """
    count = len(trace)
    if not 1 <= block <= count:
        raise ValueError(
            f"resample: blocks must be of 1 to {count} jobs, as many as there are, found {block}"
        )
    starts = stream(seed, "resample").integers(0, count, size=-(-count // block))
    jobs = ((starts[:, None] + np.arange(block)) % count).ravel()[:count]
    gaps = np.diff(trace.submit_us, prepend=trace.submit_us[:1])
    gaps[0] = round(float(gaps.sum()) / max(1, count - 1))
    submit = np.cumsum(gaps[jobs])
    submit += trace.submit_us[0] - submit[0]
    allowed = trace.deadline_us[jobs] - trace.submit_us[jobs]
    arrays: dict[str, Any] = {key: getattr(trace, key)[jobs] for key in (
        "gpus", "run_us", "status", "utilization")}  # fmt: skip
    order = jobs.tolist()
    return replace(
        trace,
        name=f"{trace.name}, resampled",
        ids=_unique([trace.ids[job] for job in order]),
        model=tuple(trace.model[job] for job in order),
        queue=tuple(trace.queue[job] for job in order),
        user=tuple(trace.user[job] for job in order),
        record={},
        submit_us=submit,
        deadline_us=np.where(trace.deadline_us[jobs] < 0, -1, submit + allowed),
        failures={n: trace.failures[job] for n, job in enumerate(order) if job in trace.failures},
        **arrays,
    )


def _unique(ids: list[str]) -> tuple[str, ...]:
    """Return ids that differ: a job that was drawn before gets a number more."""
    drawn: dict[str, int] = {}
    taken, unique = set(ids), []
    for name in ids:
        drawn[name] = drawn.get(name, 0) + 1
        told = name
        while drawn[name] > 1 and told in taken:
            told = f"{name}#{drawn[name]}"
            drawn[name] += told in taken
        taken.add(told)
        unique.append(told)
    return tuple(unique)
