"""The verifier of EaCO: the rules of a plan, and its exact objective.

Integers and fractions only, no tolerances; it shares no code with the methods.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

from optsched.eaco.verify.group_energy import (
    JOULES_PER_KWH,
    ExactFigures,
    above_sleep_w,
    cluster_w,
    gang_fits,
    loads,
    used_nodes,
    wakes_j,
)
from optsched.eaco.verify.rates import EqualRateEnergy, EqualRates, equal_rates_hold
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.eaco.instance import EacoInstance, Job
    from optsched.eaco.plan import EacoPlan, Group


_last: ExactFigures | None = None


def _figures_of(instance: EacoInstance) -> ExactFigures:
    """Return the exact figures of an instance, which is frozen; those of the last one are kept.

    A search offers one plan after the other, most of whose groups were in one before.
    """
    global _last
    figures = _last
    if figures is None or figures.instance is not instance:
        figures = _last = ExactFigures(instance)
    return figures


# --- rules of a plan --------------------------------------------------------------------------


def violations(instance: EacoInstance, plan: EacoPlan) -> list[BrokenRule]:
    """Return every rule that the plan breaks; an empty list means that it is feasible."""
    figures = _figures_of(instance)
    broken = list(_structure(figures, plan))
    for kind, alike in figures.alike(plan.groups).items() if not broken else ():
        if kind not in figures.sound and not any(_shared_rules(figures, alike[0])):
            figures.sound.add(kind)
        for group in alike:
            broken += _group_rules(figures, group)
            broken += _shared_rules(figures, group) if kind not in figures.sound else ()
    return broken or list(_cluster_rules(figures, plan.groups))


def _structure(figures: ExactFigures, plan: EacoPlan) -> Iterator[BrokenRule]:
    named = Counter(name for group in plan.groups for name in group.jobs)
    named.update(plan.waiting)
    for name, times in named.items():
        if name not in figures.jobs:
            yield BrokenRule("known-job", f"the instance has no job '{name}'")
        if times > 1:
            yield BrokenRule("one-place-per-job", f"job '{name}' stands in the plan {times} times")
    for name in figures.jobs:
        if name not in named:
            yield BrokenRule("every-job", f"job '{name}' is neither placed nor waiting")
    for name in plan.waiting:
        if name in figures.jobs and figures.jobs[name].waiting_penalty_kwh is None:
            text = f"job '{name}' waits, but has no waiting_penalty_kwh: it must be placed"
            yield BrokenRule("may-wait", text)
    for group in plan.groups:
        yield from _references(figures, group)
    taken = Counter(group.location for group in plan.groups if group.location is not None)
    for name, times in taken.items():
        if times > 1:
            yield BrokenRule("location-once", f"{times} groups are at location '{name}'")


def _references(figures: ExactFigures, group: Group) -> Iterator[BrokenRule]:
    where = _name(group)
    if group.nodes not in figures.nodes:
        yield BrokenRule("known-nodes", f"{where}: there are no nodes '{group.nodes}'")
    elif group.level is not None:
        gpu = figures.gpus[figures.nodes[group.nodes].gpu]
        if group.level not in {level.id for level in gpu.levels}:
            text = f"{where}: GPU type '{gpu.id}' has no power level '{group.level}'"
            yield BrokenRule("known-level", text)
    sizes = {name: figures.jobs[name].gpus for name in group.jobs if name in figures.jobs}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{size} of '{name}'" for name, size in sizes.items())
        yield BrokenRule("equal-gangs", f"{where}: gangs differ, {listed} GPUs")
    if group.location is not None:
        yield from _location(figures, group)


def _location(figures: ExactFigures, group: Group) -> Iterator[BrokenRule]:
    """Compare a group with the location whose GPUs it takes over."""
    where = _name(group)
    place = next((p for p in figures.instance.running if p.id == group.location), None)
    if place is None:
        text = f"{where}: nothing runs at a location '{group.location}'"
        yield BrokenRule("known-location", text)
        return
    if (group.nodes, group.node) != (place.nodes, place.node):
        text = f"location '{place.id}' is on node {place.node} of '{place.nodes}', not on node "
        text += f"{group.node} of '{group.nodes}'"
        yield BrokenRule("location-nodes", f"{where}: {text}")
    if not set(group.jobs) & set(place.jobs):
        text = f"{where}: none of its jobs runs at location '{place.id}' now"
        yield BrokenRule("location-kept", text)
    size, known = figures.jobs[place.jobs[0]].gpus, figures.jobs.get(group.jobs[0])
    if known is not None and known.gpus != size:
        text = f"{where}: location '{place.id}' has {size} GPUs, the gang {known.gpus}"
        yield BrokenRule("location-size", text)


def _group_rules(figures: ExactFigures, group: Group) -> Iterator[BrokenRule]:
    nodes, gang = figures.nodes[group.nodes], figures.gang(group)
    where = f"{_name(group)} on '{nodes.id}'"
    if not gang_fits(gang, nodes):
        text = f"{where}: {gang} GPUs fit neither into a node of {nodes.gpus} nor fill whole ones"
        yield BrokenRule("gang-fits", text)
    elif used_nodes(gang, group, nodes)[-1] >= nodes.count:
        last = used_nodes(gang, group, nodes)[-1]
        text = f"{where}: there is no node {last}, {nodes.count} are numbered from 0"
        yield BrokenRule("known-node", text)


def _shared_rules(figures: ExactFigures, group: Group) -> Iterator[BrokenRule]:
    """Check what holds for one of the groups that are alike if it holds for another."""
    nodes = figures.nodes[group.nodes]
    where = f"{_name(group)} on '{nodes.id}'"
    types = nodes.gpu, figures.types_of(group.jobs)
    if types not in figures.sound_types:
        broken = list(_memory(figures, group, where))
        if len(group.jobs) > 1:
            broken += _sharing(figures, group, where)
        yield from broken
        if not broken:
            figures.sound_types[types] = True
    if not figures.rates(group.jobs, nodes).fits:
        return
    for name in group.jobs:
        yield from _tolerances(figures, figures.jobs[name], group, where)


def _memory(figures: ExactFigures, group: Group, where: str) -> Iterator[BrokenRule]:
    gpu = figures.gpus[figures.nodes[group.nodes].gpu]
    terms = [Fraction(figures.types[figures.jobs[name].type].memory_gb) for name in group.jobs]
    limit = Fraction(gpu.memory_gb)
    if len(terms) > 1:
        limit *= 1 - Fraction(figures.instance.memory_headroom)
    need = sum(terms, Fraction(0))
    if need > limit:
        text = f"{where}: {float(need)!r} GB on each GPU, {float(limit)!r} are free for it"
        yield BrokenRule("memory", text)


def _sharing(figures: ExactFigures, group: Group, where: str) -> Iterator[BrokenRule]:
    """Check what holds for groups of two or more only."""
    nodes, most = figures.nodes[group.nodes], figures.instance.max_jobs_per_gpu
    if len(group.jobs) > most:
        text = f"{where}: {len(group.jobs)} jobs share GPUs, {most} may"
        yield BrokenRule("jobs-per-gpu", text)
    rates = figures.rates(group.jobs, nodes)
    if not rates.is_known:
        fallback = figures.instance.interference.fallback
        text = f"{where}: not measured, and beyond fallback '{fallback}'"
        yield BrokenRule("known-rates", text)
        return
    if not rates.fits:
        yield BrokenRule("fits", f"{where}: measured not to fit together")
        return
    limit = figures.instance.utilisation_limit
    if limit is None:
        return
    busy = figures.utilisation(group.jobs, nodes)
    if busy > Fraction(limit):
        text = f"{where}: utilisation {float(busy)!r}, the limit is {limit!r}"
        yield BrokenRule("utilisation", text)


def _tolerances(figures: ExactFigures, job: Job, group: Group, where: str) -> Iterator[BrokenRule]:
    slowdown = figures.slowdown(job, group)
    if job.max_slowdown is not None and slowdown > Fraction(job.max_slowdown):
        text = f"{where}: job '{job.id}' is slowed down by {float(slowdown)!r}, it bears "
        yield BrokenRule("slowdown", text + repr(job.max_slowdown))
    due = figures.due_s(job)
    if due is None or job.deadline_s is None:
        return
    latest = figures.latest_s(job, group)
    if latest > due:
        text = f"{where}: job '{job.id}' may take {float(latest)!r} s, its deadline is in "
        text += f"{job.deadline_s!r} s"
        if due > Fraction(job.deadline_s):
            text += (
                f", so it is due at the earliest end that it can have alone, in {float(due)!r} s"
            )
        yield BrokenRule("deadline", text)


def _cluster_rules(figures: ExactFigures, groups: Sequence[Group]) -> Iterator[BrokenRule]:
    for (name, number), used in loads(figures, groups).items():
        each = figures.nodes[name].gpus
        if used > each:
            text = f"node {number} of '{name}' has {each} GPUs, {used} are used"
            yield BrokenRule("node-gpus", text)
    cap = figures.instance.power_cap_w
    if cap is None:
        return
    power = cluster_w(figures, groups)
    if power > Fraction(cap):
        floor = float(figures.instance.idle_floor_w)
        text = f"the cluster draws {float(power)!r} W, the cap is {cap!r} W"
        yield BrokenRule("power-cap", f"{text}; with all nodes asleep it draws {floor!r} W")


def _name(group: Group) -> str:
    return "group " + ", ".join(f"'{name}'" for name in group.jobs)


# --- exact objective of a plan ----------------------------------------------------------------


def objective(instance: EacoInstance, plan: EacoPlan) -> float:
    """Return the objective in `EacoInstance.unit`, the float nearest to the exact value."""
    return float(exact_objective(instance, plan))


def exact_objective(instance: EacoInstance, plan: EacoPlan) -> Fraction:
    """Return the objective of a plan that breaks no rule; `EacoInstance` defines it."""
    figures = _figures_of(instance)
    if instance.objective == "eaco":
        return _weighted(figures, plan.groups)
    waiting = [figures.jobs[name] for name in plan.waiting]
    penalties = sum((Fraction(job.waiting_penalty_kwh or 0) for job in waiting), Fraction(0))
    if instance.objective == "epoch":
        joules = _epoch_j(figures, plan.groups)
    else:
        joules = sum((figures.later_j(job) for job in waiting), total_j(figures, plan.groups))
    return (joules / JOULES_PER_KWH + penalties) * instance.per_kwh


def total_j(figures: ExactFigures, groups: Sequence[Group]) -> Fraction:
    """Return the joules of groups until their last jobs end, and of waking nodes."""
    instance, even = figures.instance, {}
    closed = [n for n in instance.nodes if equal_rates_hold(instance, figures.gpus[n.gpu])]
    if closed:
        rates = EqualRates(instance)
        even = {nodes.id: EqualRateEnergy(rates, figures, nodes) for nodes in closed}
    joules = wakes_j(figures, groups)
    for kind, alike in figures.alike(groups).items():
        first = alike[0]
        if kind in figures.joules:
            each = figures.joules[kind]
        elif first.level is None and first.nodes in even:
            jobs, energy = [figures.jobs[name] for name in first.jobs], even[first.nodes]
            works = [(figures.work_s(job, first), energy.rates.busy[job.type]) for job in jobs]
            each = figures.gang(first) * energy.joules(sorted(works, reverse=True)) / energy.per_j
        else:
            each = figures.energy_j(first, figures.phases(first))
        figures.joules[kind] = each
        joules += len(alike) * each
    return joules


def _epoch_j(figures: ExactFigures, groups: Sequence[Group]) -> Fraction:
    """Return the joules of one epoch, less what the work is worth that is done in it."""
    seconds = Fraction(figures.instance.epoch_s or 0)
    watts = above_sleep_w(figures, groups, [figures.gpu_w(group.jobs, group) for group in groups])
    joules = seconds * watts + wakes_j(figures, groups)
    for group in groups:
        for job in (figures.jobs[name] for name in group.jobs):
            done = seconds / figures.slowdown(job, group)
            if figures.is_moved(job, group):
                done -= Fraction(job.migration_s)
            joules -= figures.credit_w(job) * done * figures.speed(job, figures.nodes[group.nodes])
    return joules


def _weighted(figures: ExactFigures, groups: Sequence[Group]) -> Fraction:
    """Return equation (1) of the paper: energy in kWh, mean time per training epoch in hours."""
    weight = Fraction(figures.instance.energy_weight or 0)
    hours = Fraction(0)
    for group in groups:
        for job in (figures.jobs[name] for name in group.jobs):
            epoch_s = Fraction(job.training_epoch_s or 0) * figures.slowdown(job, group)
            hours += epoch_s / figures.speed(job, figures.nodes[group.nodes]) / 3600
    energy = total_j(figures, groups) / JOULES_PER_KWH
    return weight * energy + (1 - weight) * hours / len(figures.jobs)
