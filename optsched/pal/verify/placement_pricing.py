"""Verifier of PAL: the least priced cost of the jobs, whatever GPUs each of them takes.

Integers and fractions only, and no code shared with the methods. Amounts are multiples of 2**-192;
costs and prices are rounded down to them.
"""

from __future__ import annotations

from bisect import bisect_right
from math import inf
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from optsched.pal.verify.costs import NEVER
from optsched.pal.verify.placements import DomainOptions, FreeCluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.pal.instance import Job, PalInstance
    from optsched.pal.verify.costs import InfeasibilityCosts, ObjectiveCosts

# --- jobs -------------------------------------------------------------------------------------


class KeptPlacement(NamedTuple):
    """A running job keeps its GPUs."""

    job: str
    gpus: list[int]
    domain: str
    slowdown: float
    cost: int


class EqualJobs(NamedTuple):
    """Jobs that are equal but for their ids and current GPUs.

    Attributes
    ----------
    places, costs
        Numbers of places, and for each of them the costs of its options.
    keeps, others
        Jobs that can keep their GPUs, and how many there are besides.
    left_out
        Cost of leaving out; None if it is not allowed.
    """

    places: list[int]
    costs: list[list[int]]
    keeps: list[KeptPlacement]
    others: int
    left_out: int | None


class Counted(NamedTuple):
    """What a rule counts.

    Attributes
    ----------
    options
        (type, position in `EqualJobs.places`, how many of the options from the first).
    keeps
        (type, position in `EqualJobs.keeps`).
    """

    options: list[tuple[int, int, int]]
    keeps: list[tuple[int, int]]


class JobOptions:
    """All that jobs can take, and what it costs them.

    Attributes
    ----------
    type_of
        Number of the type of each job, by id.
    """

    def __init__(self, instance: PalInstance, costs: ObjectiveCosts | InfeasibilityCosts) -> None:
        self.cluster = FreeCluster(instance)
        self.costs = costs
        self.places: list[DomainOptions] = []
        self.numbers: dict[tuple[str, int], list[int]] = {}  # of places, by class and size
        self._find_places(instance)
        types = jobs_by_type(instance)
        self.types = [self._job_type(instance, equal) for equal in types]
        self.type_of = {job.id: n for n, equal in enumerate(types) for job in equal}

    def _find_places(self, instance: PalInstance) -> None:
        sizes: dict[str, set[int]] = {}
        for job in instance.jobs:
            sizes.setdefault(job.application_class, set()).add(job.gpus)
        for name, of_class in sizes.items():
            for place in self.cluster.places(name, of_class):
                self.numbers.setdefault((name, place.size), []).append(len(self.places))
                self.places.append(place)

    def _job_type(self, instance: PalInstance, jobs: list[Job]) -> EqualJobs:
        job, levels = jobs[0], instance.topology.levels
        top = len(levels) - 1 if job.highest_level is None else levels.index(job.highest_level)
        known = self.numbers.get((job.application_class, job.gpus), [])
        places = [n for n in known if self.places[n].level <= top]
        restart, costs = self.costs.restart(job), []
        for level, slowdowns in ((self.places[n].level, self.places[n].slowdowns) for n in places):
            costs.append([restart + cost for cost in self.costs.placed(job, level, slowdowns)])
        keeps = [keep for one in jobs if (keep := keep_of(self.cluster, self.costs, one, top))]
        left_out, others = self.costs.left_out(job), len(jobs) - len(keeps)
        return EqualJobs(places, costs, keeps, others, left_out)

    def within(self, types: set[int], domain: str, slowest: float | None) -> Counted:
        """Return what counts jobs of some types in a domain, on GPUs that are fast enough."""
        inside = self.cluster.inside[domain]
        limit = inf if slowest is None else slowest
        options, keeps = [], []
        for t in types:
            for n, number in enumerate(self.types[t].places):
                place = self.places[number]
                count = bisect_right(place.slowdowns, limit) if place.domain in inside else 0
                if count:
                    options.append((t, n, count))
            for n, keep in enumerate(self.types[t].keeps):
                if keep.domain in inside and keep.slowdown <= limit:
                    keeps.append((t, n))
        return Counted(options, keeps)

    def keeps(self, job: str) -> Counted:
        """Return what counts a job that keeps its GPUs."""
        t = self.type_of[job]
        return Counted([], [(t, n) for n, s in enumerate(self.types[t].keeps) if s.job == job])

    def least(self, prices: list[int], charges: list[tuple[Counted, int]]) -> int | None:
        """Return the least priced cost of all jobs, at any GPUs, each on its own.

        Parameters
        ----------
        prices
            Of each free GPU.
        charges
            What is added for one more of what a rule counts; may be negative.

        Returns
        -------
        int | None
            None if there is a job with nothing to take.
        """
        priced = self._priced(prices, charges)
        if any(each.highest >= NEVER for each in priced):
            return None
        return sum(each.total for each in priced)

    def exclude(
        self, prices: list[int], charges: list[tuple[Counted, int]], constant: int, limit: int
    ) -> None:
        """Leave out options that are only in plans that cost at least a limit.

        Parameters
        ----------
        constant
            What is paid at most: the least priced cost of all jobs less that is a bound, and with
            a job elsewhere than where it pays least, the bound is as much greater.
        """
        priced = self._priced(prices, charges)
        if any(each.highest >= NEVER for each in priced):
            return  # there is no plan at all, as the leaves will say
        slack = limit + constant - sum(each.total for each in priced)
        for job_type, each in zip(self.types, priced, strict=True):
            for costs, of_place in zip(job_type.costs, each.options, strict=True):
                for n, price in enumerate(of_place):
                    if price - each.highest >= slack:
                        costs[n] = NEVER
            for n, (keep, price) in enumerate(zip(job_type.keeps, each.keeps, strict=True)):
                if price - min(price, each.shared) >= slack:
                    job_type.keeps[n] = keep._replace(cost=NEVER)

    def _priced(self, prices: list[int], charges: list[tuple[Counted, int]]) -> list[TypePrices]:
        negated = [-price for price in prices]
        gangs: dict[int, list[int]] = {}
        steps, keep_charges = _by_option(charges)
        priced = []
        for t, job_type in enumerate(self.types):
            options = []
            for n, (number, costs) in enumerate(zip(job_type.places, job_type.costs, strict=True)):
                if number not in gangs:
                    gangs[number] = self.places[number].gang_prices(negated)
                options.append(_option_prices(gangs[number], costs, steps.get((t, n), ())))
            keeps = [
                keep.cost + sum(prices[gpu] for gpu in keep.gpus) + keep_charges.get((t, n), 0)
                for n, keep in enumerate(job_type.keeps)
            ]
            priced.append(least_prices(job_type, options, keeps))
        return priced


