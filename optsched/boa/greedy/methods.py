"""Greedy rules for BOA: what other schedulers do, as stationary width tables.

Each rule is the mean field of a scheduler's rule (docs/math/boa.md, Greedy rules): arrivals are
many and steady, so what a scheduler gives a job depends on its class and phase only, and the
scheduler's load on one parameter. Every rule is swept over its parameter and offers the best member
of its family that keeps within the budget, or reaches the target JCT. All widths are whole and
apply to all jobs of a class, so the plans are valid whatever `widths` the instance asks for.

With offers, all rules but `sia_like` and `class_width` know GPUs of one type: each runs on every
offer alone, and the best counts (`parametric.fleets`).

Notation: t(k) seconds that one job needs in a phase on k GPUs, s(k) its speedup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.boa.greedy.parametric import (
    Ladder,
    PhaseBlock,
    by_rent,
    every_width,
    fleets,
    offer_best,
    one_by_one,
    steepest,
)
from optsched.boa.greedy.published import boa_published as boa_published
from optsched.boa.settings import SETTINGS

if TYPE_CHECKING:
    from optsched.boa.instance import BoaInstance
    from optsched.documents.arrays import Floats, Indices
    from optsched.search import Search


def same_k(instance: BoaInstance, search: Search) -> None:
    """Give every job k GPUs for life; k is swept over all widths.

    A phase that does not allow k takes its largest width below k, or its least width.

    Source: the fixed-width policy "dummy" of the BOA authors' simulator (docs/math/boa.md, Greedy
    rules).
    """
    for rows in fleets(instance):
        offer_best(instance, search, rows, [every_width(block) for block in rows])


def equal_share(instance: BoaInstance, search: Search) -> None:
    """Give every job in the system an equal share of the GPUs (EQUI), never more than it can use.

    A share theta becomes k = max{k allowed: k <= min(theta, argmax s)}, or the least width; theta
    is swept over all widths. The cap is what tells it from `same_k`.

    Source: mean field of EQUI, which gives each of n jobs floor(C / n) of C GPUs.
    """
    for rows in fleets(instance):
        offer_best(instance, search, rows, [_useful_widths(block) for block in rows])


def marginal(instance: BoaInstance, search: Search) -> None:
    """Give GPUs one step at a time to the job whose remaining time drops most per GPU.

    Each phase starts at its least width. A step leads to the next width k' that shortens the phase,
    and gains (t(k) - t(k')) / (k' - k) seconds per GPU of one job; arrival rates do not count. Each
    prefix of the sequence of steps is a member of the family.

    Source: Optimus, EuroSys'18, resource allocation, without parameter servers.
    """
    for rows in fleets(instance):
        columns = [_shortening(block.seconds) for block in rows]
        gains = [
            -np.diff(block.seconds[row]) / np.diff(block.gpus[row])
            for block, row in zip(rows, columns, strict=True)
        ]
        offer_best(instance, search, rows, one_by_one(columns, gains))


def efficiency(instance: BoaInstance, search: Search) -> None:
    """Take the largest width whose efficiency is at least theta, swept over all efficiencies.

    The efficiency of k is (s(k) / k) / max_k' (s(k') / k').

    Source: common practice; docs/math/boa.md, Greedy rules.
    """
    for rows in fleets(instance):
        offer_best(instance, search, rows, [_efficient_widths(block) for block in rows])


def pollux_like(instance: BoaInstance, search: Search) -> None:
    """Maximise the power mean of the jobs' normalised speedups v, with p = -1.

    That is min sum_j 1 / v_j within sum_j k_j <= C, so at a price nu of a GPU every job takes
    argmin_k 1 / v(k) + nu k, with v(k) = s(k) / s(least width); nu is swept over all values at
    which a width changes.

    Source: the cluster's fitness in Pollux, OSDI'21, without restart penalties.
    """
    for rows in fleets(instance):
        ladders = [steepest(block.gpus, block.seconds / block.seconds[0]) for block in rows]
        offer_best(instance, search, rows, ladders)


def sia_like(instance: BoaInstance, search: Search) -> None:
    """Minimise sum_j v_j^p with p = -1/2 over the normalised goodputs v.

    At a price nu of rent every job takes argmin v^(-1/2) + nu r over all its options, of rent r and
    with v = s / min s, its goodput divided by the least of its row; nu is swept over all values at
    which an option changes. Rent is GPUs, or money where there are offers.

    Source: Sia, SOSP'23, without the terms for restarts and waiting.
    """
    rows = by_rent(instance)
    ladders = [steepest(b.rents, np.sqrt(b.seconds / b.seconds.max())) for b in rows]
    offer_best(instance, search, rows, ladders)


# --- ladders of the rules ---------------------------------------------------------------------


def _useful_widths(block: PhaseBlock) -> Ladder:
    ladder = every_width(block)
    count = int(np.argmin(block.seconds)) + 1
    return Ladder(ladder.columns[:count], ladder.starts[:count])


def _efficient_widths(block: PhaseBlock) -> Ladder:
    """Climb the widths that are the largest for some threshold; the parameter is minus theta."""
    held = block.gpus * block.seconds
    theta = np.round(held.min() / held, SETTINGS.efficiency_digits)
    best_beyond = np.r_[np.maximum.accumulate(theta[:0:-1])[::-1], 0.0]
    columns = np.flatnonzero(theta > best_beyond)
    starts = -theta[columns]
    starts[0] = -np.inf
    return Ladder(columns, starts)


def _shortening(seconds: Floats) -> Indices:
    """Return the columns that are faster than every narrower one."""
    before = np.r_[np.inf, np.minimum.accumulate(seconds)[:-1]]
    return np.flatnonzero(seconds < before)
