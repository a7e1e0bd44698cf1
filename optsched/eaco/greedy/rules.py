"""The table of EaCO's greedy rules: methods are made of it, and the policies of the same names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optsched.registry import Method, loaded

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.eaco.greedy.group_costs import GroupCosts
    from optsched.eaco.greedy.grouping import Grouping
    from optsched.eaco.instance import EacoInstance
    from optsched.search import Search

EACO = "Haghshenas and Hashemi, EaCO, arXiv 2412.08294"
GAVEL = "stanford-futuredata/gavel @c4fa4009, policies/"
_PUBLISHED = "optsched.eaco.greedy.published_rules:"
_SIMPLE = "optsched.eaco.greedy.simple_rules:"


@dataclass(frozen=True)
class GroupingRule(Method):
    """A rule that parts jobs into groups.

    `entry` is "module:function" of the estimates of an instance, and of a seed if it `draws`. As a
    method, what `besides` names is tried, too, and with `has_levels` each also at the power levels
    that cost least. With `is_in_order` a job for which GPUs run out holds up those behind it. With
    `keeps_running` running groups that break no rule stay as they are while no job waits.
    """

    draws: bool = False
    besides: tuple[str, ...] = ()
    has_levels: bool = False
    is_in_order: bool = False
    keeps_running: bool = True

    def grouping(self, estimates: GroupCosts, seed: int, **thresholds: float) -> Grouping:
        """Part the jobs of an instance into groups.

        Parameters
        ----------
        thresholds
            Parameters of the rule, by name; each has a default.
        """
        group: Callable[..., Grouping] = loaded(self.entry)
        drawn = (seed,) if self.draws else ()
        return group(estimates, *drawn, **thresholds)

    def __call__(self, instance: EacoInstance, search: Search) -> None:
        """Offer the plans of the rule."""
        from optsched.eaco.greedy import methods  # the table itself is to be light
        from optsched.eaco.greedy.group_costs import GroupCosts

        estimates = GroupCosts(instance)
        groupings = [self.grouping(estimates, search.seed)]
        groupings += [loaded(entry)(estimates) for entry in self.besides]
        for grouping in groupings:
            methods.offer(search, grouping, with_levels=self.has_levels)


def _rule(
    name: str,
    summary: str,
    source: str,
    entry: str,
    effort: int,
    *,
    draws: bool = False,
    besides: tuple[str, ...] = (),
    has_levels: bool = False,
    is_in_order: bool = False,
    keeps_running: bool = True,
) -> GroupingRule:
    flags = (draws, besides, has_levels, is_in_order, keeps_running)
    return GroupingRule(name, "greedy", summary, source, entry, effort, False, *flags)


RULES = (
    _rule(
        "fifo-exclusive",
        "GPUs of its own for every job, in order",
        f"{GAVEL}fifo.py; EaCO's default",
        _PUBLISHED + "fifo",
        1,
        is_in_order=True,
    ),
    _rule(
        "fifo-packed",
        "pairs of the greatest sum of rates, if GPUs run out",
        f"{GAVEL}fifo.py",
        _PUBLISHED + "fifo_packed",
        1,
        is_in_order=True,
        keeps_running=False,
    ),
    _rule(
        "random-pairs",
        "random pairs, if GPUs run out",
        f"{GAVEL}gandiva.py",
        _PUBLISHED + "gandiva_gavel",
        1,
        draws=True,
        is_in_order=True,
    ),
    _rule(
        "least-utilised",
        "least busy job on the least busy GPUs if they run out",
        "Gandiva, OSDI'18, as others quote it",
        _PUBLISHED + "gandiva",
        1,
        is_in_order=True,
    ),
    _rule(
        "eaco-greedy",
        "the busiest GPUs where every tolerance holds",
        EACO,
        _PUBLISHED + "eaco",
        7,
    ),
    _rule(
        "best-fit-memory",
        "the GPUs where least memory is left",
        "common practice",
        _SIMPLE + "best_fit",
        32,
    ),
    _rule(
        "best-delta-energy",
        "where the objective rises least",
        "common practice",
        _SIMPLE + "best_delta_energy",
        30,
        has_levels=True,
    ),
    _rule(
        "sharing-scores",
        "pairs whose sharing scores sum to at most 2",
        "Lucid, ASPLOS'23",
        _PUBLISHED + "lucid",
        72,
    ),
    _rule(
        "longest-first",
        "jobs that end together, the longest first",
        "optsched",
        _SIMPLE + "longest_first",
        18,
        besides=(_SIMPLE + "longest_first_full",),
        has_levels=True,
        keeps_running=False,
    ),
)
"""With the effort: CPU time on 300 jobs, four of which share, beside the first's."""

BY_NAME = {rule.name: rule for rule in RULES}
