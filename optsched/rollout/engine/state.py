"""What is so at a moment of a rollout: one list per attribute, by job, by GPU and by node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.prices.node_rates import node_rates

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

    Relocation = tuple[int, tuple[int, ...], Collection[int], Collection[int]]
    """A job, the GPUs that it has from now on, those that it comes to, those that it leaves."""

PPB = 1_000_000_000
"""Parts per billion: the rate of the reference. Work is counted in microseconds x PPB."""

UNSEEN, WAITING, DELAYED, RUNNING, TRIAL, ENDED = range(6)
"""Where a job is: not submitted, in the queue, between a failure and the queue, on GPUs, on one GPU
for a trial, ended."""

OFF, STARTING, READY, DRAINING, DOWN = range(5)
"""What a node is: not rented, paid for but not there yet, usable; closed: jobs there go on to their
ends, or none can run."""


class State(Restorable):
    """Jobs, GPUs and nodes as lists of plain numbers; nothing here knows of events or policies.

    Attributes
    ----------
    submit, demand
        By job, as in the trace.
    status, gpus_of, width, phase
        By job: where it is, the GPUs that it holds (ascending), how many, and in which phase.
    rate, remaining, tail, goal
        By job: its speed in PPB, the work that remains of all phases, the work after each phase
        (only of jobs with several) and the work that remains when its phase ends.
    saved
        By job: the work that remained at its last checkpoint.
    settled, ready_at
        By job, moments: up to which work and accounts are counted; when its overhead is over.
    failed, attempt_us, unsaved_us, unsaved_gpu_us
        By job: failures so far; running time since the last, and since the last checkpoint.
    jobs_on
        By GPU, the jobs on it in the order in which they came.
    free_of, node_state, ready
        By node: GPUs without jobs, what it is (OFF, ..., DOWN), and whether it is READY.
    closed
        How many nodes are DRAINING or DOWN.
    paid_rate
        What is paid for costs so much, in nano-USD per hour, where groups of nodes have prices.
    ready_gpus
        Of nodes that are READY, and those with jobs of nodes that are DRAINING.
    waiting, running
        The jobs in the queue, and those on GPUs (in a trial too); sort them before anything
        depends on their order.
    """

    changing = (
        "submitted",
        "status",
        "gpus_of",
        "width",
        "phase",
        "rate",
        "remaining",
        "total",
        "saved",
        "goal",
        "tail",
        "settled",
        "ready_at",
        "failed",
        "attempt_us",
        "unsaved_us",
        "unsaved_gpu_us",
        "wait_since",
        "waiting",
        "running",
        "jobs_on",
        "node_state",
        "ready",
        "free_of",
        "closed",
        "busy_gpus",
        "ready_gpus",
        "paid_gpus",
        "paid_rate",
    )

    def __init__(self, scenario: Scenario, cluster: Cluster, trace: Trace) -> None:
        count = len(trace)
        self.cluster = cluster
        self.submit: list[int] = trace.submit_us.tolist()
        self.demand: list[int] = trace.gpus.tolist()
        self.submitted = 0
        self.status = [UNSEEN] * count
        self.gpus_of: list[tuple[int, ...]] = [()] * count
        self.width = [0] * count
        self.phase = [0] * count
        self.rate = [0] * count
        self.remaining = [0] * count
        self.total = [0] * count
        self.saved = [0] * count
        self.goal = [0] * count
        self.tail: dict[int, tuple[int, ...]] = {}
        self.settled = [0] * count
        self.ready_at = [0] * count
        self.failed = [0] * count
        self.attempt_us = [0] * count
        self.unsaved_us = [0] * count
        self.unsaved_gpu_us = [0] * count
        self.wait_since = [0] * count
        self.waiting: set[int] = set()
        self.running: set[int] = set()
        self.jobs_on: list[tuple[int, ...]] = [()] * cluster.gpus
        self._start_nodes(scenario, cluster)

    def _start_nodes(self, scenario: Scenario, cluster: Cluster) -> None:
        rented = scenario.rented
        first = cluster.nodes if rented is None else min(rented.at_start, cluster.nodes)
        self.node_state = bytearray([READY] * first + [OFF] * (cluster.nodes - first))
        self.ready = tuple(status == READY for status in self.node_state)
        self.free_of = list(cluster.size)
        self.busy_gpus = self.closed = 0
        self.ready_gpus = self.paid_gpus = sum(cluster.size[:first])
        self._rates = node_rates(scenario)
        self.paid_rate = sum(self._rates[:first])

    @property
    def free_gpus(self) -> int:
        """GPUs without jobs, in nodes that are ready."""
        return self.ready_gpus - self.busy_gpus

    def submit_job(self, job: int, works: Sequence[int]) -> None:
        """Let a job enter the queue for the first time, with the work of each of its phases."""
        total = sum(works)
        self.total[job] = self.remaining[job] = self.saved[job] = total
        if len(works) > 1:
            tail, left = [], total
            for work in works:
                left -= work
                tail.append(left)
            self.tail[job] = tuple(tail)
            self.goal[job] = tail[0]
        self.submitted = job + 1

    def attach(self, job: int, gpus: tuple[int, ...], kept: tuple[int, ...] = ()) -> None:
        """Put a job on GPUs; it never left those that it kept."""
        jobs_on, free_of, node_of = self.jobs_on, self.free_of, self.cluster.node_of
        alone, coming = (job,), set(gpus).difference(kept) if kept else gpus
        taken = 0
        for gpu in coming:
            others = jobs_on[gpu]
            if others:
                jobs_on[gpu] = others + alone
            else:
                jobs_on[gpu] = alone
                free_of[node_of[gpu]] -= 1
                taken += 1
        self.busy_gpus += taken
        if self.closed:
            self.ready_gpus += sum(jobs_on[gpu] == alone for gpu in self._on_closed(coming))
        self.gpus_of[job] = gpus
        self.width[job] = len(gpus)

    def detach(self, job: int, kept: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Take a job off its GPUs and return them; it stays on those that it is to keep."""
        jobs_on, free_of, node_of = self.jobs_on, self.free_of, self.cluster.node_of
        gpus, alone = self.gpus_of[job], (job,)
        leaving = set(gpus).difference(kept) if kept else gpus
        left = 0
        for gpu in leaving:
            if jobs_on[gpu] == alone:
                jobs_on[gpu] = ()
                free_of[node_of[gpu]] += 1
                left += 1
            else:
                jobs_on[gpu] = tuple(other for other in jobs_on[gpu] if other != job)
        self.busy_gpus -= left
        if self.closed:
            self.ready_gpus -= sum(not jobs_on[gpu] for gpu in self._on_closed(leaving))
        self.gpus_of[job] = ()
        self.width[job] = 0
        return gpus

    def move(self, places: Sequence[Relocation], *, are_shared: bool) -> None:
        """Put jobs that hold GPUs on other ones: all leave theirs before any of them comes.

        Where GPUs are shared, the order in which jobs came to them counts, and a job that is moved
        comes anew to those that it keeps.
        """
        left = [self.detach(job, () if are_shared else gpus) for job, gpus, _, _ in places]
        for (job, gpus, _, _), kept in zip(places, left, strict=True):
            self.attach(job, gpus, () if are_shared else kept)

    def _on_closed(self, gpus: Iterable[int]) -> list[int]:
        node_of, status = self.cluster.node_of, self.node_state
        return [gpu for gpu in gpus if status[node_of[gpu]] != READY]

    def close_or_open(self, node: int, status: int) -> None:
        """Let a node be READY, DRAINING or DOWN from now on; if DOWN, it holds no jobs."""
        change = (status == READY) - (self.node_state[node] == READY)
        self.ready_gpus += change * self.free_of[node]
        self.closed -= change
        self.node_state[node] = status
        self.ready = (*self.ready[:node], status == READY, *self.ready[node + 1 :])

    def set_node(self, node: int, status: int) -> None:
        """Change what a node is; it holds no jobs."""
        size, old = self.cluster.size[node], self.node_state[node]
        self.ready_gpus += size * ((status == READY) - (old == READY))
        self.paid_gpus += size * ((status != OFF) - (old != OFF))
        if self._rates:
            self.paid_rate += self._rates[node] * ((status != OFF) - (old != OFF))
        self.node_state[node] = status
        if READY in (old, status):
            self.ready = (*self.ready[:node], status == READY, *self.ready[node + 1 :])
