"""EaCO's greedy rules: examples by hand, and what holds for the plans of all of them."""

import itertools
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco import EacoPlan, Group, performance
from optsched.eaco.greedy import methods, node_packing, published_rules, simple_rules
from optsched.eaco.greedy.group_costs import Draft, GroupCosts
from optsched.eaco.greedy.grouping import Grouping
from optsched.eaco.greedy.local_search import improved, total
from optsched.eaco.greedy.power_cap import capped, power_w, with_best_levels
from optsched.eaco.verify.feasibility import objective, violations
from optsched.registry import problem
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances, small_instance

METHODS = [
    "fifo_exclusive",
    "fifo_packed",
    "random_pairs",
    "least_utilised",
    "eaco_greedy",
    "best_fit_memory",
    "best_delta_energy",
    "sharing_scores",
    "longest_first",
    "local_search",
]
ONE = {"x": {"gpus": 1, "count": 1}}
TWO = {"x": {"gpus": 1, "count": 2}}
THREE = {"x": {"gpus": 1, "count": 3}}
FOUR = {"x": {"gpus": 4, "count": 1}}


def plans_by(name, instance, seed=0):
    """Return what a method offers."""
    plans = []
    search = SimpleNamespace(seed=seed, offer=plans.append, out_of_time=lambda: False)
    problem("eaco").method(name.replace("_", "-"))(instance, search)
    return plans


def groups_of(outcome):
    """Return the groups of a plan or grouping as sets of numbers of jobs, and the waiting ones."""
    if isinstance(outcome, Grouping):
        return [set(draft.jobs) for draft in outcome.drafts], sorted(outcome.waiting)
    groups = [{int(name[1:]) for name in group.jobs} for group in outcome.groups]
    return groups, [int(name[1:]) for name in outcome.waiting]


def waiting(*jobs):
    return [job | {"waiting_penalty_kwh": 1.0} for job in jobs]


def of(*types, **fields):
    return [{"type": name, **fields} for name in types]


# --- exclusive --------------------------------------------------------------------------------


def test_fifo_stops_at_the_first_job_that_does_not_fit():
    jobs = waiting({"gpus": 2}, {"gpus": 4}, {"gpus": 1})
    grouping = published_rules.fifo(GroupCosts(small_instance(jobs, nodes=FOUR)))
    assert groups_of(grouping) == ([{0}], [1, 2])


def test_no_plan_if_a_job_would_wait_that_must_not():
    instance = small_instance([{"gpus": 4}, {"gpus": 4}], nodes=FOUR)
    assert plans_by("fifo_exclusive", instance) == []


def test_fifo_takes_the_fastest_gpus_first():
    types = {"a": {"utilisation": 0.5, "speeds": {"Y": 2.0}}}
    nodes = {"x": {"gpus": 1, "count": 1}, "y": {"gpus": 1, "count": 1, "gpu": "Y"}}
    instance = small_instance("aa", types=types, gpus={"X": {}, "Y": {}}, nodes=nodes)
    (plan,) = plans_by("fifo_exclusive", instance)
    assert [group.nodes for group in plan.groups] == ["y", "x"]


def test_running_jobs_stay_even_in_pairs():
    running = [{"nodes": "x", "node": 1, "jobs": ["j0", "j2"]}]
    (plan,) = plans_by("fifo_exclusive", small_instance("aaa", nodes=THREE, running=running))
    assert groups_of(plan) == ([{0, 2}, {1}], [])
    assert (plan.groups[0].location, plan.groups[0].node) == ("r0", 1)


def test_a_running_pair_that_breaks_a_rule_is_parted():
    running = [{"nodes": "x", "node": 1, "jobs": ["j0", "j1"]}]
    instance = small_instance("aa", nodes=TWO, running=running, max_jobs_per_gpu=1)
    (plan,) = plans_by("fifo_exclusive", instance)
    assert [(group.jobs, group.location) for group in plan.groups] == [
        (("j0",), "r0"),
        (("j1",), None),
    ]


