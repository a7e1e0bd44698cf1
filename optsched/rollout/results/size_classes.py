"""Classes of the sizes of gangs, as in figures 2 and 3 and table 2 of ATC'19."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from optsched.documents.arrays import Integers
    from optsched.traces.trace import Trace

SIZES = ((1, "1 GPU"), (4, "2 to 4 GPUs"), (8, "5 to 8 GPUs"))
LARGER = "more than 8 GPUs"


def size_class(gpus: int) -> str:
    """Return the class of size of a gang, as in figure 2 of ATC'19."""
    return next((name for most, name in SIZES if gpus <= most), LARGER)


def by_size(trace: Trace) -> dict[str, Integers]:
    """Return the numbers of the jobs of each class."""
    classes = np.array([size_class(int(gpus)) for gpus in trace.gpus])
    names = [*(name for _, name in SIZES), LARGER]
    return {name: np.flatnonzero(classes == name) for name in names}
