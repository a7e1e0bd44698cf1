"""Greedy rules for BOA: what other schedulers do, as stationary width tables.

Each rule is the mean field of a scheduler's rule (docs/math/boa.md, Greedy rules): arrivals are
many and steady, so what a scheduler gives a job depends on its class and phase only, and the
scheduler's load on one parameter. Every rule is swept over its parameter and offers the best member
of its family that keeps within the budget, or reaches the target JCT. All widths are whole and
apply to all jobs of a class, so the plans are valid whatever `widths` the instance asks for.

Notation: t(k) seconds that one job needs in a phase on k GPUs, s(k) its speedup.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.arrays import BoaArrays, FreePhases, WidthChoice
from optsched.boa.exact.gap_closing import close
from optsched.boa.exact.lagrangian_dual import maximise
from optsched.boa.greedy.parametric import (
    Ladder,
    PhaseBlock,
    blocks,
    every_width,
    family,
    offer_best,
    one_by_one,
    plan,
    steepest,
)
from optsched.boa.greedy.published import boa_published as boa_published
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import feasibility

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from optsched.boa.instance import BoaInstance
    from optsched.boa.plan import BoaPlan
    from optsched.search import Search


def same_k(instance: BoaInstance, search: Search) -> None:
    """Give every job k GPUs for life; k is swept over all widths.

    A phase that does not allow k takes its largest width below k, or its least width.

    Source: the fixed-width policy "dummy" of the BOA authors' simulator (docs/math/boa.md, Greedy
    rules).
    """
    rows = blocks(instance)
    offer_best(instance, search, rows, [every_width(block) for block in rows])


def class_width(instance: BoaInstance, search: Search) -> None:
    """Give every job of class i k_i GPUs for life; the best k_1 ... k_M of all combinations.

    A multiple-choice knapsack over the classes, solved to the gap that is asked for. A phase that
    does not allow k_i takes its largest width below k_i, or its least width, and pays for the
    rescaling.

    Source: EPEW'24 problem (3) and definition 1, with whole widths and one type per class.
    """
    options = _class_options(instance)
    arriving = [i for i, c in enumerate(instance.classes) if c.arrival_rate_per_h]
    limit = float(feasibility.limit(instance)) * (
        1 + SETTINGS.float_tolerance
    )  # `accept` decides exactly
    problem = BoaArrays(_class_groups(options, arriving), [], limit)
    dual = maximise(problem)
    if dual is None:
        return
    idle = [int(np.argmin(o.value + dual.price * o.use)) for o in options]

    def accept(chosen: WidthChoice) -> bool:
        columns = list(idle)
        for i, column in zip(arriving, chosen.columns.tolist(), strict=True):
            columns[i] = column
        return search.offer(_class_plan(instance, options, columns))

    close(problem, dual, search.gap, accept, search.out_of_time)


def equal_share(instance: BoaInstance, search: Search) -> None:
    """Give every job in the system an equal share of the GPUs (EQUI), never more than it can use.

    A share theta becomes k = max{k allowed: k <= min(theta, argmax s)}, or the least width; theta
    is swept over all widths. The cap is what tells it from `same_k`.

    Source: mean field of EQUI, which gives each of n jobs floor(C / n) of C GPUs.
    """
    rows = blocks(instance)
    offer_best(instance, search, rows, [_useful_widths(block) for block in rows])


def marginal(instance: BoaInstance, search: Search) -> None:
    """Give GPUs one step at a time to the job whose remaining time drops most per GPU.

    Each phase starts at its least width. A step leads to the next width k' that shortens the phase,
    and gains (t(k) - t(k')) / (k' - k) seconds per GPU of one job; arrival rates do not count. Each
    prefix of the sequence of steps is a member of the family.

    Source: Optimus, EuroSys'18, resource allocation, without parameter servers.
    """
    rows = blocks(instance)
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
    rows = blocks(instance)
    offer_best(instance, search, rows, [_efficient_widths(block) for block in rows])


def pollux_like(instance: BoaInstance, search: Search) -> None:
    """Maximise the power mean of the jobs' normalised speedups v, with p = -1.

    That is min sum_j 1 / v_j within sum_j k_j <= C, so at a price nu of a GPU every job takes
    argmin_k 1 / v(k) + nu k, with v(k) = s(k) / s(least width); nu is swept over all values at
    which a width changes.

    Source: the cluster's fitness in Pollux, OSDI'21, without restart penalties.
    """
    rows = blocks(instance)
    ladders = [steepest(block.gpus, block.seconds / block.seconds[0]) for block in rows]
    offer_best(instance, search, rows, ladders)


def sia_like(instance: BoaInstance, search: Search) -> None:
    """Minimise sum_j v_j^p with p = -1/2 over the normalised goodputs v.

    At a price nu of a GPU every job takes argmin_k v(k)^(-1/2) + nu k, with v(k) = s(k) / min s,
    its goodput divided by the least of its row; nu is swept over all values at which a width
    changes.

    Source: Sia, SOSP'23, with one GPU type and without the terms for restarts and waiting.
    """
    rows = blocks(instance)
    ladders = [steepest(b.gpus, np.sqrt(b.seconds / b.seconds.max())) for b in rows]
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


def _shortening(seconds: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the columns that are faster than every narrower one."""
    before = np.r_[np.inf, np.minimum.accumulate(seconds)[:-1]]
    return np.flatnonzero(seconds < before)


# --- one width per class ----------------------------------------------------------------------


class _Options(NamedTuple):
    """What each width of a class adds up to; rates of zero count as one job per second."""

    rows: list[PhaseBlock]
    ladders: list[Ladder]
    widths: NDArray[np.float64]
    value: NDArray[np.float64]
    use: NDArray[np.float64]


def _class_options(instance: BoaInstance) -> list[_Options]:
    options = []
    for _, phases in groupby(blocks(instance), key=lambda block: block.owner):
        rows = [block._replace(rate_per_s=block.rate_per_s or 1.0) for block in phases]
        ladders = [every_width(block) for block in rows]
        members = family(instance, rows, ladders)
        value, use = members.working + members.rescaling
        options.append(_Options(rows, ladders, members.starts, value, use))
    return options


def _class_groups(options: list[_Options], arriving: list[int]) -> FreePhases:
    shape = len(arriving), max(len(options[i].widths) for i in arriving)
    gpus, value, use = np.ones(shape), np.full(shape, np.inf), np.zeros(shape)
    for row, i in enumerate(arriving):
        count = len(options[i].widths)
        gpus[row, :count] = options[i].widths
        value[row, :count] = options[i].value
        use[row, :count] = options[i].use
    members = np.array([(i, 0) for i in arriving], np.intp)
    return FreePhases(members, gpus, value, use)


def _class_plan(instance: BoaInstance, options: list[_Options], columns: list[int]) -> BoaPlan:
    rows, picked = [], []
    for option, column in zip(options, columns, strict=True):
        rows += option.rows
        picked += [ladder.at(option.widths[column]) for ladder in option.ladders]
    return plan(instance, rows, picked)