# --- FIFO_packed ------------------------------------------------------------------------------

PAIRS = {"a c": [0.7, 0.85], "b c": [0.9, 0.8], "a b": [0.9, 0.9]}


def test_fifo_packed_takes_the_partner_of_the_greatest_sum_of_rates():
    instance = small_instance("abc", nodes=TWO, measured=PAIRS)
    assert groups_of(published_rules.fifo_packed(GroupCosts(instance))) == ([{0}, {1, 2}], [])


def test_fifo_packed_needs_more_than_one_and_a_half():
    measured = {"a b": [0.75, 0.75]}
    instance = small_instance(waiting(*of("a", "b")), nodes=ONE, measured=measured)
    assert groups_of(published_rules.fifo_packed(GroupCosts(instance))) == ([{0}], [1])
    better = instance.changed({"interference.groups.0.rates": [0.75, 0.76]})
    assert groups_of(published_rules.fifo_packed(GroupCosts(better))) == ([{0, 1}], [])


def test_fifo_packed_ends_at_the_first_job_without_partner_and_never_makes_threes():
    measured = {"a b": [0.5, 0.5], "a c": [0.9, 0.9]}
    jobs = waiting(*of("a", "b", "c"))
    instance = small_instance(jobs, nodes=ONE, measured=measured)
    assert groups_of(published_rules.fifo_packed(GroupCosts(instance))) == ([{0}], [1, 2])
    jobs = waiting(*of("a", "a", "a"))
    full = small_instance(jobs, nodes=ONE, types={"a": 0.1})
    assert groups_of(published_rules.fifo_packed(GroupCosts(full))) == ([{0, 1}], [2])


def test_fifo_packed_is_fifo_if_there_are_gpus_for_all():
    instance = small_instance("aaaa", types={"a": 0.1})
    assert plans_by("fifo_packed", instance) == plans_by("fifo_exclusive", instance)


def test_fifo_packed_keeps_gang_sizes_and_tolerances():
    jobs = [{"gpus": 2}, {"gpus": 1}, {"gpus": 1}, {"gpus": 1, "max_slowdown": 1.0}]
    instance = small_instance(waiting(*jobs), nodes=FOUR, types={"a": 0.1})
    assert groups_of(published_rules.fifo_packed(GroupCosts(instance))) == (
        [{0}, {1}, {2}],
        [3],
    )
    loose = instance.changed({"jobs.j3.max_slowdown": None})
    assert groups_of(published_rules.fifo_packed(GroupCosts(loose))) == ([{0}, {1, 3}, {2}], [])


# --- Gandiva ----------------------------------------------------------------------------------


def test_gandiva_as_in_gavel_pairs_at_random_only_if_gpus_run_out():
    jobs = waiting(*of(*"aaaaaa"))
    ample = small_instance(jobs, types={"a": 0.1}, nodes={"x": {"gpus": 1, "count": 6}})
    assert plans_by("random_pairs", ample, 1) == plans_by("fifo_exclusive", ample)
    scarce = ample.changed({"nodes.x.count": 5})
    outcomes = {str(groups_of(plans_by("random_pairs", scarce, seed)[0])) for seed in range(20)}
    assert len(outcomes) > 5
    for seed in range(5):
        (plan,) = plans_by("random_pairs", scarce, seed)
        assert [len(group.jobs) for group in plan.groups] == [2, 2, 2]
        assert plans_by("random_pairs", scarce, seed) == [plan]


def test_gandiva_as_in_gavel_undoes_pairs_that_lose():
    jobs = waiting(*of("a", "b"))
    instance = small_instance(jobs, nodes=ONE, measured={"a b": [0.45, 0.5]})
    assert groups_of(published_rules.gandiva_gavel(GroupCosts(instance), 0)) == ([{0}], [1])
    even = instance.changed({"interference.groups.0.rates": [0.5, 0.5]})
    assert groups_of(published_rules.gandiva_gavel(GroupCosts(even), 0)) == ([{0, 1}], [])


