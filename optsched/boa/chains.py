"""What the judge of BOA knows of a class: a chain of phases, the nodes of each by width.

A node is one (phase, width): its lower bounds on the objective's total ("value") and on the use
of the limited resource, as multiples of 2**-192. Where GPUs are limited, value is mean jobs in
the system and use is mean GPUs; where the JCT is the target, the two change places.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from optsched.boa.check import SCALE_BITS, speedup_enclosure
from optsched.boa.instance import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.boa.instance import BoaInstance, JobClass, Phase, Speedup


class Weights(NamedTuple):
    """What a unit of value and a unit of use count; a price m/d of the use is (d, m)."""

    value: int
    use: int


class Node(NamedTuple):
    """Value and use of one phase at one width, or of one rescaling; rounded down."""

    value: int
    use: int

    def weighed(self, weights: Weights) -> int:
        """Return the weighted sum of value and use, as a multiple of 2**-192: exact."""
        return self.value * weights.value + self.use * weights.use


class Chain(NamedTuple):
    """A class: for every phase its nodes by width, and the rescaling node of every width."""

    phases: list[dict[int, Node]]
    rescaling: dict[int, Node]


def least_total(instance: BoaInstance, weights: Weights) -> int:
    """Return the least weight of all plans together, as a multiple of 2**-192, rounded down."""
    if instance.budget is None:  # value and use have changed places
        weights = Weights(weights.use, weights.value)
    return sum(_least_of_class(job_class, weights) for job_class in instance.classes)


def _least_of_class(job_class: JobClass, weights: Weights) -> int:
    """Return the least weight of a class; here jobs are the value, and GPUs the use."""
    rate = Fraction(job_class.arrival_rate_per_h) / 3600
    lost, per = (rate * Fraction(job_class.rescale_s)).as_integer_ratio()
    if not lost:
        phases = job_class.phases
        return sum(min(w for _, w in _weighed(phase, rate, weights)) for phase in phases)
    rescaling = cache(lambda k: _node(lost, per, k, flipped=False).weighed(weights))
    stay: dict[int, int] = {}
    switch = 0  # from here to the end, with another width than before
    for phase in reversed(job_class.phases):
        nodes = _weighed(phase, rate, weights)
        stay = {k: weight + min(switch, stay.get(k, switch)) for k, weight in nodes}
        switch = min(weight + rescaling(k) for k, weight in stay.items())
    return switch


def _weighed(phase: Phase, rate: Fraction, weights: Weights) -> Iterator[tuple[int, int]]:
    """Yield the widths of a phase, and the weight of each: that of a node, without making it."""
    of_jobs, of_gpus = weights
    jobs, per = (rate * Fraction(phase.work_gpu_s)).as_integer_ratio()
    jobs <<= SCALE_BITS
    for k, (top, bottom) in _speedups(phase.speedup):
        scaled, unit = jobs * bottom, per * top
        weight = of_jobs * (scaled // unit)
        yield k, weight + of_gpus * (k * scaled // unit) if of_gpus else weight


def chains(instance: BoaInstance) -> list[Chain]:
    """Return a chain for every class, or for every phase where rescaling is free."""
    flipped = instance.budget is None
    found = []
    for job_class in instance.classes:
        rate = Fraction(job_class.arrival_rate_per_h) / 3600
        whole = _chain(job_class, rate, flipped)
        if rate * Fraction(job_class.rescale_s):
            found.append(whole)
        else:
            found += [Chain([nodes], whole.rescaling) for nodes in whole.phases]
    return found


def _chain(job_class: JobClass, rate: Fraction, flipped: bool) -> Chain:
    phases = []
    for phase in job_class.phases:
        jobs, per = (rate * Fraction(phase.work_gpu_s)).as_integer_ratio()
        speedups = _speedups(phase.speedup)
        phases.append({k: _node(jobs * low, per * top, k, flipped) for k, (top, low) in speedups})
    lost = (rate * Fraction(job_class.rescale_s)).as_integer_ratio()
    widths = {k for nodes in phases for k in nodes}
    return Chain(phases, {k: _node(*lost, k, flipped) for k in widths})


def _speedups(speedup: Speedup) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield each width, and a number that the speedup is at most, as a ratio."""
    if isinstance(speedup, Table):
        for k, value in speedup.measured.items():
            yield k, value.as_integer_ratio()
    else:
        for k in speedup.widths:
            yield k, speedup_enclosure(speedup, Fraction(k))[1].as_integer_ratio()


def _node(jobs: int, per: int, gpus: int, flipped: bool) -> Node:
    """Return the mean jobs, jobs / per, and the mean GPUs that they hold; both rounded down."""
    jobs <<= SCALE_BITS
    mean, held = jobs // per, gpus * jobs // per
    return Node(held, mean) if flipped else Node(mean, held)


def completions(chain: Chain, weights: Weights) -> tuple[int, list[dict[int, int]]]:
    """Return the least weight of a way through a chain, and from after each node to its end."""
    after: list[dict[int, int]] = [dict.fromkeys(chain.phases[-1], 0)]
    for nodes, earlier in zip(chain.phases[:0:-1], chain.phases[-2::-1], strict=True):
        stay = {k: node.weighed(weights) + after[0][k] for k, node in nodes.items()}
        switch = min(cost + chain.rescaling[k].weighed(weights) for k, cost in stay.items())
        after.insert(0, {k: min(switch, stay.get(k, switch)) for k in earlier})
    first = chain.phases[0]
    least = min(
        first[k].weighed(weights) + chain.rescaling[k].weighed(weights) + after[0][k] for k in first
    )
    return least, after
