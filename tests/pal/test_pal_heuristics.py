"""PAL's greedy rules: examples by hand, each rule against its definition, and the exact optimum."""

import inspect
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given

from optsched.cluster import binning
from optsched.pal.greedy import pal_rules
from optsched.pal.greedy.free_gpus import ClusterState
from optsched.pal.greedy.list_scheduling import class_order
from optsched.pal.greedy.rules import BY_NAME
from optsched.pal.verify import feasibility
from optsched.registry import loaded
from tests.support.oracles.pal import (
    best_for_one,
    bitmask_optimum,
    job_cost,
    open_gpus,
    parents,
    plan_cost,
)
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances, small_instance

STICKY = ["packed_sticky", "random_sticky", "gandiva_like", "slurm_best_fit", "kueue_best_fit"]
NON_STICKY = [
    "packed_non_sticky",
    "random_non_sticky",
    "pm_first",
    "pal_greedy",
    "pal_silhouette",
    "pal_multilevel",
]
CHEAP = [name for name in STICKY + NON_STICKY if name not in {"pal_greedy", "pal_silhouette"}]


def plan_by(name, instance, seed=0):
    """Run a method alone; return the one plan that it offers, or None."""
    plans = []
    BY_NAME[name.replace("_", "-")](instance, SimpleNamespace(seed=seed, offer=plans.append))
    assert len(plans) <= 1
    return plans[0] if plans else None


def gpus_by(name, instance, seed=0):
    """The GPUs of each job, as text, or None if there is no plan."""
    return shown(plan_by(name, instance, seed))


def shown(plan):
    return plan and [" ".join(placement.gpus) for placement in plan.jobs]


def pm_first(instance):
    """PM-First with slowdowns as scores."""
    return pal_rules.pm_first(instance, pal_rules.raw_scores(instance))


def pal(instance):
    """PAL with slowdowns as scores."""
    return pal_rules.pal(instance, pal_rules.raw_scores(instance))


def running(*gpus, restart_s=0, **fields):
    job = {"gpus": len(gpus), "current": list(gpus), "restart_s": restart_s, "remaining_s": 100}
    return job | fields


def waiting(gpus, **fields):
    return {"gpus": gpus, "remaining_s": 100} | fields


# --- packed -----------------------------------------------------------------------------------


def test_a_node_with_just_enough_gpus_comes_first():
    # 2 fit exactly into b; 3 into c, not into the larger a; then 2 find 2 or more in a only.
    instance = small_instance({"a": 4, "b": 2, "c": 3}, jobs=[2, 3, 2])
    assert gpus_by("packed_sticky", instance) == ["b/0 b/1", "c/0 c/1 c/2", "a/0 a/1"]


def test_the_first_of_equally_full_nodes_is_taken():
    instance = small_instance({"b": 3, "a": 3, "c": 2}, jobs=[3, 1])
    assert gpus_by("packed_sticky", instance) == ["b/0 b/1 b/2", "c/0"]


def test_a_large_gang_empties_the_node_with_most_free_gpus_again_and_again():
    # No node holds 4. Packed: 3 of a, then the next largest is b. Slurm and Kueue end with the
    # best fit for the one that is left, c.
    instance = small_instance({"a": 3, "b": 2, "c": 1}, jobs=[4])
    assert gpus_by("packed_sticky", instance) == ["a/0 a/1 a/2 b/0"]
    assert gpus_by("slurm_best_fit", instance) == ["a/0 a/1 a/2 c/0"]
    assert gpus_by("kueue_best_fit", instance) == ["a/0 a/1 a/2 c/0"]


def test_running_jobs_stay_or_are_released():
    # Sticky leaves one GPU on each node for j1; non-sticky gives both a node.
    instance = small_instance({"a": 2, "b": 2}, jobs=[running("b/0", "a/0"), waiting(2)])
    assert gpus_by("packed_sticky", instance) == ["a/0 b/0", "a/1 b/1"]
    assert gpus_by("packed_non_sticky", instance) == ["a/0 a/1", "b/0 b/1"]


def test_a_job_that_gets_its_own_gpus_again_is_not_moved():
    instance = small_instance({"a": 2, "b": 2}, jobs=[running("a/1", "a/0", restart_s=7)])
    assert feasibility.objective(instance, plan_by("packed_non_sticky", instance)) == 100


