"""A multiple-choice multidimensional knapsack in arrays: jobs, options, capacities of a round."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from math import fsum, inf
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.documents.faults import shown

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from optsched.sia.instance import SiaInstance

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Round:
    """Every job takes exactly one of its options, within the capacities, at least total cost.

    A job that may go without has an option that uses nothing, at the cost of going without.

    All figures are kept as floats, and what is said and proven of a round is exact for these. A
    number that no float equals (a whole number above 2**53 may be one, a `Fraction`, a `Decimal`)
    is refused, not rounded. The arrays are copies that cannot be written to.

    Attributes
    ----------
    jobs
        Ids, each once; a `Choice` knows jobs again by them from round to round.
    counts
        Shape (jobs,): how many options each job has. All options stand in one list, job by job.
    cost
        Shape (options,), finite.
    use
        Shape (options, capacities), at least 0: what an option takes of each capacity.
    capacity
        Shape (capacities,), at least 0.

    Raises
    ------
    ValueError
        If the arrays are not so; the message names the jobs.
    """

    jobs: Sequence[Hashable]
    counts: Indices
    cost: Floats
    use: Floats
    capacity: Floats

    def __post_init__(self) -> None:
        for name in ("counts", "cost", "use", "capacity"):
            dtype = np.dtype(np.intp if name == "counts" else np.float64)
            object.__setattr__(self, name, _exactly(name, getattr(self, name), dtype))
        faults = list(_shape_faults(self)) or list(_faults(self))
        if faults:
            more = len(faults) - 5
            rest = [f"and {more:,} more"] if more > 0 else []
            raise ValueError("; ".join([*faults[:5], *rest]))

    @classmethod
    def of(
        cls,
        options: Mapping[Any, Sequence[tuple[float, Sequence[float]]]],
        capacity: Sequence[float],
    ) -> Round:
        """Return a round of options (cost, use) by job."""
        rows = [row for own in options.values() for row in own]
        return cls(
            jobs=tuple(options),
            counts=np.array([len(own) for own in options.values()], dtype=np.intp),
            cost=_exactly("cost", [cost for cost, _ in rows], np.dtype(float)),
            use=_exactly("use", [use for _, use in rows], np.dtype(float)).reshape(
                len(rows), len(capacity)
            ),
            capacity=_exactly("capacity", capacity, np.dtype(float)),
        )

    @cached_property
    def first(self) -> Indices:
        """Shape (jobs,): the first option of each job."""
        return np.cumsum(self.counts) - self.counts

    @cached_property
    def job(self) -> Indices:
        """Shape (options,): the job of each option, by its place."""
        return np.repeat(np.arange(len(self.jobs), dtype=np.intp), self.counts)

    @cached_property
    def of_capacity(self) -> tuple[Floats, ...]:
        """What each option uses, shape (options,), capacity by capacity."""
        return tuple(np.ascontiguousarray(column) for column in self.use.T)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        parts = (self.counts, self.cost, self.use, self.capacity)
        names = "\0".join(map(str, self.jobs)).encode()
        return sha256(names + b"".join(part.tobytes() for part in parts)).hexdigest()

    @cached_property
    def scale(self) -> float:
        """The largest cost."""
        return float(np.abs(self.cost).max(initial=0.0))

    def objective(self, plan: Sequence[int]) -> float:
        """Return the cost of a plan: an option for every job, by its place among its own.

        Rounded once; infinite if it is beyond all floats.
        """
        return _sum(self.cost[self.first + np.asarray(plan, dtype=np.intp)].tolist())

    def gap_scale(self, plan: Sequence[int]) -> float:
        """Return the least that a gap of a plan is relative to: a millionth of what cancels.

        Where costs have both signs, that is the smaller one of what those above 0 and those below
        0 come to, in this plan: an objective near 0 would make a gap of the last digit of prices.
        Where they have one sign, it is 0, and the gap is relative to the objective.
        """
        costs = self.cost[self.first + np.asarray(plan, dtype=np.intp)]
        above, below = _sum(costs[costs > 0].tolist()), -_sum(costs[costs < 0].tolist())
        return 1e-6 * min(above, below)


def knapsack(instance: SiaInstance) -> Round:
    """Return a round in arrays: options as in `SiaInstance.options`, GPUs of each type."""
    kinds = {id(own): own for own in instance.options}  # jobs that are alike share their options
    types, gpus, costs = zip(*[option for own in kinds.values() for option in own], strict=True)
    number = {None: -1} | {name: n for n, name in enumerate(instance.gpus)}
    of_type = np.array([number[name] for name in types])
    use = np.where(of_type[:, None] == np.arange(len(instance.gpus)), np.array(gpus)[:, None], 0.0)
    sizes = np.array([len(own) for own in kinds.values()], dtype=np.intp)
    place = {name: n for n, name in enumerate(kinds)}
    kind = np.array([place[id(own)] for own in instance.options], dtype=np.intp)
    counts = sizes[kind]
    first = (np.cumsum(sizes) - sizes)[kind]  # of its kind's options, that of each job
    option = np.arange(counts.sum()) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    return Round(
        jobs=tuple(job.id for job in instance.jobs),
        counts=counts,
        cost=np.array(costs)[option],
        use=use[option],
        capacity=np.array(list(instance.gpus.values()), dtype=float),
    )


def _sum(terms: list[float]) -> float:
    """Return a sum, rounded once."""
    try:
        return fsum(terms)
    except OverflowError:  # of part of it, or of all
        total = sum(map(Fraction, terms))
    try:
        return float(total)
    except OverflowError:
        return inf if total > 0 else -inf


def _exactly(name: str, given: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an array of equal numbers that cannot be written to."""
    if not isinstance(given, np.ndarray):
        given = np.array([list(row) if np.iterable(row) else row for row in given], dtype=object)
    if not _is_sure(given, dtype):
        for value in given.ravel().tolist():
            if not _is_kept(value, dtype):
                raise ValueError(f"'{name}' has {shown(value)}, which is no {_NAMES[dtype.kind]}")
    array = np.array(given, dtype=dtype)
    array.setflags(write=False)
    return array


