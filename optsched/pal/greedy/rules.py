"""The table of PAL's greedy rules: methods are made of it, and the policies of the same names.

What all have in common stands in `list_scheduling`: the order of `jobs` is the scheduler's, hard
caps are kept, a job that cannot be placed is left out if it may be, and then the next ones are
still tried. If it must be placed there is no plan. Rewards are not looked at.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from optsched.registry import Method, loaded

if TYPE_CHECKING:
    from optsched.pal.greedy.free_gpus import FreeGpus
    from optsched.pal.greedy.list_scheduling import Rule
    from optsched.pal.greedy.pal_rules import Penalties, Scores
    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalPlan
    from optsched.search import Search

SC24 = "PAL, SC'24, arXiv 2408.11919"
RELEASED = "PAL's released code, hal-uw/blox-pal 8a59070"
BINNINGS = {
    "released": "optsched.cluster.binning:kmeans_as_released",
    "silhouette": "optsched.cluster.binning:kmeans_by_silhouette",
    "exact": "optsched.cluster.binning:exact",
}
"""Ways to put slowdowns into bins, whose values are the scores of GPUs."""


@dataclass(frozen=True)
class PlacementRule(Method):
    """A rule that picks GPUs for one job after the other.

    Attributes
    ----------
    entry
        "module:function" of a `list_scheduling.Rule`; with `bins`, of a function of free GPUs,
        scores and penalties to one; if it `draws`, of a function of a generator to one.
    running
        What becomes of running jobs: they may be moved, preempted by jobs before them, or are kept;
        "own": the function makes the whole plan of an instance itself.
    bins
        Of `BINNINGS`; the jobs then choose by class, as PAL's do. None: slowdowns do not matter.
    is_policy
        Whether it is a policy, too.
    """

    running: Literal["moved", "preempted", "kept", "own"] = "moved"
    bins: Literal["released", "silhouette", "exact"] | None = None
    draws: bool = False
    is_policy: bool = False

    def rule(
        self, state: FreeGpus, scores: Scores, penalties: Penalties, generator: random.Random
    ) -> Rule:
        """Return the rule for one round; what it does not need is not looked at."""
        made = loaded(self.entry)
        if self.bins is not None:
            made = made(state, scores, penalties)
        elif self.draws:
            made = made(generator)
        rule: Rule = made
        return rule

    def plan(self, instance: PalInstance, seed: int = 0) -> PalPlan | None:
        """Place the jobs of an instance; None if one that must be placed is not."""
        from optsched.pal.greedy import list_scheduling, pal_rules
        from optsched.pal.greedy.free_gpus import ClusterState

        if self.running == "own":
            made: PalPlan | None = loaded(self.entry)(instance)
            return made
        state, jobs, order = ClusterState(instance), instance.jobs, None
        scores: Scores = {}
        if self.bins is not None:
            scores = pal_rules.bin_scores(instance, loaded(BINNINGS[self.bins]))
            order = list_scheduling.class_order(instance)
        rule = self.rule(state, scores, instance.penalties, random.Random(seed))
        kept = {} if self.running == "moved" else list_scheduling.keep_running(instance, state)
        if self.running == "preempted":
            placed = list_scheduling.place_with_preemption(jobs, state, rule, kept)
        else:
            placed = list_scheduling.place(jobs, state, rule, kept, order)
        return list_scheduling.plan(instance, state, placed)

    def __call__(self, instance: PalInstance, search: Search) -> None:
        """Offer the plan of the rule."""
        plan = self.plan(instance, search.seed)
        if plan is not None:
            search.offer(plan)


_PACKING = "optsched.pal.greedy.packing_rules:"
_PAL = "optsched.pal.greedy.pal_rules:"

# Released: placement/{packing,random}_{sticky,nonsticky}.py, pmfirst.py and pal.py. There
# non-sticky rules restart every running job; here one that gets its own GPUs again is not moved.
RULES = (
    PlacementRule(
        name="packed-sticky",
        kind="greedy",
        summary="fewest nodes, running jobs keep their GPUs",
        source=RELEASED,
        entry=_PACKING + "consolidate",
        running="preempted",
        is_policy=True,
    ),
    PlacementRule(
        name="packed-non-sticky",
        kind="greedy",
        summary="fewest nodes, every job placed again",
        source=RELEASED,
        entry=_PACKING + "consolidate",
        is_policy=True,
    ),
    PlacementRule(
        name="random-sticky",
        kind="greedy",
        summary="random GPUs, running jobs keep theirs",
        source=RELEASED,
        entry=_PACKING + "drawn_by",
        effort=2,
        running="preempted",
        draws=True,
        is_policy=True,
    ),
    PlacementRule(
        name="random-non-sticky",
        kind="greedy",
        summary="random GPUs, every job placed again",
        source=RELEASED,
        entry=_PACKING + "drawn_by",
        effort=2,
        draws=True,
        is_policy=True,
    ),
    PlacementRule(
        name="pm-first",
        kind="greedy",
        summary="the fastest free GPUs, wherever they stand",
        source=f"{SC24}; {RELEASED}",
        entry=_PAL + "pm_first_rule",
        effort=3,
        bins="released",
        is_policy=True,
    ),
    PlacementRule(
        name="pal-greedy",
        kind="greedy",
        summary="least penalty x bin, one job after the other",
        source=f"{SC24}; {RELEASED}",
        entry=_PAL + "pal_rule",
        effort=3,
        bins="released",
        is_policy=True,
    ),
    PlacementRule(
        name="pal-silhouette",
        kind="greedy",
        summary="the same, bins by silhouette as the paper means",
        source=SC24,
        entry=_PAL + "pal_rule",
        effort=20,
        bins="silhouette",
    ),
    PlacementRule(
        name="pal-multilevel",
        kind="greedy",
        summary="the same with every level of the topology",
        source="optsched, after PAL",
        entry=_PAL + "multilevel_rule",
        effort=2,
        bins="exact",
        is_policy=True,
    ),
    PlacementRule(
        name="gandiva-like",
        kind="greedy",
        summary="best fit, then moves that undo fragmentation",
        source="Gandiva, OSDI'18",
        entry=_PACKING + "gandiva",
        running="own",
    ),
    PlacementRule(
        name="slurm-best-fit",
        kind="greedy",
        summary="lowest switch that holds the job, best fit",
        source="Slurm, topology/tree",
        entry=_PACKING + "slurm",
        running="kept",
    ),
    PlacementRule(
        name="kueue-best-fit",
        kind="greedy",
        summary="lowest domain that fits, fewest GPUs left",
        source="Kueue, topology-aware",
        entry=_PACKING + "kueue",
        running="kept",
    ),
)
"""With the effort: CPU time relative to packed-sticky, with 1,024 to 8,192 GPUs.

A policy's running jobs are moved or preempted, and its options include those of `bins`.
"""

BY_NAME = {rule.name: rule for rule in RULES}
