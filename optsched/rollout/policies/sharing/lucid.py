"""Lucid's order and sharing: short jobs first, by estimate; side by side on a full cluster only.

Source: Hu et al., Lucid, ASPLOS 2023; S-Lab-System-Group/Lucid @9b9ba894, policy/ and estimator/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.eaco.greedy.grouping import Grouping
from optsched.eaco.greedy.published_rules import THRESHOLDS, labels
from optsched.eaco.greedy.rules import GroupingRule
from optsched.rollout.policies.eaco import GroupingPolicy
from optsched.rollout.policies.sharing.options import SharingOptions
from optsched.rollout.policy_options import takes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from optsched.eaco.greedy.group_costs import GroupCosts
    from optsched.rollout.engine.decision import Decision
    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.sharing.kept.groups import Member
    from optsched.rollout.scenario import Scenario

NAME = "lucid-ordered"
RULE = GroupingRule(
    NAME,
    "greedy",
    "GPUs of its own for every job, else beside one of a small label",
    "Lucid, ASPLOS'23",
    "optsched.rollout.policies.sharing.lucid:share_when_full",
)


def share_when_full(estimates: GroupCosts) -> Grouping:
    """Give jobs GPUs of their own; those that find none go beside a job of a small label, or wait.

    Two jobs share if their labels sum to at most 2; of several partners the first is taken.
    """
    grouping = Grouping.running(estimates)
    known = labels(estimates)
    for job in grouping.queue():
        alone = grouping.alone(job)
        if alone is not None:
            grouping.drafts.append(alone)
            continue
        mine = known[estimates.jobs[job].type]
        for draft in grouping.drafts:
            if len(draft.jobs) > 1:
                continue
            theirs = known[estimates.jobs[draft.jobs[0]].type]
            wider = grouping.beside(draft, job) if mine + theirs <= THRESHOLDS.labels else None
            if wider is not None:
                grouping.replace(draft, wider)
                break
        else:
            grouping.wait([job])
    return grouping


class Lucid(GroupingPolicy):
    """The queue by estimated duration x GPUs, the least first; the estimates are learnt.

    The estimate of a job is the mean time for which jobs of its model and queue held GPUs that have
    ended so far; if there are none, of its model; else of all. Before the first end it is zero.
    """

    changing = (*GroupingPolicy.changing, "seen")

    def __init__(self, scenario: Scenario, seed: int, options: SharingOptions) -> None:
        super().__init__(NAME, scenario, seed, RULE, options)
        self.seen: dict[tuple[str, ...], tuple[int, int]] = {}

    def decide(self, view: View) -> Decision:
        """Learn from the jobs that ended, and part the jobs again."""
        ended = list(view.ended)
        for job, held in zip(ended, view.attained_us(ended).tolist(), strict=True):
            for key in _keys(view, job):
                count, total = self.seen.get(key, (0, 0))
                self.seen[key] = (count + 1, total + held)
        return super().decide(view)

    def queue(self, view: View) -> list[int]:
        """Return the waiting jobs that are looked at, in order."""
        return self.arranged(view, view.pending.tolist())[: self.window]

    def arranged(self, view: View, jobs: Iterable[int]) -> list[int]:
        """Return jobs in the order in which the rule looks at them."""
        return sorted(jobs, key=lambda job: (self.estimate_us(view, job) * view.demand(job), job))

    def rank(self, view: View) -> Callable[[Member], float]:
        """Return what tells where a job stands now, the least first."""
        return lambda each: self.estimate_us(view, each.job) * each.gang

    def kind(self, view: View, job: int) -> tuple[str, ...]:
        """Return what the estimate for a job depends on."""
        return view.model(job), view.queue(job)

    def estimate_us(self, view: View, job: int) -> float:
        """Return for how long a job is thought to hold GPUs, in all."""
        known = next((self.seen[key] for key in _keys(view, job) if key in self.seen), (1, 0))
        return known[1] / known[0]


def _keys(view: View, job: int) -> Iterator[tuple[str, ...]]:
    yield view.model(job), view.queue(job)
    yield (view.model(job),)
    yield ()


@takes(SharingOptions)
def lucid(scenario: Scenario, seed: int, options: SharingOptions) -> Lucid:
    """Order by estimated duration x GPUs, and share where the cluster is full."""
    return Lucid(scenario, seed, options)
