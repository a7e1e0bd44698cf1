"""Jobs side by side on a GPU as the verifier reads them from a scenario: rates and watts."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import TYPE_CHECKING, Final, NamedTuple

from optsched.bounds.verify.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

MOST_GROUPS: Final = 100_000
Key = tuple[int, ...]


class Group(NamedTuple):
    """Types of jobs that share a GPU, in ascending order.

    Attributes
    ----------
    rates
        Of each, relative to running alone.
    gpu_w
        What the GPU draws.
    """

    types: Key
    rates: tuple[Fraction, ...]
    gpu_w: Fraction


class JobTypes(NamedTuple):
    """The types of a trace's jobs: their models, or the utilisation of jobs of unknown models.

    Attributes
    ----------
    of_job
        By job the number of its type; types are numbered as they come in the trace.
    names
        By type its model; empty for a utilisation.
    utilisation, memory_gb, max_slowdown
        By type; the last is None where users bear any.
    """

    of_job: list[int]
    names: list[str]
    utilisation: list[Fraction]
    memory_gb: list[Fraction]
    max_slowdown: list[Fraction | None]


def job_types(scenario: Scenario, trace: Trace) -> JobTypes:
    """Return the types of a trace's jobs in a scenario."""
    found = JobTypes([], [], [], [], [])
    numbers: dict[str | float, int] = {}
    shares = trace.utilization.clip(0, 1).round(3).tolist()
    for name, share in zip(trace.model, shares, strict=True):
        model = scenario.models.get(name)
        busy = share if share == share else 1.0
        key = name if model is not None else busy
        if key not in numbers:
            numbers[key] = len(numbers)
            most = None if model is None else model.max_slowdown
            found.names.append("" if model is None else name)
            found.utilisation.append(Fraction(busy if model is None else model.utilisation))
            found.memory_gb.append(Fraction(0 if model is None else model.memory_gb))
            found.max_slowdown.append(None if most is None else Fraction(most))
        found.of_job.append(numbers[key])
    return found


class Groups:
    """Every group of types that schedules can have on a GPU, with exact rates and watts.

    What is left of a group may be one of unknown rates; it keeps those of the group, so that the
    group itself stands for it.

    Raises
    ------
    Refused
        If there may be more than `MOST_GROUPS`.
    """

    def __init__(self, scenario: Scenario, types: JobTypes, *, within_slowdowns: bool) -> None:
        self._scenario, self._types = scenario, types
        self._table = scenario.sharing.interference
        named = self._table.measured_on("")
        numbers = {name: n for n, name in enumerate(types.names) if name}
        for name in sorted({name for names in named for name in names} - numbers.keys()):
            numbers[name] = len(types.names) + len(numbers)
        self._measured = {
            tuple(sorted(numbers[name] for name in names)): group for names, group in named.items()
        }
        self._number = numbers
        self._known: dict[Key, dict[int, Fraction] | None] = {}
        self._within = within_slowdowns

    def all(self) -> Iterator[Group]:
        """Yield the groups that can be placed, the smallest first."""
        count, most = len(self._types.names), self._scenario.sharing.max_jobs_per_gpu
        if comb(count + most, most) > MOST_GROUPS:
            raise Refused(f"more than {MOST_GROUPS:,} groups of {count:,} types of jobs")
        for size in range(1, most + 1):
            for key in combinations_with_replacement(range(count), size):
                rates = self.rates(key)
                if rates is not None and self._may_be(key, rates):
                    yield Group(key, tuple(rates[n] for n in key), self._gpu_w(key, rates))

    def _may_be(self, key: Key, rates: dict[int, Fraction]) -> bool:
        limit_gb = self._scenario.sharing.memory_gb
        if limit_gb is not None and sum(self._types.memory_gb[n] for n in key) > limit_gb:
            return False
        bounds = self._types.max_slowdown
        is_borne = all((most := bounds[n]) is None or rates[n] * most >= 1 for n in rates)
        return all(rates.values()) and (len(key) == 1 or is_borne or not self._within)

    def rates(self, key: Key) -> dict[int, Fraction] | None:
        """Return by type its rate in a group, all 0 if it does not fit; None if unknown."""
        if key not in self._known:
            self._known[key] = self._rates(key)
        return self._known[key]

    def _rates(self, key: Key) -> dict[int, Fraction] | None:
        if len(key) == 1:
            return {key[0]: Fraction(1)}
        if key in self._measured:
            inner = {k for n in range(2, len(key)) for k in combinations(key, n)}
            return self._lowered(self._as_measured(key), inner & self._measured.keys())
        steps = ("none", "larger", "pairs", "utilisation").index(self._table.fallback)
        larger = self._in_larger(key) if steps >= 1 else None
        if larger is not None:
            return larger
        smaller = set(combinations(key, len(key) - 1)) if len(key) > 2 else set()
        pairs = set(combinations(key, 2))
        if steps >= 2 and len(key) > 2 and pairs <= self._measured.keys():
            return self._lowered(self._by_pairs(key), smaller)
        return self._lowered(self._by_formula(key), smaller) if steps == 3 else None

    def _as_measured(self, key: Key) -> dict[int, Fraction]:
        group = self._measured[key]
        return {
            self._number[name]: Fraction(rate)
            for name, rate in zip(group.types, group.rates, strict=True)
        }

    def _lowered(self, rates: dict[int, Fraction], inner: set[Key]) -> dict[int, Fraction]:
        """Return rates no greater than in smaller groups; 0 if one of these does not fit."""
        for key in inner:
            within = self.rates(key)
            if within is None:
                continue
            if not all(within.values()):
                return dict.fromkeys(rates, Fraction(0))
            rates = {n: min(rate, within.get(n, rate)) for n, rate in rates.items()}
        return rates

    def _in_larger(self, key: Key) -> dict[int, Fraction] | None:
        """Return the greatest rates of all measured groups that contain this one."""
        best = dict.fromkeys(key, Fraction(0))
        for other in self._measured:
            rates = self.rates(other)
            if Counter(key) <= Counter(other) and rates is not None:
                best = {n: max(rate, rates[n]) for n, rate in best.items()}
        return best if all(best.values()) else None

    def _by_pairs(self, key: Key) -> dict[int, Fraction]:
        found = {}
        for place, name in enumerate(key):
            product = Fraction(1)
            for other in key[:place] + key[place + 1 :]:
                beside = self.rates((min(name, other), max(name, other)))
                product *= (beside or {})[name]
            found[name] = product
        return found

    def _by_formula(self, key: Key) -> dict[int, Fraction]:
        wanted = sum((self._types.utilisation[n] for n in key), Fraction(0))
        slowdown = 1 + Fraction(self._table.saturation_slope) * max(Fraction(0), wanted - 1)
        slowdown += Fraction(self._table.partner_slowdown) * (len(key) - 1)
        return dict.fromkeys(key, 1 / slowdown)

    def _gpu_w(self, key: Key, rates: dict[int, Fraction]) -> Fraction:
        power, measured = self._scenario.power, self._measured.get(key)
        if power is None:
            return Fraction(0)
        if measured is not None and measured.gpu_power_w is not None:
            return Fraction(measured.gpu_power_w)
        if measured is not None and measured.utilisation is not None:
            return power.gpu.watts(Fraction(measured.utilisation))
        busy = sum((self._types.utilisation[n] * rates[n] for n in key), Fraction(0))
        return power.gpu.watts(busy)
