"""Decisions of Sia's round."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from optsched.instance import Document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.sia.instance import SiaInstance


class Assignment(Document):
    """The configuration of one job; without a type it waits."""

    id: str
    type: str | None = None
    gpus: int = 0


class SiaPlan(Document):
    """Which configuration every job gets."""

    jobs: tuple[Assignment, ...]

    @classmethod
    def of(cls, instance: SiaInstance, chosen: Sequence[int]) -> SiaPlan:
        """Return the plan that takes of each job the option of this number, in `options`."""
        rows = zip(instance.jobs, instance.options, chosen, strict=True)
        taken = [(job.id, options[n]) for job, options, n in rows]
        return cls(jobs=tuple([_assigned(name, own.type, own.gpus) for name, own in taken]))


@lru_cache(1 << 16)
def _assigned(name: str, kind: str | None, gpus: int) -> Assignment:
    """Return what a job gets; many wait from round to round."""
    return Assignment(id=name, type=kind, gpus=gpus)
