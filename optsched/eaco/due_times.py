"""When jobs must have ended, for the methods; the verifier has its own, in `group_energy`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optsched.eaco.instance import EacoInstance, Job


def due_s(instance: EacoInstance, job: Job) -> Fraction | None:
    """Return the seconds within which a job must end, were its group whole throughout.

    Its deadline, or, if that cannot be met, the earliest end that it can have alone at full power,
    on any nodes where it fits, staying where it runs or moved; None if it has no deadline.
    """
    if job.deadline_s is None:
        return None
    place = instance.location_of.get(job.id)
    kind = next(kind for kind in instance.types if kind.id == job.type)
    memory = {gpu.id: gpu.memory_gb for gpu in instance.gpu_types}
    ends = []
    for nodes in instance.nodes:
        is_whole = job.gpus <= nodes.gpus or job.gpus % nodes.gpus == 0
        if kind.memory_gb > memory[nodes.gpu] or not is_whole:
            continue
        if job.gpus <= nodes.gpus * nodes.count:
            seconds = Fraction(job.work_s) / Fraction(kind.speeds.get(nodes.gpu, 1.0))
            is_moved = place is not None and place.nodes != nodes.id
            ends.append(seconds + (Fraction(job.migration_s) if is_moved else 0))
    return max(Fraction(job.deadline_s), min(ends))
