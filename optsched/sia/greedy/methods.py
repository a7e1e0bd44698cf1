"""Greedy rules for Sia's round: one job, or one change of a job, after the other.

Each rule begins with all jobs waiting; a job that may not wait gets what it has, or else the option
of fewest GPUs that fits. A rule offers nothing if these do not fit.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from optsched.sia.plan import SiaPlan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from optsched.search import Search
    from optsched.sia.instance import RoundOption, SiaInstance


def in_order(instance: SiaInstance, search: Search) -> None:
    """Give one job after the other, as they are listed, the option of least cost that fits."""
    _one_by_one(instance, search, range(len(instance.jobs)))


def largest_gain_first(instance: SiaInstance, search: Search) -> None:
    """Give jobs the option of least cost that fits; those that gain most by their best come first.

    The gain is what the best option costs less than the worst one.
    """
    costs = [[option.cost for option in own] for own in instance.options]
    gains = [max(own) - min(own) for own in costs]
    _one_by_one(instance, search, sorted(range(len(gains)), key=lambda n: (-gains[n], n)))


def keep_current(instance: SiaInstance, search: Search) -> None:
    """Let running jobs keep what they have; the others get the option of least cost that fits."""
    shares = _Shares(instance)
    if not shares.is_feasible:
        return
    for n, job in enumerate(instance.jobs):
        if job.current is not None:
            group = job.current.type, job.current.gpus
            shares.take(n, [o for o in instance.options[n] if (o.type, o.gpus) == group])
    for n, job in enumerate(instance.jobs):
        if job.current is None or shares.options[n].type is None:
            shares.take(n, instance.options[n])
    search.offer(shares.plan())


def goodput_per_gpu(instance: SiaInstance, search: Search) -> None:
    """Make the change that saves most per GPU, as a share of the GPUs of its type, until none fits.

    Source: marginal gains, as in Optimus, EuroSys 2018, for Sia's costs.
    """
    shares = _Shares(instance)
    if not shares.is_feasible:
        return
    heap = [(-density, n, place) for n in shares.numbers for density, place in shares.changes(n)]
    heapq.heapify(heap)
    while heap:
        density, n, place = heapq.heappop(heap)
        option = instance.options[n][place]
        if not shares.fits(n, option) or shares.density(n, option) < -density:
            continue
        shares.move(n, option)
        for better, other in shares.changes(n):
            heapq.heappush(heap, (-better, n, other))
    search.offer(shares.plan())


def _one_by_one(instance: SiaInstance, search: Search, order: Iterable[int]) -> None:
    shares = _Shares(instance)
    if not shares.is_feasible:
        return
    for n in order:
        shares.take(n, instance.options[n])
    search.offer(shares.plan())


class _Shares:
    """What each job has so far, and which GPUs are left.

    Attributes
    ----------
    options
        Of each job, the option that it has.
    free
        GPUs by type.
    is_feasible
        Whether the jobs that may not wait have something.
    """

    def __init__(self, instance: SiaInstance) -> None:
        self._instance, self.free = instance, dict(instance.gpus)
        self.numbers = range(len(instance.jobs))
        self.options = [own[-1] for own in instance.options]
        self.is_feasible = True
        must = [n for n in self.numbers if self.options[n].type is not None]
        for n in must:
            self.options[n] = self.options[n]._replace(type=None)
        for n in sorted(must, key=lambda n: instance.jobs[n].preemptible):
            self._begin(n)

    def _begin(self, n: int) -> None:
        """Give a job that may not wait what it has, or else the fewest GPUs that fit."""
        current = self._instance.jobs[n].current
        group = None if current is None else (current.type, current.gpus)
        fitting = [option for option in self._instance.options[n] if self.fits(n, option)]
        if not fitting:
            self.is_feasible = False
            return
        self.move(n, min(fitting, key=lambda o: ((o.type, o.gpus) != group, o.gpus, o.cost)))

    def fits(self, n: int, option: RoundOption) -> bool:
        """Tell whether a job may move to an option."""
        if option.type is None:
            return True
        held = self.options[n]
        own = held.gpus if held.type == option.type else 0
        return option.gpus <= self.free[option.type] + own

    def move(self, n: int, option: RoundOption) -> None:
        """Let a job move to an option that fits."""
        held = self.options[n]
        if held.type is not None:
            self.free[held.type] += held.gpus
        if option.type is not None:
            self.free[option.type] -= option.gpus
        self.options[n] = option

    def take(self, n: int, options: Iterable[RoundOption]) -> None:
        """Let a job move to the option of least cost that fits, if any does; of fewest GPUs."""
        fitting = [option for option in options if self.fits(n, option)]
        if fitting:
            self.move(n, min(fitting, key=lambda option: (option.cost, option.gpus)))

    def density(self, n: int, option: RoundOption) -> float:
        """Return what a change saves per share of a type's GPUs; without more GPUs, without end."""
        saved = self.options[n].cost - option.cost
        more = self._share(option) - self._share(self.options[n])
        return saved / more if more > 0 else float("inf") if saved > 0 else 0.0

    def _share(self, option: RoundOption) -> float:
        return option.gpus / self._instance.gpus[option.type] if option.type else 0.0

    def changes(self, n: int) -> list[tuple[float, int]]:
        """Return the changes of a job that save something, by density and place."""
        options = enumerate(self._instance.options[n])
        held = self.options[n]
        fitting = [(o, place) for place, o in options if o.cost < held.cost and self.fits(n, o)]
        return [(self.density(n, option), place) for option, place in fitting]

    def plan(self) -> SiaPlan:
        """Return the plan."""
        places = [own.index(self.options[n]) for n, own in enumerate(self._instance.options)]
        return SiaPlan.of(self._instance, places)
