"""Who is on which GPU, and where a job may join: the sets of GPUs that EaCO's Algorithm 1 tries."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.sharing.learnt_rates import LearntRates

    Gpus = tuple[int, ...]


class Thresholds(NamedTuple):
    """Above which utilisation, and share of memory taken, a GPU takes no further job."""

    utilisation: float
    memory: float


class SharedGpus:
    """The jobs on each GPU, at a moment and with what is decided so far.

    Attributes
    ----------
    of
        By job the GPUs that it holds.
    """

    def __init__(self, view: View, rates: LearntRates, thresholds: Thresholds) -> None:
        self.view, self.rates, self.thresholds = view, rates, thresholds
        self.of: dict[int, Gpus] = {}
        self._on: dict[int, tuple[int, ...]] = {}
        sharing = view.scenario.sharing
        self._most, self._memory_gb = sharing.max_jobs_per_gpu, sharing.memory_gb
        for job in view.running.tolist():
            self.attach(job, view.gpus_of(job))

    def attach(self, job: int, gpus: Gpus) -> None:
        """Let a job come to GPUs."""
        self.of[job] = gpus
        for gpu in gpus:
            self._on[gpu] = (*self._on.get(gpu, ()), job)

    def detach(self, job: int) -> None:
        """Let a job leave its GPUs."""
        for gpu in self.of.pop(job):
            self._on[gpu] = tuple(other for other in self._on[gpu] if other != job)

    def beside(self, gpus: Gpus) -> list[int]:
        """Return the jobs on some GPUs, ascending."""
        return sorted({job for gpu in gpus for job in self._on.get(gpu, ())})

    def types(self, gpu: int) -> tuple[str, ...]:
        """Return the types of the jobs on a GPU, sorted."""
        return tuple(sorted(self.view.model(job) for job in self._on.get(gpu, ())))

    def slowest(self, job: int) -> tuple[float, int]:
        """Return the least rate that is expected of a job over its GPUs, and where that is."""
        name = self.view.model(job)
        if all(len(self._on[gpu]) == 1 for gpu in self.of[job]):
            return 1.0, self.of[job][0]
        return min((self.rates.of(self.types(gpu))[name], gpu) for gpu in self.of[job])

    # --- candidates ---------------------------------------------------------------------------

    def candidates(self, job: int, locked: set[int]) -> Iterator[Gpus]:
        """Yield sets of GPUs that a job may have, the busiest first.

        Of the GPUs of a node that pass the thresholds and have room, those that follow each other
        in the order of utilisation, so that a set may overlap the GPUs of a gang in part. Of equal
        ones, those of nodes in use come first. A gang larger than any node takes GPUs of all nodes.
        """
        view, size = self.view, self.view.demand(job)
        cluster = view.cluster
        nodes = [n for n, is_ready in enumerate(view.ready) if is_ready]
        pools = [list(range(cluster.first[n], cluster.first[n] + cluster.size[n])) for n in nodes]
        if size > cluster.largest:
            pools = [[gpu for pool in pools for gpu in pool]]
        found: list[tuple[float, bool, Gpus]] = []
        for pool in pools:
            is_idle = not any(self._on.get(gpu) for gpu in pool)
            open_to = [gpu for gpu in pool if gpu not in locked and self._takes(gpu, job)]
            busy = {gpu: self.rates.busy(self.types(gpu)) for gpu in open_to}
            order = sorted(open_to, key=lambda gpu: (-busy[gpu], gpu))
            for first in range(len(order) - size + 1):
                chosen = order[first : first + size]
                total = sum(busy[gpu] for gpu in chosen)
                found.append((-total, is_idle, tuple(sorted(chosen))))
        yield from dict.fromkeys(gpus for *_, gpus in sorted(found))

    def _takes(self, gpu: int, job: int) -> bool:
        """Tell whether a GPU passes the thresholds, and has room for a job."""
        others = self._on.get(gpu, ())
        if not others:
            return True
        if len(others) >= self._most:
            return False
        types = self.types(gpu)
        if not self.rates.allows([*types, self.view.model(job)]):
            return False
        if self.rates.busy(types) > self.thresholds.utilisation:
            return False
        if self._memory_gb is None:
            return True
        limit, taken = Fraction(self._memory_gb), sum(self._needed_gb(other) for other in others)
        return taken <= Fraction(self.thresholds.memory) * limit and (
            taken + self._needed_gb(job) <= limit
        )

    def _needed_gb(self, job: int) -> Fraction:
        model = self.view.scenario.models.get(self.view.model(job))
        return Fraction(0 if model is None else model.memory_gb)
