"""The verifier of PAL: every rule refuses the plan that breaks it, and costs are exact."""

from functools import reduce
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.pal import PalPlan, Placement
from optsched.pal.verify.feasibility import objective, performance, violations
from tests.support.strategies.pal import pal_instances, small_instance

# --- rules of a plan --------------------------------------------------------------------------


def plan(**jobs):
    """Make a plan from job ids and their GPUs, separated by spaces."""
    placements = (Placement(id=name, gpus=tuple(gpus.split())) for name, gpus in jobs.items())
    return PalPlan(jobs=tuple(placements))


def joined(*plans):
    return PalPlan(jobs=tuple(placement for plan in plans for placement in plan.jobs))


RACKS = {"r": {"a": 2, "b": 2}, "c": 2}
JOBS = [{"gpus": 2, "highest_level": "rack"}, {"gpus": 1}]


def cluster(**fields):
    """Two nodes in a rack and one beside it; c/1 is unavailable."""
    return small_instance(RACKS, jobs=JOBS, unavailable=["c/1"], **fields)


@pytest.mark.parametrize(
    "good",
    [
        plan(j0="a/0 a/1", j1="b/0"),
        plan(j1="c/0", j0="b/1 a/0"),
        plan(j0="b/1 b/0", j1="c/0"),
    ],
)
def test_plans_within_the_rules(good):
    assert violations(cluster(), good) == []


@pytest.mark.parametrize(
    ("wrong", "rule", "message"),
    [
        (plan(j0="a/0 a/1", j1="b/0", j2="b/1"), "known-job", "the instance has no job 'j2'"),
        (
            joined(plan(j0="a/0 a/1", j1="b/0"), plan(j1="b/1")),
            "one-placement-per-job",
            "job 'j1' is listed more than once",
        ),
        (plan(j0="a/0 a/1"), "every-job", "job 'j1' is not listed"),
        (plan(j0="a/0 a/1", j1="d/0"), "known-gpu", "job 'j1': the topology has no GPU 'd/0'"),
        (plan(j0="a/0 a/1", j1="c/1"), "free-gpu", "job 'j1': GPU 'c/1' is unavailable"),
        (plan(j0="a/0", j1="b/0"), "gang", "job 'j0' needs 2 GPUs, but is given 1"),
        (plan(j0="a/0 a/1 b/1", j1="b/0"), "gang", "job 'j0' needs 2 GPUs, but is given 3"),
        (plan(j0="a/0 a/1 a/1", j1="b/0"), "gang", "job 'j0' lists GPU 'a/1' 2 times"),
        (plan(j0="", j1="b/0"), "all-placed", "job 'j0' is left out; admission 'all' places"),
        (
            plan(j0="a/0 a/1", j1="a/1"),
            "one-job-per-gpu",
            "GPU 'a/1' is given to the jobs 'j0', 'j1'",
        ),
        (
            plan(j0="a/0 c/0", j1="b/0"),
            "highest-level",
            "job 'j0' must stay within one rack, but its GPUs have only a cluster in common",
        ),
    ],
)
def test_one_broken_rule_is_named(wrong, rule, message):
    broken = violations(cluster(), wrong)
    assert [name for name, _ in broken] == [rule]
    assert message in broken[0].message


def test_drained_domains_are_not_free():
    instance = small_instance(RACKS, jobs=[1], drained=["r"])
    assert [str(rule) for rule in violations(instance, plan(j0="b/1"))] == [
        "[free-gpu] job 'j0': GPU 'b/1' is drained"
    ]
    assert violations(instance, plan(j0="c/1")) == []


def test_jobs_are_judged_by_their_own_gpus():
    """Whatever stands before them: a job that is not known, or one that comes twice."""
    strange = plan(j9="b/1")
    assert [rule for rule, _ in violations(cluster(), joined(strange, plan(j0="a/0 c/0", j1="b/0")))
            ] == ["known-job", "highest-level"]  # fmt: skip
    assert [rule for rule, _ in violations(cluster(), joined(strange, plan(j0="a/0 a/1", j1="c/0")))
            ] == ["known-job"]  # fmt: skip


def test_every_broken_rule_is_named():
    wrong = joined(
        plan(j0="a/0 a/0 c/1 x", j2="a/0"), plan(j0="", j3=""), PalPlan(jobs=(Placement(id="j3"),))
    )
    assert {rule for rule, _ in violations(cluster(), wrong)} == {
        "known-job",
        "one-placement-per-job",
        "every-job",
        "known-gpu",
        "free-gpu",
        "gang",
        "all-placed",
        "one-job-per-gpu",
        "highest-level",
    }


def test_a_job_may_be_left_out_if_admission_is_optional():
    jobs = [{"gpus": 2, "reward": 1.5}, {"gpus": 1, "reward": 1.0}]
    instance = small_instance(RACKS, jobs=jobs, admission="optional")
    assert violations(instance, plan(j0="", j1="")) == []
    assert objective(instance, plan(j0="", j1="")) == 2.5
    broken = violations(instance, plan(j0="a/0", j1=""))
    assert [rule for rule, _ in broken] == ["gang"]
    assert [rule for rule, _ in violations(instance, plan(j0=""))] == ["every-job"]


