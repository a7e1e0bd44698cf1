"""Interference: how fast each job of a group runs beside the others, by the types of them all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeGuard

from pydantic import Field

from optsched.documents.base import Items
from optsched.documents.faults import is_number, shown
from optsched.eaco.multisets import is_within
from optsched.instance import CheckedDocument, Document, Fault, NonNegative, Positive

if TYPE_CHECKING:
    from optsched.cluster.power import GpuPower

SMALLEST_RATE = 0.001
Name = Annotated[str, Field(min_length=1)]
Key = tuple[str, ...]
Origin = Literal["alone", "measured", "larger", "pairs", "utilisation", "unknown"]
Rate = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class MeasuredGroup(Document):
    """What was measured while jobs of some types, or one alone, ran on the same GPUs."""

    types: Items[Name] = Field(min_length=1, max_length=8, description="In any order.")
    rates: Items[Rate] = Field(
        min_length=1,
        description="Work per second of each, relative to running alone, in the order of `types`: "
        "1 / slowdown. All 0 if the group does not fit.",
    )
    gpu: Name | None = Field(
        default=None, description="The GPU type it holds for; if none, all without their own entry."
    )
    gpu_power_w: Positive | None = Field(
        default=None, description="Mean watts of each GPU of the group, instead of the power model."
    )
    utilisation: Rate | None = Field(
        default=None, description="Mean utilisation of the GPUs, instead of the sum over the jobs."
    )


class Interference(CheckedDocument):
    """Rates of the jobs in a group, by the multiset of their types.

    For a group that was not measured, the first of these that is known:

    1. *larger*: for each type the greatest rate among all measured groups that contain this one
       (beside fewer jobs a job is not slower);
    2. *pairs*: if every pair of the group was measured, the product over a job's partners of its
       rate beside each of them alone;
    3. *utilisation*: 1 / (1 + saturation_slope x max(0, U - 1) + partner_slowdown x (jobs - 1))
       with U the sum of the utilisations of the jobs alone.

    `fallback` says how far down this list to go; a group beyond it is not allowed.

    **Repair.** A job must not run faster in a larger group. So a measured rate is lowered to the
    least of the type's rates in all measured groups within (a group that contains one that does
    not fit does not fit), before anything else; `GroupRates.repairs` lists what this changed. A
    rate by `pairs` or `utilisation` is lowered in the same way to those in the groups of one job
    fewer. After it, rates never rise as a group grows, whatever they are from.

    The defaults of the formula are least squares fits to 1,388 pairs of Lucid, S-Lab-System-Group/
    Lucid @63685a3a: half of the variance is particular to the pair, so measured tables are better.
    """

    groups: Items[MeasuredGroup] = ()
    fallback: Literal["none", "larger", "pairs", "utilisation"] = "utilisation"
    saturation_slope: NonNegative = Field(
        default=0.56, description="Slowdown per unit of utilisation beyond one GPU."
    )
    partner_slowdown: NonNegative = Field(default=0.02, description="Slowdown per partner.")
    source: str = Field(default="", description="Where the figures come from.")

    @classmethod
    def document_faults(cls, document: Mapping[str, Any]) -> Iterator[Fault]:
        """Yield faults that concern several fields; bears fields of wrong types."""
        groups = document.get("groups")
        first: dict[tuple[Any, Key], int] = {}
        for n, group in enumerate(groups if isinstance(groups, list | tuple) else ()):
            if not isinstance(group, Mapping):
                continue
            yield from ((("groups", n, *path), text) for path, text in _group_faults(group))
            types, gpu = group.get("types"), group.get("gpu")
            if _names(types) and isinstance(gpu, str | None):
                before = first.setdefault((gpu, tuple(sorted(types))), n)
                if before != n:
                    yield ("groups", n, "types"), f"the same types stand in groups[{before}]"

    def measured_on(self, gpu: str) -> dict[Key, MeasuredGroup]:
        """Return what was measured, by sorted types; entries for this GPU type come first."""
        general = {tuple(sorted(g.types)): g for g in self.groups if g.gpu is None}
        return general | {tuple(sorted(g.types)): g for g in self.groups if g.gpu == gpu}


class Repair(NamedTuple):
    """A measured rate that was lowered, since the type was slower in a smaller group."""

    types: Key
    type: str
    measured: float
    used: float

    def __str__(self) -> str:
        group = " + ".join(self.types)
        return f"{group}: rate of {self.type} lowered from {self.measured} to {self.used}"


class Rates(NamedTuple):
    """Rates of the types of a group, 0 if it does not fit, and where they are from."""

    origin: Origin
    by_type: dict[str, Fraction]

    @property
    def is_known(self) -> bool:
        """Whether the group is in the table or its fallbacks reach it."""
        return self.origin != "unknown"

    @property
    def fits(self) -> bool:
        """Whether the jobs can run together, as far as rates tell."""
        return self.is_known and all(self.by_type.values())


class GroupRates:
    """Rates of every group on GPUs of one type, exact and remembered.

    Parameters
    ----------
    table
        What was measured, and the fallback.
    gpu
        Id of the GPU type.
    utilisation
        Of each job type alone.

    Examples
    --------
    >>> from optsched.eaco.interference import GroupRates, Interference, MeasuredGroup
    >>> pair = MeasuredGroup(types=("a", "b"), rates=(0.5, 0.75))
    >>> rates = GroupRates(Interference(groups=(pair,)), "V100", {"a": 0.4, "b": 0.2})
    >>> rates.of(["b", "a"]).by_type
    {'a': Fraction(1, 2), 'b': Fraction(3, 4)}
    >>> rates.of(["a", "a"]).origin
    'utilisation'
    """

    def __init__(self, table: Interference, gpu: str, utilisation: Mapping[str, float]) -> None:
        self._table = table
        self._utilisation = {name: Fraction(value) for name, value in utilisation.items()}
        self.measured = table.measured_on(gpu)
        self._known: dict[Key, Rates] = {}
        self._slopes = table.saturation_slope, table.partner_slowdown
        self._near = {pair for key in self.measured for pair in itertools.combinations(key, 2)}
        for key in sorted(self.measured, key=len):
            self._known[key] = self._repaired(key)

    def of(self, types: Sequence[str]) -> Rates:
        """Return the rates of a group of job types, given in any order."""
        key = tuple(sorted(types))
        if key not in self._known:
            self._known[key] = self._fallen_back(key)
        return self._known[key]

    def busy(self, types: Sequence[str]) -> Fraction:
        """Return the utilisation of GPUs that types of known rates share; it may exceed 1."""
        measured = self.measured.get(tuple(sorted(types)))
        if measured is not None and measured.utilisation is not None:
            return Fraction(measured.utilisation)
        rates = self.of(types).by_type
        return sum((self._utilisation[name] * rates[name] for name in types), Fraction(0))

    def gpu_w(
        self, types: Sequence[str], power: GpuPower, busy: Fraction | None = None
    ) -> Fraction:
        """Return the watts of each GPU that types of known rates share, as measured if it was.

        Parameters
        ----------
        busy
            As of `busy`, where it is at hand.
        """
        measured = self.measured.get(tuple(sorted(types)))
        if measured is not None and measured.gpu_power_w is not None:
            return Fraction(measured.gpu_power_w)
        return power.watts(self.busy(types) if busy is None else busy)

    @property
    def repairs(self) -> list[Repair]:
        """Every measured rate that is not used as it was measured."""
        lowered = []
        for key, group in self.measured.items():
            used = self._known[key].by_type
            for name, rate in dict(zip(group.types, group.rates, strict=True)).items():
                if used[name] < rate:
                    lowered.append(Repair(key, name, rate, float(used[name])))
        return lowered

    def _repaired(self, key: Key) -> Rates:
        """Lower the rates of a measured group; all smaller ones are done."""
        group = self.measured[key]
        rates = {n: Fraction(r) for n, r in zip(group.types, group.rates, strict=True)}
        for size in range(2, len(key)):
            for inner in set(itertools.combinations(key, size)) & self.measured.keys():
                rates = _lowered(rates, self._known[inner].by_type)
        return Rates("measured" if len(key) > 1 else "alone", rates)

    def _fallen_back(self, key: Key) -> Rates:
        if len(key) == 1:
            return Rates("alone", {key[0]: Fraction(1)})
        steps = ("none", "larger", "pairs", "utilisation").index(self._table.fallback)
        larger = self._larger(key) if steps >= 1 else None
        if larger is not None:
            return Rates("larger", larger)
        pairs = self._pairs(key) if steps >= 2 else None
        if pairs is not None:
            return Rates("pairs", self._within_smaller(key, pairs))
        if steps < 3:
            return Rates("unknown", {})
        rates, may_rise = self._formula(key), min(self._slopes) < 0
        if self.measured and (
            may_rise or not self._near.isdisjoint(itertools.combinations(key, 2))
        ):
            rates = self._within_smaller(key, rates)  # else the formula never rises
        return Rates("utilisation", rates)

    def _larger(self, key: Key) -> dict[str, Fraction] | None:
        best = dict.fromkeys(key, Fraction(0))
        for group in self.measured:
            if len(group) > len(key) and is_within(key, group):
                used = self._known[group].by_type
                best = {name: max(rate, used[name]) for name, rate in best.items()}
        return best if all(best.values()) else None

    def _pairs(self, key: Key) -> dict[str, Fraction] | None:
        pairs = itertools.combinations(key, 2)
        if len(key) < 3 or not all(map(self.measured.__contains__, pairs)):
            return None
        rates = {}
        for n, name in enumerate(key):
            product = Fraction(1)
            for other in key[:n] + key[n + 1 :]:
                product *= self._known[min(name, other), max(name, other)].by_type[name]
            rates[name] = product
        return rates

    def _formula(self, key: Key) -> dict[str, Fraction]:
        beyond = max(Fraction(0), sum((self._utilisation[n] for n in key), Fraction(-1)))
        slowdown = 1 + Fraction(self._table.saturation_slope) * beyond
        slowdown += Fraction(self._table.partner_slowdown) * (len(key) - 1)
        return dict.fromkeys(key, 1 / slowdown)

    def _within_smaller(self, key: Key, rates: dict[str, Fraction]) -> dict[str, Fraction]:
        if len(key) == 2:
            return rates
        for inner in set(itertools.combinations(key, len(key) - 1)):
            smaller = self.of(inner)
            if smaller.is_known:
                rates = _lowered(rates, smaller.by_type)
        return rates


def _lowered(rates: dict[str, Fraction], within: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Lower rates to those of a smaller group; if that does not fit, to 0."""
    if not all(within.values()):
        return dict.fromkeys(rates, Fraction(0))
    return {name: min(rate, within.get(name, rate)) for name, rate in rates.items()}


