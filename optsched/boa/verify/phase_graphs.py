"""The verifier's layered graph of a class: a chain of phases, the nodes of each by option.

A node is one (phase, option), an option being a width, or an offer and a width: its lower bounds on
the objective's total ("value") and on the use of the limited resource, as multiples of 2**-192.
Where the budget is limited, value is mean jobs in the system and use is mean rent; where the JCT is
the target, the two change places.
"""

from __future__ import annotations

from functools import cache
from math import isqrt
from typing import TYPE_CHECKING, NamedTuple

from optsched.boa.instance import Power, Table
from optsched.boa.verify.feasibility import SCALE_BITS
from optsched.boa.verify.options import Option, Source, Start, sources
from optsched.boa.verify.speedup_bounds import Ratio, speedup_ratios

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from optsched.boa.instance import Amdahl, BoaInstance, JobClass, Phase, Speedup

COARSE_BITS = 64  # for a speedup of 2**40 at most


class PriceWeights(NamedTuple):
    """What a unit of value and a unit of use count; a price m/d of the use is (d, m)."""

    value: int
    use: int


class WidthNode(NamedTuple):
    """Value and use of one phase at one option, or of one start; rounded down."""

    value: int
    use: int

    def weighed(self, weights: PriceWeights) -> int:
        """Return the weighted sum of value and use, as a multiple of 2**-192: exact."""
        return self.value * weights.value + self.use * weights.use


NOTHING = WidthNode(0, 0)


class PhaseGraph(NamedTuple):
    """A class: for every phase its nodes by option, and the node of a start at every option."""

    phases: list[dict[Option, WidthNode]]
    rescaling: dict[Option, WidthNode]


def least_total(instance: BoaInstance, weights: PriceWeights) -> int:
    """Return the least weight of all plans together, as a multiple of 2**-192, rounded down."""
    if instance.budget is None:  # value and use have changed places
        weights = PriceWeights(weights.use, weights.value)
    return sum(_least_of_class(instance, job_class, weights) for job_class in instance.classes)


def _least_of_class(instance: BoaInstance, job_class: JobClass, weights: PriceWeights) -> int:
    """Return the least weight of a class; here jobs are the value, and rent the use."""
    rate = _rate(job_class)
    if not (rate[0] and instance.charges_starts(job_class)):
        return sum(
            _least_of_phase(_jobs(phase, rate), sources(instance, job_class, phase), weights)
            for phase in job_class.phases
        )
    starting = cache(lambda rent, start: _start(rate, rent, start).weighed(weights))
    keep: dict[Option, int] = {}
    switch = 0  # from here to the end, with another option than before
    for phase in reversed(job_class.phases):
        jobs, found = _jobs(phase, rate), list(_speeds(sources(instance, job_class, phase)))
        keep = {
            o: _weight(jobs, rent, ratio, weights) + min(switch, keep.get(o, switch))
            for o, rent, ratio, _ in found
        }
        switch = min(keep[o] + starting(rent, start) for o, rent, _, start in found)
    return switch


def _rate(job_class: JobClass) -> Ratio:
    """Return jobs per second."""
    arriving, hour = job_class.arrival_rate_per_h.as_integer_ratio()
    return arriving, 3600 * hour


def _start(rate: Ratio, rent: Ratio, start: Start) -> WidthNode:
    """Return mean jobs in a start that all go through, and mean rent for it; rounded down."""
    jobs, paid = ((rate[0] * top, rate[1] * bottom) for top, bottom in start)
    node = _node(jobs, rent, (1, 1), flipped=False)
    return WidthNode(node.value, node.use + _node(paid, rent, (1, 1), flipped=False).use)


def _least_of_phase(jobs: Ratio, found: list[Source], weights: PriceWeights) -> int:
    return min(
        _weight(jobs, source.rent(k), ratio, weights)
        for source in found
        for k, ratio in _lightest_here(source, weights)
    )


def _lightest_here(source: Source, weights: PriceWeights) -> Iterable[tuple[int, Ratio]]:
    """Return widths of a source, of which one has the least weight per work."""
    if source.is_interrupted or source.is_billed_by_node:
        return [(k, source.speeds(k)[1]) for _, k in source.options()]
    top, bottom = source.price
    return lightest(source.speedup, PriceWeights(weights.value * bottom, weights.use * top))


def _jobs(phase: Phase, rate: Ratio) -> Ratio:
    """Return the mean jobs in a phase at speedup 1."""
    work, unit = phase.work_gpu_s.as_integer_ratio()
    return rate[0] * work, rate[1] * unit


