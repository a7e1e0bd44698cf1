"""Parts of an instance and of its plan: some jobs on some of the GPUs, with no word of the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.cluster.profile import Profile
from optsched.cluster.topology import Domain, Topology
from optsched.pal.instance import PalInstance
from optsched.pal.plan import PalPlan

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from optsched.pal.instance import Job


def restricted(instance: PalInstance, jobs: Sequence[Job], gpus: Collection[str]) -> PalInstance:
    """Return the instance of some jobs on some of the free GPUs, which keep their order.

    Other GPUs and domains without any are left out, so that it is as small as it can be; but a
    topology has GPUs, so with none all of them are unavailable.
    """
    fields = {name: getattr(instance, name) for name in type(instance).model_fields}
    fields |= {"jobs": tuple(jobs), "unavailable": instance.topology.gpus}
    if gpus:
        fields |= {
            "unavailable": (),
            "topology": _topology(instance.topology, gpus),
            "profile": _profile(instance.profile, gpus),
        }
    return PalInstance.model_construct(**fields)


def part(instance: PalInstance, plan: PalPlan, jobs: list[Job]) -> PalInstance:
    """Return the instance of some jobs on the GPUs that they have and that no job has."""
    names = {job.id for job in jobs}
    others = {gpu for placement in plan.jobs if placement.id not in names for gpu in placement.gpus}
    return restricted(instance, jobs, {gpu for gpu in instance.free_gpus if gpu not in others})


def joined(plan: PalPlan, new: PalPlan) -> PalPlan:
    """Return a plan with the placements of some jobs replaced."""
    placements = {placement.id: placement for placement in new.jobs}
    return PalPlan(jobs=tuple(placements.get(old.id, old) for old in plan.jobs))


def only(plan: PalPlan, jobs: list[Job]) -> PalPlan:
    """Return the part of a plan that concerns some jobs."""
    placements = {placement.id: placement for placement in plan.jobs}
    return PalPlan(jobs=tuple(placements[job.id] for job in jobs))


def _topology(topology: Topology, gpus: Collection[str]) -> Topology:
    kept = [n for n, gpu in enumerate(topology.gpus) if gpu in gpus]
    domains = [topology.domains[d] for d in np.unique(topology.ancestors[kept]).tolist()]
    fewer = (
        Domain.model_construct(
            id=domain.id,
            level=domain.level,
            parent=domain.parent,
            gpus=tuple(gpu for gpu in domain.gpus if gpu in gpus),
        )
        for domain in domains
    )
    return Topology.model_construct(levels=topology.levels, domains=tuple(fewer))


def _profile(profile: Profile, gpus: Collection[str]) -> Profile:
    kept = [n for n, gpu in enumerate(profile.gpus) if gpu in gpus]
    slowdown = {name: tuple(row[n] for n in kept) for name, row in profile.slowdown.items()}
    return Profile.model_construct(
        gpus=tuple(profile.gpus[n] for n in kept),
        slowdown=slowdown,
        kind=profile.kind,
        source=profile.source,
    )