def test_caps_are_met_at_the_level_and_below_it():
    for level, highest in (("node", 0), ("rack", 1), ("cluster", 2)):
        instance = small_instance(RACKS, jobs=[{"gpus": 2, "highest_level": level}])
        for gpus, needed in (("a/0 a/1", 0), ("a/0 b/0", 1), ("b/0 c/0", 2)):
            assert bool(violations(instance, plan(j0=gpus))) == (needed > highest)


# --- costs ------------------------------------------------------------------------------------


def running(**fields):
    job = {"gpus": 2, "remaining_s": 10.0, "weight": 3.0, "restart_s": 4.0}
    job |= {"current": ["a/0", "b/0"]} | fields
    values = {"A": [1.0, 1.25, 2.0, 1.0, 1.0, 1.0]}
    return small_instance(RACKS, values, jobs=[job], locality={"m": [1, 1.5, 2.5]})


@pytest.mark.parametrize(
    ("gpus", "level", "slowest", "slowdown", "moved"),
    [
        ("a/0 a/1", 0, "a/1", 1.25, True),
        ("a/0 b/0", 1, "b/0", 3.0, False),
        ("b/0 a/0", 1, "b/0", 3.0, False),
        ("c/1 c/0", 0, "c/1", 1.0, True),
        ("c/1 b/1", 2, "c/1", 2.5, True),
    ],
)
def test_cost_of_a_running_job(gpus, level, slowest, slowdown, moved):
    instance = running()
    runs = performance(instance, instance.jobs[0], gpus.split())
    assert runs[:4] == (level, slowest, slowdown, moved)
    assert runs.cost == 3 * (10 * slowdown + 4 * moved)
    assert objective(instance, plan(j0=gpus)) == float(runs.cost)


def test_a_running_job_that_is_left_out_costs_its_reward():
    jobs = [{"gpus": 1, "remaining_s": 9.0, "current": ["a/0"], "restart_s": 5.0, "reward": 7.0}]
    instance = small_instance({"a": 1}, jobs=jobs, admission="optional")
    assert objective(instance, plan(j0="")) == 7.0
    assert objective(instance, plan(j0="a/0")) == 9.0


def test_a_restart_is_of_running_jobs_only():
    jobs = [{"gpus": 1, "remaining_s": 9.0, "restart_s": 5.0}]
    assert objective(small_instance({"a": 1}, jobs=jobs), plan(j0="a/0")) == 9.0


def test_measured_penalties_count_as_their_envelope():
    instance = small_instance(
        {"a": 1, "b": 1}, jobs=[2], locality={"m": [1.5, 0.75]}, locality_kind="measured"
    )
    assert objective(instance, plan(j0="a/0 b/0")) == 1.5


def test_the_objective_is_rounded_once():
    """Ten times 0.1 is 1; it is one float less if each sum is rounded."""
    jobs = [{"gpus": 1, "weight": 0.1} for _ in range(10)]
    instance = small_instance({"a": 10}, jobs=jobs)
    placed = plan(**{f"j{n}": f"a/{n}" for n in range(10)})
    assert reduce(add, [0.1] * 10) == 0.9999999999999999
    assert objective(instance, placed) == 1.0


@given(pal_instances(feasible=False), st.data())
def test_any_plan_is_judged(instance, data):
    """Rules and costs agree with a plain reading of their definition, for right and wrong plans."""
    left = data.draw(st.permutations(instance.free_gpus))
    wrong = st.lists(st.sampled_from([*instance.profile.gpus, "x"]), max_size=3)
    placements = []
    for job in instance.jobs:
        gpus, left = left[: job.gpus], left[job.gpus :]
        if data.draw(st.integers(0, 7)) == 0:
            gpus = data.draw(st.one_of(st.just([]), wrong))
        placements.append(Placement(id=job.id, gpus=tuple(gpus)))
    placed = PalPlan(jobs=tuple(placements))
    is_right = _is_right(instance, placed)
    assert is_right == (not violations(instance, placed))
    if is_right:
        costs = (_cost(instance, *pair) for pair in zip(instance.jobs, placed.jobs, strict=True))
        assert objective(instance, placed) == pytest.approx(sum(costs), rel=1e-12)


def _is_right(instance, placed):
    used = [gpu for placement in placed.jobs for gpu in placement.gpus]
    if len(used) != len(set(used)) or not set(used) <= set(instance.free_gpus):
        return False
    for job, placement in zip(instance.jobs, placed.jobs, strict=True):
        if not placement.gpus and instance.admission == "optional":
            continue
        if len(placement.gpus) != job.gpus:
            return False
        level = instance.topology.lowest_common_level(placement.gpus)
        if job.highest_level and level > instance.topology.levels.index(job.highest_level):
            return False
    return True


def _cost(instance, job, placement):
    if not placement.gpus:
        return job.reward
    level = instance.topology.lowest_common_level(placement.gpus)
    slowdowns = instance.profile.subset(placement.gpus).slowdown[job.application_class]
    penalty = max(1.0, *instance.locality[job.model][: level + 1])
    moved = job.current and set(job.current) != set(placement.gpus)
    time = (job.remaining_s or 1.0) * penalty * max(slowdowns) + (job.restart_s if moved else 0)
    return job.weight * time
