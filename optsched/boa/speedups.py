"""Speedup curves: how much faster a phase gets on more GPUs, and on other types of them."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from optsched.documents.base import Items
from optsched.instance import Document, Positive

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


class TypeCurve(Document):
    """The speedup of a phase on GPUs of one type."""

    gpu_type: str = Field(min_length=1, description="A type as offers name it.")
    speedup: Speedup


class ByType(Document):
    """Speedups on several types of GPUs, for instances with offers."""

    kind: Literal["by-type"] = "by-type"
    curves: Items[TypeCurve] = Field(
        min_length=1, description="All in the same unit of work; a type left out cannot be used."
    )

    @cached_property
    def of_type(self) -> dict[str, Speedup]:
        """The curve of each type."""
        return {curve.gpu_type: curve.speedup for curve in self.curves}


PhaseSpeedup = Annotated[Table | Amdahl | Power | ByType, Field(discriminator="kind")]