@pytest.mark.parametrize("name", STICKY)
@pytest.mark.parametrize(
    ("cap", "change"),
    [({}, {"unavailable": ["b/0"]}), ({}, {"drained": ["b"]}), ({"highest_level": "node"}, {})],
)
def test_a_job_that_cannot_keep_its_gpus_is_placed_again(name, cap, change):
    instance = small_instance({"a": 2, "b": 2}, jobs=[running("a/0", "b/0", **cap)], **change)
    plan = plan_by(name, instance)
    assert not feasibility.violations(instance, plan)
    assert set(plan.jobs[0].gpus) != {"a/0", "b/0"}


def optional(nodes, jobs, **fields):
    jobs = [job | {"reward": 1} for job in jobs]
    return small_instance(nodes, jobs=jobs, admission="optional", **fields)


@pytest.mark.parametrize("name", ["packed_sticky", "random_sticky"])
def test_a_waiting_job_preempts_from_the_end_of_the_order(name):
    # j0 needs one GPU: j3, the last one that runs, gives its own up and finds no other.
    instance = optional(
        {"a": 1, "b": 1, "c": 1}, [waiting(1), running("a/0"), running("c/0"), running("b/0")]
    )
    assert gpus_by(name, instance) == ["b/0", "a/0", "c/0", ""]


@pytest.mark.parametrize("name", ["packed_sticky", "random_sticky"])
def test_a_waiting_job_never_preempts_what_stands_before_it(name):
    instance = optional({"a": 1, "b": 1}, [running("a/0"), waiting(2), running("b/0")])
    assert gpus_by(name, instance) == ["a/0", "", "b/0"]


def test_a_preempted_job_is_placed_again_when_it_is_its_turn():
    # j0 may not leave a node, so j1 gives way although two GPUs are free.
    instance = small_instance(
        {"a": 2, "b": 2}, jobs=[waiting(2, highest_level="node"), running("a/0", "b/0")]
    )
    assert gpus_by("packed_sticky", instance) == ["a/0 a/1", "b/0 b/1"]
    for name in ("gandiva_like", "slurm_best_fit", "kueue_best_fit"):
        assert gpus_by(name, instance) is None  # these preempt nobody


def test_preemption_in_vain_is_undone():
    # Not even an empty node holds j0, though a and b have two GPUs together; j3 finds none either.
    jobs = [waiting(2, highest_level="node"), running("b/0"), running("a/0"), waiting(1)]
    assert gpus_by("packed_sticky", optional({"a": 1, "b": 1}, jobs)) == ["", "b/0", "a/0", ""]


