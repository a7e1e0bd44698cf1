"""Figures of an instance that are allowed, but probably not what was meant."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.eaco.instance import EacoInstance


def doubts(instance: EacoInstance) -> Iterator[str]:
    """Yield what a user should look at: fields given in vain, and units that look wrong."""
    if instance.energy_weight is not None and instance.objective != "eaco":
        yield f"energy_weight is given in vain: the objective is '{instance.objective}'"
    if instance.epoch_s is not None and instance.objective != "epoch":
        yield f"epoch_s is given in vain: the objective is '{instance.objective}'"
    for gpu in instance.gpu_types:
        if gpu.power.peak_w < 10:  # accelerators for notebooks draw more
            yield f"GPU type '{gpu.id}' draws {gpu.power.peak_w:g} W at its peak: are these kW?"
    yield from _cap(instance)
    most = instance.max_jobs_per_gpu
    larger = [group for group in instance.interference.groups if len(group.types) > most]
    if larger:
        named = " + ".join(larger[0].types)
        more = f" and {len(larger) - 1} more" if len(larger) > 1 else ""
        yield f"measured in vain, since at most {most} jobs share a GPU: {named}{more}"
    patient = [job for job in instance.jobs if (job.max_slowdown or 1) > 10]
    if patient:
        first = patient[0]
        text = f"job '{first.id}' bears a slowdown of {first.max_slowdown:g}"
        yield text + (f", {len(patient) - 1} more above 10" if patient[1:] else "")


def _cap(instance: EacoInstance) -> Iterator[str]:
    cap = instance.power_cap_w
    peak = {gpu.id: Fraction(gpu.power.peak_w) for gpu in instance.gpu_types}
    nodes = (Fraction(n.power.base_w) + n.gpus * peak[n.gpu] for n in instance.nodes)
    if cap is not None and 100 * Fraction(cap) < min(nodes):
        yield f"the power cap of {cap:g} W is below 1 % of one node's peak: are these kW?"
