"""Nodes that are billed whole: wide jobs have nodes of their own, narrow ones share nodes."""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, ClassVar

from optsched.rollout.engine.decision import NOTHING, Decision
from optsched.rollout.policies.budgets import arrival_rates as known
from optsched.rollout.policies.budgets.spare_nodes import SpareNodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.rollout.engine.view import View

    Gpus = tuple[int, ...]


class SharedNodes(SpareNodes):
    """Jobs on rented nodes that are billed whole, so that few GPUs of them stay idle.

    A job that wants a node or more gets empty nodes; one that wants less shares a node, the fullest
    that has room. A running job that wants fewer GPUs gives back whole nodes only: what it has
    beyond its want is taken from it when another narrow job wants it. Where nobody waits, empty
    nodes go to running jobs that gain by them before they are given back, and the free GPUs of a
    node with jobs to the job that gains most. Nodes are not ordered for what jobs are about to
    leave; some are ordered, or not given back, for jobs to come (`SpareNodes`). Of a cluster that
    is not rented jobs hold GPUs as in `Elastic`.
    """

    changing: ClassVar[tuple[str, ...]] = SpareNodes.changing

    def decide(self, view: View) -> Decision:
        """Start, widen and narrow jobs, and rent nodes for them."""
        if not self.is_rented:
            return super().decide(view)
        self.held.look(view)
        self._take_note(view)
        places: dict[int, Gpus] = {}
        for job, width in self._narrower(view).items():
            width = self._kept(view, job, width)
            if width < self.held.width(job):
                places[job] = self._hold(job, self.held.of[job][:width])
        self._start(view, places)
        self._grow(view, places)
        if not self.waiting:
            self._take_over(view, places)
            if not self.growing:
                self._fill(view, places)
        rent = self._rent(view)
        return NOTHING if not places and rent is None else Decision(place=places, rent=rent)

    # --- jobs that get GPUs -------------------------------------------------------------------

    def _start(self, view: View, places: dict[int, Gpus]) -> None:
        """Start jobs that wait, the earliest first; with fewer GPUs than wanted if they may."""
        for job in list(self.waiting):
            wanted, curve = self.wanted[job], self.curve(view, job)
            gpus = self._seats(view, job, wanted, places)
            if not gpus and wanted >= self.node_gpus and self.partial:
                gpus = self._empty(curve.at_most(min(len(self._empty(1 << 30)), wanted)))
            if gpus:
                places[job] = self._hold(job, gpus)
                self.waiting.remove(job)
                if len(gpus) < wanted:
                    insort(self.growing, job)

    def _grow(self, view: View, places: dict[int, Gpus]) -> None:
        """Let running jobs have all that they want, the earliest first."""
        for job in list(self.growing):
            if self.held.is_stuck(job):
                continue
            gpus = self._seats(view, job, self.wanted[job], places)
            if gpus:
                places[job] = self._hold(job, gpus)
                self.growing.remove(job)

    def _hold(self, job: int, gpus: Gpus) -> Gpus:
        self.held.release([job])
        self.held.hold(job, gpus)
        return gpus

    def _seats(self, view: View, job: int, width: int, places: dict[int, Gpus]) -> Gpus:
        """Return GPUs for a job, its own among them; none if there are too few."""
        held, size = self.held, self.node_gpus
        own = held.of.get(job, ())
        if width < size:
            room = self._beside(own, width)
            if not room and self._make_room(view, width - len(own), places):
                room = self._beside(own, width)
            return room or (self._empty(width) if not own else ())
        whole = tuple(gpu for gpu in own if self._is_alone(job, gpu))
        nodes = sorted({held.cluster.node_of[gpu] for gpu in whole})
        spare = (gpu for node in nodes for gpu in held.nodes.gpus(node, held.nodes.count[node]))
        whole = tuple(sorted((*whole, *spare)))[:width]
        more = self._empty(width - len(whole))
        return tuple(sorted((*whole, *more))) if len(whole) + len(more) == width else ()

    def _is_alone(self, job: int, gpu: int) -> bool:
        """Tell whether nobody else has GPUs of the node of one of a job's GPUs."""
        held = self.held
        node = held.cluster.node_of[gpu]
        own = sum(held.cluster.node_of[other] == node for other in held.of[job])
        return own + held.nodes.count[node] == held.cluster.size[node]

    def _empty(self, count: int) -> Gpus:
        """Return so many GPUs of empty nodes, the lowest first; all of them if there are fewer."""
        held = self.held
        chosen: list[int] = []
        for node in self._usable():
            size = held.cluster.size[node]
            if held.nodes.count[node] == size and len(chosen) < count:
                chosen.extend(held.nodes.gpus(node, min(count - len(chosen), size)))
        return tuple(chosen)

    def _beside(self, own: Gpus, width: int) -> Gpus:
        """Return a job's GPUs and free ones of nodes with jobs, the fullest node first."""
        held = self.held
        nodes = {held.cluster.node_of[gpu] for gpu in own}
        room = sorted(
            (node not in nodes, held.nodes.count[node], node)
            for node in self._usable()
            if 0 < held.nodes.count[node] < held.cluster.size[node]
        )
        gpus = list(own)
        fits = [row for row in room if row[1] >= width - len(own)]
        for _, free, node in fits[:1] or room:
            gpus.extend(held.nodes.gpus(node, min(free, width - len(gpus))))
            if len(gpus) == width:
                return tuple(sorted(gpus))
        return ()

    def _usable(self) -> Iterator[int]:
        usable = self.held.usable
        return (node for node in range(self.held.cluster.nodes) if usable >> node & 1)

    # --- jobs that give GPUs ------------------------------------------------------------------

    def _kept(self, view: View, job: int, wanted: int) -> int:
        """Return how many GPUs a job keeps that wants fewer: those of the nodes that it needs."""
        now = self.held.width(job)
        keep = -(-wanted // self.node_gpus) * self.node_gpus
        return now if keep >= now else keep if self.curve(view, job).speed_at(keep) else wanted

    def _make_room(self, view: View, needed: int, places: dict[int, Gpus]) -> bool:
        """Narrow the jobs that have most beyond what they want; tell whether that is enough."""
        free = sum(
            self.held.nodes.count[node]
            for node in self._usable()
            if self.held.nodes.count[node] < self.held.cluster.size[node]
        )
        beyond = sorted(
            (self.wanted[job] - len(gpus), job)
            for job, gpus in self.held.of.items()
            if len(gpus) > self.wanted[job] and not self.held.is_stuck(job)
        )
        if free - sum(less for less, _ in beyond) < needed:
            return False
        for _, job in beyond:
            now = self.held.width(job)
            least = max(self.wanted[job], now - (needed - free))
            width = min((k for k in self.curve(view, job).gpus if least <= k < now), default=now)
            if free < needed and width < now:
                places[job] = self._hold(job, self.held.of[job][:width])
                free += now - width
        return free >= needed

    # --- nodes that fall empty ----------------------------------------------------------------

    def _take_over(self, view: View, places: dict[int, Gpus]) -> None:
        """Let running jobs have empty nodes, which are ready: those that gain most by a node."""
        size = self.node_gpus
        nodes = len(self._empty(self.held.cluster.gpus)) // size
        left = self.left_of_phases(view) if nodes else {}
        while nodes:
            rows = [row for job in left for row in self._gains_of(view, job, nodes, left, places)]
            gain, width, job = max(rows, default=(0.0, 0, 0))
            gpus = self._seats(view, job, width, places) if gain > 0 else ()
            if not gpus:
                return
            places[job] = self._hold(job, gpus)
            self.want(job, width)
            nodes = len(self._empty(self.held.cluster.gpus)) // size

    def _gains_of(
        self, view: View, job: int, nodes: int, left: dict[int, float], places: dict[int, Gpus]
    ) -> Iterator[tuple[float, int, int]]:
        """Yield (gain for each node, width, job) of widths that a job could have with more nodes.

        The gain is in seconds, at the price of the moment, over the rest of the job as planned.
        """
        now, size, held = self.held.width(job), self.node_gpus, self.held
        if now % size or job in self.growing or held.is_stuck(job):
            return
        rescale_s = 0.0 if job in places else known.rescale_s(self.scenario, view.model(job))
        stays = self.rest_cost(view, job, left[job], now)
        for width in self.curve(view, job).gpus:
            more = (width - now) // size
            if width % size == 0 and 0 < more <= nodes:
                moves = self.rest_cost(view, job, left[job], width, rescale_s)
                yield (stays - moves) / more, width, job

    # --- idle GPUs of nodes with jobs ---------------------------------------------------------

    def _fill(self, view: View, places: dict[int, Gpus]) -> None:
        """Let jobs hold the idle GPUs of nodes that cannot be given back."""
        held = self.held
        on: dict[int, list[int]] = {}
        for job, gpus in held.of.items():
            for node in {held.cluster.node_of[gpu] for gpu in gpus}:
                if held.nodes.count[node] and held.usable >> node & 1:
                    on.setdefault(node, []).append(job)
        for node, jobs in on.items():
            free = held.nodes.count[node]
            gains = [
                gain
                for job in jobs
                if not held.is_stuck(job)
                for gain in self._gains(view, job, free, is_free=job in places)
            ]
            if gains:
                _, width, job = max(gains)
                more = held.nodes.gpus(node, width - held.width(job))
                places[job] = self._hold(job, tuple(sorted((*held.of[job], *more))))

    def _gains(
        self, view: View, job: int, free: int, *, is_free: bool
    ) -> list[tuple[float, int, int]]:
        """Return (work gained until the next arrival, width, job) of a job's wider widths.

        A change takes no time of a job that changes or starts anyway.
        """
        now, curve, until_s = self.held.width(job), self.curve(view, job), self.gap_s()
        lost_s = 0.0 if is_free else known.rescale_s(self.scenario, view.model(job))
        found = []
        for width, speed in zip(curve.gpus, curve.speed, strict=True):
            gain = speed * (until_s - lost_s) - curve.speed_at(now) * until_s
            if now < width <= now + free and gain > 0:
                found.append((gain / min(curve.speed), width, job))
        return found

    # --- nodes --------------------------------------------------------------------------------

    def _rent(self, view: View) -> int | None:
        """Return how many nodes to rent: those with jobs, waited for, and for jobs to come."""
        held, size = self.held, self.node_gpus
        free = [(count, held.cluster.size[node]) for node, count in enumerate(held.nodes.count)]
        in_use = sum(count < whole for count, whole in free)
        more = narrow = 0
        for job in (*self.waiting, *self.growing):
            lacking = self.wanted[job] - held.width(job)
            if self.wanted[job] >= size:
                more += -(-lacking // size)
            else:
                narrow += lacking
        if widths := self.announced(view.now_us):
            room = sum(count for count, whole in free if count < whole)
            more += sum(-(-width // size) for width in widths if width >= size)
            narrow += max(0, sum(width for width in widths if width < size) - room)
        needed = in_use + more + -(-narrow // size)
        nodes = self.with_spares(needed, view.rented, lambda: self._soon_free(view))
        return None if nodes == view.rented else nodes

    def _soon_free(self, view: View) -> int:
        """Return how many nodes jobs leave before one that is ordered now is ready."""
        left, nodes = self.left_of_phases(view), 0
        for job in left:
            width = self.held.width(job)
            if job not in self.scales or job in self.growing or width < self.node_gpus:
                continue  # nobody knows how long it is, or it leaves no node
            phase, plan = self.phase(view, job), self.plan(view, job)
            rest_s = float(plan.seconds[phase + 1, plan.place(width)])
            if rest_s <= self.provision_s:
                rest_s += left[job] * self.phase_s(view, job, width)
                nodes += width // self.node_gpus if rest_s <= self.provision_s else 0
        return nodes
