"""Data of the PAL problem: a cluster, its slowdowns, locality penalties and a batch of jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from optsched.cluster.profile import Profile
from optsched.cluster.topology import Name, Topology
from optsched.documents.base import Entries, Items
from optsched.instance import Document, Fault, Instance, NonNegative, Positive
from optsched.pal.faults import instance_faults


class Job(Document):
    """A gang job: it runs on all its GPUs at once, at the pace of the slowest."""

    id: Name
    gpus: Annotated[int, Field(ge=1, le=100_000, description="Size of the gang.")]
    application_class: Name = Field(description="A class of the profile.")
    model: Name = Field(description="A key of `locality`.")
    weight: Positive = 1.0
    remaining_s: Positive | None = Field(
        default=None,
        description="Base time that is left, in seconds on median GPUs in one place; all jobs have "
        "it, or none (then each counts as one).",
    )
    current: Items[Name] = Field(
        default=(), description="GPUs that the job holds now; none if it is waiting."
    )
    restart_s: NonNegative | None = Field(
        default=None, description="Seconds lost if a running job is moved to other GPUs."
    )
    reward: Positive | None = Field(
        default=None,
        description="What placing the job is worth, in the objective's unit; with admission "
        "'optional' a job that is left out costs that much.",
    )
    highest_level: Name | None = Field(
        default=None, description="Hard cap: the job stays within one domain of this level."
    )


class PalInstance(Instance):
    """Which GPUs for each job: least total weighted slowdown of a batch of gang jobs.

    A job's slowdown is its model's locality penalty at the level of the lowest domain around its
    GPUs, times the slowdown of the slowest of them for its application class. The objective is the
    sum over jobs of weight x (remaining time x slowdown + restart time if it is moved).

    Source: Jain et al., "PAL: A Variability-Aware Policy for Scheduling ML Workloads in GPU
    Clusters", SC 2024, arXiv 2408.11919.

    Examples
    --------
    >>> import optsched
    >>> from optsched.pal import Job, PalInstance
    >>> tiny = optsched.read("pal/tiny")
    >>> jobs = [Job(id="one", gpus=2, application_class="A", model="resnet50")]
    >>> cluster = {"topology": tiny.topology, "profile": tiny.profile}
    >>> own = PalInstance(locality={"resnet50": [1.0, 1.5]}, jobs=jobs, **cluster)
    >>> optsched.solve(own).frame()["gpu_ids"].tolist()
    [('n1/0', 'n1/1')]
    """

    problem: ClassVar[str] = "pal"
    example: ClassVar[str] = "pal/tiny"

    schema_id: Literal["optsched/pal/1"] = Field(default="optsched/pal/1", alias="schema")
    topology: Topology
    profile: Profile
    locality: Entries[str, Items[Positive]] = Field(
        min_length=1,
        description="Per model the factor on the iteration time of a job whose GPUs meet at each "
        "level of the topology, from the lowest up.",
    )
    locality_kind: Literal["given", "measured"] = Field(
        default="given",
        description="given: at least 1 and non-decreasing towards the root; measured: as it comes, "
        "replaced by its monotone envelope.",
    )
    jobs: Items[Job] = Field(min_length=1)
    admission: Literal["all", "optional"] = Field(
        default="all", description="all: every job is placed; optional: a job may be left out."
    )
    unavailable: Items[Name] = Field(
        default=(), description="GPUs of the topology on which nothing may be placed now."
    )

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the faults that concern several fields."""
        for key, part in (("topology", Topology), ("profile", Profile)):
            if isinstance(document.get(key), Mapping):
                inner = part.document_faults(document[key])
                yield from (((key, *path), text) for path, text in inner)
        yield from instance_faults(document)

    @cached_property
    def penalties(self) -> dict[str, tuple[float, ...]]:
        """Locality penalty of each model at each level: the monotone envelope of `locality`.

        The envelope is the running maximum towards the root, from 1.
        """
        return {model: _envelope(tuple(values)) for model, values in self.locality.items()}

    @cached_property
    def raised(self) -> dict[str, tuple[str, ...]]:
        """Levels at which the envelope lies above what was measured, by model."""
        raised = {}
        for model, values in self.locality.items():
            pairs = zip(self.topology.levels, values, self.penalties[model], strict=True)
            levels = tuple(level for level, value, used in pairs if used > value)
            if levels:
                raised[model] = levels
        return raised

    @cached_property
    def free_gpus(self) -> tuple[str, ...]:
        """Ids of the GPUs that may be used, in the order of `topology.gpus`."""
        taken = set(self.unavailable)
        return tuple(gpu for gpu in self.topology.gpus if gpu not in taken)

    @cached_property
    def slowdowns(self) -> dict[str, dict[str, float]]:
        """Slowdown of each GPU of the profile, by application class and id."""
        profile = self.profile
        return {
            name: dict(zip(profile.gpus, values, strict=True))
            for name, values in profile.slowdown.items()
        }

    @property
    def is_timed(self) -> bool:
        """Whether the objective is in seconds; otherwise it is a sum of weighted slowdowns."""
        return self.jobs[0].remaining_s is not None


def _envelope(values: tuple[float, ...]) -> tuple[float, ...]:
    penalty, envelope = 1.0, []
    for value in values:
        penalty = max(penalty, value)
        envelope.append(penalty)
    return tuple(envelope)
