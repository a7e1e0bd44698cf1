"""From a view to an instance of EaCO, and from its plan to a decision."""

from __future__ import annotations

import math
from fractions import Fraction
from sys import float_info
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optsched.cluster.power import GpuPower, NodePower
from optsched.eaco.instance import EacoInstance, GpuType, Job, JobType, Nodes, Running
from optsched.rollout.engine.decision import Decision
from optsched.rollout.policies.sharing.node_pools import WHOLE, NodePools
from optsched.traces.trace import US

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from optsched.documents.arrays import Floats
    from optsched.eaco.plan import EacoPlan
    from optsched.rollout.engine.view import View
    from optsched.rollout.physics.cluster import Cluster
    from optsched.rollout.scenario import Model, Scenario

    Gpus = tuple[int, ...]

GPU = "gpu"
OTHER = "(other)"
"""The type of jobs whose model the scenario does not know."""
ANY_MEMORY_GB = 1e6
UNKNOWN_S = 3600.0
EPOCH_S = 3600.0
"""A training epoch of any job, alone, for equation (1) of the paper: scenarios know none."""
LEAST_S, MOST_S = 1e-3, float_info.max


def _at_least(value: Fraction) -> float:
    """Return the least float that is not below a value."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def work_left_s(view: View, jobs: Sequence[int]) -> Floats:
    """Return the seconds that jobs still need alone, as far as the view tells."""
    left = view.remaining_us(jobs) / US
    known = np.minimum(np.maximum(left, LEAST_S), MOST_S)
    seconds: Floats = np.where(np.isnan(left), UNKNOWN_S, known)
    return seconds


class Present(NamedTuple):
    """The jobs at a moment: an instance, the GPUs of each of its locations, and its nodes."""

    instance: EacoInstance
    places: dict[str, Gpus]
    pools: NodePools


class EacoInstanceParts:
    """What stays the same from call to call: GPUs, nodes, types and interference.

    The nodes are equal; whole ones are one pool. A job of a model that the scenario does not
    know is of a type that keeps its GPUs busy. A job that is to be moved works as much longer as a
    move costs in the scenario.

    Parameters
    ----------
    parts_late
        Whether groups are parted in which somebody ends too late who could be in time alone.
    fields
        Of the instance: what is minimised, and other rates of groups than the scenario's.
    """

    def __init__(
        self, scenario: Scenario, cluster: Cluster, parts_late: bool = False, **fields: Any
    ) -> None:
        width = cluster.largest
        self.cluster, self.parts_late = cluster, parts_late
        self.models = scenario.models
        costs = scenario.costs
        self.migration_s = costs.restore_s + costs.checkpoint_s
        power = scenario.power
        gpu_power = GpuPower(bare_w=0, context_w=0, peak_w=1) if power is None else power.gpu
        sleeps = power is not None and power.idle_nodes == "sleep"
        node_power = NodePower(base_w=0.0)
        if power is not None and sleeps:
            node_power = power.node.model_copy(update={"wake_s": 0.0, "wake_w": None})
        types = [self._type(name, model) for name, model in scenario.models.items()]
        gpu = GpuType(
            id=GPU, memory_gb=scenario.sharing.memory_gb or ANY_MEMORY_GB, power=gpu_power
        )
        template = EacoInstance(
            name="rollout",
            max_jobs_per_gpu=scenario.sharing.max_jobs_per_gpu,
            gpu_types=(gpu,),
            nodes=(Nodes(id=WHOLE, gpu=GPU, gpus=width, count=cluster.nodes, power=node_power),),
            types=(*types, JobType(id=OTHER, utilisation=1.0)),
            jobs=(Job(id="none", type=OTHER, work_s=1.0, training_epoch_s=EPOCH_S),),
            **({"interference": scenario.sharing.interference} | fields),
        )
        assert template.rates  # remembered, and shared by the instances of all calls
        self.template = template

    @staticmethod
    def _type(name: str, model: Model) -> JobType:
        return JobType(id=name, utilisation=model.utilisation, memory_gb=model.memory_gb)

    def present(
        self,
        view: View,
        jobs: Sequence[int],
        waiting_kwh: Mapping[int, float | None],
        pools: NodePools | None = None,
    ) -> Present:
        """Return the instance of some jobs, valid by construction, so it is not validated.

        Parameters
        ----------
        waiting_kwh
            By job the cost of waiting; None if it must not wait.
        pools
            The nodes that there are, none of `jobs` outside of them; None: all nodes are whole.
        """
        pools = NodePools(self.cluster, None, {}) if pools is None else pools
        rows = tuple(
            self._job(view, job, seconds, waiting_kwh[job])
            for job, seconds in zip(jobs, work_left_s(view, jobs).tolist(), strict=True)
        )
        groups: dict[Gpus, list[int]] = {}
        for job in jobs:
            if view.gpus_of(job):
                groups.setdefault(view.gpus_of(job), []).append(job)
        places = {f"at-{n}": gpus for n, gpus in enumerate(groups)}
        running = tuple(
            Running.trusted(
                id=name,
                nodes=pools.at[self.cluster.node_of[gpus[0]]][0],
                node=pools.at[self.cluster.node_of[gpus[0]]][1],
                jobs=tuple(str(job) for job in groups[gpus]),
            )
            for name, gpus in places.items()
        )
        late = {} if all(row.deadline_s is None for row in rows) else self._kept(rows, running)
        rows = tuple(late.get(row.id, row) for row in rows)
        update = {"jobs": rows, "running": running, "nodes": self._nodes(pools)}
        return Present(self.template.model_copy(update=update), places, pools)

    def _nodes(self, pools: NodePools) -> tuple[Nodes, ...]:
        """Return the pools of an instance."""
        whole = self.template.nodes
        if list(pools.nodes) == [WHOLE] and len(pools.whole) == whole[0].count:
            return tuple(whole)
        return tuple(
            whole[0].model_copy(update={"id": pool, "gpus": pools.gpus[pool], "count": len(nodes)})
            for pool, nodes in pools.nodes.items()
        )

    def _kept(self, rows: Iterable[Job], running: Iterable[Running]) -> dict[str, Job]:
        """Return running jobs whose groups end too late for them, due when these end.

        A job that shares GPUs and cannot be in time would be due at its earliest end alone, and its
        partners would have to go: where there is no room for them, nothing could be decided at all.
        So running groups may always be kept. Where rates are not known, each may be moved. With
        `parts_late` this is for jobs alone that could not be in time without partners either.
        """
        jobs, late = {job.id: job for job in rows}, {}
        for place in running if self.template.max_jobs_per_gpu > 1 else ():
            inside = [jobs[name] for name in place.jobs]
            rates = self.template.rates[GPU].of([job.type for job in inside])
            for job in inside if len(inside) > 1 else ():
                if job.deadline_s is None or (self.parts_late and job.work_s <= job.deadline_s):
                    continue
                if rates.fits and rates.is_known:
                    end = Fraction(job.work_s) / rates.by_type[job.type]
                else:
                    end = Fraction(job.work_s) + Fraction(job.migration_s)
                if end > Fraction(job.deadline_s):
                    late[job.id] = job.model_copy(update={"deadline_s": _at_least(end)})
        return late

    def _job(self, view: View, job: int, work_s: float, waiting_kwh: float | None) -> Job:
        name = view.model(job)
        model, deadline = self.models.get(name), view.deadline_us(job)
        slowdown = None if model is None else model.max_slowdown
        return Job.trusted(
            id=str(job),
            type=OTHER if model is None else name,
            gpus=view.demand(job),
            work_s=work_s,
            max_slowdown=None if slowdown is None else max(1.0, slowdown),
            deadline_s=None if deadline < 0 else (deadline - view.now_us) / US,
            migration_s=self.migration_s,
            waiting_penalty_kwh=waiting_kwh,
            work_credit_w=None,
            training_epoch_s=EPOCH_S,
        )

    # --- plans --------------------------------------------------------------------------------

    def decision(self, view: View, present: Present, plan: EacoPlan) -> Decision:
        """Return what changes by a plan; groups at new GPUs get the lowest free ones of a node."""
        kept = [(g, present.places[g.location]) for g in plan.groups if g.location is not None]
        taken = {gpu for _, gpus in kept for gpu in gpus}
        place: dict[int, Gpus] = {}
        for group, gpus in kept:
            self._put(view, group.jobs, gpus, place)
        for group in plan.groups:
            if group.location is None:
                size = view.demand(int(group.jobs[0]))
                gpus = present.pools.free_gpus(group.nodes, group.node, size, taken)
                taken.update(gpus)
                self._put(view, group.jobs, gpus, place)
        stop = tuple(int(name) for name in plan.waiting if view.gpus_of(int(name)))
        return Decision(place=place, stop=stop)

    @staticmethod
    def _put(view: View, jobs: Iterable[str], gpus: Gpus, place: dict[int, Gpus]) -> None:
        for job in map(int, jobs):
            if view.gpus_of(job) != gpus:
                place[job] = gpus
