"""GPUs change hands, all that a decision wants or none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from optsched.rollout.engine.rules.decision_rules import Changes
    from optsched.rollout.engine.state import State
    from optsched.rollout.physics.physics import Physics


class Exchange:
    """Who is on which GPU after a decision; what jobs hold and how they get on is told later.

    To do it shows whether it can be done, for less than it takes to know beforehand.
    """

    def __init__(self, state: State, physics: Physics, asks_physics: bool) -> None:
        self.state, self.physics, self.asks_physics = state, physics, asks_physics

    def is_done(self, changes: Changes) -> bool:
        """Let GPUs change hands, where no node is closed and nobody is tried; all leave first.

        Returns
        -------
        bool
            Whether all may have what they want: no GPU twice, none with jobs that do not fit beside
            each other. If not, nothing is changed.
        """
        if self.asks_physics:
            return self._is_shared(changes)
        state = self.state
        jobs_on, free_of, node_of = state.jobs_on, state.free_of, state.cluster.node_of
        gpus_of, left, come = state.gpus_of, 0, 0
        leaving: list[Collection[int]] = [gpus_of[job] for job in changes.stops]
        leaving += [leaves for _, _, _, leaves in changes.places]
        for gpus in leaving:
            left += len(gpus)
            for gpu in gpus:
                jobs_on[gpu] = ()
                free_of[node_of[gpu]] += 1
        for job, _, comes, _ in changes.places:
            alone = (job,)
            come += len(comes)
            for gpu in comes:
                if jobs_on[gpu]:
                    self._take_back(changes)
                    return False
                jobs_on[gpu] = alone
                free_of[node_of[gpu]] -= 1
        state.busy_gpus += come - left
        return True

    def _take_back(self, changes: Changes) -> None:
        """Undo an exchange in which all have left their GPUs and some have come to others."""
        state = self.state
        jobs_on, free_of, node_of = state.jobs_on, state.free_of, state.cluster.node_of
        for job, _, comes, _ in changes.places:
            for gpu in comes:
                if jobs_on[gpu] == (job,):
                    jobs_on[gpu] = ()
                    free_of[node_of[gpu]] += 1
        leaving = [(job, state.gpus_of[job]) for job in changes.stops]
        leaving += [(job, tuple(leaves)) for job, _, _, leaves in changes.places]
        for job, gpus in leaving:
            for gpu in gpus:
                jobs_on[gpu] = (job,)
                free_of[node_of[gpu]] -= 1

    def _is_shared(self, changes: Changes) -> bool:
        """Let GPUs with several jobs change hands; who is moved comes anew to those that he keeps.

        Jobs that are moved come before those that start.
        """
        state, fits = self.state, self.physics.fits
        jobs_on, gpus_of = state.jobs_on, state.gpus_of
        leaving = [*changes.stops, *(job for job, _, _, _ in changes.places)]
        old = [(job, gpus_of[job]) for job in leaving if gpus_of[job]]
        before: dict[int, tuple[int, ...]] = {}
        for job, gpus in old:
            for gpu in gpus:
                others = jobs_on[gpu]
                before.setdefault(gpu, others)
                jobs_on[gpu] = tuple([other for other in others if other != job])
        can = True
        for job, gpus, _, _ in sorted(changes.places, key=lambda place: not gpus_of[place[0]]):
            alone = (job,)
            for gpu in gpus:
                others = jobs_on[gpu]
                before.setdefault(gpu, others)
                can &= job not in others
                jobs_on[gpu] = others + alone
        if can and all(fits(job, gpus, state) is None for job, gpus, _, _ in changes.places):
            free_of, node_of = state.free_of, state.cluster.node_of
            for gpu, others in before.items():
                more = (not jobs_on[gpu]) - (not others)
                free_of[node_of[gpu]] += more
                state.busy_gpus -= more
            return True
        for gpu, others in before.items():
            jobs_on[gpu] = others
        return False
