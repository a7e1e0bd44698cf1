"""First in, first out, on so many GPUs: the baseline of the policies that choose widths."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.fixed_capacity import SharedOptions, SharedOut
from optsched.rollout.policy_options import takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.rollout.engine.decision import Rent
    from optsched.rollout.engine.view import View
    from optsched.rollout.scenario import Scenario


class Requested(SharedOut):
    """What each job asks for, first in, first out; a job that does not fit holds up the others.

    Running jobs keep what they have, so only the head of the queue is looked at.
    """

    def __init__(self, name: str, scenario: Scenario, options: SharedOptions) -> None:
        super().__init__(name, scenario, options)
        self._queue: list[int] | None = None  # active jobs without GPUs, in order; None: not known

    def take_note(self, view: View) -> bool:
        """Take note of what happened; tell whether anything did that concerns the shares."""
        is_changed = super().take_note(view)
        if self._queue is None:
            self._queue = [job for job in self.active if job not in self.held.of]
        else:
            for job in view.arrived:
                insort(self._queue, job)
        return is_changed

    def shares(self, view: View, jobs: Sequence[int], gpus: int) -> dict[int, int]:
        """Return widths for waiting jobs, in the order of submission."""
        shares = {}
        for job in jobs:
            width = view.demand(job)
            if width > gpus:
                break
            shares[job] = width
            gpus -= width
        return shares

    def share_out(self, view: View, gpus: int, rent: Rent) -> Decision:
        """Start waiting jobs on the GPUs that no running job has."""
        queue = self._queue or []
        starts = self.shares(view, queue, gpus - self.held.taken)
        if not starts:
            return NOTHING if rent is None else Decision(rent=rent)
        places = self.placing.place(view, self.held, starts)
        queue[: len(starts)] = [job for job in starts if job not in self.held.of]
        return Decision(place=places, rent=rent)


@takes(SharedOptions)
def fifo_requested(scenario: Scenario, seed: int, options: SharedOptions) -> Requested:
    """Give jobs what they ask for, first in, first out."""
    return Requested("fifo-requested", scenario, options)
