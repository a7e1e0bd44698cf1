"""Equal jobs as one type, and what a placement costs them: the methods' form of the objective.

The formulation says it in `models/pal.py`, the verifier by itself in `verify/costs.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.documents.arrays import Floats
    from optsched.pal.instance import Job, PalInstance


Figure = TypeVar("Figure", float, "Floats")


class JobDemand(NamedTuple):
    """What equal jobs have in common: all but their ids and current GPUs.

    Attributes
    ----------
    restart_s
        Of a running job, 0 if it moves freely; None of one that waits.
    """

    gpus: int
    application_class: str
    highest_level: str | None
    model: str
    weight: float
    remaining_s: float | None
    reward: float | None
    restart_s: float | None

    @classmethod
    def of(cls, job: Job) -> JobDemand:
        """Return the demand of a job."""
        restart_s = (job.restart_s or 0.0) if job.current else None
        gang = job.gpus, job.application_class, job.highest_level, job.model
        return cls(*gang, job.weight, job.remaining_s, job.reward, restart_s)


@dataclass(frozen=True)
class GangType:
    """Jobs that are equal but for their ids and current GPUs.

    Attributes
    ----------
    jobs
        Their numbers in the instance.
    gpus
        Size of the gang.
    row
        Row of the slowdowns of their class, see `slowdown_rows`.
    factor
        Shape (levels,): cost of one unit of slowdown at each level of the topology, infinite above
        the hard cap.
    moving
        Cost of a move, zero for waiting jobs.
    reward
        Cost of leaving one out; infinite if that is not allowed.
    """

    jobs: tuple[int, ...]
    gpus: int
    row: int
    factor: Floats
    moving: float
    reward: float

    def cost(self, level: Any, slowest: Figure, *, is_kept: bool = False) -> Figure:
        """Return the cost of a place, or of many at once.

        Parameters
        ----------
        level
            Of the lowest domain around the GPUs.
        slowest
            Slowdown of the slowest of them.
        is_kept
            Whether a running job keeps its GPUs.
        """
        cost: Figure = self.factor[level] * slowest
        return cost if is_kept else cost + self.moving

    def without_costs(self) -> GangType:
        """Return the type if nothing costs anything but a job that is left out, which costs one."""
        factor = np.where(np.isfinite(self.factor), 0.0, np.inf)
        return replace(self, factor=factor, moving=0.0, reward=1.0)

    @property
    def key(self) -> tuple[object, ...]:
        """What makes jobs a type, but for the models and classes that equal each other."""
        return self.gpus, self.row, tuple(self.factor.tolist()), self.moving, self.reward


def job_types(instance: PalInstance, rows: dict[str, int]) -> tuple[GangType, ...]:
    """Return the types of jobs; `rows` is the row of slowdowns of each class."""
    members: dict[object, list[int]] = {}
    for n, job in enumerate(instance.jobs):
        figures = rows[job.application_class], instance.penalties[job.model]
        others = JobDemand.of(job)._replace(application_class="", model="")
        members.setdefault((figures, others), []).append(n)
    return tuple(_type(instance, rows, tuple(numbers)) for numbers in members.values())


def _type(instance: PalInstance, rows: dict[str, int], numbers: tuple[int, ...]) -> GangType:
    job = instance.jobs[numbers[0]]
    factor = job.weight * (job.remaining_s or 1.0) * np.array(instance.penalties[job.model])
    if job.highest_level is not None:
        factor[instance.topology.levels.index(job.highest_level) + 1 :] = np.inf
    moving = job.weight * (job.restart_s or 0.0) if job.current else 0.0
    reward = np.inf if instance.admission == "all" or job.reward is None else job.reward
    return GangType(numbers, job.gpus, rows[job.application_class], factor, moving, reward)


def slowdown_rows(instance: PalInstance, names: Iterable[str]) -> tuple[Floats, dict[str, int]]:
    """Return the slowdowns of the free GPUs for some classes, and the row of each class.

    Returns
    -------
    tuple
        Shape (rows, GPUs): classes with equal data share a row; and the row of each class.
    """
    number = {gpu: n for n, gpu in enumerate(instance.profile.gpus)}
    chosen = np.array([number[gpu] for gpu in instance.free_gpus], dtype=np.intp)
    rows: dict[str, int] = {}
    values: dict[bytes, tuple[int, Floats]] = {}
    for name in names:
        row = instance.profile.array(name)[chosen]
        rows[name] = values.setdefault(row.tobytes(), (len(values), row))[0]
    return np.array([row for _, row in values.values()]), rows
