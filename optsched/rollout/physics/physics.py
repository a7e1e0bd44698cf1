"""Physics: how fast jobs really run where they are, and what the cluster draws.

Policies never see this module: what they know is in the view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable
from optsched.rollout.engine.state import DOWN, OFF, PPB
from optsched.rollout.physics.colocation import Colocation
from optsched.rollout.physics.distance import Distances
from optsched.rollout.physics.node_slowdowns import Transients
from optsched.rollout.physics.regimes import Factors, Regime, busy_shares, regime_of
from optsched.rollout.physics.speeds import JobPace, paces
from optsched.rollout.physics.widths import phase_marks, width_speed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from fractions import Fraction

    from optsched.rollout.physics.cluster import Cluster, Occupancy
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

Stay = tuple[tuple[tuple[int, ...], int], list[Regime | None]]
"""The GPUs of a job and its phase; its regimes there, alone and beside others, once known."""

MOST_REGIMES = 100_000
"""That are remembered."""


class Physics(Restorable):
    """Rates, rules and watts of a scenario, as functions of who holds which GPUs.

    The **rate** of a job is in whole parts per billion of the reference: reference GPUs, in
    the best place, alone, at the gang asked for. It is the product of

    - the speedup of its phase at the number of GPUs that it holds, over that at the gang asked for,
      on GPUs of the reference type (1 for models without phases);
    - 1 / the greatest over its GPUs of V[class, GPU] x the present trouble of its node, and the
      speed of so many GPUs of their type over that of the reference (`GpuTypes.slowdown`);
    - 1 / the locality factor of its model at the level where its GPUs meet, and the speed of
      `spread` on so many servers and domains, both relative to the best place that so many GPUs can
      have in this cluster (or to one node, or 1 where run times are as recorded:
      `reference_place`);
    - `neighbours.shared_server`, if it has two GPUs or more and another such job that shares no GPU
      with it has GPUs on one of its nodes (1 where run times are as recorded);
    - the least over its GPUs of its rate beside the other jobs there (`Colocation`),

    rounded to the nearest, and at least 1. So iteration times without sharing are those of PAL's
    simulator, base time x max V x L (hal-uw/blox-pal @8a59070, blox_manager.py).

    Source of the factor of neighbours: Jeon et al., USENIX ATC 2019, tables 4 and 5.

    Attributes
    ----------
    is_plain
        Whether every job always runs at PPB, so that `rate` need not be asked.
    transients
        Present trouble of each node, None without events. The engine calls `change(node)` at
        `transients.until_us[node]`, and then asks for the rates of `jobs_on_node` again.
    """

    changing = ("transients", "_colocation")

    def __init__(self, scenario: Scenario, cluster: Cluster, trace: Trace, seed: int) -> None:
        self.scenario, self.cluster, self.trace = scenario, cluster, trace
        self._demand: list[int] = trace.gpus.tolist()
        self._pace = paces(scenario, cluster, trace)
        self._distances = Distances(scenario, cluster)
        self._is_recorded = scenario.reference_place == "recorded"
        events = scenario.events
        self.transients = None if events is None else Transients(events, cluster.nodes, seed)
        self._neighbours = scenario.neighbours.shared_server
        self._most = scenario.sharing.max_jobs_per_gpu
        needs_mixes = self._most > 1 or scenario.sharing.memory_gb is not None
        is_needed = needs_mixes or scenario.power is not None
        self._colocation = Colocation(scenario, trace) if is_needed else None
        self._busy: list[float] = busy_shares(scenario, trace).tolist()
        self._regimes: dict[Factors, Regime] = {}
        self._stays: dict[int, Stay] = {}
        self._ratios: dict[tuple[str, int, int, int], float] = {}
        self._marks: dict[tuple[str, int], tuple[Fraction, ...]] = {}
        self._is_crowded = self._neighbours != 1 or self._most > 1
        self._needs_mixes = needs_mixes
        self._types = cluster.types if cluster.types.are_several else None
        distinct = list({id(pace): pace for pace in self._pace}.values())
        is_alike = scenario.spread is None and self._types is None and not self._is_crowded
        self.is_plain = is_alike and all(pace.is_plain for pace in distinct)
        self._is_by_place = not self._is_crowded and events is None and self._types is None
        self._known: dict[tuple[str, int, int, int, float, float | None], Regime] = {}

    # --- speed --------------------------------------------------------------------------------

    def rate(self, job: int, state: Occupancy) -> int:
        """Return the parts per billion at which a job gets on; it holds GPUs."""
        return self.regimes((job,), state)[0][1].rate

    def regimes(self, jobs: Iterable[int], state: Occupancy) -> list[tuple[int, Regime]]:
        """Return how each of some jobs gets on, and what it loses; they hold GPUs."""
        if not self._is_by_place:
            return [(job, self._beside_others(job, state)) for job in jobs]
        known, paces, node_of = self._known, self._pace, self.cluster.node_of
        models, demand, phases, found = self.trace.model, self._demand, state.phase, []
        for job in jobs:
            gpus, pace = state.gpus_of[job], paces[job]
            slow = 1.0 if pace.slowdown is None else max(map(pace.slowdown.__getitem__, gpus))
            is_near = node_of[gpus[0]] == node_of[gpus[-1]]
            distance = None if is_near else self._distances.factor(pace.locality, gpus)
            key = (models[job], demand[job], phases[job], len(gpus), slow, distance)
            regime = known.get(key)
            if regime is None:
                regime = known[key] = self._regime(self._factors(job, gpus, False, state))
            found.append((job, regime))
        return found

    def _beside_others(self, job: int, state: Occupancy) -> Regime:
        gpus = state.gpus_of[job]
        is_beside = self._neighbours != 1 and len(gpus) > 1 and self._has_neighbour(gpus, state)
        if self._most > 1 or self.transients is not None:
            return self._regime(self._factors(job, gpus, is_beside, state))
        # Where it is, only neighbours come and go: others ask for a job's rate again and again.
        key = (gpus, state.phase[job])
        known = self._stays.get(job)
        if known is None or known[0] != key:
            known = self._stays[job] = (key, [None, None])
        found = known[1][is_beside]
        if found is None:
            found = self._regime(self._factors(job, gpus, is_beside, state))
            known[1][is_beside] = found
        return found

    def _factors(
        self, job: int, gpus: tuple[int, ...], is_beside: bool, state: Occupancy
    ) -> Factors:
        pace, width = self._pace[job], len(gpus)
        sharing, turns = self._shared(job, gpus, state)
        types, slowdown = self._types, self._slowdown(pace, gpus)
        if types is not None:  # a gang is on one
            there = types.of_node[self.cluster.node_of[gpus[0]]]
            slowdown *= types.slowdown(self.trace.model[job], state.phase[job], width, there)
        return Factors(
            width,
            self._demand[job],
            self._ratio(job, state.phase[job], width) if pace.phases else 1.0,
            slowdown,
            self._distances.factor(pace.locality, gpus),
            self._neighbours if is_beside else 1.0,
            sharing,
            turns,
        )

    def _regime(self, factors: Factors) -> Regime:
        found = self._regimes.get(factors)
        if found is None:
            if len(self._regimes) == MOST_REGIMES:  # passing trouble has a new factor each time
                self._regimes.clear()
            found = self._regimes[factors] = regime_of(factors, self._is_recorded)
        return found

    def phases(self, job: int) -> tuple[int, ...]:
        """Return the work of each phase of a job, in PPB x microseconds at the gang asked for.

        A phase has the share of `run_us` that it takes at that gang (`phase_marks`); the parts are
        rounded so that they add up to run_us x PPB exactly. One part if its width is fixed.
        """
        work = int(self.trace.run_us[job]) * PPB
        phases, demand = self._pace[job].phases, self._demand[job]
        if len(phases) < 2:
            return (work,)
        key = (self.trace.model[job], demand)
        if key not in self._marks:
            self._marks[key] = phase_marks(phases, demand)
        done = [work * mark.numerator // mark.denominator for mark in self._marks[key]]
        return tuple(after - before for before, after in zip([0, *done], done, strict=False))

    def widths(self, job: int, phase: int) -> Sequence[int] | None:
        """Return the widths that a phase of a job allows, ascending; None if it is not elastic."""
        phases = self._pace[job].phases
        return phases[phase].curve.widths if phases else None

    def affected(self, gpus: Iterable[int], state: Occupancy) -> list[int]:
        """Return the jobs whose rates may have changed as jobs came to GPUs or left them.

        Ascending; of jobs that can feel another one, those on these GPUs now are among them.
        """
        if not self._is_crowded:
            return []
        if self._neighbours == 1:
            return sorted({job for gpu in gpus for job in state.jobs_on[gpu]})
        nodes = {self.cluster.node_of[gpu] for gpu in gpus}
        jobs = {job for node in nodes for gpu in self._gpus(node) for job in state.jobs_on[gpu]}
        if self._most > 1:
            return sorted(jobs)
        gpus_of = state.gpus_of
        return sorted([job for job in jobs if len(gpus_of[job]) > 1])

    def jobs_on_node(self, node: int, state: Occupancy) -> list[int]:
        """Return the jobs that have GPUs on a node, ascending."""
        return sorted({job for gpu in self._gpus(node) for job in state.jobs_on[gpu]})

    def _slowdown(self, pace: JobPace, gpus: tuple[int, ...]) -> float:
        values = pace.slowdown
        if pace.troubled and self.transients is not None:
            trouble, node_of = self.transients.factor, self.cluster.node_of
            if values is None:
                return max(trouble[node_of[gpu]] for gpu in gpus)
            return max(values[gpu] * trouble[node_of[gpu]] for gpu in gpus)
        return 1.0 if values is None else max([values[gpu] for gpu in gpus])

    def _shared(self, job: int, gpus: tuple[int, ...], state: Occupancy) -> tuple[float, float]:
        """Return the factor of sharing, and the GPUs with the turns that the job has on them.

        A GPU on which jobs would be busy for more than all of its time is divided in proportion.
        What they would be is told from the jobs on that GPU alone, so it is at least what they are.
        """
        if self._most == 1 or self._colocation is None:
            return 1.0, float(len(gpus))
        return self._colocation.shared(job, gpus, state, self._busy)

    def _ratio(self, job: int, phase: int, width: int) -> float:
        demand = self._demand[job]
        if width == demand:
            return 1.0
        key = (self.trace.model[job], phase, demand, width)
        if key not in self._ratios:
            speedup = self._pace[job].phases[phase].curve
            self._ratios[key] = width_speed(speedup, width) / width_speed(speedup, demand)
        return self._ratios[key]

    def _has_neighbour(self, gpus: tuple[int, ...], state: Occupancy) -> bool:
        own, node_of = set(gpus), self.cluster.node_of
        for node in {node_of[gpu] for gpu in gpus}:
            for gpu in self._gpus(node):
                if gpu in own:
                    continue
                for other in state.jobs_on[gpu]:
                    theirs = state.gpus_of[other]
                    if len(theirs) > 1 and own.isdisjoint(theirs):
                        return True
        return False

    # --- rules --------------------------------------------------------------------------------

    def fits(self, job: int, gpus: Iterable[int], state: Occupancy) -> str | None:
        """Return the rule that a job on these GPUs breaks, None if all are kept.

        "sharing-limit": more jobs on a GPU than may be; "memory": they take more than it has;
        "interference": the table says that they cannot run together, or its fallback does not
        reach them.

        Parameters
        ----------
        state
            As it would be after the whole decision; whether the job is on the GPUs there yet does
            not matter.
        """
        colocation = self._colocation
        limit_gb = self.scenario.sharing.memory_gb
        for gpu in gpus:
            jobs = state.jobs_on[gpu]
            together = jobs if job in jobs else (*jobs, job)
            if len(together) > self._most:
                return "sharing-limit"
            if not self._needs_mixes or colocation is None:
                continue
            mix = colocation.of(together)
            if limit_gb is not None and mix.memory_gb > limit_gb:
                return "memory"
            if not mix.fits:
                return "interference"
        return None

    # --- power --------------------------------------------------------------------------------

    def watts(self, state: Occupancy) -> float:
        """Return the watts of the whole cluster, without PUE."""
        return sum(self.node_watts(node, state) for node in range(self.cluster.nodes))

    def node_watts(self, node: int, state: Occupancy) -> float:
        """Return the watts of a node; 0 if it is not rented or down, or without a power model.

        A node that is on, or starting, draws `base_w`, for each GPU without a job `bare_w`, and for
        each GPU with jobs what `Colocation` says. Where idle nodes sleep, one without jobs draws
        `sleep_w`; falling asleep and waking take neither time nor energy.
        """
        power, colocation = self.scenario.power, self._colocation
        if power is None or colocation is None or state.node_state[node] in (OFF, DOWN):
            return 0.0
        busy = [gpu for gpu in self._gpus(node) if state.jobs_on[gpu]]
        if not busy and power.idle_nodes == "sleep":
            return power.node.sleep_w
        bare = power.gpu.bare_w * (self.cluster.size[node] - len(busy))
        return power.node.base_w + bare + colocation.watts(busy, state)

    def _gpus(self, node: int) -> range:
        first = self.cluster.first[node]
        return range(first, first + self.cluster.size[node])