@pytest.mark.parametrize(("rate", "kept"), [(0.6, True), (0.4, False)])
def test_gandiva_as_in_gavel_keeps_running_pairs_that_do_not_lose(rate, kept):
    running = [{"nodes": "x", "node": 0, "jobs": ["j0", "j1"]}]
    measured = {"a a": [rate, rate], "a b": [0.9, 0.9]}
    jobs = waiting(*of(*"aabb"))
    instance = small_instance(jobs, nodes=TWO, measured=measured, running=running)
    for seed in range(5):
        groups, _ = groups_of(published_rules.gandiva_gavel(GroupCosts(instance), seed))
        assert ({0, 1} in groups) == kept


def test_gandiva_packs_the_least_busy_job_onto_the_least_busy_gpus():
    jobs = of("busy", "calm", "half", "idle")
    types = {"busy": 0.9, "calm": 0.2, "half": 0.5, "idle": 0.1}
    grouping = published_rules.gandiva(GroupCosts(small_instance(jobs, types=types, nodes=TWO)))
    # idle joins calm (20 %); half joins both of them: 80 % is still less than busy's 90.
    assert groups_of(grouping) == ([{0}, {1, 2, 3}], [])


def test_gandiva_undoes_what_is_no_better_than_taking_turns():
    measured = {"a c": [0.5, 0.5], "b c": [0.6, 0.6]}
    types = {"a": 0.1, "b": 0.9, "c": 0.5}
    instance = small_instance("abc", types=types, nodes=TWO, measured=measured)
    assert groups_of(published_rules.gandiva(GroupCosts(instance))) == ([{0}, {1, 2}], [])


def test_gandiva_does_not_share_if_there_are_gpus_for_all():
    instance = small_instance("aaa", types={"a": 0.1}, nodes=THREE)
    assert plans_by("least_utilised", instance) == plans_by("fifo_exclusive", instance)


# --- EaCO -------------------------------------------------------------------------------------


def test_eaco_takes_the_busiest_gpus_though_others_are_free():
    jobs = of("calm", "busy", "calm", "calm")
    jobs[0]["max_slowdown"] = jobs[1]["max_slowdown"] = 1.05
    types = {"calm": 0.2, "busy": 0.7}
    instance = small_instance(jobs, types=types)
    # busy joins calm: 1.02; the third finds both at 110 %: 1 + 0.56 x 0.1 + 0.04 is too slow.
    assert groups_of(published_rules.eaco(GroupCosts(instance))) == ([{0, 1}, {2, 3}], [])


def test_eaco_prefers_the_group_of_the_highest_utilisation():
    jobs = of("a", "b", "c")
    measured = {"a c": [0.9, 0.9], "b c": [0.9, 0.9]}
    description = {"measured": measured, "fallback": "none"}
    for shares, groups in (((0.2, 0.6), [{0}, {1, 2}]), ((0.6, 0.2), [{0, 2}, {1}])):
        types = {"a": shares[0], "b": shares[1], "c": 0.1}
        instance = small_instance(jobs, types=types, **description)
        assert groups_of(published_rules.eaco(GroupCosts(instance)))[0] == groups


def test_eaco_thresholds_rule_out_gpus():
    types = {"a": {"utilisation": 0.5, "memory_gb": 6}}
    estimates = GroupCosts(small_instance("aa", types=types))
    assert groups_of(published_rules.eaco(estimates))[0] == [{0, 1}]
    assert groups_of(published_rules.eaco(estimates, utilisation_threshold=0.4))[0] == [{0}, {1}]
    assert groups_of(published_rules.eaco(estimates, memory_threshold=0.3))[0] == [{0}, {1}]
    assert groups_of(published_rules.eaco(estimates, 0.5, 0.375))[0] == [{0, 1}]


