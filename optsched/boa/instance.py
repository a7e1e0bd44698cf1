"""Data of the BOA problem: job classes, the phases of their work, speedups and a budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from optsched.documents.base import Items
from optsched.documents.faults import shown
from optsched.instance import Document, Fault, Instance, NonNegative, Positive

Gpus = Annotated[int, Field(ge=1, le=100_000)]
UnitInterval = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class Table(Document):
    """A speedup as measured: any positive values, neither concave nor monotone in general.

    Between measured widths (`widths` = "continuous" only) it is interpolated linearly.
    """

    kind: Literal["table"] = "table"
    gpus: Items[Gpus] = Field(min_length=1, description="Widths that were measured, ascending.")
    speedup: Items[Positive] = Field(
        min_length=1, description="Work done per second at each width, in GPU-seconds of one GPU."
    )

    @property
    def widths(self) -> tuple[int, ...]:
        """The distinct widths, ascending."""
        return tuple(self.measured)

    @cached_property
    def measured(self) -> dict[int, float]:
        """The speedup at each distinct width, ascending."""
        return dict(zip(self.gpus, self.speedup, strict=True))


class Amdahl(Document):
    """Amdahl's law: speedup(k) = 1 / (1 - f + f/k) with parallel fraction f."""

    kind: Literal["amdahl"] = "amdahl"
    parallel_fraction: UnitInterval
    max_gpus: Gpus = Field(description="Largest width that a job may get.")

    @property
    def widths(self) -> range:
        """The whole widths, ascending."""
        return range(1, self.max_gpus + 1)


class Power(Document):
    """A power law: speedup(k) = k ** exponent."""

    kind: Literal["power"] = "power"
    exponent: UnitInterval
    max_gpus: Gpus = Field(description="Largest width that a job may get.")

    @property
    def widths(self) -> range:
        """The whole widths, ascending."""
        return range(1, self.max_gpus + 1)


Speedup = Annotated[Table | Amdahl | Power, Field(discriminator="kind")]


class Phase(Document):
    """A stretch of a job, such as a training epoch, with a speedup of its own."""

    work_gpu_s: Positive = Field(description="Mean work, in seconds on a GPU of speedup 1.")
    speedup: Speedup


class JobClass(Document):
    """Jobs that arrive as one stream and behave alike."""

    id: str = Field(min_length=1)
    arrival_rate_per_h: NonNegative
    rescale_s: NonNegative = Field(
        default=0.0,
        description="Seconds lost, while the new GPUs are paid for, at the start of a job and "
        "whenever its width changes between phases.",
    )
    phases: Items[Phase] = Field(min_length=1)