def _is_sure(given: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Tell whether all numbers of an array are kept by their types and sizes."""
    if given.dtype.kind in "iu":
        is_small = bool((given <= 2**53).all() and (given >= -(2**53)).all())  # all are floats
        return is_small or (dtype.kind == "i" and given.dtype.kind == "i")
    return given.dtype.kind == "f" == dtype.kind and given.dtype.itemsize <= dtype.itemsize


def _is_kept(value: Any, dtype: np.dtype[Any]) -> bool:
    """Tell whether a number is the same in an array; NaN is told of later."""
    try:
        converted = dtype.type(value).item()
    except (TypeError, ValueError, OverflowError):
        return False
    return bool(converted == value or value != value)


_NAMES = {"i": "whole number", "f": "floating-point number"}


def _shape_faults(instance: Round) -> Iterator[str]:
    jobs, options = len(instance.jobs), int(instance.counts.sum())
    capacities = len(instance.capacity)
    for name, expected in (
        ("counts", (jobs,)),
        ("cost", (options,)),
        ("use", (options, capacities)),
        ("capacity", (capacities,)),
    ):
        shape = getattr(instance, name).shape
        if shape != expected:
            yield f"'{name}' has the shape {shape}, but {expected} is expected"


def _faults(instance: Round) -> Iterator[str]:
    for job, count in Counter(instance.jobs).items():
        if count > 1:
            yield f"job {job!r} is there {count} times"
    for n in np.flatnonzero(instance.counts < 1).tolist():
        yield f"job {instance.jobs[n]!r} has no option"
    for n in np.flatnonzero(~(np.isfinite(instance.capacity) & (instance.capacity >= 0))).tolist():
        yield f"capacity {n} is {instance.capacity[n]}, not a finite number from 0 up"
    for n in np.flatnonzero(~np.isfinite(instance.cost)).tolist():
        yield f"{_name(instance, n)} costs {instance.cost[n]}, not a finite number"
    for n, number in np.argwhere(~(np.isfinite(instance.use) & (instance.use >= 0))).tolist():
        told = f"uses {instance.use[n, number]} of capacity {number}"
        yield f"{_name(instance, n)} {told}, not a finite number from 0 up"


def _name(instance: Round, option: int) -> str:
    job = int(instance.job[option])
    return f"job {instance.jobs[job]!r}, option {option - int(instance.first[job])}"