def test_eaco_keeps_deadlines_and_lets_the_queue_go_on():
    jobs = waiting({}, {"deadline_s": 3600.0}, {"gpus": 8}, {})
    instance = small_instance(jobs, types={"a": 0.1}, nodes={"x": {"gpus": 8, "count": 1}})
    assert groups_of(published_rules.eaco(GroupCosts(instance))) == ([{0, 3}, {1}], [2])


# --- best fit, best delta of energy -----------------------------------------------------------


def test_best_fit_leaves_least_memory():
    types = {
        name: {"utilisation": 0.1, "memory_gb": gb}
        for name, gb in zip("abc", (4, 9, 6), strict=True)
    }
    jobs = of("a", "b", "c")
    measured = {"a c": [0.9, 0.9], "b c": [0.9, 0.9]}
    instance = small_instance(jobs, types=types, measured=measured, fallback="none")
    assert groups_of(simple_rules.best_fit(GroupCosts(instance)))[0] == [{0}, {1, 2}]
    tight = instance.changed({"memory_headroom": 0.1})
    assert groups_of(simple_rules.best_fit(GroupCosts(tight)))[0] == [{0, 2}, {1}]


def test_best_delta_energy_shares_where_it_saves_most():
    """Alone 3600 s of 20 + 50 + 25 W; beside a longer job only what rises counts."""
    jobs = [{"work_s": 900.0}, {"work_s": 3600.0}, {"work_s": 3600.0}]
    instance = small_instance(jobs, partner_slowdown=0, nodes=THREE, max_jobs_per_gpu=2)
    assert groups_of(simple_rules.best_delta_energy(GroupCosts(instance)))[0] == [{0, 1}, {2}]
    first = small_instance(jobs[1:] + jobs[:1], partner_slowdown=0, nodes=THREE)
    assert groups_of(simple_rules.best_delta_energy(GroupCosts(first)))[0] == [{0, 1, 2}]


def test_best_delta_energy_does_not_share_at_a_loss():
    measured = {"a a": [0.3, 0.3]}
    instance = small_instance("aa", measured=measured)
    assert groups_of(simple_rules.best_delta_energy(GroupCosts(instance)))[0] == [{0}, {1}]
    scarce = small_instance("aa", measured=measured, nodes=ONE)
    assert groups_of(simple_rules.best_delta_energy(GroupCosts(scarce)))[0] == [{0, 1}]


# --- Lucid ------------------------------------------------------------------------------------


def test_lucid_labels_by_mean_rates():
    measured = {
        "a a": [0.96, 0.96],
        "a b": [0.96, 0.9],
        "a c": [0.96, 0.8],
        "b b": [0.9, 0.9],
        "b c": [0.9, 0.8],
        "c c": [0.8, 0.8],
    }
    labels = published_rules.labels(GroupCosts(small_instance("abc", measured=measured)))
    assert labels == {"a": 0, "b": 1, "c": 2}
    instance = small_instance("cbcaba", measured=measured)
    # c (2) beside b (1) is too much, and c beside c; a (0) goes beside b, the smallest label
    assert groups_of(published_rules.lucid(GroupCosts(instance)))[0] == [
        {0},
        {1, 3},
        {2},
        {4, 5},
    ]


def test_lucid_shares_in_pairs_of_equal_gangs_only():
    jobs = of("a", "a", "a") + of("a", "a", gpus=2)
    instance = small_instance(jobs, types={"a": 0.1})
    assert groups_of(published_rules.lucid(GroupCosts(instance)))[0] == [{0, 1}, {2}, {3, 4}]


def test_lucid_leaves_types_alone_that_fit_with_none():
    instance = small_instance("aa", measured={"a a": [0, 0]})
    assert published_rules.labels(GroupCosts(instance)) == {"a": 2}
    assert groups_of(published_rules.lucid(GroupCosts(instance)))[0] == [{0}, {1}]


# --- longest first ----------------------------------------------------------------------------


