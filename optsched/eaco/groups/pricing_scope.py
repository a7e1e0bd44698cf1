"""Which instances have pricing problems that the bounded search solves, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.cluster.power import Affine
from optsched.eaco.group_figures import TypeFigures, gang_fits
from optsched.eaco.groups.pricing import PricingProblem

if TYPE_CHECKING:
    from optsched.eaco.groups.enumeration import JobClass
    from optsched.eaco.instance import EacoInstance


def has_pricing_problems(instance: EacoInstance) -> bool:
    """Tell whether rates are by the formula alone, and nothing but nodes ties groups together."""
    return (
        instance.objective == "run-to-completion"
        and instance.interference.fallback == "utilisation"
        and not any(rates.measured for rates in instance.rates.values())
        and all(isinstance(gpu.power.curve, Affine) for gpu in instance.gpu_types)
        and not any(gpu.levels for gpu in instance.gpu_types)
        and not instance.running
        and instance.power_cap_w is None
    )


def pricing_problems(instance: EacoInstance, classes: list[JobClass]) -> list[PricingProblem]:
    """Return the pricing problems of an instance, by pool of nodes and gang size."""
    figures, problems = TypeFigures(instance), []
    for pool, nodes in enumerate(instance.nodes):
        for gang in sorted({c.job.gpus for c in classes}):
            alone = figures.alone_on(classes, gang, nodes.gpu) if gang_fits(gang, nodes) else []
            among = [
                n
                for n in alone
                if classes[n].due is None or figures.is_allowed(classes, np.array([n]), pool)
            ]
            if among:
                problems.append(PricingProblem(instance, classes, among, pool, gang))
    return problems
