"""A BOA instance as arrays: what the methods compute on.

"Value" is what the objective adds up and "use" what the limit restricts. Where GPUs are limited,
value is mean jobs in the system and use is mean GPUs rented; where the mean JCT is the target, the
two change places (boa.md 4.1, A5). Every method below works for both questions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.check import SCALE_BITS, limit, speedup_ratios
from optsched.boa.instance import Amdahl, Table
from optsched.boa.plan import BoaPlan, ClassPlan, WidthSequence

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from optsched.boa.instance import BoaInstance, JobClass, Speedup


ROUNDINGS = 1e-13  # more than what the use of a choice, summed exactly, is off by, relatively
NEAR = 1e-9  # priced values that differ by less, relatively, are compared exactly


class Path(NamedTuple):
    """One column per phase of a chain, and what the columns add up to."""

    columns: NDArray[np.intp]
    value: float
    use: float


@dataclass(frozen=True)
class Groups:
    """Phases whose widths can be chosen freely of each other: no rescaling, or the only phase.

    Attributes
    ----------
    members
        (class, phase) of each group.
    gpus, value, use
        Shape (groups, columns). Where a group has fewer widths, value is infinite and use zero.
    """

    members: NDArray[np.intp]
    gpus: NDArray[np.float64]
    value: NDArray[np.float64]
    use: NDArray[np.float64]

    def priced(self, price: float) -> NDArray[np.float64]:
        """Return value + price * use, shape (groups, columns)."""
        if np.isposinf(price):
            return np.where(np.isfinite(self.value), self.use, np.inf)
        return self.value + price * self.use


@dataclass(frozen=True)
class Chain:
    """A class with several phases and rescaling between them.

    Attributes
    ----------
    owner
        Number of the class.
    gpus
        Shape (columns,): every width that some phase allows.
    value, use
        Shape (phases, columns); value is infinite where a phase does not allow the width.
    rescale_value, rescale_use
        Shape (columns,): added in the first phase, and wherever the column changes.
    """

    owner: int
    gpus: NDArray[np.float64]
    value: NDArray[np.float64]
    use: NDArray[np.float64]
    rescale_value: NDArray[np.float64]
    rescale_use: NDArray[np.float64]

    def priced(self, price: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return value + price * use of the nodes and of the rescalings."""
        if np.isposinf(price):
            return np.where(np.isfinite(self.value), self.use, np.inf), self.rescale_use
        return self.value + price * self.use, self.rescale_value + price * self.rescale_use

    def path(self, columns: NDArray[np.intp]) -> Path:
        """Add up a way through the chain."""
        phases = np.arange(len(columns))
        started = np.r_[True, columns[1:] != columns[:-1]]
        value = self.value[phases, columns] + started * self.rescale_value[columns]
        use = self.use[phases, columns] + started * self.rescale_use[columns]
        return Path(columns, float(value.sum()), float(use.sum()))


@dataclass(frozen=True)
class Arrays:
    """A BOA instance as arrays; see the module's docstring."""

    groups: Groups
    chains: list[Chain]
    limit: float


class Choice(NamedTuple):
    """A column for every group and a path for every chain, and what they add up to."""

    columns: NDArray[np.intp]
    paths: tuple[Path, ...]
    value: float
    use: float


def choice(arrays: Arrays, columns: NDArray[np.intp], paths: tuple[Path, ...]) -> Choice:
    """Add up a column for every group and a path for every chain."""
    rows = np.arange(len(columns))
    groups = arrays.groups
    value = float(groups.value[rows, columns].sum()) + sum(path.value for path in paths)
    use = float(groups.use[rows, columns].sum()) + sum(path.use for path in paths)
    return Choice(columns, paths, value, use)


def arrays(instance: BoaInstance, rates_per_s: list[float] | None = None) -> Arrays:
    """Build the arrays of an instance.

    Parameters
    ----------
    rates_per_s
        Arrival rates to use instead of the instance's; a class of rate zero is left out.
    """
    if rates_per_s is None:
        rates_per_s = arrival_rates(instance)
    flipped = instance.budget is None
    members, group_rows, chains = [], [], []
    for i, (job_class, rate) in enumerate(zip(instance.classes, rates_per_s, strict=True)):
        if not rate:
            continue
        if job_class.rescale_s and len(job_class.phases) > 1:
            chains.append(_chain(i, job_class, rate, flipped))
            continue
        for e, phase in enumerate(job_class.phases):
            gpus, speedup = curve(phase.speedup)
            members.append((i, e))
            group_rows.append((gpus, rate * (phase.work_gpu_s / speedup + job_class.rescale_s)))
    groups = _groups(members, group_rows, flipped)
    return Arrays(groups, chains, float(limit(instance)))


def arrival_rates(instance: BoaInstance) -> list[float]:
    """Return jobs per second of every class."""
    return [job_class.arrival_rate_per_h / 3600 for job_class in instance.classes]


