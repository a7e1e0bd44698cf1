"""The policy's window on the cluster: read-only, and with estimates instead of the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.scenario import Scenario


class View(Protocol):
    """What is known at the moment of a decision. Jobs, GPUs and nodes are numbers from 0.

    Jobs that have not been submitted yet cannot be seen: asking for them is an error.
    """

    scenario: Scenario
    cluster: Cluster

    @property
    def now_us(self) -> int:
        """Microseconds since the start."""
        ...

    @property
    def is_epoch(self) -> bool:
        """Whether this call is at an epoch (and not only triggered by an event)."""
        ...

    @property
    def arrived(self) -> Sequence[int]:
        """Jobs submitted, or back in the queue after a failure, since the last call."""
        ...

    @property
    def ended(self) -> Sequence[int]:
        """Jobs that ended (finished, killed or failed for good) since the last call."""
        ...

    @property
    def failed(self) -> Sequence[int]:
        """Jobs of which an attempt failed since the last call, or was ended by an outage of a node.

        They hold no GPUs any more. Each is in `arrived` when it is back in the queue, or in
        `ended`.
        """
        ...

    @property
    def advanced(self) -> Sequence[int]:
        """Jobs that went on to their next phase since the last call."""
        ...

    @property
    def pending(self) -> Integers:
        """Waiting jobs, in the order of submission."""
        ...

    @property
    def running(self) -> Integers:
        """Jobs that hold GPUs, in the order of submission."""
        ...

    @property
    def free(self) -> Integers:
        """Free GPUs of each node; 0 where a node is not ready."""
        ...

    @property
    def ready(self) -> Sequence[bool]:
        """Whether each node can be used now."""
        ...

    @property
    def rented(self) -> int:
        """Nodes that are paid for now, ready or starting."""
        ...

    @property
    def spent_gpu_us(self) -> int:
        """GPU-microseconds paid for so far."""
        ...

    @property
    def billed_usd(self) -> float:
        """What nodes with prices of their own have cost so far."""
        ...

    def rented_of(self, gpu_type: str) -> int:
        """Return how many nodes of a type are paid for now, ready or starting."""
        ...

    def gpus_of(self, job: int) -> tuple[int, ...]:
        """Return the GPUs that a job holds, ascending; none if it waits."""
        ...

    def jobs_on(self, gpu: int) -> Sequence[int]:
        """Return the jobs on a GPU, in the order in which they came."""
        ...

    def free_gpus(self, node: int) -> list[int]:
        """Return the free GPUs of a node, ascending."""
        ...

    # What a job tells when it is submitted.
    def demand(self, job: int) -> int:
        """Return the gang size asked for."""
        ...

    def model(self, job: int) -> str:
        """Return what is trained, a key of `scenario.models`, or empty."""
        ...

    def queue(self, job: int) -> str:
        """Return the virtual cluster or tenant of a job, or empty."""
        ...

    def user(self, job: int) -> str:
        """Return who submitted it, or empty."""
        ...

    def submit_us(self, job: int) -> int:
        """Return when it was submitted."""
        ...

    def deadline_us(self, job: int) -> int:
        """Return the moment by which it should end, -1 for none."""
        ...

    # What the cluster has seen of a job.
    def attained_gpu_us(self, jobs: Sequence[int]) -> Integers:
        """Return the GPU-microseconds that jobs have held so far."""
        ...

    def attained_us(self, jobs: Sequence[int]) -> Integers:
        """Return the microseconds for which jobs have held GPUs so far."""
        ...

    def done_us(self, jobs: Sequence[int]) -> Integers:
        """Return the work that jobs have done, in microseconds at reference speed.

        What their logs tell; what failures undid is not counted.
        """
        ...

    def waited_us(self, job: int) -> int:
        """Return for how long it has been waiting since it last held GPUs or was submitted."""
        ...

    def failures(self, job: int) -> Sequence[str]:
        """Return the reasons of its failures so far."""
        ...

    def phase(self, job: int) -> int:
        """Return the number of the phase in which a job is."""
        ...

    # Estimates: from the scenario's oracle, never the truth unless the scenario says "exact".
    def remaining_us(self, jobs: Sequence[int]) -> Floats:
        """Return estimates of the microseconds that jobs still need at the gang asked for."""
        ...

    def slowdown(self, application_class: str) -> Sequence[float]:
        """Return what the profile says of each GPU for an application class."""
        ...


__all__ = ["View"]
