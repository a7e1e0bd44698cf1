"""Power of GPUs and nodes: watts by utilisation, sleep and wake, with where each figure is from.

All figures are rational numbers, so that energies can be added up exactly: powers with a fractional
exponent are rounded to 15 decimals.
"""

from __future__ import annotations

import decimal
import itertools
from collections.abc import Iterator, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field

from optsched.documents.base import Items
from optsched.documents.faults import is_number, shown
from optsched.instance import CheckedDocument, Document, Fault, NonNegative, Positive
from optsched.registry import UnknownNameError

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

_DECIMAL = Context(prec=60, rounding=decimal.ROUND_HALF_EVEN, Emin=-999_999_999)
_DECIMALS = Decimal("1e-15")


class Affine(Document):
    """Watts rise evenly from context to peak: phi(u) = u."""

    kind: Literal["affine"] = "affine"

    def share(self, utilisation: Fraction) -> Fraction:
        """Return phi(u), the share of the way from context to peak watts."""
        return utilisation


class PowerLaw(Document):
    """A power law, phi(u) = u ** exponent; below 1 the first percents cost most.

    Source: the ten measured rows of EaCO, arXiv 2412.08294, tables 1 to 4, are fitted best (R2
    0.992, 30 W) by 360 + 1610 u ** 0.48 watts of an 8-GPU node.
    """

    kind: Literal["power-law"] = "power-law"
    exponent: Annotated[float, Field(ge=0.01, le=4, allow_inf_nan=False)] = 0.48

    def share(self, utilisation: Fraction) -> Fraction:
        """Return phi(u), the share of the way from context to peak watts."""
        return _power(utilisation, self.exponent)


class Fan(Document):
    """The form that was measured for servers, phi(u) = 2u - u ** exponent.

    Source: Fan, Weber, Barroso, "Power Provisioning for a Warehouse-sized Computer", ISCA 2007
    (exponent 1.4 there; the rows of EaCO, arXiv 2412.08294, are fitted by 1.55, R2 0.989).
    """

    kind: Literal["fan"] = "fan"
    exponent: Annotated[float, Field(ge=1, le=2, allow_inf_nan=False)] = 1.4

    def share(self, utilisation: Fraction) -> Fraction:
        """Return phi(u), the share of the way from context to peak watts."""
        return min(Fraction(1), 2 * utilisation - _power(utilisation, self.exponent))


class Measured(Document):
    """A measured table: watts between its points are interpolated, outside they stay the same."""

    kind: Literal["table"] = "table"
    utilisation: Items[Share] = Field(min_length=1, description="Ascending, from 0 to 1.")
    power_w: Items[NonNegative] = Field(
        min_length=1, description="Watts at each utilisation, from context_w to peak_w."
    )

    def watts(self, utilisation: Fraction) -> Fraction:
        """Return the watts of a GPU that hosts jobs."""
        points = list(zip(self.utilisation, self.power_w, strict=True))
        if utilisation <= points[0][0]:
            return Fraction(points[0][1])
        for (u0, p0), (u1, p1) in itertools.pairwise(points):
            if utilisation <= u1:
                along = (utilisation - Fraction(u0)) / (Fraction(u1) - Fraction(u0))
                return Fraction(p0) + along * (Fraction(p1) - Fraction(p0))
        return Fraction(points[-1][1])


Curve = Annotated[Affine | PowerLaw | Fan | Measured, Field(discriminator="kind")]


