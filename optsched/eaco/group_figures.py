"""What groups of jobs take and may do, for the methods: in fractions, where floats may err.

Arrays of groups have their figures in floats (`columns`, `pricing`); what is near to a limit, and
what is worked out but once, is here. The verifier has figures of its own, `verify.group_energy`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from optsched.eaco.kept_by_tables import KeptByTables
from optsched.eaco.plan import Group

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from optsched.documents.arrays import Indices
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import EacoInstance, Job, Nodes, PowerLevel


JOULES_PER_KWH = 3_600_000

_KEPT = KeptByTables(most_tables=4, most_figures=100_000)


class TypeFigures:
    """Figures of an instance's job types side by side.

    Attributes
    ----------
    types, gpus
        Entries of the instance by id.
    """

    def __init__(self, instance: EacoInstance) -> None:
        self.instance = instance
        self.types = {kind.id: kind for kind in instance.types}
        self.gpus = {gpu.id: gpu for gpu in instance.gpu_types}
        left = 1 - Fraction(instance.memory_headroom)
        self._memory_gb = {kind.id: Fraction(kind.memory_gb) for kind in instance.types}
        self._shared_gb = {gpu.id: Fraction(gpu.memory_gb) * left for gpu in instance.gpu_types}
        self._may_share: dict[tuple[str, tuple[str, ...]], bool] = self.kept("may share")
        self._slowdowns: dict[tuple[str, int, tuple[str, ...]], Mapping[str, Fraction]]
        self._slowdowns = self.kept("slowdowns")

    def kept(self, *what: Hashable) -> dict[Any, Any]:
        """Return figures, to be added to, that follow from the tables and limits of groups."""
        instance = self.instance
        limits = instance.memory_headroom, instance.utilisation_limit, instance.max_jobs_per_gpu
        kept = _KEPT.of(instance.interference, instance.types, instance.gpu_types)
        return kept.of(*what, *limits)

    # --- nodes ---------------------------------------------------------------------------------

    def node_share_w(self, nodes: Nodes) -> Fraction:
        """Return the watts of a node outside its GPUs, above sleep, by GPU."""
        return (Fraction(nodes.power.base_w) - Fraction(nodes.power.sleep_w)) / nodes.gpus

    def wake_j(self, nodes: Nodes) -> Fraction:
        """Return the joules of waking a node, above those of sleeping on."""
        power = nodes.power
        return power.wake_energy_j - Fraction(power.wake_s) * Fraction(power.sleep_w)

    # --- types side by side --------------------------------------------------------------------

    def memory_fits(self, types: Sequence[str], gpu: str) -> bool:
        """Tell whether jobs of some types fit together into the memory of a GPU."""
        if len(types) == 1:
            return self.types[types[0]].memory_gb <= self.gpus[gpu].memory_gb
        return sum([self._memory_gb[kind] for kind in types]) <= self._shared_gb[gpu]

    def gpu_w(self, types: Sequence[str], gpu: str, level: PowerLevel | None = None) -> Fraction:
        """Return the watts of each GPU that types share."""
        watts = self.instance.rates[gpu].gpu_w(types, self.gpus[gpu].power)
        if level is None:
            return watts
        return min(watts * Fraction(level.power), Fraction(level.limit_w))

    def alone_on(self, classes: list[JobClass], gang: int, gpu: str) -> list[int]:
        """Return which classes have gangs of a size, and fit on GPUs of a type alone."""
        same = (n for n, c in enumerate(classes) if c.job.gpus == gang)
        return [n for n in same if self.memory_fits([classes[n].job.type], gpu)]

    def may_share(self, types: Sequence[str], gpu: str) -> bool:
        """Tell whether types keep the limits of groups: memory, and for two or more all others."""
        key = gpu, tuple(sorted(types))
        if key not in self._may_share:
            self._may_share[key] = self._keep_limits(types, gpu)
        return self._may_share[key]

    def _keep_limits(self, types: Sequence[str], gpu: str) -> bool:
        """Tell the same, worked out."""
        instance = self.instance
        if not self.memory_fits(types, gpu):
            return False
        if len(types) == 1:
            return True
        limit = instance.utilisation_limit
        if len(types) > instance.max_jobs_per_gpu or not instance.rates[gpu].of(types).fits:
            return False
        return limit is None or instance.rates[gpu].busy(types) <= limit

    def slowdowns(self, types: Sequence[str], gpu: str, level: int) -> Mapping[str, Fraction]:
        """Return by type how much types that fit together slow down, and a power level by index."""
        key = gpu, level, tuple(sorted(types))
        if key not in self._slowdowns:
            factor = Fraction(1 if level < 0 else self.gpus[gpu].levels[level].rate)
            rates = self.instance.rates[gpu].of(types).by_type
            self._slowdowns[key] = {name: 1 / (rate * factor) for name, rate in rates.items()}
        return self._slowdowns[key]

    # --- jobs ----------------------------------------------------------------------------------

    def speed(self, job: Job, nodes: Nodes) -> Fraction:
        """Return the speed of a job alone, relative to what its work is stated for."""
        return Fraction(self.types[job.type].speeds.get(nodes.gpu, 1.0))

    def work_s(self, job: Job, nodes: Nodes, *, is_moved: bool) -> Fraction:
        """Return the seconds that a job takes alone at full power on some nodes."""
        seconds = Fraction(job.work_s) / self.speed(job, nodes)
        return seconds + Fraction(job.migration_s) if is_moved else seconds

    def credit_w(self, job: Job) -> Fraction:
        """Return the joules that a second of a job's work is worth, objective 'epoch'."""
        if job.work_credit_w is not None:
            return Fraction(job.work_credit_w)
        return self._least_j(job, is_moved=False) / Fraction(job.work_s)

    def later_j(self, job: Job) -> Fraction:
        """Return the least joules of a job that waits now, and then has GPUs of its own."""
        return self._least_j(job, is_moved=job.id in self.instance.location_of)

    def _least_j(self, job: Job, *, is_moved: bool) -> Fraction:
        """Return the least joules of a job on GPUs of its own, at full power."""
        return min(
            job.gpus
            * (self.gpu_w([job.type], nodes.gpu) + self.node_share_w(nodes))
            * self.work_s(job, nodes, is_moved=is_moved)
            for nodes in self.instance.nodes
            if self.fits_alone(job, nodes)
        )

    def fits_alone(self, job: Job, nodes: Nodes) -> bool:
        """Tell whether a job may have GPUs of its own on some nodes."""
        return gang_fits(job.gpus, nodes) and self.memory_fits([job.type], nodes.gpu)

    # --- groups --------------------------------------------------------------------------------

    def is_allowed(
        self, classes: list[JobClass], members: Indices, pool: int, level: int = -1, place: int = -1
    ) -> bool:
        """Decide exactly about a group that is near to a limit.

        Parameters
        ----------
        members
            Indices of classes; those beyond the last class are none.
        pool, level, place
            Indices of its nodes, power level and running location; -1 for none.
        """
        nodes = self.instance.nodes[pool]
        types = [classes[n].job.type for n in members.tolist() if n < len(classes)]
        if not self.may_share(types, nodes.gpu):
            return False
        slowdowns = self.slowdowns(types, nodes.gpu, level)
        for n in {*members.tolist()} - {len(classes)}:
            c = classes[n]
            slowdown = slowdowns[c.job.type]
            if c.job.max_slowdown is not None and slowdown > c.job.max_slowdown:
                return False
            if c.due is None:
                continue
            work = self.work_s(c.job, nodes, is_moved=c.place >= 0 and c.place != place)
            if work * slowdown > c.due:
                return False
        return True


def gang_fits(gpus: int, nodes: Nodes) -> bool:
    """Tell whether a gang fits into a node, or fills whole nodes that there are."""
    if gpus <= nodes.gpus:
        return nodes.count > 0
    many, rest = divmod(gpus, nodes.gpus)
    return rest == 0 and many <= nodes.count


def group_of(
    instance: EacoInstance,
    classes: list[JobClass],
    members: Indices,
    pool: int,
    level: int,
    place: int,
) -> Group:
    """Return a group of the first jobs of the classes, on the first node that is possible."""
    names: list[str] = []
    for c in members.tolist():
        if c < len(classes):
            names.append(next(name for name in classes[c].jobs if name not in names))
    nodes = instance.nodes[pool]
    gpu = next(gpu for gpu in instance.gpu_types if gpu.id == nodes.gpu)
    return Group(
        jobs=tuple(names),
        nodes=nodes.id,
        node=0 if place < 0 else instance.running[place].node,
        level=None if level < 0 else gpu.levels[level].id,
        location=None if place < 0 else instance.running[place].id,
    )
