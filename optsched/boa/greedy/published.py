"""The published BOA procedure: hulls, nearest width, shrinking, random groupings.

Everything here follows the authors' public code (docs/math/boa.md, Published procedure); the exact
method replaces the rounding, the shrinking and the random grouping by one proof.
"""

from __future__ import annotations

from itertools import groupby, islice, product
from typing import TYPE_CHECKING

import numpy as np

from optsched.boa.greedy.parametric import (
    Family,
    Ladder,
    PhaseBlock,
    family,
    fleets,
    one_by_one,
    steepest,
)
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import feasibility

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.boa.instance import BoaInstance
    from optsched.documents.arrays import Floats
    from optsched.search import Search


def boa_published(instance: BoaInstance, search: Search) -> None:
    """Solve without rescaling, round to the nearest width, shrink the limit until it is kept.

    On the upper hulls of (k, s(k)), problem (3),

        min sum_g rho_g / s_g(k_g)   subject to   sum_g rho_g k_g / s_g(k_g) <= b',

    is solved for a trial budget b' = b. The one fractional k is rounded to the nearest vertex of
    its hull; while the cost with rescaling exceeds b, b' becomes 0.99 b'. Where a mean JCT is the
    target, a trial target shrinks instead. "Glue" saves rescalings: every g_i consecutive phases of
    class i share one width, with speedup (sum of work) / (sum of phase times), where g_i is drawn
    from 1 ... ceil(E_i / 10). The best of 30 draws and of g = 1 is kept. Phases without a common
    width are not glued.

    Source: the BOA authors' public code (docs/math/boa.md, Published procedure); BOA Constrictor,
    arXiv 2602.01404.
    """
    best = np.inf
    for grouping, whole in product(_groupings(instance, search.seed), fleets(instance)):
        rows = list(_glued(whole, grouping))
        best = _offer_rounded(instance, search, rows, best)
        if search.out_of_time():
            return


def _offer_rounded(
    instance: BoaInstance, search: Search, rows: list[PhaseBlock], best: float
) -> float:
    """Offer the first rounded solution that keeps the limit, if it is better; return the best."""
    limit = float(feasibility.limit(instance)) * (1 + SETTINGS.float_tolerance)
    members = family(instance, rows, _hull_ladders(rows))
    value, use = members.working + members.rescaling
    for member in _trials(instance, members):
        if use[member] > limit:
            continue
        if value[member] >= best:
            break
        if search.offer(members.plan(instance, member)):
            return float(value[member])
    return best


def _groupings(instance: BoaInstance, seed: int) -> Iterator[tuple[int, ...]]:
    """Yield the number of phases that share a width, for every class; each combination once."""
    most = [
        -(-len(job_class.phases) // SETTINGS.phases_per_grouping) for job_class in instance.classes
    ]
    drawn = np.random.default_rng(seed).integers(
        1, most, (SETTINGS.drawn_groupings, len(most)), endpoint=True
    )
    yield from dict.fromkeys([(1,) * len(most), *map(tuple, drawn.tolist())])


def _glued(rows: list[PhaseBlock], grouping: tuple[int, ...]) -> Iterator[PhaseBlock]:
    for owner, phases in groupby(rows, key=lambda block: block.owner):
        while part := list(islice(phases, grouping[owner])):
            yield from _joined(part)


def _joined(part: list[PhaseBlock]) -> list[PhaseBlock]:
    """Join blocks at their common widths; leave them as they are if there are none."""
    first, common = part[0], part[0].options
    for block in part[1:]:
        common = np.intersect1d(common, block.options, assume_unique=True)
    if len(part) == 1 or not len(common):
        return part
    seconds = sum(block.seconds[np.searchsorted(block.options, common)] for block in part)
    at = np.searchsorted(first.options, common)
    return [
        first._replace(
            phases=len(part),
            gpus=first.gpus[at],
            seconds=np.asarray(seconds),
            options=common,
            rents=first.rents[at],
            lost_s=first.lost_s[at],
            billed_s=first.billed_s[at],
        )
    ]


def _hull_ladders(rows: list[PhaseBlock]) -> list[Ladder]:
    """Order the hull's steps by jobs saved per GPU: each prefix solves (3) for some budget.

    Steps that save GPUs as well (super-linear speedup) are taken from the start.
    """
    columns, rates = [], []
    for block in rows:
        vertices = steepest(block.gpus, -1 / block.seconds).columns
        seconds = block.seconds[vertices]
        cost = np.diff(block.rents[vertices] * seconds)
        free = int(np.flatnonzero(cost <= 0).max(initial=-1)) + 1
        columns.append(vertices[free:])
        rates.append(-np.diff(seconds)[free:] / cost[free:])
    return one_by_one(columns, rates)


def _trials(instance: BoaInstance, members: Family) -> list[int]:
    """Return the rounded solution for each trial limit, as long as (3) has one."""
    limit, use = float(feasibility.limit(instance)), members.working[1]
    least = float(use.min()) * (1 - SETTINGS.float_tolerance)
    if limit < least:
        return []
    count = int(np.log(limit / least) / -np.log(SETTINGS.shrinking)) + 1
    trials = limit * SETTINGS.shrinking ** np.arange(count)
    direction = 1 if instance.budget is not None else -1  # along the family the use grows, or falls
    rounded = np.searchsorted(direction * _rounding_points(members), direction * trials)
    return list(dict.fromkeys(rounded.tolist()))


def _rounding_points(members: Family) -> Floats:
    """Return the use from which on each step's fractional width is nearer to its upper end.

    On a hull's edge from (k, t) to (k', t') a job that does a share w of its work at k' needs
    t + w (t' - t) seconds; its mean width is half-way between k and k' at w = t / (t + t').
    """
    use = members.working[1]
    share = np.empty(len(use) - 1)
    for block, ladder in zip(members.blocks, members.ladders, strict=True):
        seconds = block.seconds[ladder.columns]
        turns = ladder.starts[1:].astype(np.intp) - 1
        share[turns] = seconds[:-1] / (seconds[:-1] + seconds[1:])
    points: Floats = use[:-1] + share * np.diff(use)
    return points