# --- random -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["random_sticky", "random_non_sticky"])
def test_draws_depend_on_the_seed_only(name):
    instance = small_instance({"a": 8, "b": 8}, jobs=[4, 4, 4])
    plans = [gpus_by(name, instance, seed) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


def test_only_non_sticky_draws_move_running_jobs():
    instance = small_instance({"a": 8}, jobs=[running("a/0", "a/1"), waiting(2)])
    sticky = {gpus_by("random_sticky", instance, seed)[0] for seed in range(20)}
    moved = {gpus_by("random_non_sticky", instance, seed)[0] for seed in range(20)}
    assert sticky == {"a/0 a/1"}
    assert len(moved) > 5


def test_every_set_within_the_cap_is_drawn_equally_often():
    # Two of one node: 1 set in a, 3 in b, none in c. 600 draws of each with a deviation of 11.
    job = {"gpus": 2, "highest_level": "node"}
    instance = small_instance({"a": 2, "b": 3, "c": 1}, jobs=[job])
    drawn = [gpus_by("random_sticky", instance, seed)[0] for seed in range(800)]
    counts = {text: drawn.count(text) for text in set(drawn)}
    assert set(counts) == {"a/0 a/1", "b/0 b/1", "b/0 b/2", "b/1 b/2"}
    assert all(150 < count < 250 for count in counts.values())


# --- PM-First ---------------------------------------------------------------------------------


def test_pm_first_takes_the_fastest_gpus_wherever_they_stand():
    instance = small_instance({"a": 2, "b": 2}, {"A": [1.0, 2.0, 1.5, 1.6]}, jobs=[2])
    assert shown(pm_first(instance)) == ["a/0 b/0"]


def test_pm_first_breaks_ties_by_nodes_that_match_the_gang():
    # All alike. Gang of 2: b has just 2 of them, a 3. Gang of 4: a is nearer to 4 than b.
    for size, expected in ((2, "b/0 b/1"), (4, "a/0 a/1 a/2 b/0")):
        assert shown(pm_first(small_instance({"a": 3, "b": 2}, jobs=[size]))) == [expected]


def test_pm_first_counts_only_free_gpus_of_the_same_score():
    # a/0 is the fastest. For the other two, a has 2 of score 1 (one off the gang of 3), b has 3.
    slowdown = {"A": [0.9, 1.0, 1.0, 1.0, 1.0, 1.0]}
    instance = small_instance({"a": 3, "b": 3}, slowdown, jobs=[3])
    assert shown(pm_first(instance)) == ["a/0 b/0 b/1"]
    # With b/2 in use they tie at 2 each, and a comes first.
    instance = small_instance({"a": 3, "b": 3}, slowdown, jobs=[3], unavailable=["b/2"])
    assert shown(pm_first(instance)) == ["a/0 a/1 a/2"]


def test_pm_first_keeps_the_cap_on_the_node_whose_slowest_is_fastest():
    job = {"gpus": 2, "highest_level": "node"}
    instance = small_instance({"a": 2, "b": 2}, {"A": [1.0, 2.0, 1.5, 1.6]}, jobs=[job])
    assert shown(pm_first(instance)) == ["b/0 b/1"]


@pytest.mark.parametrize("rule", [pm_first, pal, pal_rules.pal_multilevel])
def test_classes_go_in_the_order_of_the_profile(rule):
    # Both want a; j1 is of class A, which comes first.
    jobs = [{"gpus": 1, "application_class": name} for name in "BA"]
    instance = small_instance({"a": 1, "b": 1}, {"A": [1.0, 2.0], "B": [1.0, 2.0]}, jobs=jobs)
    assert shown(rule(instance)) == ["b/0", "a/0"]


@pytest.mark.parametrize("rule", [pm_first, pal, pal_rules.pal_multilevel])
def test_the_prefix_that_fits_goes_first_and_the_rest_is_backfilled(rule):
    # j1 does not fit beside j0 and ends the prefix, so j2 of class A takes what j0 has left.
    jobs = [
        {"gpus": size, "application_class": name, "reward": 1}
        for size, name in ((1, "B"), (3, "A"), (1, "A"))
    ]
    slowdown = {"A": [1.0, 2.0, 3.0], "B": [1.0, 2.0, 3.0]}
    instance = small_instance({"a": 2, "b": 1}, slowdown, jobs=jobs, admission="optional")
    assert class_order(instance) == [0, 1, 2]
    assert shown(rule(instance)) == ["a/0", "", "a/1"]


def test_the_prefix_counts_gpus_that_may_be_used():
    jobs = [{"gpus": 1, "application_class": name, "reward": 1} for name in "BA"]
    slowdown = {"A": [1.0, 2.0], "B": [1.0, 2.0]}
    instance = small_instance({"a": 2}, slowdown, jobs=jobs, admission="optional")
    assert class_order(instance) == [1, 0]
    fewer = instance.changed({"unavailable": ["a/1"]})
    assert class_order(fewer) == [0, 1]
    assert shown(pm_first(fewer)) == ["a/0", ""]


# --- PAL --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("across", "expected"),
    [
        (1.7, "b/0 b/1"),  # within 1 x 1.6, across 1.7 x 1.5
        (1.05, "a/0 b/0"),  # across 1.05 x 1.5 = 1.575
    ],
)
def test_pal_trades_speed_for_locality(across, expected):
    slowdown, locality = {"A": [1.0, 2.0, 1.5, 1.6]}, {"m": [1.0, across]}
    instance = small_instance({"a": 2, "b": 2}, slowdown, jobs=[2], locality=locality)
    assert shown(pal(instance)) == [expected]


