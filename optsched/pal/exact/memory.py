"""What the methods of PAL take of the memory at their peak, from an instance's sizes.

Bytes are fitted to `benchmarks/memory.py`. Sizes are counted as if the domains of a level held
equally many GPUs. An *option* is a slowdown, in a domain, up to which a gang may get GPUs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from optsched.pal.job_types import JobDemand
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.pal.instance import PalInstance

BINNING = ("pal-greedy", "pal-silhouette")
MIB = 2**20


@dataclass(frozen=True)
class PalBytes:
    """Bytes that the parts of a solve take.

    Attributes
    ----------
    greedy, loaded
        What is imported for greedy rules; and HiGHS and scipy besides.
    pyomo
        The same with Pyomo, and what HiGHS takes for branch and bound at least.
    binned
        scikit-learn, for the rules that bin slowdowns.
    entry
        Of an entry of the relaxation's matrix: in arrays, in HiGHS, at nodes.
    variable, term
        Of the formulation's variables and terms: in Pyomo and in HiGHS.
    ranked, aggregated, in_block
        Of a GPU: for rules, for node classes, for blocks.
    dealt
        Of a job, for blocks.
    """

    greedy: int = 20 * MIB
    loaded: int = 32 * MIB
    pyomo: int = 180 * MIB
    binned: int = 90 * MIB
    entry: int = 870
    variable: int = 1500
    term: int = 110
    ranked: int = 1_000
    aggregated: int = 700
    in_block: int = 8_000
    dealt: int = 4_000


BYTES = PalBytes()


class TopologyLevel(NamedTuple):
    """Domains of a level, and the GPUs in each of them on average."""

    domains: int
    gpus: float


def memory(instance: PalInstance, method: str) -> int | None:
    """Return the bytes that a method takes at its peak; of a greedy one, with its bound."""
    gpus = len(instance.free_gpus)
    if method == "exact" and gpus > SETTINGS.large_gpus:
        method = "node-classes" if _has_few_node_classes(instance) else "decomposition"
    if method == "node-classes" and _largest_node(instance) <= SETTINGS.most_node_gpus:
        return BYTES.loaded + BYTES.aggregated * gpus
    if method == "decomposition":
        return _in_blocks(instance)
    if method == "milp":
        return _formulation(instance)
    if method in ("exact", "node-classes"):
        return _whole(instance)
    loaded = BYTES.greedy + BYTES.binned * (method in BINNING) + BYTES.ranked * gpus
    return (
        loaded
        if gpus > SETTINGS.large_gpus
        else loaded + BYTES.loaded + BYTES.entry * _entries(instance)
    )


def _whole(instance: PalInstance) -> int:
    return BYTES.loaded + BYTES.entry * _entries(instance)


def _has_few_node_classes(instance: PalInstance) -> bool:
    """Tell whether "exact" goes by "node-classes" if large; see `solver.few_node_classes`."""
    largest, profile = _largest_node(instance), instance.profile
    wide = sum(job.gpus for job in instance.jobs if job.gpus > largest)
    if largest > SETTINGS.most_node_gpus or wide > SETTINGS.most_wide_share * len(
        instance.free_gpus
    ):
        return False
    rows = dict(zip(profile.gpus, zip(*profile.slowdown.values(), strict=True), strict=True))
    nodes = [domain.gpus for domain in instance.topology.domains if domain.gpus]
    node_classes = {tuple(sorted(rows[gpu] for gpu in node)) for node in nodes}
    types = len({JobDemand.of(job) for job in instance.jobs})
    most = min(SETTINGS.most_classes, SETTINGS.most_class_share * len(nodes))
    return len(node_classes) <= most and types <= SETTINGS.most_class_types


def _largest_node(instance: PalInstance) -> int:
    return max(len(domain.gpus or ()) for domain in instance.topology.domains)


def _levels(instance: PalInstance) -> list[TopologyLevel]:
    counts = Counter(domain.level for domain in instance.topology.domains)
    gpus = len(instance.free_gpus)
    return [
        TopologyLevel(counts[name], gpus / max(1, counts[name]))
        for name in instance.topology.levels
    ]


def _bins(instance: PalInstance) -> dict[str, int]:
    """Return the number of distinct slowdowns of each class that some job has."""
    classes = {job.application_class for job in instance.jobs}
    return {name: len(set(instance.profile.slowdown[name])) for name in classes}


def _types(instance: PalInstance) -> Counter[tuple[int, str, str | None]]:
    """Return gang, class and cap of each type of jobs, and how many types are alike in these."""
    return Counter(key[:3] for key in {JobDemand.of(job) for job in instance.jobs})


def _options(levels: list[TopologyLevel], gang: int, bins: int) -> Iterator[tuple[float, float]]:
    """Yield for each level the number of options, and the GPUs of each on average."""
    for level in levels:
        positions = level.gpus - gang + 1
        if positions > 0:
            thresholds = min(bins, level.gpus) * positions / level.gpus
            yield level.domains * thresholds, (level.gpus + gang) / 2


def _allowed(
    instance: PalInstance, levels: list[TopologyLevel], cap: str | None
) -> list[TopologyLevel]:
    return levels if cap is None else levels[: instance.topology.levels.index(cap) + 1]


def _entries(instance: PalInstance) -> int:
    """Return about how many entries the matrix of the relaxation has."""
    levels, bins, total = _levels(instance), _bins(instance), 0.0
    for (gang, name, cap), types in _types(instance).items():
        allowed = _allowed(instance, levels, cap)
        total += 2 * types * sum(options for options, _ in _options(allowed, gang, bins[name]))
    for count in bins.values():
        total += sum(2 * level.domains * (level.gpus + min(count, level.gpus)) for level in levels)
    return round(total)


def _formulation(instance: PalInstance) -> int:
    """Return the bytes of the formulation: a column for each job and option, and its GPUs."""
    levels, bins, variables, terms = _levels(instance), _bins(instance), 0.0, 0.0
    for (gang, name, cap), jobs in Counter(JobDemand.of(job)[:3] for job in instance.jobs).items():
        sizes = list(_options(_allowed(instance, levels, cap), gang, bins[name]))
        variables += jobs * (len(instance.free_gpus) + sum(options for options, _ in sizes))
        terms += jobs * sum(options * gpus for options, gpus in sizes)
    proof = BYTES.entry * _entries(instance)
    return BYTES.pyomo + round(BYTES.variable * variables + BYTES.term * terms) + proof


def _in_blocks(instance: PalInstance) -> int:
    """Return the bytes of one block's relaxation, and of what is kept of the whole."""
    gpus = len(instance.free_gpus)
    least = max(SETTINGS.block_gpus, SETTINGS.block_gangs * max(job.gpus for job in instance.jobs))
    block = BYTES.entry * _entries(instance) * min(1.0, least / gpus)
    return BYTES.loaded + round(block) + BYTES.in_block * gpus + BYTES.dealt * len(instance.jobs)