def test_longest_first_groups_jobs_that_end_together():
    jobs = [{"work_s": s} for s in (100.0, 3000.0, 2900.0, 110.0)]
    instance = small_instance(jobs, types={"a": 0.2}, max_jobs_per_gpu=2)
    assert groups_of(simple_rules.longest_first(GroupCosts(instance)))[0] == [{1, 2}, {0, 3}]


def test_longest_first_skips_jobs_that_may_not_join():
    jobs = [{"work_s": 400.0}, {"work_s": 300.0, "max_slowdown": 1.0}, {"work_s": 200.0}]
    instance = small_instance(jobs, types={"a": 0.2})
    assert groups_of(simple_rules.longest_first(GroupCosts(instance)))[0] == [{0, 2}, {1}]


def test_longest_first_asks_whether_it_pays_unless_told_not_to():
    instance = small_instance("aa", measured={"a a": [0.3, 0.3]})
    assert groups_of(simple_rules.longest_first(GroupCosts(instance)))[0] == [{0}, {1}]
    assert groups_of(simple_rules.longest_first_full(GroupCosts(instance)))[0] == [{0, 1}]
    (plan,) = {plan.to_json(): plan for plan in plans_by("fifo_exclusive", instance)}.values()
    best = min(plans_by("longest_first", instance), key=lambda p: objective(instance, p))
    assert objective(instance, best) == objective(instance, plan)


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=7), st.integers(1, 4))
def test_without_interference_longest_first_is_optimal(works, most):
    """Affine power, free memory, rates 1: sorted by work and cut into groups of m."""
    jobs = [{"work_s": float(work)} for work in works]
    types = {"a": 0.2}
    free = {"partner_slowdown": 0, "saturation_slope": 0}
    instance = small_instance(jobs, types=types, max_jobs_per_gpu=most, **free)
    longest = sorted(works, reverse=True)[::most]
    busy = 0.2 * 100 * sum(works)
    kwh = (busy + sum(longest) * (20 + 25)) / 3.6e6
    objectives = [objective(instance, plan) for plan in plans_by("longest_first", instance)]
    assert min(objectives) == pytest.approx(kwh, rel=1e-9)


# --- local search -----------------------------------------------------------------------------


def test_local_search_finds_pairs_that_a_bad_start_missed():
    jobs = [{"work_s": s} for s in (100.0, 3000.0, 100.0, 3000.0)]
    instance = small_instance(jobs, types={"a": 0.2}, max_jobs_per_gpu=2)
    estimates = GroupCosts(instance)
    start = Grouping(estimates, [Draft((0, 1), 0), Draft((2, 3), 0)])
    better = improved(start)
    assert sorted(map(sorted, groups_of(better)[0])) == [[0, 2], [1, 3]]
    assert total(estimates, better.drafts) < total(estimates, start.drafts)
    stopped = improved(start, lambda: True)
    assert stopped.drafts == start.drafts


def test_local_search_leaves_gpus_that_wake_a_node():
    nodes = {"x": {"gpus": 1, "count": 2, "on": 1, "power": {"base_w": 100.0, "wake_s": 1e4}}}
    instance = small_instance("aa", measured={"a a": [0.45, 0.45]}, nodes=nodes)
    estimates = GroupCosts(instance)
    start = Grouping(estimates, [Draft((0,), 0), Draft((1,), 0)])
    assert groups_of(improved(start))[0] == [{0, 1}]
    awake = GroupCosts(instance.changed({"nodes.x.on": None}))
    assert len(improved(Grouping(awake, start.drafts)).drafts) == 2


def test_local_search_chooses_levels_and_locations():
    running = [{"nodes": "x", "node": 2, "jobs": ["j0"]}]
    gpus = {"X": {"levels": [(60, 0.9, 0.6)]}}
    instance = small_instance("a", gpus=gpus, nodes=THREE, running=running)
    start = Grouping(GroupCosts(instance), [Draft((0,), 0)])
    (draft,) = improved(start).drafts
    assert draft == Draft((0,), 0, "r0", 0)


# --- power levels and caps --------------------------------------------------------------------

