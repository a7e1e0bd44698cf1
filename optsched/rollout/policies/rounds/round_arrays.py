"""What compiled rounds know, as arrays: the cluster, the jobs, and what is free."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.greedy.pal_rules import multilevel_rule, pal_rule, pm_first_rule
from optsched.rollout.policies.rounds.compiled_places import (
    MULTILEVEL,
    NOBODY,
    NONE,
    PAL,
    PM_FIRST,
    WORD,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from optsched.documents.arrays import Floats, Indices, Integers
    from optsched.rollout.physics.cluster import Cluster

    Shorts = NDArray[np.int16]
    Bytes = NDArray[np.uint8]

RULES = {pm_first_rule: PM_FIRST, pal_rule: PAL, multilevel_rule: MULTILEVEL}
MOST_COUNTS = 1 << 26
"""Of classes, bins and nodes."""


class RoundArrays(NamedTuple):
    """Arrays by GPU, node, job or class.

    Attributes
    ----------
    rule
        `PM_FIRST`, `PAL` or `MULTILEVEL`.
    first
        The first GPU of each node, and the number of all.
    node_of
        By GPU.
    bin_of
        By class and GPU; better bins come first.
    ranked
        By class: GPUs, those of each node together, by their bins.
    values
        By class and bin.
    size, group, near, far
        By job: its GPUs, its class, and its penalties in a node and across nodes.
    stays
        By job, a mark that is 0 between rounds.
    free
        By GPU.
    known
        By class and GPU: what was free when the tables that follow were last right.
    counts
        By class, bin and node: free GPUs.
    totals
        By class and bin.
    nth
        By class, n and node: the bin of the n-th best free GPU, `NONE` if there is none; for n = 0
        how many there are. PM-First does without it.
    holder, next_holder
        By GPU, a job or `NOBODY`.
    taken, moved, moved_gpus
        For answers: of a job, jobs that move, and GPUs of one after the other.
    """

    rule: int
    first: Indices
    node_of: Indices
    bin_of: Shorts
    ranked: Indices
    values: Floats
    size: Integers
    group: Integers
    near: Floats
    far: Floats
    stays: Bytes
    free: Bytes
    known: Bytes
    counts: Shorts
    totals: Integers
    nth: Shorts
    holder: Integers
    next_holder: Integers
    taken: Indices
    moved: Integers
    moved_gpus: Indices

    @classmethod
    def of(cls, cluster: Cluster, scores: Mapping[str, Floats], rule: int) -> RoundArrays | None:
        """Return arrays without jobs, where nobody holds a GPU; None if they would be too large."""
        classes, gpus = len(scores), cluster.gpus
        binned = [np.unique(row, return_inverse=True) for row in scores.values()]
        bins = max(len(values) for values, _ in binned)
        if classes * bins * cluster.nodes > MOST_COUNTS or max(bins, cluster.largest) >= NONE - 1:
            return None
        values = np.zeros((classes, bins))
        for n, (of_class, _) in enumerate(binned):
            values[n, : len(of_class)] = of_class
        node_of = np.array(cluster.node_of, dtype=np.intp)
        padded = -(-gpus // WORD) * WORD
        nth = np.full((classes, cluster.largest + 2, cluster.nodes), NONE)
        nth[:, 0] = 0
        nobody = np.full(gpus, NOBODY)
        return cls(
            rule=rule,
            first=np.array([*cluster.first, gpus], dtype=np.intp),
            node_of=node_of,
            bin_of=np.array([ranks for _, ranks in binned], dtype=np.int16),
            ranked=np.array([np.lexsort((ranks, node_of)) for _, ranks in binned]),
            values=values,
            size=np.zeros(0, dtype=np.int64),
            group=np.zeros(0, dtype=np.int64),
            near=np.zeros(0),
            far=np.zeros(0),
            stays=np.zeros(0, dtype=np.uint8),
            free=np.zeros(padded, dtype=np.uint8),
            known=np.zeros((classes, padded), dtype=np.uint8),
            counts=np.zeros((classes, bins, cluster.nodes), dtype=np.int16),
            totals=np.zeros((classes, bins), dtype=np.int64),
            nth=nth,
            holder=nobody,
            next_holder=nobody.copy(),
            taken=np.zeros(gpus, dtype=np.intp),
            moved=np.zeros(gpus, dtype=np.int64),
            moved_gpus=np.zeros(gpus, dtype=np.intp),
        )

    def with_room(self, jobs: int) -> RoundArrays:
        """Return arrays that have a place for so many jobs, and for as many again if it is new."""
        if jobs <= len(self.size):
            return self
        more = 2 * jobs - len(self.size)
        whole, real = np.zeros(more, dtype=np.int64), np.zeros(more)
        return self._replace(
            size=np.concatenate([self.size, whole]),
            group=np.concatenate([self.group, whole]),
            near=np.concatenate([self.near, real]),
            far=np.concatenate([self.far, real]),
            stays=np.zeros(2 * jobs, dtype=np.uint8),
        )

    def enrol(self, job: int, size: int, group: int, penalty: Sequence[float]) -> None:
        """Take note of what a job is."""
        self.size[job], self.group[job] = size, group
        self.near[job], self.far[job] = penalty[0], penalty[-1]
