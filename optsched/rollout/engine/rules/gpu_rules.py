"""Whether jobs may hold the GPUs that a decision gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.engine.decision import InvalidDecision, whole_numbers
from optsched.rollout.engine.state import READY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.rollout.engine.rules.decision_rules import Changes
    from optsched.rollout.engine.state import Relocation, State
    from optsched.rollout.physics.physics import Physics
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

    Gpus = tuple[int, ...]

NARROW = 8
"""So many GPUs are sooner all left and come to than those are found that are kept."""


class GpuRules:
    """The rules on which jobs are on which GPUs; when they return, nothing is changed."""

    def __init__(self, scenario: Scenario, trace: Trace, state: State, physics: Physics) -> None:
        self.trace, self.state, self.physics = trace, state, physics
        self.is_rented = scenario.rented is not None

    def place(self, job: int, gpus: Iterable[int], are_checked: bool) -> Relocation:
        """Return the GPUs of a job in ascending order, if they exist and can be used.

        Parameters
        ----------
        are_checked
            Whether they are to differ, too, and to be free of those that it keeps. Otherwise
            `Exchange` tells whether they differ.
        """
        state = self.state
        old, chosen = state.gpus_of[job], whole_numbers(gpus)
        width, held = len(chosen), len(old)
        if chosen and chosen == old[:width]:
            return job, chosen, (), old[width:]
        if not chosen:
            raise InvalidDecision("gang-size", f"{self.named(job)} is placed on no GPU")
        has_closed = self.is_rented or state.closed
        if not has_closed and chosen[0] >= 0 and chosen[-1] < len(state.jobs_on):  # mostly
            if width == 1 and held < 2:
                return job, chosen, chosen, old
            if width == held + 1 and old[-1] < chosen[-1] and old == chosen[:held]:
                return job, chosen, chosen[held:], ()
        chosen = tuple(sorted(chosen))
        if chosen[0] < 0 or chosen[-1] >= len(state.jobs_on):
            text = f"{self.named(job)} gets {chosen}; there are {len(state.jobs_on)} GPUs"
            raise InvalidDecision("unknown-gpu", text)
        if not (are_checked or has_closed) and (width <= NARROW or not held) and chosen != old:
            return job, chosen, chosen, old
        comes = set(chosen)
        if len(comes) != width:
            raise InvalidDecision("repeated-gpu", f"{self.named(job)} gets a GPU twice: {chosen}")
        comes.difference_update(old)
        if has_closed:
            node_of, status = state.cluster.node_of, state.node_state
            for gpu in sorted(comes):
                if status[node_of[gpu]] != READY:
                    text = f"{self.named(job)} gets GPU {gpu}, but node {node_of[gpu]} is not ready"
                    raise InvalidDecision("node-not-ready", text)
        kept = width - len(comes)
        return job, chosen, comes, set(old).difference(chosen) if 0 < kept < held else old[kept:]

    def check_free(self, changes: Changes) -> None:
        """Check that no GPU is wanted twice, or held by a job that keeps it.

        Raises
        ------
        InvalidDecision
            If one is.
        """
        state = self.state
        leaving = {*changes.stops, *(job for job, _, _, _ in changes.places)}
        taken: set[int] = set()
        for job, gpus in changes.wanted:
            for gpu in gpus:
                others = state.jobs_on[gpu]
                if gpu in taken or (others and others[0] not in leaving):
                    text = f"{self.named(job)} gets GPU {gpu}, which another job holds"
                    raise InvalidDecision("overcommit", text)
            taken.update(gpus)

    def check_sharing(self, changes: Changes) -> None:
        """Put the jobs where the decision wants them, look, and put all back.

        Raises
        ------
        InvalidDecision
            If some do not fit beside each other.
        """
        state = self.state
        wanted = changes.wanted
        leaving = [*changes.stops, *(job for job, _, _, _ in changes.places)]
        old = [(job, state.gpus_of[job]) for job in leaving if state.gpus_of[job]]
        touched = {gpu for _, gpus in (*old, *wanted) for gpu in gpus}
        before = [(gpu, state.jobs_on[gpu]) for gpu in sorted(touched)]
        for job, _ in old:
            state.detach(job)
        for job, gpus in wanted:
            state.attach(job, gpus)
        broken = self._first_infeasible(wanted)
        for job, _ in wanted:
            state.detach(job)
        for job, gpus in old:
            state.attach(job, gpus)
        for gpu, jobs in before:
            state.jobs_on[gpu] = jobs
        if broken is not None:
            raise broken

    def _first_infeasible(self, wanted: Iterable[tuple[int, Gpus]]) -> InvalidDecision | None:
        for job, gpus in wanted:
            rule = self.physics.fits(job, gpus, self.state)
            if rule is not None:
                return InvalidDecision(rule, f"{self.named(job)} does not fit on GPUs {gpus}")
        return None

    def named(self, job: int) -> str:
        """Return how a job is named in a message."""
        return f"job {job} ('{self.trace.ids[job]}')"
