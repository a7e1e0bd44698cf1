"""Who is on which GPU, and where a job may join: the sets of GPUs that EaCO's Algorithm 1 tries."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from optsched.rollout.policies.sharing.gpu_sets import (
    Level,
    across_nodes,
    bits_of,
    singles,
    within_nodes,
)
from optsched.rollout.policies.sharing.watches import ROUNDED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.sharing.learnt_rates import LearntRates

    Gpus = tuple[int, ...]
    Types = tuple[str, ...]


class Thresholds(NamedTuple):
    """Above which utilisation, and share of memory taken, a GPU takes no further job."""

    utilisation: float
    memory: float


class SharedGpus:
    """The jobs on each GPU, as they are and with what is decided so far.

    A whole number stands for GPUs, too, as in `gpu_sets`.

    Attributes
    ----------
    of
        By job the GPUs that it holds.
    bits
        By job the number that stands for them.
    locked
        The GPUs to which nobody may come.
    stirred
        Jobs to whose GPUs some job came, or left them, and these jobs; who looks at them clears it.
    version
        Rises whenever anything changes.
    """

    def __init__(self, view: View, rates: LearntRates, thresholds: Thresholds) -> None:
        self.view, self.rates, self.thresholds = view, rates, thresholds
        self.of: dict[int, Gpus] = {}
        self.bits: dict[int, int] = {}
        self.locked = 0
        self.stirred: set[int] = set()
        self.version = 0
        self._on: dict[int, tuple[int, ...]] = {}
        self._types: dict[int, Types] = {}
        self._with: dict[Types, int] = {(): (1 << view.cluster.gpus) - 1}  # GPUs by types on them
        self._idle = self._with[()]  # GPUs of the nodes without jobs
        self._ready = tuple(view.ready)
        self._usable = self._of_ready_nodes()
        self._has_room: dict[tuple[Types, str], bool] = {}
        self._joined: dict[tuple[Types, str], Types] = {}
        self._borne: dict[Types, tuple[dict[str, float], bool]] = {}  # as long as rates stay
        sharing = view.scenario.sharing
        self._most, self._memory_gb = sharing.max_jobs_per_gpu, sharing.memory_gb
        for job in view.running.tolist():
            self.attach(job, view.gpus_of(job))

    def note(self, view: View) -> None:
        """Take note of what has happened since the last call."""
        self.view = view
        for job in (*view.ended, *view.failed):
            if job in self.of:
                self.detach(job)
        ready = tuple(view.ready)
        if ready is not self._ready and ready != self._ready:
            self._ready = ready
            self._usable = self._of_ready_nodes()
            self.version += 1

    def attach(self, job: int, gpus: Gpus) -> None:
        """Let a job come to GPUs."""
        self.of[job], self.bits[job] = gpus, bits_of(gpus)
        name = self.view.model(job)
        for gpu in gpus:
            self._put(gpu, (*self._on.get(gpu, ()), job), (*self.types(gpu), name))
        self._have_changed(gpus)

    def detach(self, job: int) -> None:
        """Let a job leave its GPUs."""
        gpus, model = self.of.pop(job), self.view.model
        del self.bits[job]
        self.stirred.add(job)
        for gpu in gpus:
            jobs = tuple(other for other in self._on[gpu] if other != job)
            self._put(gpu, jobs, tuple(model(other) for other in jobs))
        self._have_changed(gpus)

    def _put(self, gpu: int, jobs: tuple[int, ...], types: Types) -> None:
        """Let jobs of some types be on a GPU, and no others."""
        before, types, bit = self.types(gpu), tuple(sorted(types)), 1 << gpu
        self._on[gpu], self._types[gpu] = jobs, types
        self.stirred.update(jobs)
        self._with[before] ^= bit
        if not self._with[before]:
            del self._with[before]
        self._with[types] = self._with.get(types, 0) | bit

    def _have_changed(self, gpus: Gpus) -> None:
        """Note that others are on some GPUs than before."""
        cluster, empty = self.view.cluster, self._with.get((), 0)
        self.version += 1
        for node in {cluster.node_of[gpu] for gpu in gpus}:
            inside = ((1 << cluster.size[node]) - 1) << cluster.first[node]
            self._idle = self._idle | inside if inside & ~empty == 0 else self._idle & ~inside

    def _of_ready_nodes(self) -> int:
        node_of = self.view.cluster.node_of
        return bits_of(gpu for gpu, node in enumerate(node_of) if self._ready[node])

    def lock(self, gpus: int) -> None:
        """Let nobody come to these GPUs, and to no others than these."""
        if gpus != self.locked:
            self.version += 1
            self.locked = gpus

    def learn(self) -> None:
        """Take note that other rates are expected than before."""
        self.version += 1

    def beside(self, gpus: Gpus) -> list[int]:
        """Return the jobs on some GPUs, ascending."""
        return sorted({job for gpu in gpus for job in self._on.get(gpu, ())})

    def types(self, gpu: int) -> Types:
        """Return the types of the jobs on a GPU, sorted."""
        return self._types.get(gpu, ())

    def slowest(self, job: int) -> tuple[float, int]:
        """Return the least rate that is expected of a job over its GPUs, and where that is."""
        name = self.view.model(job)
        first: dict[Types, int] = {}
        for gpu in self.of[job]:
            first.setdefault(self._types[gpu], gpu)
        if max(map(len, first)) == 1:
            return 1.0, self.of[job][0]
        return min([(self.rates.of(types)[name], gpu) for types, gpu in first.items()])

    # --- candidates ---------------------------------------------------------------------------

    def candidates(self, job: int) -> Iterator[Gpus]:
        """Yield sets of GPUs that a job may have, the busiest first.

        Of the GPUs of a node that pass the thresholds and have room, those that follow each other
        in the order of utilisation, so that a set may overlap the GPUs of a gang in part. Of equal
        ones, those of nodes in use come first. A gang larger than any node takes GPUs of all nodes.
        Those with a GPU where the tolerance of some job breaks are left out. They are those of the
        moment of the call: who comes meanwhile must have left before the next one is asked for.
        """
        size, cluster = self.view.demand(job), self.view.cluster
        levels = self._levels(self.view.model(job))
        if size == 1:
            return singles(levels, self._idle)
        if size > cluster.largest:
            return across_nodes(list(levels), size)
        return within_nodes(list(levels), size, self._idle, cluster)

    def _levels(self, name: str) -> Iterator[Level]:
        """Yield the GPUs that have room for a job of a type, those of equal utilisation together.

        The busiest come first.
        """
        usable = self._usable & ~self.locked
        by_busy: dict[float, list[Types]] = {}
        for types, gpus in self._with.items():
            if gpus & usable and self._takes(types, name):
                by_busy.setdefault(self.rates.busy(types), []).append(types)
        for busy in sorted(by_busy, reverse=True):
            takers = bearers = 0
            for types in by_busy[busy]:
                gpus = self._with[types] & usable
                takers |= gpus
                bearers |= gpus if self._bears(types, name) else 0
            yield Level(busy, takers, bearers)

    def _bears(self, types: Types, name: str) -> bool:
        """Tell whether no tolerance breaks beside some types to which a job of another comes."""
        if not types:
            return True
        joined = self._joined.get((types, name))
        if joined is None:
            joined = self._joined[types, name] = tuple(sorted((*types, name)))
        rates = self.rates.of(joined)
        known = self._borne.get(joined)
        if known is None or known[0] is not rates:
            bears = not any(self.breaks(other, rate) for other, rate in rates.items())
            known = self._borne[joined] = rates, bears
        return known[1]

    def breaks(self, name: str, rate: float) -> bool:
        """Tell whether a rate is less than jobs of a type tolerate."""
        model = self.view.scenario.models.get(name)
        most = None if model is None else model.max_slowdown
        return most is not None and rate * max(1.0, most) < 1 - ROUNDED

    def _takes(self, types: Types, name: str) -> bool:
        """Tell whether GPUs with some types pass the thresholds, and have room for a job."""
        if not types:
            return True
        has_room = self._has_room.get((types, name))
        if has_room is None:
            has_room = self._has_room[types, name] = self._has_room_for(types, name)
        return has_room and self.rates.busy(types) <= self.thresholds.utilisation

    def _has_room_for(self, types: Types, name: str) -> bool:
        if len(types) >= self._most or not self.rates.allows([*types, name]):
            return False
        if self._memory_gb is None:
            return True
        limit, taken = Fraction(self._memory_gb), sum(self._needed_gb(other) for other in types)
        return taken <= Fraction(self.thresholds.memory) * limit and (
            taken + self._needed_gb(name) <= limit
        )

    def _needed_gb(self, name: str) -> Fraction:
        model = self.view.scenario.models.get(name)
        return Fraction(0 if model is None else model.memory_gb)
