"""Diving over listed groups with cuts (Sadykov et al., INFORMS Journal on Computing 31, 2019).

From a fractional point to a plan: the groups that the point has most of are fixed, groups of the
jobs that are left are priced, and so on. A step takes a few pivots of the dual simplex method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.primal.diving import fit, held
from optsched.eaco.settings import SETTINGS
from optsched.mip.column_generation import Priced, generate

if TYPE_CHECKING:
    from optsched.documents.arrays import Floats, Indices
    from optsched.eaco.exact.relaxation import Relaxation, RowDuals


def dive(relaxation: Relaxation) -> tuple[Indices, Floats] | None:
    """Return groups of the pool and how often each is in a plan; None if some job is left out.

    A dive that leaves jobs out is followed by one that fixes more or fewer groups in each step. The
    bounds of the program's rows stay what they are, and so do those of its columns in the end.
    """
    dives = (_dived(relaxation, surest) for surest in SETTINGS.dive_surest)
    return next((dived for dived in dives if dived is not None), None)


def _dived(relaxation: Relaxation, sure: float) -> tuple[Indices, Floats] | None:
    """Return the same of one dive, in which so much of a group is taken for all of it."""
    fixed = np.zeros(len(relaxation.pool.cost))
    try:
        for _ in range(SETTINGS.dive_steps):
            x = _with_fixed(relaxation, fixed)
            if x is None:
                return None
            if (np.abs(x - np.rint(x)) <= SETTINGS.whole).all():
                chosen = np.flatnonzero(np.rint(x))
                return chosen, np.rint(x[chosen])
            share = x - fixed
            surest = share >= min(sure, share.max())
            fixed = np.where(surest, np.ceil(x - SETTINGS.whole), np.maximum(fixed, np.floor(x)))
    finally:
        relaxation.fix(np.zeros(len(fixed)))
    return None


def _with_fixed(relaxation: Relaxation, fixed: Floats) -> Floats | None:
    """Return how much there is of each group where some are fixed; None if a rule is broken."""
    pool, copies = relaxation.pool, relaxation.frame.copies
    which = np.flatnonzero(fixed)
    left = copies - held(pool.members[which], fixed[which], len(copies))
    fits = fit(pool.members, left)
    relaxation.fix(fixed)

    def price(duals: RowDuals) -> Priced[RowDuals, Indices]:
        return relaxation.priced(duals, fits)

    solved = generate(relaxation, price, rounds=SETTINGS.dive_rounds).solved
    if solved is None or relaxation.master.missed(solved) > SETTINGS.missed_count:
        return None
    x = np.zeros(len(fixed))
    x[relaxation.program] = relaxation.amounts(solved)
    return x
