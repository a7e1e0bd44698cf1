"""Rounds in which every job may move: who is admitted, and in which order."""

from __future__ import annotations

from abc import abstractmethod
from itertools import chain
from typing import TYPE_CHECKING

from optsched.rollout.policies.job_orders import Fifo
from optsched.rollout.policies.rounds.active_jobs import ActiveJobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from optsched.rollout.engine.view import View

    Gpus = tuple[int, ...]


class AdmittedJobs(ActiveJobs):
    """Jobs that are placed in the order in which they choose, by class if they have queues so."""

    def _placed(self, view: View) -> tuple[list[int], dict[int, Gpus]]:
        chosen = self._chosen(view)
        return chosen, self.placed_anew(chosen)

    @abstractmethod
    def placed_anew(self, chosen: list[int]) -> dict[int, Gpus]:
        """Place jobs in their order, and return those that get other GPUs than they hold."""

    def _chosen(self, view: View) -> list[int]:
        """Return the jobs that are admitted, the one that chooses first first."""
        room = len(self.world.node_of)
        if self.wanted <= room and type(self.order) is Fifo:
            return list(chain.from_iterable(self._queues))
        chosen = self.order.sort(view, self._in_order())
        if self.wanted > room:
            active = self.active
            chosen = fitting(chosen, lambda job: active[job].gpus, room, self.backfill)
        if self._rank:
            chosen.sort(key=self._rank_of.__getitem__)
        return chosen

    def _in_order(self) -> Sequence[int]:
        """Return all jobs; ascending, as orders begin with them, if there is one class."""
        return self._queues[0] if len(self._queues) == 1 else list(self.active)


def fitting(
    jobs: Iterable[int], width: Callable[[int], int], room: int, backfill: bool
) -> list[int]:
    """Return the first jobs of an order whose gangs fit together on so many GPUs.

    Parameters
    ----------
    backfill
        Whether jobs that fit may overtake a gang that does not.
    """
    found = []
    for job in jobs:
        size = width(job)
        if size <= room:
            room -= size
            found.append(job)
            if not room:
                break
        elif not backfill:
            break
    return found
