"""heSRPT, SmartFill and WHAM: so many GPUs, shared out anew whenever something happens."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from optsched.rollout.policies.capacity.shared_by_kind import SharedByKind
from optsched.rollout.policies.fixed_capacity import SharedOptions, seconds_left
from optsched.rollout.policies.malleable.fills import Filling
from optsched.rollout.policies.malleable.optimal_shares import hesrpt_shares, whittle_gains
from optsched.rollout.policies.malleable.whole_gpus import (
    GainLevels,
    Rounding,
    envelope,
    filled_in_order,
)
from optsched.rollout.policy_options import takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.capacity.shared_by_kind import ActiveRows
    from optsched.rollout.policies.width_curves import Curve, Curves
    from optsched.rollout.scenario import Scenario

LEAST_EXPONENT, MOST_EXPONENT = 0.01, 0.99
MOST_KINDS = 16
"""Of curves; with more of them the jobs are gone through one by one."""


class InShares(SharedByKind):
    """Jobs get whole widths near shares of GPUs that a theory says are best."""

    def __init__(self, name: str, scenario: Scenario, options: SharedOptions) -> None:
        super().__init__(name, scenario, options)
        self._rounding = Rounding(self.table)

    @abstractmethod
    def ideal(self, kinds: Integers, gpus: int) -> Floats | Integers:
        """Return the GPUs of jobs of some kinds, not yet whole; the sum is at most so many."""

    def order(self, view: View, rows: ActiveRows) -> Integers:
        """Return the rows as the theory has them: those with the most work left first."""
        left = (seconds_left(view, rows.jobs) * rows.speeds)[::-1]
        most_first: Integers = np.negative(left).argsort(kind="stable")
        return len(left) - 1 - most_first

    def assigned(self, view: View, rows: ActiveRows, gpus: int) -> tuple[Integers, Integers]:
        """Return rows and widths; what rounding leaves goes to the last in the theory's order."""
        order = self.order(view, rows) if gpus else np.arange(len(rows.jobs))
        if not (len(order) and gpus):
            return order, np.zeros(len(order), dtype=np.int64)
        kinds = rows.kinds[order]
        ideal = self.ideal(kinds, gpus)
        return order[::-1], self._rounding.rounded(kinds[::-1], ideal[::-1], gpus)


class HesrptOptions(SharedOptions):
    """What the theory takes all jobs for."""

    p: Annotated[float, Field(ge=LEAST_EXPONENT, le=MOST_EXPONENT)] | None = Field(
        default=None,
        description="All jobs are taken to run at speed k ** p; null: fitted to the curves.",
    )


class Hesrpt(InShares):
    """The shares of heSRPT: all jobs get some, those with less work left get more.

    Source: Berg, Vesilo and Harchol-Balter, arXiv 1903.09346.
    """

    def __init__(self, name: str, scenario: Scenario, options: HesrptOptions) -> None:
        super().__init__(name, scenario, options)
        self.exponent = fitted_exponent(self.curves) if options.p is None else options.p

    def ideal(self, kinds: Integers, gpus: int) -> Floats:
        """Return the GPUs of each job."""
        return gpus * hesrpt_shares(len(kinds), self.exponent)


def fitted_exponent(curves: Curves) -> float:
    """Return the mean p of k ** p over models, and over the phases of each.

    The p of a phase is fitted by least squares to the logarithms of its useful widths and speeds.
    Without any curve it is one half.
    """
    means = []
    for model in sorted(curves.scenario.models):
        if not curves.phases(model):
            continue
        phases = map(_exponent, curves.useful(model, 1))
        found = [exponent for exponent in phases if exponent is not None]
        if found:
            means.append(sum(found) / len(found))
    mean = sum(means) / len(means) if means else 0.5
    return min(max(mean, LEAST_EXPONENT), MOST_EXPONENT)


def _exponent(curve: Curve) -> float | None:
    gpus, speed = np.log(curve.gpus), np.log(curve.speed)
    return float(gpus @ speed / (gpus @ gpus)) if gpus[-1] > 0 else None