class GpuPower(CheckedDocument):
    """Watts of one GPU: bare, with a CUDA context, and at full utilisation.

    A GPU that hosts a job, however idle, draws `context_w`: most of the step from `bare_w` is the
    clock state that a context holds, and how much memory is allocated does not matter (below 0.02 W
    per GB; 8bitai/gpu-parking-tax @146dd1c9).

    Examples
    --------
    >>> from optsched.cluster.power import GpuPower
    >>> GpuPower(bare_w=50, context_w=80, peak_w=400).watts(0.5)
    Fraction(240, 1)
    """

    bare_w: NonNegative = Field(description="Watts without any job, in a node that is on.")
    context_w: NonNegative = Field(description="Watts with a job that does nothing.")
    peak_w: Positive = Field(description="Watts at utilisation 1.")
    curve: Curve = Field(
        default=Affine(), description="How watts rise with utilisation from context to peak."
    )
    source: str = Field(default="", description="Where the figures come from.")

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield faults that concern several fields; bears fields of wrong types."""
        yield from _order_faults(document, "bare_w", "context_w")
        yield from _order_faults(document, "context_w", "peak_w")
        curve = document.get("curve")
        if isinstance(curve, Mapping) and curve.get("kind") == "table":
            limits = (document.get("context_w"), document.get("peak_w"))
            faults = _table_faults(curve, limits)
            yield from ((("curve", *path), text) for path, text in faults)

    def watts(self, utilisation: float | Fraction) -> Fraction:
        """Return the watts of a GPU that hosts at least one job.

        Parameters
        ----------
        utilisation
            Share of the time in which the GPU is busy, at least 0; above 1 it is taken as 1.
        """
        busy = min(Fraction(1), Fraction(utilisation))
        if isinstance(self.curve, Measured):
            return self.curve.watts(busy)
        context = Fraction(self.context_w)
        return context + (Fraction(self.peak_w) - context) * self.curve.share(busy)


class NodePower(CheckedDocument):
    """Watts of a node outside its GPUs, and what it takes to sleep and to wake.

    Examples
    --------
    >>> from optsched.cluster.power import NodePower
    >>> float(NodePower(base_w=1500, wake_s=600).break_even_idle_s(0, 0))
    600.0
    """

    base_w: NonNegative = Field(description="Watts outside the GPUs while the node is on.")
    sleep_w: NonNegative = Field(default=0.0, description="Watts of the whole node asleep.")
    suspend_j: NonNegative = Field(default=0.0, description="Energy to fall asleep, in joules.")
    wake_s: NonNegative = Field(default=0.0, description="Seconds from sleep to the first job.")
    wake_w: NonNegative | None = Field(
        default=None, description="Watts of the node meanwhile; those of `base_w` if not given."
    )
    source: str = Field(default="", description="Where the figures come from.")

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield faults that concern several fields; bears fields of wrong types."""
        yield from _order_faults(document, "sleep_w", "base_w")
        yield from _order_faults(document, "sleep_w", "wake_w")

    @property
    def wake_energy_j(self) -> Fraction:
        """Joules that one waking takes."""
        watts = self.base_w if self.wake_w is None else self.wake_w
        return Fraction(self.wake_s) * Fraction(watts)

    def idle_w(self, gpus: int, bare_w: float) -> Fraction:
        """Return the watts of a node that is on without any job."""
        return Fraction(self.base_w) + gpus * Fraction(bare_w)

    def break_even_idle_s(self, gpus: int, bare_w: float) -> Fraction | None:
        """Return how long a node must stay idle for sleep to save energy; None if it never does.

        (suspend energy + wake energy) / (idle watts - sleep watts). Slurm's `SuspendTime` and the
        idle power-down of cloud clusters (600 s by default in AWS PCS) stand for this figure.

        Parameters
        ----------
        gpus, bare_w
            GPUs of the node, and watts of each without a job.
        """
        saved = self.idle_w(gpus, bare_w) - Fraction(self.sleep_w)
        if saved <= 0:
            return None
        return (Fraction(self.suspend_j) + self.wake_energy_j) / saved


@lru_cache(maxsize=10_000)  # the same few loads are asked for in each group and each epoch
def _power(base: Fraction, exponent: float) -> Fraction:
    """Return base ** exponent for a base in [0, 1], rounded to 15 decimals (half to even)."""
    if base in (0, 1) or exponent == 1:
        return base
    quotient = _DECIMAL.divide(Decimal(base.numerator), Decimal(base.denominator))
    return Fraction(_DECIMAL.quantize(_DECIMAL.power(quotient, Decimal(exponent)), _DECIMALS))


