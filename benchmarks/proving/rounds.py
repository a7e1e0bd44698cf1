"""Rounds of any costs and capacities, one after the other, each begun with what the last one left.

As arrays, for comparisons with peers and with brute force: users have `SiaInstance` and `solve`.

Every job takes one of its options, within capacities. In Sia's round an option is a GPU type and a
number of GPUs, its cost a power of the goodput there (`sia_cost`), and one more is to wait.

>>> from benchmarks.proving.rounds import Choice, Round
>>> wait = (1.1, [0.0, 0.0])
>>> options = {"a": [wait, (1.0, [1.0, 0.0])], "b": [wait, (1.0, [1.0, 0.0]), (0.6, [0.0, 4.0])]}
>>> chosen = Choice().decide(Round.of(options, capacity=[1.0, 4.0]))
>>> chosen.plan.tolist(), round(chosen.objective, 6), chosen.status.value
([1, 2], 1.6, 'optimal')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.proving.round_results import Chosen, confirmed, verify_round
from optsched.sia.arrays import Round
from optsched.sia.round_solver import Limits
from optsched.sia.settings import SETTINGS
from optsched.sia.solver import RoundMemory, solve_after
from optsched.sia.verify.certificate import ChoiceCertificate, Prices

if TYPE_CHECKING:
    from optsched.sia.arrays import Floats, Indices

__all__ = ["Choice", "ChoiceCertificate", "Chosen", "Round", "sia_cost", "verify_round"]


class Choice:
    """Chooses options for jobs, round after round, as `optsched.sia.solver` does for `SiaInstance`.

    What is stated is what the verifier has confirmed.

    Parameters
    ----------
    gap
        Relative gap at which to stop.
    most_nodes
        Nodes after which to stop; what is proven by then is stated. Up to 40, none is enumerated.
    seed
        Seed of HiGHS.

    Attributes
    ----------
    memory
        What the last round left; None before the first one. It can be pickled.
    """

    def __init__(
        self, gap: float = 1e-4, most_nodes: int = SETTINGS.programs_in_rollouts, seed: int = 0
    ) -> None:
        if not 0 <= gap < 1:
            raise ValueError(f"the gap must be in [0, 1), not {gap!r}")
        if not most_nodes >= 1:
            raise ValueError(f"most_nodes must be at least 1, not {most_nodes!r}")
        self.gap, self.most_nodes, self.seed = gap, most_nodes, seed
        self.memory: RoundMemory | None = None

    def decide(self, instance: Round) -> Chosen:
        """Return the best options, and the proof of how good they are.

        Raises
        ------
        ValueError
            If a figure is not 0 and beyond 1e-100 or 1e100, which no linear program bears.
        SolverDisagreement
            If a bound contradicts the plan.
        """
        low, high = SETTINGS.least_figure, SETTINGS.greatest_figure
        for name in ("cost", "use", "capacity"):
            sizes = np.abs(getattr(instance, name))
            least, most = sizes.min(initial=1.0, where=sizes > 0), sizes.max(initial=0.0)
            if least < low or most > high:
                figure = least if least < low else most
                raise ValueError(f"'{name}' has a figure of {figure!r}, not in [{low}, {high}]")
        if not len(instance.jobs):
            nothing = Prices(prices=(0.0,) * len(instance.capacity))
            certificate = ChoiceCertificate(bound=0.0, nodes=(nothing,))
            return confirmed(instance, np.zeros(0, dtype=np.intp), certificate, self.gap, 0)
        limits = Limits(self.gap, self.most_nodes, self.seed)
        solved, self.memory = solve_after(instance, self.memory, limits)
        plan = None if solved.plan is None else solved.plan - instance.first
        return confirmed(instance, plan, solved.certificate, self.gap, solved.programs)


def sia_cost(
    goodput: Floats,
    counts: Indices,
    *,
    restart: Floats,
    held: Indices,
    power: float = -0.5,
    most: float = 3000.0,
) -> Floats:
    """Return what Sia has options cost: a power of the goodput over the job's least, two decimals.

    Parameters
    ----------
    goodput
        Shape (options,), above 0.
    counts
        Shape (jobs,): how many options each job has.
    restart
        Shape (jobs,): factor of the goodput of all options but the one that the job holds.
    held
        Shape (jobs,): that option, by its place among the job's own; -1 if it holds none.
    power
        Below 0: costs are minimised.
    most
        Costs are cut off here.

    Source: Sia, SOSP 2023, siasosp23/artifacts, sia-simulator/sia.py.
    """
    first = np.cumsum(counts) - counts
    factor = np.repeat(np.where(held >= 0, restart, 1.0), counts)
    factor[(first + held)[held >= 0]] = 1.0
    relative = goodput / np.repeat(np.minimum.reduceat(goodput, first), counts) * factor
    cost: Floats = np.round(np.maximum(relative, 1e-4) ** power, 2)
    return np.minimum(cost, most)
