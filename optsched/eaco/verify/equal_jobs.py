"""Jobs that are equal but for their ids: the verifier prices them together."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from optsched.eaco.instance import EacoInstance, Job


class Equal(NamedTuple):
    """Jobs that are equal but for their ids."""

    jobs: tuple[str, ...]
    job: Job
    place: str | None


def equal_jobs(instance: EacoInstance) -> list[Equal]:
    """Merge equal jobs, in the order of the first ones; no move concerns those that do not run."""
    fields = attrgetter(*sorted(type(instance.jobs[0]).model_fields.keys() - {"id", "migration_s"}))
    place = {name: location.id for name, location in instance.location_of.items()}
    sets: dict[tuple[object, ...], list[Job]] = {}
    for job in instance.jobs:
        now = (place[job.id], job.migration_s) if job.id in place else None
        sets.setdefault((now, fields(job)), []).append(job)
    return [
        Equal(tuple([job.id for job in jobs]), jobs[0], place.get(jobs[0].id))
        for jobs in sets.values()
    ]
