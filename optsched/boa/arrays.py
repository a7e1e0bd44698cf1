"""A BOA instance as arrays: what the methods compute on.

"Value" is what the objective adds up and "use" what the limit restricts. Where GPUs are limited,
value is mean jobs in the system and use is mean rent; where the mean JCT is the target, the two
change places (docs/math/boa.md, Formulation). Every method below works for both questions. Rent is
in GPUs, or in USD/h where there are offers; what a phase can take is an option (`options.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.exact.phase_graphs import (
    ChainStack,
    Path,
    PhaseChain,
    priced,
    stacks,
    value_and_use,
)
from optsched.boa.options import OFFER_STEP, option_curves, start_seconds
from optsched.boa.plan import BoaPlan, ClassPlan, WidthSequence
from optsched.boa.settings import SETTINGS
from optsched.boa.verify.feasibility import limit

if TYPE_CHECKING:
    from optsched.boa.instance import BoaInstance
    from optsched.documents.arrays import Floats, Indices


@dataclass(frozen=True)
class FreePhases:
    """Phases whose widths can be chosen freely of each other: no rescaling, or the only phase.

    Attributes
    ----------
    members
        (class, phase) of each group.
    options, value, use
        Shape (groups, columns). Where a group has fewer options, value is infinite and use zero.
    """

    members: Indices
    options: Floats
    value: Floats
    use: Floats

    def priced(self, price: float) -> Floats:
        """Return value + price * use, shape (groups, columns)."""
        return priced(self.value, self.use, price)


@dataclass(frozen=True)
class BoaArrays:
    """A BOA instance as arrays; see the module's docstring."""

    groups: FreePhases
    stacks: list[ChainStack]
    limit: float

    @cached_property
    def chains(self) -> list[PhaseChain]:
        """The chains of all stacks, in the order of the classes."""
        chains = [chain for stack in self.stacks for chain in stack.chains()]
        return sorted(chains, key=lambda chain: chain.owner)


class WidthChoice(NamedTuple):
    """A column for every group and a path for every chain, and what they add up to."""

    columns: Indices
    paths: tuple[Path, ...]
    value: float
    use: float


def choice(arrays: BoaArrays, columns: Indices, paths: tuple[Path, ...]) -> WidthChoice:
    """Add up a column for every group and a path for every chain."""
    rows = np.arange(len(columns))
    groups = arrays.groups
    value = float(groups.value[rows, columns].sum()) + sum(path.value for path in paths)
    use = float(groups.use[rows, columns].sum()) + sum(path.use for path in paths)
    return WidthChoice(columns, paths, value, use)


def arrays(instance: BoaInstance, rates_per_s: list[float] | None = None) -> BoaArrays:
    """Build the arrays of an instance.

    Parameters
    ----------
    rates_per_s
        Arrival rates to use instead of the instance's; a class of rate zero is left out.
    """
    if rates_per_s is None:
        rates_per_s = arrival_rates(instance)
    flipped = instance.budget is None
    members, owners = [], []
    for i, (job_class, rate) in enumerate(zip(instance.classes, rates_per_s, strict=True)):
        if rate and len(job_class.phases) > 1 and instance.charges_starts(job_class):
            owners.append(i)
        elif rate:
            members += [(i, e) for e in range(len(job_class.phases))]
    groups = _groups(instance, members, rates_per_s, flipped)
    stacked = stacks(instance, owners, rates_per_s, flipped)
    return BoaArrays(groups, stacked, float(limit(instance)))


def arrival_rates(instance: BoaInstance) -> list[float]:
    """Return jobs per second of every class."""
    return [job_class.arrival_rate_per_h / 3600 for job_class in instance.classes]