class TypePrices(NamedTuple):
    """What the jobs of a type may take at some prices.

    Attributes
    ----------
    options, keeps
        Prices of the options of each place, and of each kept placement.
    shared
        The least that a job that does not keep its GPUs can pay.
    highest
        What the job of the type that pays most pays.
    total
        What all of them pay.
    """

    options: list[list[int]]
    keeps: list[int]
    shared: int
    highest: int
    total: int


def keep_of(
    cluster: FreeCluster, costs: ObjectiveCosts | InfeasibilityCosts, job: Job, top: int
) -> KeptPlacement | None:
    """Return that a job keeps its GPUs; None if it waits, or has to move."""
    if not job.current or not all(gpu in cluster.numbers for gpu in job.current):
        return None
    gpus = [cluster.numbers[gpu] for gpu in job.current]
    domain = cluster.common(gpus)
    level = cluster.levels[domain]
    if level > top:
        return None
    slowest = cluster.slowest(job.application_class, gpus)
    return KeptPlacement(job.id, gpus, domain, slowest, costs.placed(job, level, [slowest])[0])


def least_prices(job_type: EqualJobs, options: list[list[int]], keeps: list[int]) -> TypePrices:
    """Return what the jobs of a type pay, given the prices of options."""
    shared = min((min(prices) for prices in options), default=NEVER)
    if job_type.left_out is not None:
        shared = min(shared, job_type.left_out)
    paid = [min(keep, shared) for keep in keeps] + ([shared] if job_type.others else [])
    total = sum(paid) + (job_type.others - 1) * shared * (job_type.others > 0)
    return TypePrices(options, keeps, shared, max(paid), total)


def _by_option(
    charges: list[tuple[Counted, int]],
) -> tuple[dict[tuple[int, int], list[tuple[int, int]]], dict[tuple[int, int], int]]:
    """Return for each place of a type the charges of its first options, and of each keep."""
    steps: dict[tuple[int, int], list[tuple[int, int]]] = {}
    keep_charges: dict[tuple[int, int], int] = {}
    for counted, charge in charges:
        for t, n, count in counted.options:
            steps.setdefault((t, n), []).append((count, charge))
        for keep in counted.keeps:
            keep_charges[keep] = keep_charges.get(keep, 0) + charge
    return steps, keep_charges


def _option_prices(
    gangs: list[int], costs: list[int], steps: Sequence[tuple[int, int]]
) -> list[int]:
    """Return the sums of prices, costs, and charges for a number of options from the first."""
    sums = list(map(add, gangs, costs))
    charge = sum(charge for _, charge in steps)
    start = 0
    for stop, step in sorted(steps):
        sums[start:stop] = [price + charge for price in sums[start:stop]]
        start, charge = max(start, stop), charge - step
    return sums


def jobs_by_type(instance: PalInstance) -> list[list[Job]]:
    """Return the jobs by type."""
    jobs: dict[tuple[object, ...], list[Job]] = {}
    for job in instance.jobs:
        jobs.setdefault(_type(job), []).append(job)
    return list(jobs.values())


def _type(job: Job) -> tuple[object, ...]:
    """Return what jobs of one type have in common."""
    restart = job.restart_s if job.current else None
    need = (job.gpus, job.application_class, job.model, job.highest_level)
    return (*need, job.weight, job.remaining_s, job.reward, restart)