LEVELS = {"X": {"levels": [(40, 0.5, 0.5), (60, 0.9, 0.6)]}}


def test_levels_are_the_cheapest_within_tolerance():
    jobs = [{}, {"max_slowdown": 1.0}]
    estimates = GroupCosts(small_instance(jobs, gpus=LEVELS, nodes=TWO))
    best = with_best_levels(published_rules.fifo(estimates))
    # Full: 70 + 100 W; "l1": min(60, 42) + 100 W for 1 / 0.9 of the time; "l0" for twice the time.
    assert [draft.level for draft in best.drafts] == [1, None]


def test_a_cap_lowers_levels_and_then_lets_jobs_wait():
    jobs = waiting({}, {"max_slowdown": 1.0})
    instance = small_instance(jobs, gpus=LEVELS, nodes=TWO)
    exclusive = published_rules.fifo(GroupCosts(instance))
    assert power_w(exclusive) == pytest.approx(340)
    assert power_w(capped(exclusive)) == pytest.approx(340)
    for cap, levels, waits in ((340, [None, None], []), (312, [None, 1], []), (300, [0], [1])):
        grouping = published_rules.fifo(GroupCosts(instance.changed({"power_cap_w": cap})))
        lowered = capped(grouping)
        assert sorted((d.level is not None, d.level) for d in lowered.drafts) == sorted(
            (level is not None, level) for level in levels
        )
        assert lowered.waiting == waits
        assert not violations(grouping.estimates.instance, lowered.plan())


def test_a_cap_that_cannot_be_kept_gives_no_better_plan_than_the_verifier_refuses():
    instance = small_instance("aa", nodes=TWO, power_cap_w=100)
    for name in METHODS:
        for plan in plans_by(name, instance):
            assert [rule.rule for rule in violations(instance, plan)] == ["power-cap"]


# --- nodes ------------------------------------------------------------------------------------


def packed(gangs, gpus, count, **fields):
    nodes = {"x": {"gpus": gpus, "count": count}}
    estimates = GroupCosts(
        small_instance([{"gpus": gang} for gang in gangs], nodes=nodes, **fields)
    )
    drafts = [Draft((n,), 0) for n in range(len(gangs))]
    return node_packing.fits(estimates, drafts, 0), node_packing.pack(estimates, drafts)


def test_gangs_are_packed_largest_first_onto_the_fullest_node():
    assert packed([1, 4, 2, 1, 8], 8, 2) == (True, [1, 1, 1, 1, 0])
    assert packed([3] * 5, 8, 3)[1] == [0, 0, 1, 1, 2]
    assert packed([2, 8, 1], 4, 3) == (True, [2, 0, 2])


def test_gpus_that_are_left_may_still_not_hold_a_gang():
    assert packed([3] * 5, 8, 2) == (False, None)  # 15 of 16 GPUs
    assert packed([4] * 4, 8, 2) == (True, [0, 0, 1, 1])
    assert packed([4] * 5, 8, 2) == (False, None)


def test_running_groups_keep_their_nodes():
    running = [{"nodes": "x", "node": 1, "jobs": ["j0"]}]
    nodes = {"x": {"gpus": 4, "count": 2}}
    jobs = [{"gpus": 1}, {"gpus": 4}, {"gpus": 4}]
    estimates = GroupCosts(small_instance(waiting(*jobs), nodes=nodes, running=running))
    grouping = published_rules.fifo(estimates)
    assert groups_of(grouping) == ([{0}, {1}], [2])
    assert [group.node for group in grouping.plan().groups] == [1, 0]


# --- every rule -------------------------------------------------------------------------------


@given(eaco_instances())
@law(300, is_costly=True)
def test_every_plan_keeps_every_rule(instance):
    """But for the power cap, where levels and waiting cannot keep it: such plans are refused."""
    allowed = {"power-cap"} if instance.power_cap_w is not None else set()
    for name in METHODS:
        for plan in plans_by(name, instance):
            assert {rule.rule for rule in violations(instance, plan)} <= allowed, name


