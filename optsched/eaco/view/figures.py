"""Figures of plans for tables: what sharing means for each job, each group and the cluster.

Part of the verifier: it imports neither numpy nor solvers and shares no code with the methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from optsched.eaco.verify.feasibility import total_j
from optsched.eaco.verify.group_energy import JOULES_PER_KWH, ExactFigures, cluster_w, loads

if TYPE_CHECKING:
    from optsched.eaco.instance import EacoInstance, Job
    from optsched.eaco.plan import EacoPlan, Group


@dataclass(frozen=True)
class ViewLimits:
    """How much tables, pictures and explanations show.

    Attributes
    ----------
    groups
        Of a plan in a table for the terminal, those that take most; in a picture, those that run
        longest.
    labelled_groups, written_types
        So many leave room for the names of jobs in a picture, for rates in a matrix.
    legend_types, nodes, names
        Types in a legend, entries of nodes that levers are pulled for, names in a sentence.
    near
        Of a limit, from which on it counts as used up.
    more
        What a limit is multiplied by to see what it costs.
    """

    groups: int = 40
    labelled_groups: int = 12
    written_types: int = 16
    legend_types: int = 21
    nodes: int = 5
    names: int = 3
    near: float = 0.99
    more: float = 1.01


SHOWN = ViewLimits()


class JobFigures(NamedTuple):
    """What sharing means for one job.

    Attributes
    ----------
    slowdown
        1 / rate while all jobs of the group run; what `max_slowdown` limits.
    run_s
        Seconds from now until it ends, phase by phase.
    latest_s
        Seconds until it ends if the whole group ran on throughout; at most `due_s`.
    is_moved
        Whether it runs now, and goes on on other GPUs.
    due_s
        Seconds within which it must end, its deadline or the earliest end that it can have alone;
        None if it has no deadline.
    is_late
        Whether that is after its deadline, which it then misses.
    """

    id: str
    slowdown: float
    run_s: float
    latest_s: float
    is_moved: bool
    due_s: float | None
    is_late: bool


class GroupFigures(NamedTuple):
    """What a group takes, for tables; energies with its share of the node.

    Attributes
    ----------
    energy_kwh
        From now until its last job ends.
    alone_kwh
        What its jobs take if each has GPUs of its own, of the kind that suits it best.
    run_s
        Seconds until its last job ends.
    gpu_w
        Greatest watts of each GPU in any phase.
    utilisation
        Of its GPUs while all jobs run.
    origin
        Where its rates are from: "alone", "measured", "larger", "pairs" or "utilisation".
    """

    jobs: tuple[JobFigures, ...]
    energy_kwh: float
    alone_kwh: float
    run_s: float
    gpu_w: float
    utilisation: float
    origin: str


class Figures(NamedTuple):
    """What a plan takes: its groups, and the cluster around them.

    Attributes
    ----------
    energy_kwh
        Of all groups until their last jobs end, and of waking nodes.
    alone_kwh
        What the placed jobs take if each has GPUs of its own, without waking any node.
    power_w
        Greatest watts of the cluster, if all groups had their greatest at once.
    nodes_on, woken
        How many nodes the groups use, and how many of those sleep now.
    late
        Ids of the placed jobs that cannot meet their deadlines.
    """

    groups: tuple[GroupFigures, ...]
    energy_kwh: float
    alone_kwh: float
    power_w: float
    nodes_on: int
    woken: int
    late: tuple[str, ...]


def performance(instance: EacoInstance, plan: EacoPlan) -> Figures:
    """Return the figures of a plan that breaks no rule, each the float nearest to the exact value.

    Whatever the objective is, energies are those of running to completion.

    Examples
    --------
    >>> import optsched
    >>> four = optsched.read("eaco/paper-four")
    >>> optsched.eaco.performance(four, optsched.solve(four).plan).energy_kwh
    93.66000000000001
    """
    figures = ExactFigures(instance)
    used = loads(figures, plan.groups)
    woken = {(name, n) for name, n in used if n >= figures.nodes[name].awake}
    groups = tuple(_group_figures(figures, group) for group in plan.groups)
    placed = [figures.jobs[name] for group in plan.groups for name in group.jobs]
    return Figures(
        groups=groups,
        energy_kwh=float(total_j(figures, plan.groups) / JOULES_PER_KWH),
        alone_kwh=_kwh([figures.alone_j(job) for job in placed]),
        power_w=float(cluster_w(figures, plan.groups)),
        nodes_on=len(used),
        woken=len(woken),
        late=tuple(job.id for group in groups for job in group.jobs if job.is_late),
    )


def _group_figures(figures: ExactFigures, group: Group) -> GroupFigures:
    phases, nodes = figures.phases(group), figures.nodes[group.nodes]
    now = Fraction(0)
    ends: dict[str, Fraction] = {}
    for phase, after in zip(phases, [*phases[1:], None], strict=True):
        now += phase.seconds
        still = set(after.jobs) if after is not None else set()
        ends |= {name: now for name in phase.jobs if name not in still}
    jobs = [figures.jobs[name] for name in group.jobs]
    return GroupFigures(
        jobs=tuple(_job_figures(figures, job, group, ends[job.id]) for job in jobs),
        energy_kwh=float(figures.energy_j(group, phases) / JOULES_PER_KWH),
        alone_kwh=_kwh([figures.alone_j(job) for job in jobs]),
        run_s=float(now),
        gpu_w=float(max(phase.gpu_w for phase in phases)),
        utilisation=float(figures.utilisation(group.jobs, nodes)),
        origin=figures.rates(group.jobs, nodes).origin,
    )


def _job_figures(figures: ExactFigures, job: Job, group: Group, end: Fraction) -> JobFigures:
    due = figures.due_s(job)
    return JobFigures(
        id=job.id,
        slowdown=float(figures.slowdown(job, group)),
        run_s=float(end),
        latest_s=float(figures.latest_s(job, group)),
        is_moved=figures.is_moved(job, group),
        due_s=None if due is None else float(due),
        is_late=job.deadline_s is not None and end > Fraction(job.deadline_s),
    )


def _kwh(joules: list[Fraction]) -> float:
    return float(sum(joules, Fraction(0)) / JOULES_PER_KWH)
