"""Greedy rules for PAL: each makes one plan and offers it; see the functions that make them.

What all have in common stands in `rounds`: the order of `jobs` is the scheduler's, hard caps are
kept, a job that cannot be placed is left out if it may be, and then the next ones are still tried.
If it must be placed there is no plan. Rewards are not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.cluster import binning
from optsched.pal import packing, variability
from optsched.pal.variability import quick_start as quick_start

if TYPE_CHECKING:
    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import PalPlan
    from optsched.solve import Search


def packed_sticky(instance: PalInstance, search: Search) -> None:
    """Consolidate waiting jobs by `packing.consolidate`; running ones keep their GPUs.

    A running job is preempted for a waiting one before it in the order that does not fit otherwise,
    and placed anew when it is its turn.

    Source: hal-uw/blox-pal, branch artifact, placement/packing_sticky.py.
    """
    _offer(search, packing.sticky(instance, packing.consolidate))


def packed_non_sticky(instance: PalInstance, search: Search) -> None:
    """Release all GPUs and consolidate every job anew by `packing.consolidate`.

    Source: hal-uw/blox-pal, branch artifact, placement/packing_nonsticky.py, where every running
    job is restarted; here one that gets its own GPUs again is not moved.
    """
    _offer(search, packing.non_sticky(instance, packing.consolidate))


def random_sticky(instance: PalInstance, search: Search) -> None:
    """Draw GPUs of waiting jobs, seeded; running ones keep theirs as in `packed_sticky`.

    Source: hal-uw/blox-pal, branch artifact, placement/random_sticky.py.
    """
    _offer(search, packing.sticky(instance, packing.uniform(search.seed)))


def random_non_sticky(instance: PalInstance, search: Search) -> None:
    """Release all GPUs and draw those of every job anew, seeded.

    Source: hal-uw/blox-pal, branch artifact, placement/random_nonsticky.py.
    """
    _offer(search, packing.non_sticky(instance, packing.uniform(search.seed)))


def pm_first(instance: PalInstance, search: Search) -> None:
    """Give each job the best GPUs by `variability.pm_first`, with the released K-means bins."""
    scores = variability.bin_scores(instance, binning.kmeans_as_released)
    _offer(search, variability.pm_first(instance, scores))


def pal_greedy(instance: PalInstance, search: Search) -> None:
    """Trade speed for locality by `variability.pal`, with the released K-means bins."""
    scores = variability.bin_scores(instance, binning.kmeans_as_released)
    _offer(search, variability.pal(instance, scores))


def pal_silhouette(instance: PalInstance, search: Search) -> None:
    """Trade speed for locality by `variability.pal`, with as many bins as the silhouette says."""
    scores = variability.bin_scores(instance, binning.kmeans_by_silhouette)
    _offer(search, variability.pal(instance, scores))


def pal_multilevel(instance: PalInstance, search: Search) -> None:
    """Trade speed for locality at all levels by `variability.pal_multilevel`, without bins."""
    _offer(search, variability.pal_multilevel(instance))


def gandiva_like(instance: PalInstance, search: Search) -> None:
    """Consolidate waiting jobs, then defragment one running job, by `packing.gandiva`."""
    _offer(search, packing.gandiva(instance))


def slurm_best_fit(instance: PalInstance, search: Search) -> None:
    """Place waiting jobs by `packing.slurm`, the rule of Slurm's topology/tree."""
    _offer(search, packing.unmoved(instance, packing.slurm))


def kueue_best_fit(instance: PalInstance, search: Search) -> None:
    """Place waiting jobs by `packing.kueue`, BestFit of Kueue's topology-aware scheduling."""
    _offer(search, packing.unmoved(instance, packing.kueue))


def _offer(search: Search, plan: PalPlan | None) -> None:
    if plan is not None:
        search.offer(plan)