def test_pal_knows_the_penalty_of_each_model():
    slowdown = {"A": [1.0, 2.0, 1.5, 1.6, 3.0, 3.0]}
    jobs = [{"gpus": 2, "model": "bert"}]
    locality = {"bert": [1.0, 1.05], "vgg": [1.0, 9.0]}
    instance = small_instance(
        {"a": 2, "b": 2}, slowdown | {"A": slowdown["A"][:4]}, jobs=jobs, locality=locality
    )
    assert shown(pal(instance)) == ["a/0 b/0"]
    assert shown(pal(instance.changed({"jobs.0.model": "vgg"}))) == ["b/0 b/1"]


def test_pal_prefers_one_node_if_the_products_are_equal():
    # Within 1 x 2, across 2 x 1.
    slowdown, locality = {"A": [1.0, 2.0, 1.0, 2.0]}, {"m": [1.0, 2.0]}
    instance = small_instance({"a": 2, "b": 2}, slowdown, jobs=[2], locality=locality)
    assert shown(pal(instance)) == ["a/0 a/1"]


def test_pal_breaks_a_full_node_where_best_fit_does_not():
    # The released PAL takes the node with the most GPUs that are good enough.
    instance = small_instance({"a": 2, "b": 3}, jobs=[2])
    assert shown(pal(instance)) == ["b/0 b/1"]
    assert gpus_by("pal_multilevel", instance) == ["a/0 a/1"]


def test_pal_takes_the_first_gpus_that_are_good_enough_and_not_the_best():
    # Any two of a have a worst score of 1 at best: the first two are taken. Ours takes the best.
    instance = small_instance({"a": 3}, {"A": [1.0, 1.0, 0.9]}, jobs=[2])
    two_levels = small_instance({"a": 3, "b": 1}, {"A": [1.0, 1.0, 0.9, 0.9]}, jobs=[2])
    assert shown(pal(two_levels)) == ["a/0 a/1"]
    assert gpus_by("pal_multilevel", two_levels) == ["a/0 a/2"]
    assert shown(pal(instance)) == ["a/0 a/1"]


def test_pal_is_pm_first_for_single_gpus_and_gangs_beyond_a_node():
    instance = small_instance({"a": 2, "b": 1}, jobs=[1])  # b has one of this score, a has two
    assert shown(pal(instance)) == ["b/0"]
    instance = small_instance({"a": 2, "b": 2}, {"A": [1.0, 1.1, 1.2, 1.3]}, jobs=[3])
    assert shown(pal(instance)) == ["a/0 a/1 b/0"]


def test_pal_uses_one_penalty_across_and_ours_that_of_each_level():
    # PAL: no node holds two, so the fastest, a and c, which meet at 3. Ours: rack 1.1 x 1.2 is
    # less than cluster 3 x 1; both racks will do, the first is taken.
    nodes = {"r0": {"a": 1, "b": 1}, "r1": {"c": 1, "d": 1}}
    instance = small_instance(
        nodes, {"A": [1.0, 1.2, 1.0, 1.2]}, jobs=[2], locality={"m": [1.0, 1.1, 3.0]}
    )
    assert shown(pal(instance)) == ["a/0 c/0"]
    assert gpus_by("pal_multilevel", instance) == ["a/0 b/0"]


def test_pal_keeps_caps():
    nodes = {"r0": {"a": 1, "b": 1}, "r1": {"c": 1, "d": 1}}
    slowdown, job = {"A": [1.0, 1.5, 1.2, 1.2]}, {"gpus": 2, "highest_level": "rack"}
    instance = small_instance(nodes, slowdown, jobs=[job], locality={"m": [1.0, 1.0, 1.0]})
    assert shown(pal(instance)) == ["c/0 d/0"]
    assert gpus_by("pal_multilevel", instance) == ["c/0 d/0"]
    capped = instance.changed({"jobs.0.highest_level": "node"})
    for name in STICKY + NON_STICKY:
        assert plan_by(name, capped) is None


def test_best_fit_is_among_domains_with_the_least_product():
    # The fullest node, a, has too slow GPUs: b and c have two of 1; c has fewer free.
    slowdown = {"A": [1.3, 1.3, 1.0, 1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0]}
    instance = small_instance({"a": 2, "b": 5, "c": 4}, slowdown, jobs=[2])
    assert gpus_by("pal_multilevel", instance) == ["c/0 c/1"]


