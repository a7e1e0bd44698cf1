"""Greedy rules for PAL: each makes one plan and offers it; see the functions that make them.

What all have in common stands in `list_scheduling`: the order of `jobs` is the scheduler's, hard
caps are kept, a job that cannot be placed is left out if it may be, and then the next ones are
still tried. If it must be placed there is no plan. Rewards are not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.cluster import binning
from optsched.pal.greedy import packing_rules, pal_rules
from optsched.pal.greedy.pal_rules import quick_start as quick_start

if TYPE_CHECKING:
    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalPlan
    from optsched.search import Search


def packed_sticky(instance: PalInstance, search: Search) -> None:
    """Consolidate waiting jobs by `packing_rules.consolidate`; running ones keep their GPUs.

    A running job is preempted for a waiting one before it in the order that does not fit otherwise,
    and placed again when it is its turn.

    Source: hal-uw/blox-pal, branch artifact, placement/packing_sticky.py.
    """
    _offer(search, packing_rules.sticky(instance, packing_rules.consolidate))


def packed_non_sticky(instance: PalInstance, search: Search) -> None:
    """Release all GPUs and consolidate every job by `packing_rules.consolidate`.

    Source: hal-uw/blox-pal, branch artifact, placement/packing_nonsticky.py, where every running
    job is restarted; here one that gets its own GPUs again is not moved.
    """
    _offer(search, packing_rules.non_sticky(instance, packing_rules.consolidate))


def random_sticky(instance: PalInstance, search: Search) -> None:
    """Draw GPUs of waiting jobs, seeded; running ones keep theirs as in `packed_sticky`.

    Source: hal-uw/blox-pal, branch artifact, placement/random_sticky.py.
    """
    _offer(search, packing_rules.sticky(instance, packing_rules.uniform(search.seed)))


def random_non_sticky(instance: PalInstance, search: Search) -> None:
    """Release all GPUs and draw those of every job, seeded.

    Source: hal-uw/blox-pal, branch artifact, placement/random_nonsticky.py.
    """
    _offer(search, packing_rules.non_sticky(instance, packing_rules.uniform(search.seed)))


def pm_first(instance: PalInstance, search: Search) -> None:
    """Give each job the best GPUs by `pal_rules.pm_first`, with the released K-means bins."""
    scores = pal_rules.bin_scores(instance, binning.kmeans_as_released)
    _offer(search, pal_rules.pm_first(instance, scores))


def pal_greedy(instance: PalInstance, search: Search) -> None:
    """Trade speed for locality by `pal_rules.pal`, with the released K-means bins."""
    scores = pal_rules.bin_scores(instance, binning.kmeans_as_released)
    _offer(search, pal_rules.pal(instance, scores))


def pal_silhouette(instance: PalInstance, search: Search) -> None:
    """Trade speed for locality by `pal_rules.pal`, with as many bins as the silhouette says."""
    scores = pal_rules.bin_scores(instance, binning.kmeans_by_silhouette)
    _offer(search, pal_rules.pal(instance, scores))


def pal_multilevel(instance: PalInstance, search: Search) -> None:
    """Trade speed for locality at all levels by `pal_rules.pal_multilevel`, without bins."""
    _offer(search, pal_rules.pal_multilevel(instance))


def gandiva_like(instance: PalInstance, search: Search) -> None:
    """Consolidate waiting jobs, then defragment one running job, by `packing_rules.gandiva`."""
    _offer(search, packing_rules.gandiva(instance))


def slurm_best_fit(instance: PalInstance, search: Search) -> None:
    """Place waiting jobs by `packing_rules.slurm`, the rule of Slurm's topology/tree."""
    _offer(search, packing_rules.unmoved(instance, packing_rules.slurm))


def kueue_best_fit(instance: PalInstance, search: Search) -> None:
    """Place waiting jobs by `packing_rules.kueue`, BestFit of Kueue's topology-aware scheduling."""
    _offer(search, packing_rules.unmoved(instance, packing_rules.kueue))


def _offer(search: Search, plan: PalPlan | None) -> None:
    if plan is not None:
        search.offer(plan)