def _order_faults(document: Mapping[str, Any], low: str, high: str) -> Iterator[Fault]:
    first, second = document.get(low), document.get(high)
    if is_number(first) and is_number(second) and first > second:
        yield (high,), f"{shown(second)} W is below {low}, {shown(first)} W"


def _table_faults(table: Mapping[str, Any], limits: Sequence[Any]) -> Iterator[Fault]:
    busy, watts = table.get("utilisation"), table.get("power_w")
    if not isinstance(busy, list | tuple) or not isinstance(watts, list | tuple):
        return
    if len(busy) != len(watts):
        yield ("power_w",), f"has {len(watts)} values for {len(busy)} in utilisation"
    for n in range(1, len(busy)):
        before, after = busy[n - 1], busy[n]
        if is_number(before) and is_number(after) and after <= before:
            yield ("utilisation", n), f"{shown(after)} after {shown(before)}: must ascend"
    low, high = limits
    for n, value in enumerate(watts):
        if is_number(value) and is_number(low) and value < low:
            yield ("power_w", n), f"{shown(value)} W is below context_w, {shown(low)} W"
        if is_number(value) and is_number(high) and value > high:
            yield ("power_w", n), f"{shown(value)} W is above peak_w, {shown(high)} W"


_PARKING = "8bitai/gpu-parking-tax @146dd1c9, dose-response runs (bare, context)"
_PWR = "Fr4nz83/PWR-plugin-kubernetes @3bfd53fe (constants, not measured)"
_NO_STEP = "; no step for the CUDA context is known"
_ACME = "InternLM/AcmeTrace @6d6ac9cd"

#: Published watts of GPUs by model, each with its source.
GPU_POWER: dict[str, GpuPower] = {
    "H100-80GB-HBM3": GpuPower(
        bare_w=71.78,
        context_w=121.68,
        peak_w=700,
        source=f"{_PARKING}; peak: highest power limit, NVIDIA DGX manual, power capping",
    ),
    "A100-80GB": GpuPower(
        bare_w=53.68,
        context_w=80.01,
        peak_w=400,
        source=f"{_PARKING}, PCIe; peak: TDP of the SXM fleet of {_ACME}, where p95 is 408 to 413",
    ),
    "V100": GpuPower(
        bare_w=30,
        context_w=36,
        peak_w=300,
        source=f"{_PWR}; context: NCF, which hardly uses the GPU, draws 36 to 40 W in "
        "ml-energy/zeus @75a8b939",
    ),
    "P100": GpuPower(bare_w=25, context_w=25, peak_w=250, source=_PWR + _NO_STEP),
    "A10": GpuPower(bare_w=30, context_w=30, peak_w=150, source=_PWR + _NO_STEP),
    "T4": GpuPower(bare_w=10, context_w=10, peak_w=70, source=_PWR + _NO_STEP),
    "K80": GpuPower(
        bare_w=15,
        context_w=15,
        peak_w=150,
        source="compute-gardener hw-profiles @2e4de887 (profile, not measured)" + _NO_STEP,
    ),
}
#: Published watts of nodes by name, each with its source.
NODE_POWER: dict[str, NodePower] = {
    "8xA100": NodePower(
        base_w=1016,
        wake_s=600,
        source=f"{_ACME}: p5 of a server, 1512 W (IPMI), less 8 x 62 W, p5 of a GPU; waking in 10 "
        "minutes and sleep without any watts are assumed",
    ),
}


def gpu_power(name: str) -> GpuPower:
    """Return the published watts of a GPU; the names are the keys of `GPU_POWER`."""
    if name not in GPU_POWER:
        raise UnknownNameError("GPU with published watts", name, list(GPU_POWER))
    return GPU_POWER[name]


def node_power(name: str) -> NodePower:
    """Return the published watts of a node; the names are the keys of `NODE_POWER`."""
    if name not in NODE_POWER:
        raise UnknownNameError("node with published watts", name, list(NODE_POWER))
    return NODE_POWER[name]
