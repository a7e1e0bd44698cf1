"""Parametric greedy: one-parameter families of plans, all members evaluated at once.

As the parameter of a greedy rule grows, each phase climbs from its least width to wider ones: its
ladder. A step changes the terms of one phase, its own rescaling and that of the phase behind it, so
what all members add up to are running sums over the steps. Members are plans of one width per
(class, phase); whether one keeps within the limit is decided exactly, by `Search.offer`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.boa.arrays import arrival_rates, to_plan
from optsched.boa.options import OFFER_STEP, options_of, start_seconds
from optsched.boa.settings import SETTINGS
from optsched.boa.verify import feasibility

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.boa.instance import BoaInstance
    from optsched.boa.plan import BoaPlan
    from optsched.documents.arrays import Floats, Indices
    from optsched.search import Search


class PhaseBlock(NamedTuple):
    """Consecutive phases of a class that share one width; mostly a single phase.

    Attributes
    ----------
    owner
        Number of the class.
    phases
        How many phases the block has.
    opens
        Whether it is the first of its class.
    rate_per_s
        Of the class.
    gpus, seconds
        Shape (widths,): the widths that all its phases allow, ascending, and the mean time of one
        job in the block at each, without rescaling.
    options, rents
        Shape (widths,): the options that the widths stand for, and their rents.
    lost_s, billed_s
        Shape (widths,): how long a start there takes, and how long its rent is paid for it.
    """

    owner: int
    phases: int
    opens: bool
    rate_per_s: float
    gpus: Floats
    seconds: Floats
    options: Floats
    rents: Floats
    lost_s: Floats
    billed_s: Floats


class Ladder(NamedTuple):
    """The widths that a block takes as the family's parameter grows.

    Attributes
    ----------
    columns
        Index of each width among the block's.
    starts
        The parameter from which on each is taken, strictly ascending from minus infinity.
    """

    columns: Indices
    starts: Floats

    def at(self, parameter: float) -> int:
        """Return the column that is taken at a parameter."""
        return int(self.columns[np.searchsorted(self.starts, parameter, "right") - 1])


class Family(NamedTuple):
    """A ladder for every block, and what each member's plan adds up to.

    Attributes
    ----------
    starts
        Shape (members,): the parameters at which some width changes; the first is minus infinity.
    working, rescaling
        Shape (2, members): value and use of the phases, and of the rescalings between them.
    """

    blocks: list[PhaseBlock]
    ladders: list[Ladder]
    starts: Floats
    working: Floats
    rescaling: Floats

    def plan(self, instance: BoaInstance, member: int) -> BoaPlan:
        """Write the plan of a member."""
        columns = [ladder.at(self.starts[member]) for ladder in self.ladders]
        return plan(instance, self.blocks, columns)


def fleets(instance: BoaInstance) -> list[list[PhaseBlock]]:
    """Return one block for every (class, phase), with its whole widths; with offers for each offer.

    Rules for GPUs of one type know no others. So they run on each offer alone, as on a fleet of it,
    and the best fleet counts; a phase that cannot run there takes the offer of its cheapest option.
    """
    whole = _blocks(instance)
    if instance.offers is None:
        return [whole]
    count = len(instance.offers)
    return [[_of_offer(block, n) for block in whole] for n in range(count)]


def by_rent(instance: BoaInstance) -> list[PhaseBlock]:
    """Return one block for every (class, phase), with all its options, by ascending rent.

    Of options at one rent the fastest is kept, the first of equals.
    """
    if instance.offers is None:
        return _blocks(instance)
    found = []
    for block in _blocks(instance):
        order = np.lexsort((block.seconds, block.rents))
        rented = block.rents[order]
        found.append(_taken(block, order[np.r_[True, rented[1:] > rented[:-1]]]))
    return found


def _blocks(instance: BoaInstance) -> list[PhaseBlock]:
    rows = []
    for i, rate in enumerate(arrival_rates(instance)):
        job_class = instance.classes[i]
        for e, phase in enumerate(job_class.phases):
            _, options, rents, speedup = options_of(instance, job_class, phase)
            gpus, seconds = options % OFFER_STEP, phase.work_gpu_s / speedup[0]
            [lost], [idle] = start_seconds(instance, [job_class], options)
            starts = lost, lost + idle
            rows.append(PhaseBlock(i, 1, e == 0, rate, gpus, seconds, options, rents, *starts))
    return rows


def _of_offer(block: PhaseBlock, number: int) -> PhaseBlock:
    """Return a block with the widths of one offer, or of its cheapest one instead."""
    offers = block.options // OFFER_STEP
    if number not in offers:
        number = offers[np.argmin(block.rents * block.seconds)]
    return _taken(block, np.flatnonzero(offers == number))


def _taken(block: PhaseBlock, at: Indices) -> PhaseBlock:
    return block._replace(
        lost_s=block.lost_s[at],
        billed_s=block.billed_s[at],
        gpus=block.gpus[at],
        seconds=block.seconds[at],
        options=block.options[at],
        rents=block.rents[at],
    )


def plan(instance: BoaInstance, rows: Sequence[PhaseBlock], columns: Sequence[int]) -> BoaPlan:
    """Write the plan that takes the given column in each block."""
    options: list[list[float]] = [[] for _ in instance.classes]
    for block, column in zip(rows, columns, strict=True):
        options[block.owner] += [float(block.options[column])] * block.phases
    return to_plan(instance, [(1.0, options)])


# --- ladders ----------------------------------------------------------------------------------


def every_width(block: PhaseBlock) -> Ladder:
    """Take the largest width that the parameter allows, and at least the least."""
    starts = block.gpus.copy()
    starts[0] = -math.inf
    return Ladder(np.arange(len(starts)), starts)


def steepest(x: Floats, y: Floats) -> Ladder:
    """Climb the lower hull of (x, y) from its first point down to its lowest.

    The parameter is minus the price of x: at price p the point of least y + p x is taken, at equal
    cost the one of largest x.
    """
    xs, ys = x.tolist(), y.tolist()
    points, slopes = [0], [-math.inf]
    for point in range(1, len(xs)):
        slope = (ys[point] - ys[points[-1]]) / (xs[point] - xs[points[-1]])
        while slope <= slopes[-1]:
            points.pop()
            slopes.pop()
            slope = (ys[point] - ys[points[-1]]) / (xs[point] - xs[points[-1]])
        points.append(point)
        slopes.append(slope)
    count = int(np.searchsorted(slopes, 0.0))
    return Ladder(np.array(points[:count], np.intp), np.array(slopes[:count]))


def one_by_one(columns: list[Indices], gains: list[Floats]) -> list[Ladder]:
    """Climb one step at a time, always the next step of largest gain; the parameter counts steps.

    A step comes into reach only after the ones below it on its ladder, so it waits for the least
    gain among them. Equal gains go to the block named first.

    Parameters
    ----------
    columns
        For each block its columns from the bottom up.
    gains
        For each block the gain of every step, so one entry less.
    """
    reach = [np.minimum.accumulate(row) for row in gains]
    order = np.argsort(-np.concatenate(reach), kind="stable")
    turns = np.empty(len(order))
    turns[order] = np.arange(1.0, len(order) + 1)
    ends = np.cumsum([len(row) for row in gains])
    return [
        Ladder(row, np.r_[-math.inf, turns[end - len(row) + 1 : end]])
        for row, end in zip(columns, ends.tolist(), strict=True)
    ]


# --- families ---------------------------------------------------------------------------------


def family(instance: BoaInstance, rows: list[PhaseBlock], ladders: list[Ladder]) -> Family:
    """Evaluate every member of a family: mean jobs in the system, and mean rent for them.

    Source: EPEW'24 lemmas 2 and 3; a rescaling holds the new GPUs (docs/math/boa.md, Rescaling and
    Orders of nodes).
    """
    starts = np.unique(np.concatenate([ladder.starts for ladder in ladders]))
    jumps = np.zeros((2, 2, len(starts)))
    nothing = behind = np.zeros(1, np.intp), np.zeros(1)
    for block, ladder in zip(rows, ladders, strict=True):
        steps = np.searchsorted(starts, ladder.starts)
        climb = _taken(block, ladder.columns)
        jobs = block.rate_per_s * climb.seconds
        _add(jumps[0], steps, jobs, jobs * climb.rents)
        now = steps, climb.options
        if block.billed_s.any():
            _add_starts(jumps[1], climb, nothing if block.opens else behind, now)
        behind = now
    totals = jumps.cumsum(axis=2)
    if instance.budget is None:
        totals = totals[:, ::-1]
    return Family(rows, ladders, starts, totals[0], totals[1])


def offer_best(
    instance: BoaInstance, search: Search, rows: list[PhaseBlock], ladders: list[Ladder]
) -> None:
    """Offer the members of a family, the best first, until one is within the limit."""
    members = family(instance, rows, ladders)
    value, use = members.working + members.rescaling
    within = np.flatnonzero(
        use <= float(feasibility.limit(instance)) * (1 + SETTINGS.float_tolerance)
    )
    for member in within[np.lexsort((use[within], value[within]))]:
        if search.offer(members.plan(instance, int(member))) or search.out_of_time():
            return


Climb = tuple["Indices", "Floats"]  # the members at which the option changes, and it


def _add(jumps: Floats, steps: Indices, jobs: Floats, held: Floats) -> None:
    terms = np.array([jobs, held])
    terms[:, 1:] -= terms[:, :-1]
    jumps[:, steps] += terms


def _add_starts(jumps: Floats, climb: PhaseBlock, before: Climb, now: Climb) -> None:
    """Add what starts cost wherever the option differs; no option is 0, and each other above."""
    steps = np.union1d(before[0], now[0])
    at, old = (np.searchsorted(known[0], steps, "right") - 1 for known in (now, before))
    starts = climb.rate_per_s * (now[1][at] != before[1][old])
    held = starts * climb.billed_s[at] * climb.rents[at]
    _add(jumps, steps, starts * climb.lost_s[at], held)
