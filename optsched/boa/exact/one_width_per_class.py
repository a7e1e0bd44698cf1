"""One width per class, exactly: a multiple-choice knapsack (Sinha & Zoltners, OR 1979)."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.arrays import BoaArrays, FreePhases, WidthChoice
from optsched.boa.exact.gap_closing import close
from optsched.boa.exact.lagrangian_dual import maximise
from optsched.boa.greedy.parametric import Ladder, PhaseBlock, blocks, every_width, family, plan
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import feasibility

if TYPE_CHECKING:
    from optsched.boa.instance import BoaInstance
    from optsched.boa.plan import BoaPlan
    from optsched.documents.arrays import Floats
    from optsched.search import Search


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


class _Options(NamedTuple):
    """What each width of a class adds up to; rates of zero count as one job per second."""

    rows: list[PhaseBlock]
    ladders: list[Ladder]
    widths: Floats
    value: Floats
    use: Floats


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
