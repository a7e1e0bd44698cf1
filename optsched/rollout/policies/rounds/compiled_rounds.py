"""Rounds of the rules that look at bins of GPUs, placed by what numba has compiled."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

from optsched.rollout.policies.job_orders import Fifo
from optsched.rollout.policies.rounds.active_jobs import ActiveJobs
from optsched.rollout.policies.rounds.compiled_places import NOBODY, place_round

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optsched.documents.arrays import Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Order
    from optsched.rollout.policies.placement_round import ClusterData, GangJob
    from optsched.rollout.policies.rounds.round_arrays import RoundArrays

    Gpus = tuple[int, ...]


class CompiledRounds(ActiveJobs):
    """Jobs that are placed on arrays, all those behind the first one that is another than before.

    Parameters
    ----------
    arrays
        Of the cluster, without jobs.
    penalties
        By model, one for each level; None for PM-First.
    """

    def __init__(
        self,
        view: View,
        world: ClusterData,
        arrays: RoundArrays,
        penalties: Mapping[str, tuple[float, ...]] | None,
        order: Order,
        backfill: bool,
    ) -> None:
        self._arrays, self._penalties = arrays, penalties
        self._group = {name: n for n, name in enumerate(world.classes)}
        self._last: Integers = np.zeros(0, dtype=np.int64)  # NOBODY for one that has lost its GPUs
        # One queue: who is admitted is told by it, and what is compiled parts the classes.
        super().__init__(view, world, order, backfill, by_class=False, queue=lambda: array("q"))
        for job, gpus in self.held.items():
            arrays.holder[list(gpus)] = job

    def release(self, job: int) -> None:
        """Let a job hold GPUs no more."""
        gpus = self.held.pop(job, None)
        if gpus is not None:
            held, holder = np.array(gpus), self._arrays.holder
            held = held[holder[held] == job]  # of one that is stopped others may have some
            holder[held] = NOBODY
            self._last[self._last == job] = NOBODY

    def _placed(self, view: View) -> tuple[Integers, dict[int, Gpus]]:
        is_fifo = type(self.order) is Fifo
        jobs = self._queues[0] if is_fifo else self.order.sort(view, list(self.active))
        ordered = np.array(jobs, dtype=np.int64)
        self._last, count = place_round(self._arrays, ordered, self.backfill, self._last)
        return self._last, self._moved(count) if count else {}

    def _moved(self, count: int) -> dict[int, Gpus]:
        arrays = self._arrays
        jobs = arrays.moved[:count]
        ends = arrays.size[jobs].cumsum().tolist()
        gpus, begin = arrays.moved_gpus[: ends[-1]].tolist(), 0
        moved: dict[int, Gpus] = {}
        for job, end in zip(jobs.tolist(), ends, strict=True):
            moved[job] = tuple(gpus[begin:end])
            begin = end
        return moved

    def _enter(self, job: int, gang: GangJob) -> None:
        super()._enter(job, gang)
        self._arrays = self._arrays.with_room(job + 1)
        penalties = (1.0,) if self._penalties is None else self._penalties[gang.model]
        self._arrays.enrol(job, gang.gpus, self._group[gang.application_class], penalties)