def test_the_lowest_of_equally_good_levels_is_taken():
    # Locality costs nothing; at the root the first two GPUs would do, but b is the better fit.
    instance = small_instance({"a": 3, "b": 2}, jobs=[2], locality={"m": [1.0, 1.0]})
    assert gpus_by("pal_multilevel", instance) == ["b/0 b/1"]


def test_released_bins_hide_small_differences():
    # Two bins: a and b are alike in the first, so the first of them is taken.
    instance = small_instance({n: 1 for n in "abcd"}, {"A": [1.02, 1.0, 2.0, 2.01]}, jobs=[1])
    for name in ("pm_first", "pal_greedy"):
        assert gpus_by(name, instance) == ["a/0"]
    assert shown(pal(instance)) == shown(pm_first(instance)) == ["b/0"]


def test_the_silhouette_tells_more_bins_apart_than_the_release():
    # Three clear groups. Two bins join 1.0 and 1.3 against 3.0.
    slowdown = {"A": [1.3, 1.31, 1.0, 1.01, 3.0, 3.01, 3.02]}
    instance = small_instance({n: 1 for n in "abcdefg"}, slowdown, jobs=[1])
    assert gpus_by("pal_greedy", instance) == ["a/0"]
    assert gpus_by("pal_silhouette", instance) == ["c/0"]


def test_bins_are_made_for_classes_that_occur_and_of_busy_gpus_too():
    seen = []

    def recorded(values):
        seen.append(values.tolist())
        return binning.exact(values)

    slowdown = {"A": [1.0, 2.0, 3.0], "B": [4.0, 5.0, 6.0]}
    job = {"gpus": 1, "application_class": "B"}
    instance = small_instance({"b": 2, "a": 1}, slowdown, jobs=[job, job | {"id": "again"}])
    busy = instance.changed({"unavailable": ["b/1"]})
    assert set(pal_rules.bin_scores(busy, recorded)) == {"B"}
    assert seen == [[4.0, 5.0, 6.0]]


# --- Slurm and Kueue --------------------------------------------------------------------------


def test_slurm_goes_over_all_leaves_and_kueue_level_by_level():
    # 4 GPUs: no rack holds them. Slurm: 2 of a, then the best fit for 2, c. Kueue: all 3 of r0 and
    # one of r1.
    instance = small_instance({"r0": {"a": 2, "b": 1}, "r1": {"c": 2}}, jobs=[4])
    assert gpus_by("slurm_best_fit", instance) == ["a/0 a/1 c/0 c/1"]
    assert gpus_by("kueue_best_fit", instance) == ["a/0 a/1 b/0 c/0"]


def test_kueue_begins_at_a_required_level():
    # Required rack: r1 has just 2. Slurm, and Kueue without a cap, find a node with 2 first.
    nodes = {"r0": {"a": 2, "b": 2}, "r1": {"c": 1, "d": 1}}
    instance = small_instance(nodes, jobs=[{"gpus": 2, "highest_level": "rack"}])
    assert gpus_by("kueue_best_fit", instance) == ["c/0 d/0"]
    assert gpus_by("slurm_best_fit", instance) == ["a/0 a/1"]
    assert gpus_by("kueue_best_fit", small_instance(nodes, jobs=[2])) == ["a/0 a/1"]


@pytest.mark.parametrize("name", ["slurm_best_fit", "kueue_best_fit"])
def test_the_lowest_level_that_fits_and_its_best_fit(name):
    # 3 GPUs fit into no node; of the racks that fit r1 has the fewest free.
    nodes = {"r0": {"a": 2, "b": 2}, "r1": {"c": 2, "d": 1}, "r2": {"e": 2}}
    assert gpus_by(name, small_instance(nodes, jobs=[3])) == ["c/0 c/1 d/0"]


@pytest.mark.parametrize("name", ["slurm_best_fit", "kueue_best_fit"])
def test_a_node_below_the_cluster_counts_at_the_level_that_it_skips(name):
    # 3 fit into c alone; 4 into the rack only, and then 3 into c.
    nodes = {"r0": {"a": 2, "b": 2}, "c": 3}
    assert gpus_by(name, small_instance(nodes, jobs=[4, 3])) == ["a/0 a/1 b/0 b/1", "c/0 c/1 c/2"]


