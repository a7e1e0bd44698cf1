"""Rounds as Sia decides them, with made-up goodputs: jobs come, go, and get used to other GPUs.

Restated from Sia's artifact (siasosp23/artifacts, sia-simulator/sia.py): three types of GPUs; a job
takes one configuration (a type and 1, 2, 4, ... GPUs within a node, or whole nodes up to 64 GPUs);
costs are the goodput over the job's least to the power -0.5, rounded to two decimals, after what is
lost by a restart; a job that waits costs 1.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.proving.rounds import Round, sia_cost

WAITING = 1.1
TYPES = ((4, 6, 1.0), (8, 2, 3.0), (8, 3, 1.5))  # GPUs per node, nodes in 64 GPUs, pace
MOST_GPUS = 64
JOBS_PER_GPU = 0.6
NEW = 0.05  # share of the jobs that are others in the next round
DRIFT = 0.02  # of goodputs, as they are estimated again
STEPS = 60


@dataclass
class SiaRound:
    """One round.

    Attributes
    ----------
    cost
        Shape (jobs, configurations).
    gpus, type
        Shape (configurations,): how many GPUs, of which type.
    capacity
        Shape (types,): GPUs.
    """

    jobs: list[int]
    cost: Any
    gpus: Any
    type: Any
    capacity: Any

    @property
    def use(self) -> Any:
        """Shape (configurations, types): GPUs that a configuration takes of each type."""
        return self.gpus[:, None] * (self.type[:, None] == np.arange(len(self.capacity)))

    def choice(self) -> Round:
        """Return it as a choice problem; the last option of a job is to wait."""
        jobs, count = self.cost.shape
        cost = np.column_stack([self.cost, np.full(jobs, WAITING)]).ravel()
        use = np.vstack([self.use, np.zeros(len(self.capacity))])
        counts = np.full(jobs, count + 1)
        return Round(self.jobs, counts, cost, np.tile(use, (jobs, 1)), self.capacity)


def sia_rounds(gpus: int, count: int, seed: int = 0) -> list[SiaRound]:
    """Return consecutive rounds of a cluster with 0.6 jobs per GPU."""
    draw = np.random.default_rng(seed)
    width, kind, capacity = configurations(gpus)
    number = round(JOBS_PER_GPU * gpus)
    jobs, born = np.arange(number), number
    goodput = _goodput(draw, number, width, kind)
    age, restarts = draw.exponential(3600, number), draw.integers(0, 4, number)
    held = np.full(number, -1)
    rounds: list[SiaRound] = []
    for _ in range(count + 1):  # of the first one only what jobs hold is taken
        penalty = 30.0 + 220.0 * (jobs % 5 == 0)
        restart = np.maximum(age - restarts * penalty, 0) / (age + penalty)
        restart[age < penalty] = 1.0
        counts = np.full(number, len(width))
        cost = sia_cost(goodput.ravel(), counts, restart=restart, held=held).reshape(number, -1)
        rounds.append(SiaRound(jobs.tolist(), cost, width, kind, capacity))
        before, held = held, _near_best(cost, width, kind, capacity)
        restarts = restarts + ((before >= 0) & (held != before))
        goodput = goodput * draw.lognormal(0, DRIFT, goodput.shape)
        age = age + 60
        left = draw.random(number) < NEW
        new = int(left.sum())
        jobs = np.where(left, 0, jobs)
        jobs[left] = np.arange(born, born + new)
        goodput[left] = _goodput(draw, new, width, kind)
        age[left], restarts[left], held[left] = 0.0, 0, -1
        born += new
    return rounds[1:]


def configurations(gpus: int) -> tuple[Any, Any, Any]:
    """Return GPUs and type of each configuration, and how many GPUs of each type there are."""
    width, kind, capacity = [], [], []
    for n, (per_node, share, _) in enumerate(TYPES):
        nodes = share * gpus // 64
        inside = [2**k for k in range(per_node.bit_length())]
        widths = [*inside, *range(2 * per_node, MOST_GPUS + 1, per_node)]
        widths = [k for k in widths if k <= nodes * per_node]
        width += widths
        kind += [n] * len(widths)
        capacity.append(nodes * per_node)
    return np.array(width), np.array(kind), np.array(capacity)


def _goodput(draw: Any, jobs: int, width: Any, kind: Any) -> Any:
    """Amdahl's law within a node, less across nodes; the pace of types differs by job."""
    parallel = draw.uniform(0.7, 0.999, jobs)[:, None]
    pace = np.array([pace for *_, pace in TYPES]) * draw.lognormal(0, 0.25, (jobs, len(TYPES)))
    per_node = np.array([per_node for per_node, *_ in TYPES])[kind]
    across = np.where(width > per_node, draw.uniform(0.6, 1.0, jobs)[:, None], 1.0)
    return pace[:, kind] * across / (1 - parallel + parallel / width)


def _near_best(cost: Any, width: Any, kind: Any, capacity: Any) -> Any:
    """Return what jobs would take at prices that about fill the cluster; -1 to wait."""
    price = np.zeros(len(capacity))
    for step in range(STEPS):
        priced = cost + width * price[kind]
        best = priced.argmin(axis=1)
        best[priced.min(axis=1) > WAITING] = -1
        taken = best >= 0
        use = np.bincount(kind[best[taken]], width[best[taken]], len(capacity))
        price = np.maximum(price + 0.2 / (1 + step) * (use / capacity - 1), 0)
    return best
