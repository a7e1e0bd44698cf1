"""Alpha points of the priced problem: when each job has had a share of its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.bounds.relaxation.rows import Pricing

if TYPE_CHECKING:
    from optsched.bounds.relaxation.prices import Relaxation
    from optsched.documents.arrays import Floats


def alpha_points(relaxation: Relaxation, alpha: float) -> Floats:
    """Return by job of the relaxation when it has had a share of its time, in seconds.

    Each job takes the cheapest time for itself, at the relaxation's prices and thresholds.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha: must be from 0 to 1, found {alpha}")
    pricing = Pricing(relaxation.rows, relaxation.edges, 1.0)
    points = np.empty(len(relaxation.rows.number))
    price = np.r_[relaxation.prices, 0.0]
    rows, thresholds = relaxation.rows, relaxation.value.thresholds
    pieces: dict[int, list[int]] = {}
    for row, job in enumerate(rows.job.tolist()):
        pieces.setdefault(job, []).append(row)
    for job in range(len(points)):
        slots = np.arange(pricing.first[job], np.searchsorted(pricing.begin, thresholds[job]))
        begin = np.maximum(pricing.begin[slots], rows.release[job])
        most, taken = pricing.end[slots] - begin, np.zeros(len(slots))
        for row in pieces[job]:
            depth = thresholds[job] - begin - price[slots] * rows.width[row] * rows.length[job]
            taken += rows.rate[row] * np.minimum(np.maximum(depth, 0), most)
        upto = np.cumsum(taken)
        if not len(slots):
            points[job] = rows.release[job]
            continue
        goal = alpha * upto[-1]
        n = min(int(np.searchsorted(upto, goal)), len(slots) - 1)
        points[job] = begin[n] + max(0.0, goal - (upto[n] - taken[n]))
    return points