@pytest.mark.parametrize("name", ["slurm_best_fit", "kueue_best_fit", "gandiva_like"])
def test_nobody_is_preempted(name):
    instance = optional({"a": 1}, [waiting(1), running("a/0")])
    assert gpus_by(name, instance) == ["", "a/0"]


# --- Gandiva ----------------------------------------------------------------------------------

LOCALITY = {"m": [1.0, 1.5]}


@pytest.mark.parametrize(("restart_s", "expected"), [(49, "a/0 a/1"), (51, "a/0 b/0")])
def test_gandiva_moves_a_fragmented_job_together_if_it_pays(restart_s, expected):
    # 100 s at 1.5 against 1: 50 s are saved.
    job = running("a/0", "b/0", restart_s=restart_s)
    instance = small_instance({"a": 2, "b": 2}, jobs=[job], locality=LOCALITY)
    assert gpus_by("gandiva_like", instance) == [expected]


def test_gandiva_places_waiting_jobs_first():
    instance = small_instance(
        {"a": 2, "b": 2}, jobs=[running("a/0", "b/0"), waiting(1)], locality=LOCALITY
    )
    assert gpus_by("gandiva_like", instance) == ["b/0 b/1", "a/1"]
    both = instance.changed({"jobs.1.gpus": 2})
    assert gpus_by("gandiva_like", both) == ["a/0 b/0", "a/1 b/1"]


def test_gandiva_sees_that_slow_gpus_do_not_pay():
    # Together on c: 1 x 1.6 instead of 1.5 x 1.
    slowdown = {"A": [1.0, 1.0, 1.6, 1.6]}
    job = running("a/0", "b/0")
    instance = small_instance({"a": 1, "b": 1, "c": 2}, slowdown, [job], locality=LOCALITY)
    assert gpus_by("gandiva_like", instance) == ["a/0 b/0"]


def test_gandiva_moves_one_job_and_the_most_fragmented_first():
    # j0 meets in a rack, j1 in the cluster; c would hold either.
    nodes = {"r0": {"a": 1, "b": 2}, "r1": {"c": 2, "d": 1}}
    jobs = [running("a/0", "b/0"), running("b/1", "d/0")]
    instance = small_instance(nodes, jobs=jobs)
    assert gpus_by("gandiva_like", instance) == ["a/0 b/0", "c/0 c/1"]
    # Where it does not pay for j1, j0 follows.
    expensive = instance.changed({"jobs.1.restart_s": 1000})
    assert gpus_by("gandiva_like", expensive) == ["c/0 c/1", "b/1 d/0"]


def test_three_nodes_are_more_fragmented_than_two():
    nodes = {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 3}
    jobs = [running("a/0", "b/0"), running("c/0", "d/0")]
    instance = small_instance(nodes, jobs=jobs, locality=LOCALITY)
    assert gpus_by("gandiva_like", instance) == ["f/0 f/1", "c/0 d/0"]  # equals: the first
    jobs[1] = running("c/0", "d/0", "e/0")
    instance = small_instance(nodes, jobs=jobs, locality=LOCALITY)
    assert gpus_by("gandiva_like", instance) == ["a/0 b/0", "f/0 f/1 f/2"]
    # But two in different racks are more so than three in one.
    nodes = {"r0": {"a": 1, "b": 2, "c": 1}, "r1": {"d": 1, "f": 3}}
    jobs = [running("a/0", "b/0", "c/0"), running("b/1", "d/0")]
    instance = small_instance(nodes, jobs=jobs)
    assert gpus_by("gandiva_like", instance) == ["a/0 b/0 c/0", "f/0 f/1"]


# --- every rule on random instances -----------------------------------------------------------


@pytest.mark.parametrize("name", STICKY + NON_STICKY)
@law(300)
@given(instance=pal_instances())
def test_plans_break_no_rule_and_none_beats_the_optimum(name, instance):
    plan = plan_by(name, instance)
    if plan is None:
        assert instance.admission == "all"
        return
    assert not feasibility.violations(instance, plan)
    cost = plan_cost(instance, plan)
    assert feasibility.objective(instance, plan) == pytest.approx(cost, rel=1e-12)
    assert cost >= bitmask_optimum(instance) * (1 - 1e-12)


