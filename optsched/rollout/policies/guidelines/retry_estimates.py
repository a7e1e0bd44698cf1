"""Guideline: what is unlikely to pass is not tried again; learnt from the retries seen so far.

Source: Jeon et al., ATC'19, section 5: stop retrying for failures that a retry meets again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.rollout.checkpoints.restorable import Restorable

if TYPE_CHECKING:
    from optsched.rollout.engine.view import View


class RetryEstimates(Restorable):
    """How likely a retry gets over the reason of the last failure, by reason and by who retries.

    A retry succeeds if the next attempt ends in any other way than by the same reason. Each rate is
    the mean of a beta-binomial: what a user (or model, or queue) has seen of the reason, with what
    all others have seen of it as the prior, and theirs with one of mean 1/2. Retries under way
    count for nothing yet, and those that were refused are never seen: what is given up stays so.

    Parameters
    ----------
    by
        Whose experience is kept apart: "user", "model" or "queue", as the view calls it.
    stop_below
        The mean below which a job is not tried again.
    prior
        How many retries a prior weighs.

    Attributes
    ----------
    seen
        By reason, and by (reason, who): retries that are over, and how many of them succeeded.
    open
        By job the reason, and the number of its failures, when its present retry began.
    """

    changing = ("seen", "open")

    def __init__(self, by: str, stop_below: float, prior: float) -> None:
        self.by, self.stop_below, self.prior = by, stop_below, prior
        self.seen: dict[tuple[str, ...], list[int]] = {}
        self.open: dict[int, tuple[str, int]] = {}

    def mean(self, reason: str, who: str) -> float:
        """Return the estimate of the chance that a retry succeeds."""
        tried, helped = self.seen.get((reason,), (0, 0))
        own_tried, own_helped = self.seen.get((reason, who), (0, 0))
        others = (self.prior / 2 + helped - own_helped) / (self.prior + tried - own_tried)
        return (self.prior * others + own_helped) / (self.prior + own_tried)

    def who(self, view: View, job: int) -> str:
        """Return whose job it is, by what is kept apart."""
        name: str = getattr(view, self.by)(job)
        return name

    def retries(self, view: View, job: int, reason: str) -> bool:
        """Tell whether a job that has just failed is tried again."""
        self.close(view, job)
        if self.mean(reason, self.who(view, job)) < self.stop_below:
            return False
        self.open[job] = (reason, len(view.failures(job)))
        return True

    def close(self, view: View, job: int) -> None:
        """Count the present retry of a job that has failed again, or ended; if there is one."""
        opened = self.open.pop(job, None)
        if opened is None:
            return
        reason, before = opened
        failures = view.failures(job)
        success = len(failures) == before or failures[before] != reason
        for key in ((reason,), (reason, self.who(view, job))):
            counts = self.seen.setdefault(key, [0, 0])
            counts[0] += 1
            counts[1] += success
