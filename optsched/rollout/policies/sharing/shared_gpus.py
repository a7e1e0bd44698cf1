"""Who is on which GPU, and where a job may join: the sets of GPUs that EaCO's Algorithm 1 tries."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from optsched.rollout.policies.sharing.ordered_sets import OrderedSets
from optsched.rollout.policies.sharing.watches import ROUNDED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.sharing.learnt_rates import LearntRates

    Gpus = tuple[int, ...]
    Types = tuple[str, ...]
    GpuSet = tuple[float, bool, Gpus]

MOST_TOUCHED = 4096
"""So many changes of nodes are remembered; after more of them sets are formed again."""


class Thresholds(NamedTuple):
    """Above which utilisation, and share of memory taken, a GPU takes no further job."""

    utilisation: float
    memory: float


class SharedGpus:
    """The jobs on each GPU, as they are and with what is decided so far.

    Attributes
    ----------
    of
        By job the GPUs that it holds.
    locked
        The GPUs to which nobody may come.
    version
        Rises whenever anything changes.
    """

    def __init__(self, view: View, rates: LearntRates, thresholds: Thresholds) -> None:
        self.view, self.rates, self.thresholds = view, rates, thresholds
        self.of: dict[int, Gpus] = {}
        self.version = 0
        self._on: dict[int, tuple[int, ...]] = {}
        self._types: dict[int, Types] = {}
        self.locked: set[int] = set()
        self._ready = list(view.ready)
        self._busy: dict[Types, float] = {}
        self._is_open: dict[tuple[Types, str], bool] = {}
        self._rates: dict[Types, dict[str, float]] = {}
        self._touched: list[int] = []  # nodes, in the order of the changes
        self._sets: dict[tuple[str, int], OrderedSets] = {}
        self._changed = [0] * view.cluster.nodes  # by node the version
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
        ready = list(view.ready)
        if ready != self._ready:
            self._ready = ready
            self._sets.clear()
            self.version += 1

    def attach(self, job: int, gpus: Gpus) -> None:
        """Let a job come to GPUs."""
        self.of[job] = gpus
        name = self.view.model(job)
        for gpu in gpus:
            self._on[gpu] = (*self._on.get(gpu, ()), job)
            self._types[gpu] = tuple(sorted((*self.types(gpu), name)))
        self._touch(gpus)

    def detach(self, job: int) -> None:
        """Let a job leave its GPUs."""
        gpus = self.of.pop(job)
        for gpu in gpus:
            self._on[gpu] = tuple(other for other in self._on[gpu] if other != job)
            self._types[gpu] = tuple(sorted(self.view.model(other) for other in self._on[gpu]))
        self._touch(gpus)

    def lock(self, gpus: set[int]) -> None:
        """Let nobody come to these GPUs, and to no others than these."""
        if gpus != self.locked:
            self._touch(gpus ^ self.locked)
            self.locked = gpus

    def learn(self) -> None:
        """Take note that other rates are expected than before."""
        self._rates.clear()
        before = self._busy
        self._busy = {types: self.rates.busy(types) for types in {*self._types.values()}}
        same = {types for types, busy in self._busy.items() if before.get(types) == busy}
        self._is_open = {key: now for key, now in self._is_open.items() if key[0] in same}
        self._touch(gpu for gpu, types in self._types.items() if types not in same)

    def beside(self, gpus: Gpus) -> list[int]:
        """Return the jobs on some GPUs, ascending."""
        return sorted({job for gpu in gpus for job in self._on.get(gpu, ())})

    def types(self, gpu: int) -> Types:
        """Return the types of the jobs on a GPU, sorted."""
        return self._types.get(gpu, ())

    def slowest(self, job: int) -> tuple[float, int]:
        """Return the least rate that is expected of a job over its GPUs, and where that is."""
        name = self.view.model(job)
        if all(len(self._on[gpu]) == 1 for gpu in self.of[job]):
            return 1.0, self.of[job][0]
        return min((self._rates_of(self.types(gpu))[name], gpu) for gpu in self.of[job])

    def has_changed(self, job: int, since: int) -> bool:
        """Tell whether anything may have changed on the GPUs of a job since a version."""
        node_of = self.view.cluster.node_of
        return any(self._changed[node_of[gpu]] > since for gpu in self.of[job])

    def _rates_of(self, types: Types) -> dict[str, float]:
        if types not in self._rates:
            self._rates[types] = self.rates.of(types)
        return self._rates[types]

    def _touch(self, gpus: Iterable[int]) -> None:
        """Note that something has changed on the nodes of some GPUs."""
        node_of = self.view.cluster.node_of
        self.version += 1
        nodes = dict.fromkeys(node_of[gpu] for gpu in gpus)
        for node in nodes:
            self._changed[node] = self.version
        self._touched += nodes
        if len(self._touched) > MOST_TOUCHED:
            self._touched.clear()
            self._sets.clear()

    # --- candidates ---------------------------------------------------------------------------

    def candidates(self, job: int) -> Iterator[Gpus]:
        """Yield sets of GPUs that a job may have, the busiest first.

        Of the GPUs of a node that pass the thresholds and have room, those that follow each other
        in the order of utilisation, so that a set may overlap the GPUs of a gang in part. Of equal
        ones, those of nodes in use come first. A gang larger than any node takes GPUs of all nodes.
        They are those of the moment of the call: jobs may come and leave meanwhile. Those with a
        GPU where the tolerance of some job breaks are left out.
        """
        view, size, name = self.view, self.view.demand(job), self.view.model(job)
        cluster = view.cluster
        if size > cluster.largest:
            nodes = (n for n, is_ready in enumerate(view.ready) if is_ready)
            pool = [gpu for n in nodes for gpu in self._of_node(n)]
            found = sorted(self._windows(pool, name, size))
        else:
            sets = self._sets.get((name, size))
            if sets is None:
                sets = self._sets[name, size] = OrderedSets(cluster.nodes)
                changed: Iterable[int] = range(cluster.nodes)
            else:
                changed = {*self._touched[sets.seen :]}
            sets.seen = len(self._touched)
            sets.update({n: self._windows(self._of_node(n), name, size) for n in changed})
            found = sets.ordered
        return (gpus for *_, gpus in found if all(self._bears(gpu, name) for gpu in gpus))

    def _bears(self, gpu: int, name: str) -> bool:
        """Tell whether no tolerance breaks on a GPU to which a job of a type comes."""
        types = self.types(gpu)
        if not types:
            return True
        rates = self._rates_of(tuple(sorted((*types, name))))
        return not any(self.breaks(other, rate) for other, rate in rates.items())

    def breaks(self, name: str, rate: float) -> bool:
        """Tell whether a rate is less than jobs of a type tolerate."""
        model = self.view.scenario.models.get(name)
        most = None if model is None else model.max_slowdown
        return most is not None and rate * max(1.0, most) < 1 - ROUNDED

    def _of_node(self, node: int) -> Sequence[int]:
        """Return the GPUs of a node; none if it cannot be used."""
        first = self.view.cluster.first[node]
        return range(first, first + self.view.cluster.size[node]) if self._ready[node] else ()

    def _windows(self, pool: Sequence[int], name: str, size: int) -> list[GpuSet]:
        """Return the sets of GPUs of a pool, each with what it is sorted by."""
        is_idle = not any(self._on.get(gpu) for gpu in pool)
        open_to = [gpu for gpu in pool if gpu not in self.locked and self._takes(gpu, name)]
        if len(open_to) < size:
            return []
        busy = {gpu: self._utilisation(self.types(gpu)) for gpu in open_to}
        order = sorted(open_to, key=lambda gpu: (-busy[gpu], gpu))
        windows = (order[first : first + size] for first in range(len(order) - size + 1))
        return [
            (-sum(busy[gpu] for gpu in chosen), is_idle, tuple(sorted(chosen)))
            for chosen in windows
        ]

    def _utilisation(self, types: Types) -> float:
        if types not in self._busy:
            self._busy[types] = self.rates.busy(types)
        return self._busy[types]

    def _takes(self, gpu: int, name: str) -> bool:
        """Tell whether a GPU passes the thresholds, and has room for a job of a type."""
        types = self.types(gpu)
        if not types:
            return True
        known = self._is_open.get((types, name))
        if known is None:
            known = self._is_open[types, name] = self._can_take(types, name)
        return known

    def _can_take(self, types: Types, name: str) -> bool:
        if len(types) >= self._most or not self.rates.allows([*types, name]):
            return False
        if self._utilisation(types) > self.thresholds.utilisation:
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