@pytest.mark.parametrize("name", CHEAP)
@law(300)
@given(instance=pal_instances(caps=False, optional=False))
def test_without_caps_every_job_is_placed(name, instance):
    assert plan_by(name, instance) is not None


@pytest.mark.parametrize("name", STICKY[2:])
@law(300)
@given(instance=pal_instances())
def test_running_jobs_keep_their_gpus_but_for_one_migration(name, instance):
    plan = plan_by(name, instance)
    assume(plan is not None)
    state = ClusterState(instance)
    moved = [
        job.id
        for job, placement in zip(instance.jobs, plan.jobs, strict=True)
        if state.held(job) is not None and set(placement.gpus) != set(job.current)
    ]
    assert len(moved) <= (name == "gandiva_like")


@law(300)
@given(instance=pal_instances(optional=False))
def test_a_migration_only_saves(instance):
    state = ClusterState(instance)
    assume(any(state.held(job) is not None for job in instance.jobs))
    before = replace(BY_NAME["packed-sticky"], running="kept").plan(instance)
    assume(before is not None)
    after = plan_by("gandiva_like", instance)
    assert plan_cost(instance, after) <= plan_cost(instance, before) * (1 + 1e-12)


@law(300)
@given(instance=pal_instances())
def test_the_quick_start_is_the_better_of_two(instance):
    plans = [pal_rules.pal_multilevel(instance), pal_rules.pal_multilevel_sticky(instance)]
    costs = [plan_cost(instance, plan) for plan in plans if plan is not None]
    quick = pal_rules.quick_start(instance)
    if costs:
        assert plan_cost(instance, quick) == pytest.approx(min(costs), rel=1e-12)
    else:
        assert quick == pal_rules.largest_first(instance)


@law(300)
@given(instance=pal_instances(optional=True))
def test_backfill_leaves_out_only_what_does_not_fit(instance):
    assume(instance.admission == "optional")
    for name in CHEAP:
        plan = plan_by(name, instance)
        used = {gpu for placement in plan.jobs for gpu in placement.gpus}
        left = [gpu for gpu in open_gpus(instance) if gpu not in used]
        for job, placement in zip(instance.jobs, plan.jobs, strict=True):
            fits = any(
                job_cost(instance, job, gpus) < float("inf")
                for gpus in combinations(left, job.gpus)
            )
            assert placement.gpus or not fits


# --- one job: the optimum ---------------------------------------------------------------------


def one_job(**options):
    return pal_instances(max_jobs=1, running=False, optional=False, **options)


@law(1000)
@given(instance=one_job())
def test_one_job_is_placed_optimally_over_all_levels(instance):
    cost = feasibility.objective(instance, pal_rules.pal_multilevel(instance))
    assert cost == pytest.approx(best_for_one(instance), rel=1e-12)


@law(1000)
@given(instance=one_job(levels=(1, 2)))
def test_pal_places_one_job_optimally_on_two_levels(instance):
    cost = feasibility.objective(instance, pal(instance))
    assert cost == pytest.approx(best_for_one(instance), rel=1e-12)


@law(100)
@given(instance=one_job(levels=(2,)))
def test_pal_greedy_is_optimal_in_terms_of_bins(instance):
    name = instance.jobs[0].application_class
    scores = pal_rules.bin_scores(instance, binning.kmeans_as_released)[name]
    values = dict(zip(instance.topology.gpus, scores.tolist(), strict=True))
    profile = {
        "gpus": list(instance.profile.gpus),
        "slowdown": {name: [values.get(gpu, 1.0) for gpu in instance.profile.gpus]},
        "kind": "persistent",
    }
    binned = instance.changed({"profile": profile})
    cost = feasibility.objective(binned, plan_by("pal_greedy", instance))
    assert cost == pytest.approx(best_for_one(binned), rel=1e-12)


@law(1000)
@given(instance=one_job(levels=(2,)))
def test_pm_first_is_optimal_where_locality_is_not_a_choice(instance):
    above = parents(instance)
    node_of = [above[gpu] for gpu in open_gpus(instance)]
    largest = max(node_of.count(node) for node in node_of)
    assume(instance.jobs[0].gpus == 1 or instance.jobs[0].gpus > largest)
    cost = feasibility.objective(instance, pm_first(instance))
    assert cost == pytest.approx(best_for_one(instance), rel=1e-12)


