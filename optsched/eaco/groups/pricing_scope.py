"""Which instances have pricing problems that the bounded search solves, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.eaco.group_figures import TypeFigures, gang_fits
from optsched.eaco.groups.measured_types import MeasuredTypes, measured_names
from optsched.eaco.groups.pricing import PricingProblem
from optsched.eaco.groups.sequence_pricing import SequencePricing
from optsched.eaco.groups.type_sequences import has_few_sequences, needs_sequences
from optsched.eaco.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import EacoInstance

Pricing = PricingProblem | SequencePricing


def has_pricing_problems(instance: EacoInstance) -> bool:
    """Tell whether groups can be priced: energy alone counts, in utilisation or of few types.

    Rates are by the formula, or of types that were measured, not too many of them; jobs may run.
    """
    return (
        instance.objective == "run-to-completion"
        and instance.interference.fallback == "utilisation"
        and all(
            len(measured_names(instance, gpu.id)) <= SETTINGS.most_measured_types
            for gpu in instance.gpu_types
        )
        and (has_few_sequences(instance) or not any(map(needs_sequences, instance.gpu_types)))
    )


def pricing_problems(instance: EacoInstance, classes: list[JobClass]) -> list[Pricing]:
    """Return the pricing problems of an instance, by pool of nodes and gang size."""
    figures, problems = TypeFigures(instance), list[Pricing]()
    for pool, nodes in enumerate(instance.nodes):
        for gang in sorted({c.job.gpus for c in classes}):
            alone = figures.alone_on(classes, gang, nodes.gpu) if gang_fits(gang, nodes) else []
            among = [n for n in alone if _may_be_on(figures, classes, n, pool)]
            problems += _on(instance, classes, among, pool, gang)
    return problems


def _may_be_on(figures: TypeFigures, classes: list[JobClass], n: int, pool: int) -> bool:
    """Tell whether a job meets its deadline alone on some nodes, moved or where it runs."""
    instance, place = figures.instance, classes[n].place
    if classes[n].due is None or figures.is_allowed(classes, np.array([n]), pool):
        return True
    is_here = place >= 0 and instance.running[place].nodes == instance.nodes[pool].id
    return is_here and figures.is_allowed(classes, np.array([n]), pool, place=place)


def _on(
    instance: EacoInstance, classes: list[JobClass], among: list[int], pool: int, gang: int
) -> list[Pricing]:
    """Return the problem of groups by the formula, and that of groups that were measured."""
    if not among:
        return []
    nodes = instance.nodes[pool]
    gpu = next(gpu for gpu in instance.gpu_types if gpu.id == nodes.gpu)
    if needs_sequences(gpu):
        levels = range(-1, len(gpu.levels))
        return [SequencePricing(instance, classes, among, pool, gang, level) for level in levels]
    problems: list[Pricing] = []
    measured = MeasuredTypes(instance, nodes, [classes[c].job.type for c in among])
    plain = [c for c, special in zip(among, measured.special.tolist(), strict=False) if not special]
    if plain:
        problems.append(PricingProblem(instance, classes, plain, pool, gang))
    most = instance.max_jobs_per_gpu
    if measured.number and int(measured.weight[:-1].max()) * most >= 2:
        problems.append(PricingProblem(instance, classes, among, pool, gang, is_measured=True))
    return problems