def _names(types: Any) -> TypeGuard[Sequence[str]]:
    return isinstance(types, list | tuple) and all(isinstance(name, str) for name in types)


def _group_faults(group: Mapping[str, Any]) -> Iterator[Fault]:
    types, rates = group.get("types"), group.get("rates")
    if not isinstance(rates, list | tuple):
        return
    for n, rate in enumerate(rates):
        if is_number(rate) and not (rate == 0 or SMALLEST_RATE <= rate <= 1):
            text = f"a rate is 0 (does not fit) or from {SMALLEST_RATE} to 1, found {shown(rate)}"
            yield ("rates", n), text
    zeros = [is_number(rate) and rate == 0 for rate in rates]
    if any(zeros) and not all(zeros):
        yield ("rates", zeros.index(True)), "0 means that the group does not fit; then all are 0"
    if not isinstance(types, list | tuple):
        return
    if len(types) != len(rates):
        yield ("rates",), f"has {len(rates)} values for {len(types)} types"
    elif len(types) == 1 and is_number(rates[0]) and rates[0] != 1:
        yield ("rates", 0), f"a job alone has rate 1, found {shown(rates[0])}"
    first: dict[str, Any] = {}
    for n, (name, rate) in enumerate(zip(types, rates, strict=False)):
        if isinstance(name, str) and first.setdefault(name, rate) != rate:
            two = f"{shown(first[name])} and {shown(rate)}"
            yield ("rates", n), f"two jobs of type {shown(name)} have rates {two}: keep one"
