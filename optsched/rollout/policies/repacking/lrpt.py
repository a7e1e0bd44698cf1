"""Longest remaining processing time first: who takes longest may not wait, for a short makespan.

Source: Muntz and Coffman, "Preemptive scheduling of real-time tasks on multiprocessor systems",
Journal of the ACM 1970: on equal machines the longest remaining first ends all jobs soonest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from optsched.rollout.policies.repacking.placement import Repacking
from optsched.rollout.policies.repacking.wsrpt import ByRemaining, WsrptOptions, remaining_of
from optsched.rollout.policies.round_based import Rounds
from optsched.rollout.policy_options import Share, takes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats, Integers
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Keys
    from optsched.rollout.scenario import Scenario


class LrptOptions(WsrptOptions):
    """Who comes first, and how jobs are placed."""

    width_exponent: Annotated[float, Field(ge=0, le=2)] = Field(
        default=0.0,
        description="The order is by remaining time x width to this power: 1 by GPU-time.",
    )
    stay: Share = Field(
        default=0.0,
        description="A running job stands in the order as if so much more of it remained.",
    )


@dataclass
class Lrpt(ByRemaining):
    """The most remaining time x width^width_exponent first; jobs of unknown times before all.

    Parameters
    ----------
    stay
        A running job counts as if so much more of it remained.
    """

    def seen(self, view: View, jobs: Sequence[int]) -> Floats:
        """Return less than nothing by the weighted time that is left, and -1 for jobs that run."""
        left, widths, runs = remaining_of(view, jobs)
        keys = -left * widths**self.width_exponent * (1 + self.stay * runs)
        return np.array([np.where(np.isnan(left), -np.inf, keys), -runs])

    def keys(self, seen: Floats, now: int, held_us: Integers, widths: Integers) -> Keys:
        """Return both, but of jobs that have held GPUs only that something is left.

        How fast they get on depends on where they are, and nobody knows less of it than the view.
        """
        left, runs = seen
        return np.where((held_us > 0) & np.isfinite(left), 0.0, left), runs


@takes(LrptOptions)
def lrpt(scenario: Scenario, seed: int, options: LrptOptions) -> Rounds:
    """Longest remaining processing time first, moved where that pays; called at every epoch.

    Of two jobs of equal length one overtakes the other while that runs.
    """
    order, placement = Lrpt(options.width_exponent, options.stay), Repacking(options.horizon_s)
    return Rounds("lrpt", order, placement, backfill=options.backfill, every_epoch=True)
