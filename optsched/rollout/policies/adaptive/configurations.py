"""What jobs may be given in a round of Sia, and what that costs, as in `SiaInstance.options`."""

from __future__ import annotations

from array import array
from functools import cached_property
from hashlib import sha256
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from optsched.sia.instance import Configuration, GpuGroup, SiaJob, configuration_cost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Costs = tuple[float, ...]
    Group = tuple[str, int]


class Configurations:
    """The configurations of jobs that are alike, what each costs, and last to wait.

    Parameters
    ----------
    every
        The configurations.
    power, waiting_cost
        As of `SiaInstance`.

    Attributes
    ----------
    place
        By GPU type and GPUs, which of the configurations that is.
    told
        The same in words, for a digest.
    least
        By GPU type the fewest GPUs.
    kind
        A number for what may be given at which costs; its owner's.
    """

    kind = 0

    def __init__(self, every: Sequence[Configuration], power: float, waiting_cost: float) -> None:
        self.every, self.power, self.waiting_cost = tuple(every), power, waiting_cost
        least = min(own.goodput for own in self.every)
        self.place = {(own.type, own.gpus): n for n, own in enumerate(self.every)}
        self.told = repr(list(self.place))
        groups = sorted(self.place, key=itemgetter(1), reverse=True)
        self.least = dict(groups)  # of equal keys the last counts
        self._ratios = [own.goodput / least for own in self.every]
        self._groups = [GpuGroup(type=name, gpus=gpus) for name, gpus in self.place]

    @cached_property
    def fresh(self) -> Costs:
        """What they cost a job that needs no restart."""
        return (
            *(configuration_cost(ratio, self.power) for ratio in self._ratios),
            self.waiting_cost,
        )

    @cached_property
    def best(self) -> Group | None:
        """What costs a job least that needs no restart, of equal ones the first; None: to wait."""
        *costs, waiting = self.fresh
        least = min(costs)
        return None if least > waiting else list(self.place)[costs.index(least)]

    def costs(self, held: Group, factor: float) -> Costs:
        """Return what they cost a job that holds one of them, and restarts for the others."""
        if factor == 1.0:
            return self.fresh
        power = self.power
        costs = [configuration_cost(ratio * factor, power) for ratio in self._ratios]
        place = self.place[held]
        costs[place] = self.fresh[place]
        return (*costs, self.waiting_cost)

    def group(self, held: Group) -> GpuGroup:
        """Return one of them in the words of an instance."""
        return self._groups[self.place[held]]


class JobInRound:
    """A job in a round.

    Attributes
    ----------
    job
        Its number.
    configurations
        What it may be given.
    held
        The one of them that it holds; None: none of them, so that it restarts for none.
    factor
        The share of the speedup that counts of those that it does not hold.
    costs
        Of all of them, and to wait.
    """

    def __init__(
        self, job: int, configurations: Configurations, held: Group | None, factor: float
    ) -> None:
        self.job, self.configurations = job, configurations
        self.held, self.factor = held, factor
        self.costs = configurations.fresh if held is None else configurations.costs(held, factor)

    @cached_property
    def document(self) -> SiaJob:
        """The job as an instance has it; what is made here needs no validation."""
        return SiaJob.model_construct(
            id=str(self.job),
            configurations=self.configurations.every,
            current=None if self.held is None else self.configurations.group(self.held),
            restart_factor=self.factor,
        )


def digest(rows: Sequence[JobInRound], gpus: Mapping[str, int]) -> str:
    """Return a digest of what decides a round: jobs, configurations, their costs, GPUs."""
    told = "\0".join([repr([row.job for row in rows]), repr(gpus)])
    kinds = "\0".join([row.configurations.told for row in rows])
    costs = array("d", chain.from_iterable([row.costs for row in rows])).tobytes()
    return sha256(f"{told}\0{kinds}\0".encode() + costs).hexdigest()