class OnEnvelopes(InShares):
    """Theories for any concave curve: they are told the envelopes of the jobs' curves."""

    def __init__(self, name: str, scenario: Scenario, options: SharedOptions) -> None:
        super().__init__(name, scenario, options)
        self._known = (-1, 0)  # the GPUs and the number of kinds that the theory was told of

    def ideal(self, kinds: Integers, gpus: int) -> Integers:
        """Return the GPUs of each job."""
        known = gpus, len(self.table.curves)
        if known != self._known:
            self._known = known
            self.tell([envelope(curve, gpus) for curve in self.table.curves], gpus)
        return self.filled(kinds, gpus)

    @abstractmethod
    def tell(self, envelopes: Sequence[Floats], gpus: int) -> None:
        """Take note of the speeds at 0, 1, 2, ... GPUs, by kind of job."""

    @abstractmethod
    def filled(self, kinds: Integers, gpus: int) -> Integers:
        """Return the GPUs of jobs of kinds that were told."""


class Smartfill(OnEnvelopes):
    """The shares of SmartFill: least total flow time for jobs with concave curves.

    Source: Li, Ju, Eryilmaz and Shroff, arXiv 2509.01811.
    """

    def __init__(self, name: str, scenario: Scenario, options: SharedOptions) -> None:
        super().__init__(name, scenario, options)
        self._filling = Filling([], 0)

    def tell(self, envelopes: Sequence[Floats], gpus: int) -> None:
        """Take note of the speeds at 0, 1, 2, ... GPUs, by kind of job."""
        self._filling = Filling(envelopes, gpus)

    def filled(self, kinds: Integers, gpus: int) -> Integers:
        """Return the GPUs of each job."""
        return self._filling.shares(kinds)


class Wham(OnEnvelopes):
    """GPUs go to the largest of Whittle's indices, whatever work is left.

    Source: Li, Harchol-Balter and Berg, arXiv 2602.01411, abstract.
    """

    def __init__(self, name: str, scenario: Scenario, options: SharedOptions) -> None:
        super().__init__(name, scenario, options)
        self._gains: list[Floats] = []
        self._levels: GainLevels | None = None  # of them, if they are few

    def order(self, view: View, rows: ActiveRows) -> Integers:
        """Return the rows, the youngest job first: the index says nothing of the work left."""
        return np.arange(len(rows.jobs) - 1, -1, -1)

    def tell(self, envelopes: Sequence[Floats], gpus: int) -> None:
        """Take note of the speeds at 0, 1, 2, ... GPUs, by kind of job."""
        self._gains = list(map(whittle_gains, envelopes))
        self._levels = GainLevels(self._gains) if len(envelopes) <= MOST_KINDS else None

    def filled(self, kinds: Integers, gpus: int) -> Integers:
        """Return the GPUs of each job; where prices are infinite, the oldest come first."""
        oldest_first = kinds[::-1]
        if self._levels is not None:
            return self._levels.filled(oldest_first, gpus)[::-1]
        every = [self._gains[kind] for kind in oldest_first.tolist()]
        return filled_in_order(np.concatenate(every), list(map(len, every)), gpus)[::-1]


# --- policies ---------------------------------------------------------------------------------


@takes(HesrptOptions)
def hesrpt(scenario: Scenario, seed: int, options: HesrptOptions) -> Hesrpt:
    """Give jobs the shares of heSRPT."""
    return Hesrpt("hesrpt", scenario, options)


@takes(SharedOptions)
def smartfill(scenario: Scenario, seed: int, options: SharedOptions) -> Smartfill:
    """Give jobs the shares of least total flow time for concave curves."""
    return Smartfill("smartfill", scenario, options)


@takes(SharedOptions)
def wham(scenario: Scenario, seed: int, options: SharedOptions) -> Wham:
    """Give GPUs to the largest of Whittle's indices."""
    return Wham("wham", scenario, options)