def curve(speedup: Speedup) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the whole widths of a speedup curve, ascending, and the speedup at each."""
    if isinstance(speedup, Table):
        measured = speedup.measured
        return np.array(list(measured), float), np.array(list(measured.values()))
    gpus = np.arange(1, speedup.max_gpus + 1, dtype=float)
    if isinstance(speedup, Amdahl):
        fraction = speedup.parallel_fraction
        return gpus, 1 / (1 - fraction + fraction / gpus)
    return gpus, gpus**speedup.exponent


def _groups(
    members: list[tuple[int, int]],
    rows: list[tuple[NDArray[np.float64], NDArray[np.float64]]],
    flipped: bool,
) -> Groups:
    shape = len(rows), max((len(gpus) for gpus, _ in rows), default=1)
    gpus, jobs = np.ones(shape), np.full(shape, np.inf)
    for row, (widths, values) in enumerate(rows):
        gpus[row, : len(widths)] = widths
        jobs[row, : len(widths)] = values
    owners = np.array(members, np.intp).reshape(-1, 2)
    return Groups(owners, gpus, *_value_and_use(jobs, gpus, flipped))


def _chain(owner: int, job_class: JobClass, rate: float, flipped: bool) -> Chain:
    curves = [curve(phase.speedup) for phase in job_class.phases]
    gpus = np.unique(np.concatenate([widths for widths, _ in curves]))
    jobs = np.full((len(curves), len(gpus)), np.inf)
    for e, ((widths, speedup), phase) in enumerate(zip(curves, job_class.phases, strict=True)):
        jobs[e, np.searchsorted(gpus, widths)] = rate * phase.work_gpu_s / speedup
    rescaling = np.full(len(gpus), rate * job_class.rescale_s)
    return Chain(
        owner,
        gpus,
        *_value_and_use(jobs, gpus, flipped),
        *_value_and_use(rescaling, gpus, flipped),
    )


def _value_and_use(
    jobs: NDArray[np.float64], gpus: NDArray[np.float64], flipped: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    possible = np.isfinite(jobs)
    finite = np.where(possible, jobs, 0.0)
    held = finite * gpus
    if flipped:
        return np.where(possible, held, np.inf), finite
    return jobs, held


def to_plan(instance: BoaInstance, parts: list[tuple[float, list[list[float]]]]) -> BoaPlan:
    """Make a plan from shares of jobs and, for each share, the width of every (class, phase).

    Equal width sequences of a class are merged; whole widths become integers. The shares must sum
    to one exactly; see `complementary`.
    """
    rows = range(len(instance.classes))
    classes = (class_plan(instance, i, [(share, row[i]) for share, row in parts]) for i in rows)
    return BoaPlan(classes=tuple(classes))


def class_plan(
    instance: BoaInstance, owner: int, parts: list[tuple[float, list[float]]]
) -> ClassPlan:
    """Make the plan of one class from shares of its jobs and the widths of each share."""
    shares: dict[tuple[int | float, ...], float] = {}
    for share, widths in parts:
        key = tuple([int(k) if k.is_integer() else k for k in widths])
        shares[key] = shares.get(key, 0.0) + share
    sequences = tuple(
        [WidthSequence(share=share, gpus=gpus) for gpus, share in shares.items() if share]
    )
    return ClassPlan(id=instance.classes[owner].id, sequences=sequences)


def widths_of(instance: BoaInstance, problem: Arrays, chosen: Choice) -> list[list[float]]:
    """Return the chosen width of every (class, phase); classes that are left out get no widths."""
    widths: list[list[float]] = [[0.0] * len(c.phases) for c in instance.classes]
    groups = problem.groups
    picked = groups.gpus[np.arange(len(chosen.columns)), chosen.columns]
    for (i, e), gpus in zip(groups.members.tolist(), picked.tolist(), strict=True):
        widths[i][e] = gpus
    for chain, path in zip(problem.chains, chosen.paths, strict=True):
        widths[chain.owner] = chain.gpus[path.columns].tolist()
    return widths


def complementary(share: float) -> tuple[float, float]:
    """Return two floats near `share` and 1 - `share` whose exact sum is one."""
    large = max(share, 1 - share)
    small = 1 - large  # exact for large in [1/2, 1]
    return (large, small) if share >= 0.5 else (small, large)


# --- exact figures, where floats tell what need not be looked at ------------------------------


def surely_within(problem: Arrays, chosen: Choice) -> bool:
    """Tell whether a choice keeps within the limit whatever its floats were rounded by."""
    uses = problem.groups.use[np.arange(len(chosen.columns)), chosen.columns].tolist()
    total = math.fsum([*uses, *(path.use for path in chosen.paths)])
    return total * (1 + ROUNDINGS) <= problem.limit


def priced_total(instance: BoaInstance, problem: Arrays, price: Fraction) -> int:
    """Return the judge's least priced total of the classes without rescaling.

    A multiple of 2**-192 / price.denominator; only widths that floats cannot rule out are looked
    at, so it is what `proof.priced_total` finds.
    """
    weights = price.denominator, price.numerator
    of_jobs, of_gpus = weights if instance.budget is not None else weights[::-1]
    groups, priced = problem.groups, problem.groups.priced(float(price))
    rows, columns = np.nonzero(priced <= priced.min(axis=1, keepdims=True) * (1 + NEAR))
    least: dict[int, int] = {}
    near = rows.tolist(), groups.members[rows].tolist(), groups.gpus[rows, columns].tolist()
    for row, (i, e), gpus in zip(*near, strict=True):
        job_class, k = instance.classes[i], int(gpus)
        if job_class.rescale_s:
            continue
        phase = job_class.phases[e]
        rate, hour = job_class.arrival_rate_per_h.as_integer_ratio()
        work, unit = phase.work_gpu_s.as_integer_ratio()
        top, bottom = speedup_ratios(phase.speedup, k)[1]
        scaled, per = rate * work * bottom << SCALE_BITS, 3600 * hour * unit * top
        weight = of_jobs * (scaled // per) + of_gpus * (k * scaled // per)
        least[row] = min(least.get(row, weight), weight)
    return sum(least.values())