@given(eaco_instances(caps=False))
@law(300)
def test_quick_start_is_found_and_the_same_again(instance):
    plan = methods.quick_start(instance)
    assert plan == methods.quick_start(instance)
    if plan is not None:
        assert not violations(instance, plan)


@given(eaco_instances(caps=False))
@law(300)
def test_local_search_is_never_worse_than_where_it_starts(instance):
    plans = plans_by("local_search", instance)
    if len(plans) == 2 and instance.objective == "run-to-completion":
        start, end = (objective(instance, plan) for plan in plans)
        sleepers = any(pool.awake < pool.count for pool in instance.nodes)
        assert sleepers or end <= start + 1e-9 * abs(start)


@given(
    eaco_instances(
        objectives=("run-to-completion", "epoch"), caps=False, max_jobs=5, feasible=False
    )
)
@law(500, is_costly=True)
def test_rules_of_groups_are_those_of_the_verifier(instance):
    """Every group of up to three jobs, on every pool, at every location and level."""
    instance = instance.changed({"jobs.*.waiting_penalty_kwh": 1.0})
    estimates = GroupCosts(instance)
    names = [job.id for job in instance.jobs]
    for size in (1, 2, 3):
        for jobs in itertools.combinations(range(len(names)), size):
            for draft in _drafts(estimates, jobs):
                group = Group(
                    jobs=tuple(names[n] for n in jobs),
                    nodes=estimates.pool(draft).id,
                    node=0 if draft.location is None else estimates.places[draft.location].node,
                    level=None if draft.level is None else estimates.level(draft).id,
                    location=draft.location,
                )
                rest = tuple(name for n, name in enumerate(names) if n not in jobs)
                plan = EacoPlan(groups=(group,), waiting=rest)
                assert estimates.allowed(draft) == (not violations(instance, plan)), plan
                if estimates.allowed(draft):
                    _same_figures(instance, estimates, draft, plan)


def _drafts(estimates, jobs):
    for pool in range(len(estimates.nodes)):
        name = estimates.nodes[pool].id
        here = [place.id for place in estimates.instance.running if place.nodes == name]
        for location in (None, *here):
            for level in (None, *range(len(estimates.levels(Draft(jobs, pool))))):
                yield Draft(jobs, pool, location, level)


def _same_figures(instance, estimates, draft, plan):
    figures = performance(instance, plan)
    kwh = estimates.joules(draft) / 3.6e6
    assert figures.groups[0].energy_kwh == pytest.approx(kwh, rel=1e-7, abs=1e-12)
    assert figures.groups[0].gpu_w == pytest.approx(estimates.peak_w(draft), rel=1e-9)
    assert figures.power_w == pytest.approx(power_w(Grouping(estimates, [draft])), rel=1e-9)


@given(eaco_instances(running=False, caps=False, max_gpu_types=1, gangs=(1, 2, 4)))
@law(500)
def test_totals_are_those_of_the_verifier(instance):
    """Where every node is filled that is used, or there is nothing to pay for the others."""
    estimates = GroupCosts(instance)
    for rule in (simple_rules.longest_first_full, simple_rules.best_delta_energy):
        grouping = rule(estimates)
        plan = grouping.plan()
        if plan is None:
            continue
        value = float(instance.per_kwh) * (
            total(estimates, grouping.drafts)
            + sum(estimates.waiting_cost(n) for n in grouping.waiting)
        )
        exact = objective(instance, plan)
        assert value <= exact + 1e-7 * max(1e-3, abs(exact))
        used = performance(instance, plan).nodes_on
        if used <= 1 and all(pool.awake == pool.count for pool in instance.nodes):
            assert value == pytest.approx(exact, rel=1e-7, abs=1e-9)


def test_greedy_rules_need_no_solver():
    code = "import sys; from optsched.eaco.greedy import methods, published_rules as _; "
    code += "print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"pyomo", "highspy", "numpy", "matplotlib"}
