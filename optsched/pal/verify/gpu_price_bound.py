"""Verifier of PAL: what prices of GPUs prove where nothing else is charged for.

Then a job only has to know, at each level, the least price of a gang up to each slowdown, in
whatever domain. Domains with equal GPUs at equal prices are priced once. Integers and fractions
only, and no code shared with the methods.
"""

from __future__ import annotations

from heapq import heapreplace
from typing import TYPE_CHECKING

from optsched.pal.verify.costs import NEVER
from optsched.pal.verify.placement_pricing import EqualJobs, jobs_by_type, keep_of, least_prices
from optsched.pal.verify.placements import FreeCluster

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from optsched.pal.instance import Job, PalInstance
    from optsched.pal.verify.costs import InfeasibilityCosts, ObjectiveCosts

    Costs = ObjectiveCosts | InfeasibilityCosts
    Offers = list[tuple[float, int]]  # (slowdown, price): of these, what is slower is cheaper


def least(instance: PalInstance, costs: Costs, prices: Sequence[int]) -> int | None:
    """Return the least priced cost of all jobs, at any GPUs, each on its own.

    Parameters
    ----------
    prices
        Of each free GPU, in multiples of 2**-192, as is the result.

    Returns
    -------
    int | None
        None if there is a job with nothing to take.
    """
    cluster = FreeCluster(instance)
    heights = {level: n for n, level in enumerate(instance.topology.levels)}
    types = []
    for jobs in jobs_by_type(instance):
        cap = jobs[0].highest_level
        types.append((jobs, len(heights) - 1 if cap is None else heights[cap]))
    offers = PriceList(cluster, types, prices)
    total = 0
    for jobs, top in types:
        shared = _shared(costs, jobs[0], offers.of(jobs[0])[: top + 1])
        keeps = [keep for job in jobs if (keep := keep_of(cluster, costs, job, top))]
        keep_prices = [keep.cost + sum(prices[gpu] for gpu in keep.gpus) for keep in keeps]
        job_type = EqualJobs([], [], keeps, len(jobs) - len(keeps), costs.left_out(jobs[0]))
        paid = least_prices(job_type, [[shared]], keep_prices)
        if paid.highest >= NEVER:
            return None
        total += paid.total
    return total


def _shared(costs: Costs, job: Job, offers: Iterable[Offers]) -> int:
    """Return the least that a job pays for a new place, given the offers at each level."""
    restart, shared = costs.restart(job), NEVER
    for level, at_level in enumerate(offers):
        placed = costs.placed(job, level, [slowdown for slowdown, _ in at_level])
        for cost, (_, price) in zip(placed, at_level, strict=True):
            shared = min(shared, restart + cost + price)
    return shared


class PriceList:
    """The least prices of gangs of some types of jobs, given with the highest level of each."""

    def __init__(
        self, cluster: FreeCluster, types: Iterable[tuple[list[Job], int]], prices: Sequence[int]
    ) -> None:
        self._members = cluster.members()
        self._negated = [-price for price in prices]
        numbers: dict[tuple[float, ...], int] = {}  # of slowdowns, which classes may share
        self._row: dict[str, int] = {}
        needs: dict[tuple[int, int], set[int]] = {}
        for (job, *_), top in types:
            name = job.application_class
            if name not in self._row:
                row = tuple(cluster.slowdowns(name))
                self._row[name] = numbers.setdefault(row, len(numbers))
            for level in range(top + 1):
                needs.setdefault((self._row[name], level), set()).add(job.gpus)
        rows = list(numbers)
        self._offers = {
            (row, level): self._offers_at(rows[row], level, sizes)
            for (row, level), sizes in needs.items()
        }
        self._levels = max(self._members, default=-1) + 1

    def of(self, job: Job) -> list[Offers]:
        """Return the offers to a job at each level, the lowest first."""
        row = self._row[job.application_class]
        levels = (self._offers.get((row, level), {}) for level in range(self._levels))
        return [offers.get(job.gpus, []) for offers in levels]

    def _offers_at(self, row: Sequence[float], level: int, sizes: set[int]) -> dict[int, Offers]:
        """Return the offers in the domains of a level, by size of the gang."""
        best_by_size: dict[int, dict[float, int]] = {size: {} for size in sizes}
        seen = set()
        for gpus in self._members.get(level, ()):
            look = tuple([row[gpu] for gpu in gpus]), tuple([self._negated[gpu] for gpu in gpus])
            if look in seen:
                continue
            seen.add(look)
            ascending = sorted(gpus, key=row.__getitem__)
            slowdowns = [row[gpu] for gpu in ascending]
            negated = [self._negated[gpu] for gpu in ascending]
            for size, best in best_by_size.items():
                if size <= len(gpus):
                    _offer(best, slowdowns, negated, size)
        return {size: _cheaper_and_cheaper(best) for size, best in best_by_size.items()}


def _offer(
    best: dict[float, int], slowdowns: Sequence[float], negated: Sequence[int], size: int
) -> None:
    """Lower the prices of gangs up to each slowdown to those of one domain, where these are less.

    Parameters
    ----------
    slowdowns, negated
        Of the domain's GPUs, ascending by slowdown; the prices come negated.
    """
    heap = sorted(negated[:size])  # the highest one comes first
    total, highest, slowdown = -sum(heap), heap[0], slowdowns[size - 1]
    best[slowdown] = min(total, best.get(slowdown, NEVER))
    for n in range(size, len(negated)):
        if negated[n] > highest:
            total += heapreplace(heap, negated[n]) - negated[n]
            highest, slowdown = heap[0], slowdowns[n]
            if total < best.get(slowdown, NEVER):
                best[slowdown] = total


def _cheaper_and_cheaper(best: dict[float, int]) -> Offers:
    kept: Offers = []
    for slowdown, price in sorted(best.items()):
        if not kept or price < kept[-1][1]:
            kept.append((slowdown, price))
    return kept
