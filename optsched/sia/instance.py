"""Data of Sia's round: GPUs of each type, jobs, and the goodput of their configurations."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from optsched.documents.base import Entries, Items
from optsched.documents.json_files import compact
from optsched.instance import Document, Instance, Positive
from optsched.sia.faults import instance_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from optsched.documents.faults import Fault

Name = Annotated[str, Field(min_length=1)]


class GpuGroup(Document):
    """A number of GPUs of one type."""

    type: Name = Field(description="A key of the instance's `gpus`.")
    gpus: Annotated[int, Field(ge=1, le=100_000)]


class Configuration(GpuGroup):
    """What a job may be given, and how fast it learns there."""

    goodput: Positive = Field(
        description="Progress per second, in any unit that all configurations of the job share."
    )


class SiaJob(Document):
    """A job: it gets one of its configurations, or waits."""

    id: Name
    configurations: Annotated[Items[Configuration], Field(min_length=1)]
    current: GpuGroup | None = Field(
        default=None, description="The configuration that the job has now; none if it is waiting."
    )
    restart_factor: Annotated[float, Field(ge=0, le=1)] = Field(
        default=1.0,
        description="Share of the goodput that counts of configurations other than the current "
        "one, for what a restart takes.",
    )
    preemptible: bool = Field(
        default=True, description="false: the job keeps its current configuration."
    )
    must_run: bool = Field(default=False, description="true: the job does not wait.")

    @cached_property
    def compact(self) -> str:
        """The job as `optsched.documents.json_files.compact` has it; many last for many rounds."""
        return compact(self.model_dump(mode="json", by_alias=True, exclude_none=True))


class RoundOption(NamedTuple):
    """What a job may do: run on GPUs of a type, or wait (no type, 0 GPUs); and what it costs."""

    type: str | None
    gpus: int
    cost: float


class SiaInstance(Instance):
    """A configuration for each job, or to wait: least total cost of a round of Sia.

    A configuration costs (goodput / least goodput of the job's configurations) ** power, rounded to
    hundredths: the power is below 0, so that more goodput costs less, and the costs are minimised,
    as in Sia's code. (What Sia's paper maximises for a power above 0 is a mean of the same ratios.)
    Where the job runs on another configuration, the ratio counts times its `restart_factor`. Ratios
    are at least 1e-4, costs at most 3,000. To wait costs `waiting_cost`. The objective is the sum
    over jobs, of costs as they are in floats.

    Source: Jayaram Subramanya et al., "Sia: Heterogeneity-aware, goodput-optimized ML-cluster
    scheduling", SOSP 2023; siasosp23/artifacts, sia-simulator/sia.py.

    Examples
    --------
    >>> import optsched
    >>> from optsched.sia import Configuration, SiaInstance, SiaJob
    >>> pairs = [("a100", 1, 4.0), ("t4", 2, 3.0)]  # type, GPUs, goodput
    >>> options = [Configuration(type=t, gpus=n, goodput=v) for t, n, v in pairs]
    >>> jobs = [SiaJob(id=name, configurations=options) for name in ("first", "second")]
    >>> instance = SiaInstance(gpus={"a100": 1, "t4": 4}, jobs=jobs)
    >>> optsched.solve(instance).frame()[["job", "type", "gpus"]]
          job  type  gpus
    0   first  a100     1
    1  second    t4     2
    """

    problem: ClassVar[str] = "sia"
    example: ClassVar[str] = "sia/hand"

    schema_id: Literal["optsched/sia/1"] = Field(default="optsched/sia/1", alias="schema")
    gpus: Entries[Name, Annotated[int, Field(ge=0, le=10_000_000)]] = Field(
        min_length=1, description="How many GPUs there are of each type."
    )
    power: Annotated[float, Field(ge=-100, lt=0)] = Field(
        default=-0.5, description="The further below 0, the less it counts that fast jobs gain."
    )
    waiting_cost: Positive = Field(
        default=1.1, description="What it costs that a job waits; its least goodput costs 1."
    )
    jobs: Items[SiaJob] = Field(min_length=1)

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the faults that concern several fields."""
        yield from instance_faults(document)

    @cached_property
    def options(self) -> tuple[tuple[RoundOption, ...], ...]:
        """What each job may do, in the order of its configurations; to wait comes last."""
        known: dict[tuple[Any, ...], tuple[RoundOption, ...]] = {}  # of jobs that are alike
        options = []
        for job in self.jobs:
            held = job.current
            now = None if held is None else (held.type, held.gpus, job.restart_factor)
            key = (id(job.configurations), now, job.preemptible, job.must_run)
            own = known.get(key)
            if own is None:
                own = known[key] = tuple(self._options(job))
            options.append(own)
        return tuple(options)

    def _compact(self) -> str:
        rest = self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"jobs"})
        texts = {name: compact(value) for name, value in rest.items()}
        texts["jobs"] = f"[{','.join([job.compact for job in self.jobs])}]"
        return f"{{{','.join(f'{compact(name)}:{texts[name]}' for name in sorted(texts))}}}"

    def _options(self, job: SiaJob) -> Iterator[RoundOption]:
        current = None if job.current is None else (job.current.type, job.current.gpus)
        least = min(configuration.goodput for configuration in job.configurations)
        for configuration in job.configurations:
            here = configuration.type, configuration.gpus
            is_moved = current is not None and here != current
            if job.preemptible or not is_moved:
                factor = job.restart_factor if is_moved else 1.0
                ratio = configuration.goodput / least * factor
                yield RoundOption(*here, configuration_cost(ratio, self.power))
        if job.preemptible and not job.must_run:
            yield RoundOption(None, 0, self.waiting_cost)


def configuration_cost(ratio: float, power: float) -> float:
    """Return what a goodput costs, given as a multiple of the job's least: in whole hundredths."""
    try:
        cost: float = max(ratio, 1e-4) ** power
    except OverflowError:  # beyond all floats
        cost = 3000.0
    return round(100 * min(cost, 3000.0)) / 100