def _groups(
    instance: BoaInstance, members: list[tuple[int, int]], rates_per_s: list[float], flipped: bool
) -> FreePhases:
    owners = np.array(members, np.intp).reshape(-1, 2)
    classes = [instance.classes[i] for i, _ in members]
    phases = [(c, c.phases[e]) for c, (_, e) in zip(classes, members, strict=True)]
    parts = option_curves(instance, phases)
    shape = len(members), max((len(part.options) for part in parts), default=1)
    options, rents, jobs = np.ones(shape), np.ones(shape), np.full(shape, np.inf)
    idle = np.zeros(shape)
    rates = np.array(rates_per_s)[owners[:, :1]]
    work = np.array([phase.work_gpu_s for _, phase in phases])[:, None]
    for rows, numbers, rented, speedup in parts:
        options[rows, : len(numbers)], rents[rows, : len(numbers)] = numbers, rented
        lost, paid = start_seconds(instance, [classes[row] for row in rows], numbers)
        jobs[rows, : len(numbers)] = rates[rows] * (work[rows] / speedup + lost)
        idle[rows, : len(numbers)] = rates[rows] * paid
    return FreePhases(owners, options, *value_and_use(jobs, rents, flipped, idle))


def to_plan(instance: BoaInstance, parts: list[tuple[float, list[list[float]]]]) -> BoaPlan:
    """Make a plan from shares of jobs and, for each share, the option of every (class, phase).

    Equal sequences of a class are merged; whole widths become integers. The shares must sum
    to one exactly; see `complementary`.
    """
    made: dict[tuple[float, ...], WidthSequence] = {}
    rows = range(len(instance.classes))
    classes = (
        class_plan(instance, i, [(share, row[i]) for share, row in parts], made) for i in rows
    )
    return BoaPlan(classes=tuple(classes))


def class_plan(
    instance: BoaInstance,
    owner: int,
    parts: list[tuple[float, list[float]]],
    made: dict[tuple[float, ...], WidthSequence] | None = None,
) -> ClassPlan:
    """Make the plan of one class from shares of its jobs and the options of each share.

    Parameters
    ----------
    made
        Sequences by share and options, which many classes have in common: taken, and added to.
    """
    made = {} if made is None else made
    shares: dict[tuple[float, ...], float] = {}
    for share, widths in parts:
        shares[tuple(widths)] = shares.get(tuple(widths), 0.0) + share
    sequences = []
    for row, share in shares.items():
        if not share:
            continue
        key = (share, *row)
        if key not in made:
            made[key] = _sequence(instance, share, row)
        sequences.append(made[key])
    return ClassPlan(id=instance.classes[owner].id, sequences=tuple(sequences))


def _sequence(instance: BoaInstance, share: float, row: tuple[float, ...]) -> WidthSequence:
    if instance.offers is None:
        gpus = tuple([int(k) if k.is_integer() else k for k in row])
        return WidthSequence(share=share, gpus=gpus)
    pairs = [divmod(int(option), OFFER_STEP) for option in row]
    offers = tuple([instance.offers[number].id for number, _ in pairs])
    return WidthSequence(share=share, gpus=tuple([gpus for _, gpus in pairs]), offers=offers)


def options_chosen(
    instance: BoaInstance, problem: BoaArrays, chosen: WidthChoice
) -> list[list[float]]:
    """Return the chosen option of every (class, phase); classes that are left out get none."""
    options: list[list[float]] = [[0.0] * len(c.phases) for c in instance.classes]
    groups = problem.groups
    picked = groups.options[np.arange(len(chosen.columns)), chosen.columns]
    for (i, e), option in zip(groups.members.tolist(), picked.tolist(), strict=True):
        options[i][e] = option
    for chain, path in zip(problem.chains, chosen.paths, strict=True):
        options[chain.owner] = chain.options[path.columns].tolist()
    return options


def complementary(share: float) -> tuple[float, float]:
    """Return two floats near `share` and 1 - `share` whose exact sum is one."""
    large = max(share, 1 - share)
    small = 1 - large  # exact for large in [1/2, 1]
    return (large, small) if share >= 0.5 else (small, large)


def surely_within(problem: BoaArrays, chosen: WidthChoice) -> bool:
    """Tell whether a choice keeps within the limit whatever its floats were rounded by."""
    uses = problem.groups.use[np.arange(len(chosen.columns)), chosen.columns].tolist()
    total = math.fsum([*uses, *(path.use for path in chosen.paths)])
    return total * (1 + SETTINGS.rounding) <= problem.limit