class BoaInstance(Instance):
    """How many GPUs to rent for each job: least mean job completion time within a budget.

    Exactly one of `budget_gpus`, `budget_usd_per_h` (with `price_usd_per_gpu_h`) and
    `target_mean_jct_s` is given. With the last one the question is turned round: the least budget
    whose mean job completion time (JCT) is at most the target.

    Source: Li et al., "How to Rent GPUs on a Budget", EPEW 2024, arXiv 2406.15560, problem (3);
    BOA Constrictor, arXiv 2602.01404.

    Examples
    --------
    >>> import optsched
    >>> from optsched.boa import Amdahl, BoaInstance, JobClass, Phase
    >>> phase = Phase(work_gpu_s=3600, speedup=Amdahl(parallel_fraction=0.9, max_gpus=8))
    >>> jobs = JobClass(id="resnet", arrival_rate_per_h=2, phases=[phase])
    >>> instance = BoaInstance(budget_gpus=6, classes=[jobs])
    >>> round(optsched.solve(instance).objective)
    765
    """

    problem: ClassVar[str] = "boa"
    example: ClassVar[str] = "boa/cbd-85"

    schema_id: Literal["optsched/boa/1"] = Field(default="optsched/boa/1", alias="schema")
    budget_gpus: Positive | None = Field(default=None, description="Time-average GPUs rented.")
    budget_usd_per_h: Positive | None = Field(default=None, description="Time-average spending.")
    price_usd_per_gpu_h: Positive | None = None
    target_mean_jct_s: Positive | None = Field(
        default=None, description="Find the least budget that reaches this mean JCT."
    )
    widths: Literal["integer", "mixed", "continuous"] = Field(
        default="integer",
        description="integer: one width per phase; mixed: a share of a class's jobs, and so of its "
        "work, at each width; continuous: any real width.",
    )
    classes: Items[JobClass] = Field(min_length=1)

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the faults that concern several fields."""
        yield from _budget_faults(document)
        classes = document.get("classes")
        if not isinstance(classes, list | tuple):
            return
        entries = [(i, c) for i, c in enumerate(classes) if isinstance(c, Mapping)]
        first: dict[str, int] = {}
        for i, entry in entries:
            name = entry.get("id")
            if isinstance(name, str) and first.setdefault(name, i) != i:
                text = f"{shown(name)} is already the id of classes[{first[name]}]"
                yield ("classes", i, "id"), text
            for path, text in phase_faults(entry.get("phases")):
                yield ("classes", i, "phases", *path), text
            if document.get("widths") == "continuous" and entry.get("rescale_s"):
                yield (
                    ("classes", i, "rescale_s"),
                    "must be 0 where widths are 'continuous' (the theory has no rescaling there); "
                    "use widths 'mixed' or 'integer'",
                )
        if entries and all(c.get("arrival_rate_per_h") == 0 for _, c in entries):
            yield ("classes",), "no jobs arrive: one arrival_rate_per_h must be positive"

    @property
    def arrival_rate_per_s(self) -> Fraction:
        """Jobs of all classes per second, lambda in the paper."""
        ratios = [c.arrival_rate_per_h.as_integer_ratio() for c in self.classes]
        unit = max(whole for _, whole in ratios)  # all are powers of two
        return Fraction(sum(part * (unit // whole) for part, whole in ratios), 3600 * unit)

    @property
    def budget(self) -> Fraction | None:
        """Time-average GPUs that may be rented, b in the paper; None with a target JCT."""
        if self.budget_usd_per_h is not None and self.price_usd_per_gpu_h is not None:
            return Fraction(self.budget_usd_per_h) / Fraction(self.price_usd_per_gpu_h)
        return None if self.budget_gpus is None else Fraction(self.budget_gpus)


def _budget_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    choices = ("budget_gpus", "budget_usd_per_h", "target_mean_jct_s")
    given = [key for key in choices if document.get(key) is not None]
    if not given:
        yield ("budget_gpus",), f"missing: give one of {', '.join(choices)}"
    for key in given[1:]:
        yield (key,), f"cannot stand beside {given[0]}: give one of {', '.join(choices)}"
    has_price = document.get("price_usd_per_gpu_h") is not None
    if "budget_usd_per_h" in given and not has_price:
        yield ("price_usd_per_gpu_h",), "missing: budget_usd_per_h needs it"


def phase_faults(phases: Any) -> Iterator[Fault]:
    """Yield the faults of phases that concern several fields; bears fields of wrong types."""
    for e, phase in enumerate(phases if isinstance(phases, list | tuple) else ()):
        speedup = phase.get("speedup") if isinstance(phase, Mapping) else None
        if isinstance(speedup, Mapping) and speedup.get("kind") == "table":
            yield from (((e, "speedup", *tail), text) for tail, text in _table_faults(speedup))


def _table_faults(table: Mapping[str, Any]) -> Iterator[Fault]:
    gpus, values = table.get("gpus"), table.get("speedup")
    if not isinstance(gpus, list | tuple):
        return
    if not isinstance(values, list | tuple):
        values = ()
    elif len(gpus) != len(values):
        yield ("speedup",), f"has {len(values)} values for {len(gpus)} widths in gpus"
    for n in range(1, len(gpus)):
        before, after = gpus[n - 1], gpus[n]
        if not (isinstance(before, int) and isinstance(after, int)):
            continue
        if after < before:
            yield ("gpus", n), f"{shown(after)} after {shown(before)}: widths must ascend"
        if after == before and n < len(values) and values[n] != values[n - 1]:
            two = f"{shown(values[n - 1])} and {shown(values[n])}"
            yield ("gpus", n), f"{shown(after)} GPUs have two speedups, {two}: keep one"
