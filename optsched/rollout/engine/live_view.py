"""The view that the engine hands to policies: arrays are built when they are first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.state import PPB, READY, WAITING
from optsched.rollout.physics.speeds import Slowdowns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.engine.accounting import Accounts
    from optsched.rollout.engine.rented_nodes import Fleet
    from optsched.rollout.engine.state import State
    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.physics.estimates import Oracle
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace


NEVER = 1 << 62


class LiveView(Restorable):
    """Implements `View`; one object serves all calls of a rollout.

    Attributes
    ----------
    first_look_us
        When a policy first asked how far jobs are, by which the truth about speeds shows.
    """

    changing = (
        *("now_us", "is_epoch", "spent_gpu_us", "billed_usd"),
        *("arrived", "ended", "failed", "advanced"),
    )

    def __init__(
        self,
        scenario: Scenario,
        cluster: Cluster,
        trace: Trace,
        state: State,
        accounts: Accounts,
        fleet: Fleet,
        oracle: Oracle,
    ) -> None:
        self.scenario, self.cluster = scenario, cluster
        self.now_us = 0
        self.is_epoch = False
        self.spent_gpu_us = 0
        self.billed_usd = 0.0
        self.first_look_us = NEVER
        self.arrived: Sequence[int] = []
        self.ended: Sequence[int] = []
        self.failed: Sequence[int] = []
        self.advanced: Sequence[int] = []
        self._trace, self._state, self._accounts = trace, state, accounts
        self._fleet, self._oracle = fleet, oracle
        self._arrays: dict[str, Integers] = {}
        self._slowdowns: dict[str, tuple[float, ...]] = {}
        self._deadlines: list[int] = trace.deadline_us.tolist()

    def open(self, now: int, is_epoch: bool, spent_gpu_us: int, billed_usd: float = 0.0) -> None:
        """Begin a new call: arrays of the last one are forgotten."""
        self.now_us, self.is_epoch, self.spent_gpu_us = now, is_epoch, spent_gpu_us
        self.billed_usd = billed_usd
        self._arrays.clear()

    @property
    def pending(self) -> Integers:
        """Waiting jobs, in the order of submission."""
        return self._array("pending", self._state.waiting)

    @property
    def running(self) -> Integers:
        """Jobs that hold GPUs, in the order of submission."""
        return self._array("running", self._state.running)

    @property
    def free(self) -> Integers:
        """Free GPUs of each node; 0 where a node is not ready."""
        known = self._arrays.get("free")
        if known is None:
            pairs = zip(self._state.free_of, self._state.node_state, strict=True)
            values = [free if status == READY else 0 for free, status in pairs]
            known = self._arrays["free"] = _fixed(values)
        return known

    @property
    def ready(self) -> Sequence[bool]:
        """Whether each node can be used now."""
        return self._state.ready

    @property
    def rented(self) -> int:
        """Nodes that are paid for now, ready or starting."""
        return self._fleet.rented

    def rented_of(self, gpu_type: str) -> int:
        """Return how many nodes of a type are paid for now."""
        return self._fleet.rented_of(gpu_type)

    def gpus_of(self, job: int) -> tuple[int, ...]:
        """Return the GPUs that a job holds, ascending; none if it waits."""
        return self._state.gpus_of[self._known(job)]

    def jobs_on(self, gpu: int) -> Sequence[int]:
        """Return the jobs on a GPU, in the order in which they came."""
        return self._state.jobs_on[gpu]

    def free_gpus(self, node: int) -> list[int]:
        """Return the free GPUs of a node, ascending; none if it is not ready."""
        state, cluster = self._state, self.cluster
        if state.node_state[node] != READY:
            return []
        first = cluster.first[node]
        jobs_on = state.jobs_on
        return [gpu for gpu in range(first, first + cluster.size[node]) if not jobs_on[gpu]]

    def demand(self, job: int) -> int:
        """Return the gang size asked for."""
        return self._state.demand[self._known(job)]

    def model(self, job: int) -> str:
        """Return what is trained, a key of `scenario.models`, or empty."""
        return self._trace.model[self._known(job)]

    def queue(self, job: int) -> str:
        """Return the virtual cluster or tenant of a job, or empty."""
        return self._trace.queue[self._known(job)]

    def user(self, job: int) -> str:
        """Return who submitted it, or empty."""
        return self._trace.user[self._known(job)]

    def submit_us(self, job: int) -> int:
        """Return when it was submitted."""
        return self._state.submit[self._known(job)]

    def deadline_us(self, job: int) -> int:
        """Return the moment by which it should end, -1 for none."""
        return self._deadlines[self._known(job)]

    def attained_gpu_us(self, jobs: Sequence[int]) -> Integers:
        """Return the GPU-microseconds that jobs have held so far."""
        now, state, allocated = self.now_us, self._state, self._accounts.allocated
        width, settled, known = state.width, state.settled, self._all_known(jobs)
        return _fixed([allocated[job] + width[job] * (now - settled[job]) for job in known])

    def attained_us(self, jobs: Sequence[int]) -> Integers:
        """Return the microseconds for which jobs have held GPUs so far."""
        attained = self._accounts.attained
        return _fixed([attained(self._known(job), self.now_us) for job in jobs])

    def done_us(self, jobs: Sequence[int]) -> Integers:
        """Return the work that jobs have done, in microseconds at reference speed."""
        self.first_look_us = min(self.first_look_us, self.now_us)
        total, remaining = self._state.total, self._accounts.remaining
        done = (total[self._known(job)] - remaining(job, self.now_us) for job in jobs)
        return _fixed([work // PPB for work in done])

    def waited_us(self, job: int) -> int:
        """Return for how long it has been waiting since it last held GPUs or was submitted."""
        state = self._state
        if state.status[self._known(job)] != WAITING:
            return 0
        return self.now_us - state.wait_since[job]

    def failures(self, job: int) -> Sequence[str]:
        """Return the reasons of its failures so far."""
        count = self._state.failed[self._known(job)]
        return [failure.reason for failure in self._trace.failures.get(job, ())[:count]]

    def phase(self, job: int) -> int:
        """Return the number of the phase in which a job is."""
        return self._state.phase[self._known(job)]

    def remaining_us(self, jobs: Sequence[int]) -> Floats:
        """Return estimates of the microseconds that jobs still need at the gang asked for."""
        shares = self._accounts.done_shares(self._all_known(jobs), self.now_us)
        return self._oracle.remaining_us(jobs, shares)

    def slowdown(self, application_class: str) -> Sequence[float]:
        """Return what the profile says of each GPU for an application class."""
        known = self._slowdowns.get(application_class)
        if known is None:
            known = Slowdowns(self.scenario, self.cluster).of(application_class)
            self._slowdowns[application_class] = known
        return known

    def _known(self, job: int) -> int:
        if 0 <= job < self._state.submitted:
            return job
        raise LookupError(f"job {job} has not been submitted")

    def _all_known(self, jobs: Sequence[int]) -> Sequence[int]:
        if len(jobs) and not 0 <= min(jobs) <= max(jobs) < self._state.submitted:
            for job in jobs:
                self._known(job)
        return jobs

    def _array(self, key: str, jobs: set[int]) -> Integers:
        known = self._arrays.get(key)
        if known is None:
            known = self._arrays[key] = _fixed(sorted(jobs))
        return known


def _fixed(values: Sequence[int]) -> Integers:
    import numpy as np

    array = np.array(values, dtype=np.int64)
    array.setflags(write=False)
    return array
