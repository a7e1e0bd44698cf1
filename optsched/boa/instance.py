"""Data of the BOA problem: job classes, the phases of their work, speedups and a budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal

from pydantic import Field

from optsched.boa.offers import Offer, OfferedCurve, curve_documents, offer_faults
from optsched.boa.speedups import Amdahl as Amdahl
from optsched.boa.speedups import ByType as ByType
from optsched.boa.speedups import PhaseSpeedup
from optsched.boa.speedups import Power as Power
from optsched.boa.speedups import Speedup as Speedup
from optsched.boa.speedups import Table as Table
from optsched.documents.base import Items
from optsched.documents.faults import shown
from optsched.instance import Document, Fault, Instance, NonNegative, Positive


class Phase(Document):
    """A stretch of a job, such as a training epoch, with a speedup of its own."""

    work_gpu_s: Positive = Field(description="Mean work, in seconds on a GPU of speedup 1.")
    speedup: PhaseSpeedup

    @property
    def curve(self) -> Speedup:
        """The speedup where all GPUs are of one type."""
        if isinstance(self.speedup, ByType):
            raise TypeError("a phase has one curve only where all GPUs are of one type")
        return self.speedup

    @property
    def curves(self) -> tuple[Speedup, ...]:
        """The speedups on all types that it runs on."""
        known = self.speedup
        return tuple(known.of_type.values()) if isinstance(known, ByType) else (known,)

    def on(self, gpu_type: str) -> Phase:
        """Return the phase with the one curve that it has on GPUs of a type.

        Raises
        ------
        KeyError
            If it cannot run on them.
        """
        if not isinstance(self.speedup, ByType):
            return self
        return self.model_copy(update={"speedup": self.speedup.of_type[gpu_type]})


class JobClass(Document):
    """Jobs that arrive as one stream and behave alike."""

    id: str = Field(min_length=1)
    arrival_rate_per_h: NonNegative
    rescale_s: NonNegative = Field(
        default=0.0,
        description="Seconds lost, while the new GPUs are paid for, at the start of a job and "
        "whenever its width changes between phases.",
    )
    checkpoint_s: Positive | None = Field(
        default=None,
        description="Seconds of running between checkpoints: an interruption loses half of them on "
        "average. None: a checkpoint is written at the warning, and nothing is lost.",
    )
    phases: Items[Phase] = Field(min_length=1)


class BoaInstance(Instance):
    """How many GPUs to rent for each job: least mean job completion time within a budget.

    Exactly one of `budget_gpus`, `budget_usd_per_h` (with `price_usd_per_gpu_h`) and
    `target_mean_jct_s` is given. With the last one the question is turned round: the least budget
    whose mean job completion time (JCT) is at most the target.

    With `offers` GPUs are of several types and markets, and each phase of each class takes an offer
    beside a width. What is limited, or least, is then money: USD per hour.

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
    offers: Items[Offer] | None = Field(
        default=None,
        min_length=1,
        description="GPUs that can be rented, by type and market. Phases then state their speedup "
        "by type, and budgets are in USD/h. None: GPUs of one type.",
    )
    classes: Items[JobClass] = Field(min_length=1)

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield the faults that concern several fields."""
        yield from _budget_faults(document)
        yield from offer_faults(document)
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
        """What may be spent on average over time, b in the paper; None with a target JCT.

        In GPUs; with offers in USD/h.
        """
        if self.offers is not None:
            return None if self.budget_usd_per_h is None else Fraction(self.budget_usd_per_h)
        if self.budget_usd_per_h is not None and self.price_usd_per_gpu_h is not None:
            return Fraction(self.budget_usd_per_h) / Fraction(self.price_usd_per_gpu_h)
        return None if self.budget_gpus is None else Fraction(self.budget_gpus)

    @property
    def rent_unit(self) -> str:
        """The unit in which rent is counted: "GPUs", or with offers "USD/h"."""
        return "GPUs" if self.offers is None else "USD/h"

    def offered(self, job_class: JobClass, phase: Phase) -> list[OfferedCurve]:
        """Return where a phase of a class can run, with its curve there, in the order of offers."""
        speedup = phase.speedup
        if self.offers is None or not isinstance(speedup, ByType):
            return [OfferedCurve(0, None, phase.curve)]
        curves = speedup.of_type
        found = [
            OfferedCurve(n, offer, curves[offer.gpu_type], offer.most_gpus(job_class.checkpoint_s))
            for n, offer in enumerate(self.offers)
            if offer.gpu_type in curves
        ]
        return [curve for curve in found if len(curve.widths)]

    def charges_starts(self, job_class: JobClass) -> bool:
        """Return whether jobs of a class may lose time or money at a start or change of option."""
        return bool(job_class.rescale_s) or any(o.charges_starts for o in self.offers or ())

    def option_count(self, job_class: JobClass) -> int:
        """Return how many options, widths of offers, the phases of a class have in all."""
        phases = job_class.phases
        return sum(len(curve.widths) for p in phases for curve in self.offered(job_class, p))


def _budget_faults(document: Mapping[str, Any]) -> Iterator[Fault]:
    choices = ("budget_gpus", "budget_usd_per_h", "target_mean_jct_s")
    given = [key for key in choices if document.get(key) is not None]
    if not given:
        yield ("budget_gpus",), f"missing: give one of {', '.join(choices)}"
    for key in given[1:]:
        yield (key,), f"cannot stand beside {given[0]}: give one of {', '.join(choices)}"
    has_price = document.get("price_usd_per_gpu_h") is not None
    if "budget_usd_per_h" in given and not has_price and document.get("offers") is None:
        yield ("price_usd_per_gpu_h",), "missing: budget_usd_per_h needs it"


def phase_faults(phases: Any) -> Iterator[Fault]:
    """Yield the faults of phases that concern several fields; bears fields of wrong types."""
    for e, phase in enumerate(phases if isinstance(phases, list | tuple) else ()):
        speedup = phase.get("speedup") if isinstance(phase, Mapping) else None
        for path, curve in curve_documents(speedup):
            if curve.get("kind") == "table":
                yield from (
                    ((e, "speedup", *path, *tail), text) for tail, text in _table_faults(curve)
                )


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
