"""Odd-set cuts from the blossoms of a matching (Edmonds, J. Res. Nat. Bureau of Standards, 1965).

Where at most two jobs share, and duals of anything but jobs stay as they are, the set partitioning
is a matching, and its linear program needs an odd set for every blossom that has a dual at the
end of Edmonds' algorithm. That starts from the duals and pairs of the program without odd sets.
Nothing hangs on its being right: sets of an odd number of jobs are cuts anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.cuts.cuts_and_branching import Rank1CutRow
from optsched.eaco.cuts.matching import Matching
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.documents.arrays import Floats, Indices
    from optsched.eaco.exact.lp_solution import Point
    from optsched.eaco.exact.master import Frame
    from optsched.eaco.groups.columns import Columns

    Whole = NDArray[np.int64]


def needed(
    frame: Frame, pool: Columns, reduced: Floats, penalty: float, point: Point
) -> list[Rank1CutRow]:
    """Return cuts on odd sets of jobs that pairs at an optimum of the relaxation call for.

    Parameters
    ----------
    reduced
        Shape (columns,): reduced costs of the pool at the point's duals, without any cuts.
    penalty
        Cost of leaving a job out that may not wait.
    """
    which = np.flatnonzero(frame.copies == 1)
    number = np.full(len(frame.copies) + 1, -1)
    number[which] = np.arange(len(which))
    jobs = number[pool.members]
    many = (jobs >= 0).sum(axis=1)
    waiting = np.where(np.isfinite(frame.waiting), frame.waiting, penalty)
    alone = (waiting - point.proof.duals.jobs)[which]
    np.minimum.at(alone, jobs[many == 1].max(axis=1), reduced[many == 1])
    x = np.zeros(len(reduced))
    x[point.columns] = point.x
    pairs = np.flatnonzero(many == 2)
    sets = odd_sets(jobs[pairs].T, reduced[pairs], alone, x[pairs])
    return [Rank1CutRow(tuple(which[members].tolist()), 2) for members in sets]


def odd_sets(ends: Indices, reduced: Floats, alone: Floats, x: Floats) -> list[list[int]]:
    """Return the sets that an optimal matching needs, from duals without any on.

    Parameters
    ----------
    ends
        Shape (2, pairs): jobs, by number.
    reduced
        Shape (pairs,): reduced costs.
    alone
        Shape (jobs,): least reduced cost of anything else that a job may do.
    x
        Shape (pairs,): how much of each there is in the linear program.
    """
    costliest = float(np.abs(reduced).max(initial=0.0))
    if costliest == 0.0:
        return []
    unit = costliest / SETTINGS.odd_set_units
    slack, left = _whole(reduced / unit), _whole(alone / unit)
    rise = np.maximum(0, -left)
    for side in ends:
        np.maximum.at(rise, side, -slack // 2)
    rise += rise % 2
    slack, left = slack + rise[ends].sum(axis=0), left + rise
    near = np.argsort(np.where(x > 0, -1, slack), kind="stable")[: SETTINGS.near_pairs * len(alone)]
    while True:
        matching = Matching(ends[:, near], slack[near], left.copy())
        matching.start(x[near])
        matching.solve()
        cheap = _too_cheap(matching, ends, slack, left)
        if not len(cheap):
            return [sorted(blossom.jobs.tolist()) for blossom in matching.priced]
        near = np.append(near, cheap)


def _whole(values: Floats) -> Whole:
    """Return even whole numbers, 0 for what is nearly nothing."""
    most = 8 * SETTINGS.odd_set_units
    rounded = 2 * np.rint(np.clip(values, -most, most)).astype(np.int64)
    return np.where(np.abs(rounded) <= SETTINGS.odd_set_tight, 0, rounded)


def _too_cheap(matching: Matching, ends: Indices, slack: Whole, alone: Whole) -> Indices:
    """Return the pairs that are too cheap at the duals of a matching without them."""
    left = slack + (matching.alone - alone)[ends].sum(axis=0)
    low = np.flatnonzero(left < 0)
    within = low[matching.share_a_blossom(ends[:, low])]
    inside = np.zeros(len(alone), dtype=bool)
    for blossom in matching.priced:
        inside[:] = False
        inside[blossom.jobs] = True
        left[within] += blossom.dual * inside[ends[:, within]].all(axis=0)
    low = low[left[low] < 0]
    return np.asarray(low[np.argsort(left[low], kind="stable")[: SETTINGS.more_pairs * len(alone)]])
