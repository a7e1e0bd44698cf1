"""Draws for generators: named streams, stratified uniforms, quantile tables, bursty arrivals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.random import Generator

    from optsched.documents.arrays import Floats, Integers


def streams(seed: int, names: Sequence[str]) -> dict[str, Generator]:
    """Return a stream of random numbers for each name, none dependent on how others are used."""
    children = np.random.SeedSequence(seed).spawn(len(names))
    return {name: np.random.default_rng(child) for name, child in zip(names, children, strict=True)}


def ranked(rng: Generator, keys: Any, groups: Integers) -> Floats:
    """Return for each entry a uniform draw whose order within its group is that of the keys.

    The n entries of a group fall one into each of the n equal parts of [0, 1): what is drawn from
    them has, for every n, the wanted distribution, and almost its mean and quantiles.
    """
    order = np.lexsort((keys, groups))
    counts = np.bincount(groups)
    starts = np.cumsum(counts) - counts
    rank = np.empty(len(groups), dtype=np.int64)
    rank[order] = np.arange(len(groups)) - starts[groups[order]]
    drawn: Floats = (rank + rng.random(len(groups))) / counts[groups]
    return drawn


def stratified(rng: Generator, groups: Integers) -> Floats:
    """Return uniform draws, in random order, one in each of the n equal parts in a group of n."""
    return ranked(rng, rng.random(len(groups)), groups)


def paired(rng: Generator, weights: Floats, groups: Integers) -> Floats:
    """Return uniform draws whose means in a group hardly depend on the weights.

    From the heaviest entry of a group down, each two have draws u and 1 - u; those of the pairs
    follow the golden ratio from a random start.
    """
    order = np.lexsort((-weights, groups))
    counts = np.bincount(groups)
    rank = np.arange(len(groups)) - (np.cumsum(counts) - counts)[groups[order]]
    pair, start, flip = rank // 2, rng.random(len(counts)), rng.random(len(counts)) < 0.5
    golden = (5**0.5 - 1) / 2
    half = ((pair * golden + start[groups[order]]) % 1.0) / 2
    is_low = (rank + pair + flip[groups[order]]) % 2 == 0
    drawn = np.empty(len(groups))
    drawn[order] = np.where(is_low, half, 1 - half)
    return drawn


def groups(kind: Integers, gpus: Integers) -> Integers:
    """Return numbers of groups: jobs of the same kind and size."""
    sizes, place = np.unique(gpus, return_inverse=True)
    return kind * max(1, len(sizes)) + place.astype(np.int64)


def pick(uniform: Floats, shares: Any) -> Integers:
    """Return numbers of entries, each with a chance in proportion to its share."""
    edges = np.cumsum(np.asarray(shares, dtype=float))
    places: Integers = np.searchsorted(edges[:-1] / edges[-1], uniform, side="right").astype(
        np.int64
    )
    return places


def log_quantiles(
    uniform: Floats, levels: Any, table: Any, row: Integers, bend: Any = 1.0
) -> Floats:
    """Return quantiles, interpolated in the logarithm of the values.

    Parameters
    ----------
    levels
        Ascending, from 0 to 1; for all rows, or one row for each row of `table`.
    table
        Rows of positive values, one for each level.
    row
        Which row each entry of `uniform` is drawn from.
    bend
        For all rows, or by row and part: at the share t of the way from one level to the next
        stands the value at t ** bend of the way. 1 is linear; the higher, the nearer to a
        staircase, whose mean is the least that these quantiles allow.
    """
    logs = np.log(np.asarray(table, dtype=float))
    edges = np.broadcast_to(np.asarray(levels, dtype=float), logs.shape)
    bends = np.broadcast_to(np.asarray(bend, dtype=float), (len(logs), logs.shape[1] - 1))
    values = np.empty(len(uniform))
    for n in range(len(logs)):
        chosen = row == n
        place = bent(uniform[chosen], edges[n], bends[n])
        values[chosen] = np.exp(np.interp(place, edges[n], logs[n]))
    return values


def bent(uniform: Floats, edges: Floats, bends: Floats) -> Floats:
    """Return each draw, moved down within its part of the levels by a power."""
    if (bends == 1).all():
        return uniform
    part = np.clip(np.searchsorted(edges, uniform, side="right") - 1, 0, len(edges) - 2)
    width = np.where(edges[part + 1] > edges[part], edges[part + 1] - edges[part], 1.0)
    moved: Floats = edges[part] + width * ((uniform - edges[part]) / width) ** bends[part]
    return moved


class GapMixture(NamedTuple):
    """Gaps between arrivals of mean 1: exponential with mean `short` within bursts.

    Between bursts, with probability `between`, they have mean `long`.
    """

    short: float
    long: float
    between: float


def gap_mixture(median: float, cv: float) -> GapMixture:
    """Return the mixture of two kinds of gaps that has a coefficient of variation.

    m = median / ln 2 is the mean within bursts; mean 1 and the variation give M = ((1 + cv^2) / 2 -
    m^2) / (1 - m) - m between them, and their share w = (1 - m) / (M - m). cv = 1 gives w = M = 1,
    Poisson arrivals.

    Parameters
    ----------
    median
        Median over mean, below ln 2; exact as w -> 0.
    cv
        Coefficient of variation, at least 1.
    """
    short = median / float(np.log(2))
    long = ((1 + cv**2) / 2 - short**2) / (1 - short) - short
    return GapMixture(short, long, (1 - short) / (long - short))


def bursty_gaps(rng: Generator, count: int, median: float, cv: float) -> Floats:
    """Return gaps between arrivals with mean 1, in bursts; see `gap_mixture`."""
    mixture = gap_mixture(median, cv)
    between = rng.random(count) < mixture.between
    gaps: Floats = rng.exponential(size=count) * np.where(between, mixture.long, mixture.short)
    return gaps


def over_span(gaps: Floats, span: float) -> Floats:
    """Return the moments after each gap, scaled so that the first is 0 and the last is `span`."""
    moments: Floats = np.cumsum(gaps)
    if len(moments) < 2 or moments[-1] == moments[0]:
        return np.zeros(len(moments))
    scaled: Floats = (moments - moments[0]) * (span / (moments[-1] - moments[0]))
    return scaled