# --- PAL, literally ---------------------------------------------------------------------------


def literal_pm_first(nodes, scores, size):
    def key(gpu):
        same = sum(scores[other] == scores[gpu] for other in nodes if nodes[other] == nodes[gpu])
        return scores[gpu], abs(same - size)

    return sorted(nodes, key=key)[:size] if len(nodes) >= size else None


def literal_pal(nodes, scores, size, within, across):
    """Walk over the products of an ordered list, as in pal.md 1.4; nodes: node of each free GPU."""
    if size == 1:
        return literal_pm_first(nodes, scores, size)
    values = sorted(set(scores.values()))
    walk = [(v, 1, within * v) for v in values] + [(v, 0, across * v) for v in values]
    for v, is_within, _ in sorted(walk, key=lambda entry: (entry[2], -entry[1])):
        good = {gpu: node for gpu, node in nodes.items() if scores[gpu] <= v}
        if not is_within:
            if len(good) >= size:
                return literal_pm_first(good, scores, size)
            continue
        domains = [
            [gpu for gpu in good if good[gpu] == node] for node in dict.fromkeys(good.values())
        ]
        domains = sorted(
            (domain for domain in domains if len(domain) >= size), key=len, reverse=True
        )
        sets = [chosen for domain in domains for chosen in combinations(domain, size)]
        if sets:
            return min(sets, key=lambda chosen: max(scores[gpu] for gpu in chosen))
    return None


@law(2000)
@given(instance=one_job(levels=(2,), caps=False))
def test_the_closed_form_is_the_walk(instance):
    (job,) = instance.jobs
    above = parents(instance)
    free = sorted(instance.free_gpus, key=list(instance.topology.gpus).index)
    nodes = {gpu: above[gpu] for gpu in free}
    scores = {gpu: instance.slowdowns[job.application_class][gpu] for gpu in free}
    within, across = instance.penalties[job.model]
    expected = literal_pal(nodes, scores, job.gpus, within, across)
    assert set(pal(instance).jobs[0].gpus) == set(expected)
    expected = literal_pm_first(nodes, scores, job.gpus)
    assert set(pm_first(instance).jobs[0].gpus) == set(expected)


# --- edges ------------------------------------------------------------------------------------


def test_every_rule_on_many_levels_with_uneven_nodes():
    rng = np.random.default_rng(0)
    nodes = {
        f"row{a}": {
            f"rack{a}{b}": {f"n{a}{b}{c}": 1 + (a + b + c) % 8 for c in range(6)} for b in range(3)
        }
        for a in range(2)
    } | {"lone": 8}
    count = len(small_instance(nodes).topology.gpus)
    slowdown = {name: rng.choice([1.0, 1.01, 1.1, 1.5], count).tolist() for name in "AB"}
    sizes = [1, 2, 4, 30, 8, 1, 16, 3, 24]
    jobs = [{"gpus": k, "application_class": "AB"[k % 2]} for k in sizes]
    instance = small_instance(nodes, slowdown, jobs)
    costs = {name: feasibility.objective(instance, plan_by(name, instance)) for name in CHEAP}
    assert costs["pal_multilevel"] == min(costs.values())
    for name in STICKY + NON_STICKY:
        assert not feasibility.violations(instance, plan_by(name, instance))


def test_every_rule_has_a_summary_of_its_own_and_a_documented_function():
    rules = [BY_NAME[name.replace("_", "-")] for name in STICKY + NON_STICKY]
    assert len({rule.summary for rule in rules}) == len(BY_NAME) == 11
    assert all(inspect.getdoc(loaded(rule.entry)) for rule in rules)


def test_the_rules_import_no_solver():
    unwanted = "{'highspy', 'pyomo', 'scipy', 'sklearn', 'pandas', 'optsched.pal.exact.solver'}"
    modules = ", ".join(f"optsched.pal.greedy.{n}" for n in ("rules", "packing_rules", "pal_rules"))
    code = f"import sys, {modules}; print({unwanted} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