def _weight(jobs: Ratio, rent: Ratio, speedup: Ratio, weights: PriceWeights) -> int:
    """Return the weight of a node, without making it."""
    scaled, unit = jobs[0] * speedup[1] << SCALE_BITS, jobs[1] * speedup[0]
    weight = weights.value * (scaled // unit)
    return weight + weights.use * (rent[0] * scaled // (rent[1] * unit)) if weights.use else weight


def lightest(speedup: Speedup, weights: PriceWeights) -> list[tuple[int, Ratio]]:
    """Return the widths that have the least weight per work, or nearly so, as `_speedups` does.

    Of two that differ by a few parts in 2**40 both are returned: their nodes are rounded down.
    """
    of_jobs, of_gpus = weights
    if not isinstance(speedup, Table):
        widths = _beside_best(speedup, of_jobs, of_gpus)
        return [(k, speedup_ratios(speedup, k)[1]) for k in widths]
    ratios = [value.as_integer_ratio() for value in speedup.speedup]
    pairs = list(zip(speedup.gpus, ratios, strict=True))
    per_work = [
        ((of_jobs + of_gpus * k) * bottom << COARSE_BITS) // top for k, (top, bottom) in pairs
    ]
    least = min(per_work)
    most = least + (least >> 40) + 1
    return [pair for pair, weight in zip(pairs, per_work, strict=True) if weight <= most]


def _beside_best(speedup: Amdahl | Power, of_jobs: int, of_gpus: int) -> Iterable[int]:
    """Return the whole widths beside the real one of least weight per work, (a + c k) / s(k).

    To its left the weight falls, and to its right it grows: for Amdahl's law with parallel fraction
    f it is sqrt(f a / ((1 - f) c)), for k ** f the same without the root.
    """
    power = isinstance(speedup, Power)
    parallel = speedup.exponent if isinstance(speedup, Power) else speedup.parallel_fraction
    part, whole = parallel.as_integer_ratio()
    of_parallel = of_gpus * (whole - part)
    if not of_parallel:
        return (speedup.max_gpus if part else 1,)
    ratio = part * of_jobs // of_parallel
    below = ratio if power else isqrt(ratio)
    return {min(max(k, 1), speedup.max_gpus) for k in (below, below + 1)}


def chains(instance: BoaInstance, weights: PriceWeights) -> Iterator[tuple[int, PhaseGraph]]:
    """Yield a chain for every class, or for every phase where starts are free; one at a time.

    With each comes its part of `least_total` at these weights.
    """
    flipped = instance.budget is None
    turned = PriceWeights(weights.use, weights.value) if flipped else weights
    for job_class in instance.classes:
        rate = _rate(job_class)
        if rate[0] and instance.charges_starts(job_class):  # else phases are free of each other
            yield _least_of_class(instance, job_class, turned), _chain(instance, job_class, flipped)
            continue
        for phase in job_class.phases:
            jobs, found = _jobs(phase, rate), sources(instance, job_class, phase)
            nodes = _nodes(jobs, found, flipped)
            yield (
                _least_of_phase(jobs, found, turned),
                PhaseGraph([nodes], dict.fromkeys(nodes, NOTHING)),
            )


def _chain(instance: BoaInstance, job_class: JobClass, flipped: bool) -> PhaseGraph:
    rate = _rate(job_class)
    phases: list[dict[Option, WidthNode]] = []
    rescaling: dict[Option, WidthNode] = {}
    for phase in job_class.phases:
        found = sources(instance, job_class, phase)
        phases.append(_nodes(_jobs(phase, rate), found, flipped))
        for option, rent, _, start in _speeds(found):
            if option not in rescaling:
                node = _start(rate, rent, start)
                rescaling[option] = WidthNode(node.use, node.value) if flipped else node
    return PhaseGraph(phases, rescaling)


def _nodes(jobs: Ratio, found: list[Source], flipped: bool) -> dict[Option, WidthNode]:
    return {option: _node(jobs, rent, ratio, flipped) for option, rent, ratio, _ in _speeds(found)}


def nodes_at_a_time(instance: BoaInstance, job_class: JobClass) -> int:
    """Return how many nodes the largest chain of a class has."""
    counts = [
        sum(len(source.speedup.widths) for source in sources(instance, job_class, phase))
        for phase in job_class.phases
    ]
    return sum(counts) if instance.charges_starts(job_class) else max(counts)


def _speeds(found: list[Source]) -> Iterator[tuple[Option, Ratio, Ratio, Start]]:
    """Yield each option with its rent, a ratio that the speed is at most, and what starts take."""
    for source in found:
        start = source.start()
        if source.offer is None and isinstance(source.speedup, Table):
            for k, value in source.speedup.measured.items():
                yield k, (k, 1), value.as_integer_ratio(), start
            continue
        for option, k in source.options():
            yield option, source.rent(k), source.speeds(k)[1], start


def _node(jobs: Ratio, rent: Ratio, speedup: Ratio, flipped: bool) -> WidthNode:
    """Return the mean jobs at an option, and the mean rent for them; both rounded down."""
    scaled, unit = jobs[0] * speedup[1] << SCALE_BITS, jobs[1] * speedup[0]
    mean, held = scaled // unit, rent[0] * scaled // (rent[1] * unit)
    return WidthNode(held, mean) if flipped else WidthNode(mean, held)


def completions(chain: PhaseGraph, weights: PriceWeights) -> list[dict[Option, int]]:
    """Return the least weight of a path from after each node to the end of a chain."""
    after: list[dict[Option, int]] = [dict.fromkeys(chain.phases[-1], 0)]
    for nodes, earlier in zip(chain.phases[:0:-1], chain.phases[-2::-1], strict=True):
        keep = {k: node.weighed(weights) + after[0][k] for k, node in nodes.items()}
        switch = min(cost + chain.rescaling[k].weighed(weights) for k, cost in keep.items())
        after.insert(0, {k: min(switch, keep.get(k, switch)) for k in earlier})
    return after
