"""Random numbers of a rollout: one stream for each purpose, all from one seed."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def stream(seed: int, name: str, *numbers: int) -> np.random.Generator:
    """Return the generator of a named purpose, such as ``stream(seed, "events", node)``.

    Streams are independent of each other and of the order in which they are asked for, so that a
    draw for one purpose never moves those for another.

    Parameters
    ----------
    seed
        Of the rollout; not negative.
    name, numbers
        What the numbers are for: a word, and for example the number of a node or job.
    """
    import numpy as np

    key = (zlib.crc32(name.encode()), *numbers)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
