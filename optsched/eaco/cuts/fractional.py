"""The part of a point that is not whole, where cuts are sought."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.documents.arrays import Bools, Floats, Indices


class FractionalPart(NamedTuple):
    """Classes of jobs that are in a column which is not whole, and all columns that hold such.

    Attributes
    ----------
    loose
        Shape (all columns,): whether there is a fraction of the column.
    touched
        Shape (classes of the part,): which classes these are.
    held
        Shape (columns of the part, classes of the part): jobs.
    x
        Shape (columns of the part,): how much of each.
    """

    loose: Bools
    touched: Indices
    held: Floats
    x: Floats


def fractional_part(held: Floats, x: Floats) -> FractionalPart:
    """Return the part of a point that is not whole.

    Parameters
    ----------
    held
        Shape (columns, classes): jobs of each class in the columns that are not zero.
    x
        Shape (columns,): how much of each.
    """
    loose = np.abs(x - np.rint(x)) > SETTINGS.whole
    touched = np.flatnonzero(held[loose].any(axis=0))
    near = held[:, touched].any(axis=1)
    return FractionalPart(loose, touched, held[near][:, touched], x[near])
