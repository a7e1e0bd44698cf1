"""Weighted shortest remaining processing time: Smith's rule on what is left, at every event.

Source: Smith, "Various optimizers for single-stage production", Naval Research Logistics Quarterly
1956: least work per weight first. Goemans, Queyranne, Schulz, Skutella and Wang, "Single machine
scheduling with release dates", SIAM Journal on Discrete Mathematics 2002: done preemptively, it
solves the relaxation by mean busy times on one machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import numpy as np
from pydantic import Field

from optsched.rollout.policies.job_orders import Unnoting
from optsched.rollout.policies.repacking.placement import Repacking
from optsched.rollout.policies.round_based import Rounds
from optsched.rollout.policy_options import Options, Positive, Share, takes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Keys
    from optsched.rollout.scenario import Scenario


class RepackingOptions(Options):
    """How jobs are placed."""

    horizon_s: Positive = Field(
        default=3600.0,
        description="For how long a placement is taken to stand, when moves are weighed.",
    )


class WsrptOptions(RepackingOptions):
    """What jobs count, and how they are placed."""

    width_exponent: Annotated[float, Field(ge=0, le=2)] = Field(
        default=0.3,
        description="The order is by remaining time x width to this power: 0 as srtf, 1 by "
        "GPU-time.",
    )
    stay: Share = Field(
        default=0.3,
        description="A running job stands in the order as if so much less of it remained.",
    )
    backfill: bool = Field(
        default=True, description="Whether jobs that fit may overtake a gang that does not."
    )


class Remaining(NamedTuple):
    """Microseconds that jobs have still to run, NaN if unknown, their GPUs, and 1 for who runs.

    Each has shape (jobs,).
    """

    left_us: Floats
    widths: Floats
    runs: Floats


def remaining_of(view: View, jobs: Sequence[int]) -> Remaining:
    """Return what orders by remaining time and width go by."""
    widths = np.array([view.demand(job) for job in jobs], dtype=float)
    runs = np.array([bool(view.gpus_of(job)) for job in jobs], dtype=float)
    return Remaining(view.remaining_us(jobs), widths, runs)


@dataclass
class ByRemaining(Unnoting, ABC):
    """By remaining time, width and who runs: `seen` says how; equal ones go by number."""

    is_exact: ClassVar[bool] = False

    width_exponent: float
    stay: float

    def sort(self, view: View, jobs: Sequence[int]) -> list[int]:
        """Return the jobs, the most urgent first."""
        numbers = sorted(jobs)
        keys, stays = self.seen(view, numbers)
        return [numbers[n] for n in np.lexsort((stays, keys)).tolist()]

    def steady(self, scenario: Scenario) -> Self | None:
        """Return itself if estimates stay while jobs wait, and only fall while they run."""
        return None if scenario.estimates.kind == "history" else self

    @abstractmethod
    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return two keys of each job as they are now, the second -1 for those that run."""

    @abstractmethod
    def keys(self, seen: Floats, now: int, held_us: Integers, widths: Integers) -> Keys:
        """Return the keys of jobs that have held GPUs since they were seen: at most so."""


@dataclass
class Wsrpt(ByRemaining):
    """The least remaining time per weight first; a gang's weight is its width^(-width_exponent).

    Jobs of unknown times come last.

    Parameters
    ----------
    stay
        A running job counts as if this share of what remains of it were done: it is stopped only
        for one that is so much shorter.
    """

    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return the weighted time that is left, and -1 for jobs that run.

        Of jobs that nothing is known of, those that run go first, for a stop gains nothing.
        """
        left, widths, runs = remaining_of(view, jobs)
        keys = np.where(np.isnan(left), np.inf, left) * widths**self.width_exponent
        keys[np.isfinite(keys)] *= (1 - self.stay * runs)[np.isfinite(keys)]
        return np.array([keys, -runs])

    def keys(self, seen: Floats, now: int, held_us: Integers, widths: Integers) -> Keys:
        """Return both as they were when jobs were seen: what is left only falls."""
        return seen[0], seen[1]


@takes(WsrptOptions)
def wsrpt(scenario: Scenario, seed: int, options: WsrptOptions) -> Rounds:
    """Weighted shortest remaining processing time first, moved where that pays.

    It need not be called when nothing has happened: until then those that run only gain on others.
    """
    order = Wsrpt(options.width_exponent, options.stay)
    return Rounds("wsrpt", order, Repacking(options.horizon_s), backfill=options.backfill)
