"""One width per class, exactly: a multiple-choice knapsack (Sinha & Zoltners, OR 1979)."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.arrays import BoaArrays, FreePhases, WidthChoice
from optsched.boa.exact.gap_closing import close
from optsched.boa.exact.lagrangian_dual import maximise
from optsched.boa.greedy.parametric import Ladder, PhaseBlock, every_width, family, fleets, plan
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import feasibility

if TYPE_CHECKING:
    from optsched.boa.instance import BoaInstance
    from optsched.boa.plan import BoaPlan
    from optsched.documents.arrays import Floats, Indices
    from optsched.search import Search


def class_width(instance: BoaInstance, search: Search) -> None:
    """Give every job of class i k_i GPUs for life; the best k_1 ... k_M of all combinations.

    With offers, each class has one of them for life, too, as far as its phases can run there. A
    multiple-choice knapsack over the classes, solved to the gap that is asked for. A phase that
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


class _Options(NamedTuple):
    """What each width of a class, of each offer, adds up to; rates of zero count as one job per s.

    Attributes
    ----------
    fleets
        Rows and ladders of each offer.
    owners, widths
        Shape (options,): the fleet of each option, and its width.
    """

    fleets: list[tuple[list[PhaseBlock], list[Ladder]]]
    owners: Indices
    widths: Floats
    value: Floats
    use: Floats


def _class_options(instance: BoaInstance) -> list[_Options]:
    of_fleets = [
        [list(phases) for _, phases in groupby(rows, key=lambda block: block.owner)]
        for rows in fleets(instance)
    ]
    return [_joined(instance, list(parts)) for parts in zip(*of_fleets, strict=True)]


def _joined(instance: BoaInstance, parts: list[list[PhaseBlock]]) -> _Options:
    """Evaluate the widths of a class on each fleet."""
    found, starts, totals = [], [], []
    for phases in parts:
        rows = [block._replace(rate_per_s=block.rate_per_s or 1.0) for block in phases]
        ladders = [every_width(block) for block in rows]
        members = family(instance, rows, ladders)
        found.append((rows, ladders))
        starts.append(members.starts)
        totals.append(members.working + members.rescaling)
    owners = np.repeat(np.arange(len(parts)), [len(widths) for widths in starts])
    return _Options(found, owners, np.concatenate(starts), *np.concatenate(totals, axis=1))


def _class_groups(options: list[_Options], arriving: list[int]) -> FreePhases:
    shape = len(arriving), max(len(options[i].widths) for i in arriving)
    widths, value, use = np.ones(shape), np.full(shape, np.inf), np.zeros(shape)
    for row, i in enumerate(arriving):
        count = len(options[i].widths)
        widths[row, :count] = options[i].widths
        value[row, :count] = options[i].value
        use[row, :count] = options[i].use
    members = np.array([(i, 0) for i in arriving], np.intp)
    return FreePhases(members, widths, value, use)


def _class_plan(instance: BoaInstance, options: list[_Options], columns: list[int]) -> BoaPlan:
    taken, picked = [], []
    for option, column in zip(options, columns, strict=True):
        rows, ladders = option.fleets[option.owners[column]]
        taken += rows
        picked += [ladder.at(option.widths[column]) for ladder in ladders]
    return plan(instance, taken, picked)
