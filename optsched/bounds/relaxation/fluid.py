"""The fluid schedule of mean busy times: cheapest work first; its marginal jobs give prices."""

from __future__ import annotations

from bisect import insort
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from optsched.bounds.relaxation.rows import Rows
    from optsched.documents.arrays import Floats


def fluid_prices(rows: Rows, edges: Floats, capacity: float) -> Floats:
    """Return prices of slots by the duals of the fluid schedule, per GPU and second.

    In each slot, pieces of jobs run at full speed in the order of 1 / (length x width) until the
    GPUs are used up: with gangs as large as the cluster that is optimal for mean busy times
    (Goemans, SODA 1997). The last piece to run has the price at which it is indifferent.
    """
    marginal = _marginal_rows(rows, edges, capacity)
    prices = np.zeros(len(edges) - 1)
    known: dict[int, float] = {}
    middle = (edges[1:] + edges[:-1]) / 2
    following = middle[-1]
    price = 0.0
    for slot in range(len(prices) - 1, -1, -1):
        row = marginal[slot]
        if row < 0:
            price, following = 0.0, edges[slot]
            continue
        job, width = int(rows.job[row]), rows.width[row]
        slope = 1 / (rows.length[job] * width)
        if row in known:
            price = max(0.0, known[row] - slope * middle[slot])
        else:
            price += slope * (following - middle[slot])
            known[row] = price + slope * middle[slot]
        prices[slot], following = price, middle[slot]
    return prices


def _marginal_rows(rows: Rows, edges: Floats, capacity: float) -> list[int]:
    """Return by slot the piece that gets the last of its GPUs, -1 where some are left."""
    order = np.argsort(rows.release, kind="stable").tolist()
    release, length = rows.release.tolist(), rows.length.tolist()
    left = list(length)
    of_job: list[list[int]] = [[] for _ in left]
    for row, job in enumerate(rows.job.tolist()):
        of_job[job].append(row)
    key = (rows.length[rows.job] * rows.width).tolist()
    rate, width, job_of = rows.rate.tolist(), rows.width.tolist(), rows.job.tolist()
    active: list[tuple[float, int]] = []
    marginal, coming = [], 0
    for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        while coming < len(order) and release[order[coming]] < end:
            for row in of_job[order[coming]]:
                insort(active, (key[row], row))
            coming += 1
        free, last, done = capacity * (end - begin), -1, False
        for _, row in active:
            job = job_of[row]
            span = end - max(begin, release[job])
            amount = min(left[job], rate[row] * span)
            if amount * width[row] >= free:
                left[job] -= free / width[row]
                last = row
                break
            free -= amount * width[row]
            left[job] -= amount
            done |= left[job] <= 1e-12 * length[job]
        marginal.append(last)
        if done:
            owners = [job_of[row] for _, row in active]
            active = list(compress(active, (left[n] > 1e-12 * length[n] for n in owners)))
    return marginal
