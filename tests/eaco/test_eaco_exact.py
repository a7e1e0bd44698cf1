"""EaCO's exact method: golden values, brute force, infeasible instances and early ends."""

import numpy as np
import pytest
from hypothesis import given

import optsched
from benchmarks.generators import sharing
from optsched.eaco import EacoInstance
from optsched.eaco.exact import listed_groups, proving
from optsched.eaco.exact.branch_and_bound import GroupingTree
from optsched.eaco.groups.columns import columns, group_of
from optsched.eaco.groups.enumeration import job_classes
from optsched.eaco.primal import relaxation_dive
from optsched.eaco.settings import SETTINGS
from optsched.eaco.verify.group_energy import JOULES_PER_KWH, ExactFigures
from optsched.search import Search
from tests.support.oracles.eaco import brute_force
from tests.support.strategies.common import law
from tests.support.strategies.eaco import eaco_instances, small_instance


def solved(instance, **options):
    """Solve, and have the verifier prove the outcome."""
    result = optsched.solve(instance, **options)
    optsched.verify(instance, result)
    return result


# --- docs/math/eaco.md, Golden values ---------------------------------------------------------


@pytest.mark.parametrize(
    ("cap", "kwh"),
    [
        (1, 161.67),
        (1.03, 161.67),
        (1.035, 136.53),
        (1.04, 111.77),
        (1.24, 111.77),
        (1.25, 93.66),
        (9, 93.66),
    ],
)
def test_paper_four_by_slowdown_cap(cap, kwh):
    instance = optsched.read("eaco/paper-four").changed({"jobs.*.max_slowdown": cap})
    result = solved(instance)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(kwh, rel=1e-9)


@pytest.mark.parametrize(("cap", "kwh"), [(1.10, 223.92), (1.05, 272.05)])
def test_copies_of_the_papers_jobs(cap, kwh):
    instance = optsched.read("eaco/paper-mixed").changed({"jobs.*.max_slowdown": cap})
    result = solved(instance)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(kwh, rel=1e-9)


@pytest.mark.parametrize("name", ["eaco/gangs", "eaco/gavel-v100", "eaco/power-levels"])
def test_never_above_a_greedy_plan(name):
    instance = optsched.read(name)
    best = solved(instance).objective
    for greedy in optsched.registry.problem("eaco").methods:
        if greedy.kind == "greedy":
            objective = optsched.solve(instance, greedy.name).objective
            assert objective is None or best <= objective * (1 + 1e-9)


# --- groups -----------------------------------------------------------------------------------


def test_jobs_that_end_together_leave_no_rates_behind_for_those_that_are_left():
    """Two of four end together; three were measured, two were not: what is known is of the four."""
    measured = {" ".join("a" * size): [0.25] * size for size in (3, 4)}
    instance = small_instance(
        [{"work_s": 600.0, "migration_s": 62.0}] * 5,
        types={"a": 0.05},
        nodes={"x": 1},
        measured=measured,
        max_jobs_per_gpu=4,
        fallback="none",
        running=[{"nodes": "x", "node": 0, "jobs": ["j2", "j3"]}],
    )
    assert_costs_are_the_verifiers(instance)


@law(500)
@given(eaco_instances(objectives=("run-to-completion",)))
def test_costs_of_groups_are_the_verifiers(instance):
    assert_costs_are_the_verifiers(instance)


def assert_costs_are_the_verifiers(instance):
    figures, classes = ExactFigures(instance), job_classes(instance)
    pool = columns(instance, classes)
    for n in range(0, len(pool.cost), max(1, len(pool.cost) // 40)):
        at = (int(pool.pool[n]), int(pool.level[n]), int(pool.place[n]))
        group = group_of(instance, classes, pool.members[n], *at)
        phases = figures.phases(group)
        kwh = float(figures.energy_j(group, phases) / JOULES_PER_KWH * instance.per_kwh)
        assert pool.cost[n] == pytest.approx(kwh, rel=1e-12)
        bare = figures.gpus[figures.nodes[group.nodes].gpu].power.bare_w
        watts = float(figures.gang(group) * (max(p.gpu_w for p in phases) - bare))
        assert pool.watts[n] == pytest.approx(watts, rel=1e-12, abs=1e-9)


def test_equal_jobs_are_one_class():
    jobs = [{"type": "a"}, {"type": "b"}, {"type": "a"}, {"type": "a", "work_s": 1.0}]
    merged = job_classes(small_instance(jobs))
    assert [c.jobs for c in merged] == [("j0", "j2"), ("j3",), ("j1",)]


def test_too_many_groups_are_reported(monkeypatch):
    listed = {"objective": "epoch", "epoch_s": 3600.0}  # cannot be priced
    instance = small_instance(["a", "b", "c", "d"], **listed)
    monkeypatch.setitem(vars(SETTINGS), "most_groups", 5)
    result = optsched.solve(instance)
    assert result.status == "feasible"
    assert result.bound is None
    assert "more than 5 groups" in result.message


# --- brute force ------------------------------------------------------------------------------


@law(2000)
@given(eaco_instances(max_jobs=4, max_nodes=3))
def test_exact_equals_brute_force(instance):
    result = solved(instance, gap=0.0)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(brute_force(instance), rel=2e-9, abs=1e-12)


@law(500, is_costly=True)
@given(eaco_instances(max_jobs=4, max_nodes=2, feasible=False))
def test_infeasible_exactly_if_there_is_no_plan(instance):
    expected = brute_force(instance)
    result = solved(instance, gap=0.0)
    assert result.status == ("infeasible" if expected is None else "optimal")
    if expected is not None:
        assert result.objective == pytest.approx(expected, rel=2e-9, abs=1e-12)


@pytest.mark.parametrize("peak_w", [300.0, 1e12])
def test_that_no_plan_exists_is_proven_whatever_a_gpu_draws(peak_w):
    instance = small_instance(
        [{"gpus": 2, "work_s": 1e-9}, {"gpus": 1, "work_s": 1e12}],
        nodes={"x": {"gpus": 1, "count": 2}},
        gpus={"G": {"power": {"bare_w": 0, "context_w": 0, "peak_w": peak_w}}},
        objective="epoch",
        epoch_s=1e12,
    )
    assert solved(instance, gap=0.0).status == "infeasible"


@law(300, is_costly=True)
@given(eaco_instances(max_jobs=4, gangs=(1, 2, 3, 5, 6), max_nodes=2))
def test_gangs_that_do_not_pack(instance):
    result = solved(instance, gap=0.0)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(brute_force(instance), rel=2e-9, abs=1e-12)


# --- tight limits -----------------------------------------------------------------------------


def same_as_brute_force(instance):
    result = solved(instance, gap=0.0)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(brute_force(instance), rel=2e-9, abs=1e-12)
    return result


@pytest.mark.parametrize("objective", ["run-to-completion", "epoch"])
@pytest.mark.parametrize("cap", [60.0, 90.0, 150.0, 260.0])
def test_a_cap_that_a_part_of_a_group_keeps(cap, objective):
    """Half of a group keeps the cap: the relaxation takes it, and a case without it is empty."""
    job = {"gpus": 2, "waiting_penalty_kwh": 10.0}
    power = {"base_w": 400.0, "sleep_w": 40.0}
    instance = small_instance(
        [job | {"waiting_penalty_kwh": kwh} for kwh in (0.05, 0.001, 10.0)],
        gpus={"X": {"levels": [[48.0, 0.5, 0.7]]}},
        nodes={
            "x": {"gpus": 2, "count": 1, "power": {"base_w": 0.0}},
            "y": {"gpus": 2, "count": 1, "power": power},
        },
        objective=objective,
        power_cap_w=cap + 40.0,
        **({"epoch_s": 3600.0} if objective == "epoch" else {}),
    )
    same_as_brute_force(instance)


def test_a_branch_that_no_plan_meets_is_proven_empty():
    """One GPU with its node draws more than the cap, but a part of both does not."""
    power = {"base_w": 0.0}
    instance = small_instance(
        [{"waiting_penalty_kwh": 0.05}],
        nodes={"x": {"gpus": 4, "count": 1, "power": power}},
        power_cap_w=99.0,
    )
    result = same_as_brute_force(instance)
    assert result.plan.waiting == ("j0",)
    assert len(result.certificate.nodes) > 1


def test_a_slower_gpu_breaks_the_deadline_of_a_job_alone():
    """Neither method nor verifier may count on it: it is cheap there, and no plan has it."""
    jobs = [{"deadline_s": 3600.0}, {"waiting_penalty_kwh": 0.5}]
    slow = {"memory_gb": 16.0, "power": {"bare_w": 1.0, "context_w": 2.0, "peak_w": 3.0}}
    instance = small_instance(
        jobs,
        types={"a": {"utilisation": 0.5, "speeds": {"X": 1.0, "Y": 0.5}}},
        gpus={"X": {}, "Y": slow},
        nodes={"x": {"gpu": "X"}, "y": {"gpu": "Y"}},
    )
    result = same_as_brute_force(instance)
    assert {g.nodes for g in result.plan.groups if "j0" in g.jobs} == {"x"}


@pytest.mark.parametrize("work_s", [55830.58889906562, 3600.0, 0.3, 1 / 3])
@pytest.mark.parametrize("deadline", [1.25, 1 / 0.8])
def test_a_deadline_met_but_for_the_last_bit(work_s, deadline):
    job = {"work_s": work_s, "deadline_s": deadline * work_s}
    same_as_brute_force(small_instance([job, {}], gpus={"X": {"levels": [[48.0, 0.8, 0.5]]}}))


def test_prices_far_above_the_costs():
    """A waiting penalty a thousand times the optimum makes prices large, but no bound lower."""
    place = {"nodes": "x", "node": 0, "jobs": ["j1"]}
    jobs = [{"waiting_penalty_kwh": 10.0}, {"migration_s": 1000.0}]
    jobs = [job | {"work_s": 121.68, "deadline_s": 124.1136, "gpus": 2} for job in jobs]
    nodes = {"x": 4, "y": {"gpus": 3, "count": 1, "power": {"base_w": 0.0}}}
    same_as_brute_force(small_instance(jobs, nodes=nodes, running=[place], max_jobs_per_gpu=1))


# --- infeasible -------------------------------------------------------------------------------


def test_a_cap_below_the_idle_floor_names_the_floor():
    node = {"gpus": 4, "count": 2, "power": {"base_w": 100.0, "sleep_w": 15.0}}
    instance = small_instance(["a"], nodes={"x": node}, power_cap_w=29.0)
    result = solved(instance)
    assert result.status == "infeasible"
    assert "30.0 W" in result.message
    assert result.certificate.kind == "below_idle_power"


def test_gangs_that_add_up_but_do_not_pack():
    jobs = [{"gpus": 3, "max_slowdown": 1} for _ in range(5)]
    node = {"gpus": 8, "count": 2}
    result = solved(small_instance(jobs, nodes={"x": node}))
    assert result.status == "infeasible"
    assert result.certificate.kind == "infeasible"
    more = solved(small_instance(jobs, nodes={"x": node | {"count": 3}}))
    assert more.status == "optimal"


def test_a_cap_above_the_floor_that_leaves_no_room():
    instance = small_instance(["a", "a"], power_cap_w=120.0)
    result = solved(instance)
    assert result.status == "infeasible"
    assert result.certificate.left_out > 0


# --- early ends -------------------------------------------------------------------------------


def test_no_time_gives_a_greedy_plan_and_an_honest_bound():
    instance = optsched.read("eaco/pairs-60")
    result = solved(instance, time_limit_s=0)
    assert result.status == "feasible"
    assert result.bound is not None
    assert 0 < result.gap < 1
    assert not result.deterministic


def test_a_wide_gap_ends_earlier():
    instance = optsched.read("eaco/pairs-60")
    result = solved(instance, gap=0.05)
    assert result.status == "optimal"
    assert result.gap <= 0.05
    assert result.deterministic


def test_interrupted(monkeypatch):
    instance = optsched.read("eaco/running")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setitem(vars(SETTINGS), "root_cut_rounds", 0)  # so that a tree is needed
    monkeypatch.setattr(GroupingTree, "explore", stop)
    result = solved(instance, gap=1e-9)
    assert result.status in ("feasible", "optimal")
    assert "interrupted" in result.message
    assert result.bound > 0


def test_same_seed_gives_the_same_bytes():
    instance = optsched.read("eaco/gangs")
    first, second = (optsched.solve(instance) for _ in range(2))
    assert first.plan == second.plan
    assert first.certificate == second.certificate


def test_a_claim_is_proven_as_far_as_it_goes():
    instance = optsched.read("eaco/gavel-v100")
    search = Search(instance)
    best = optsched.solve(instance).objective
    certificate = listed_groups.certify_claim(instance, search, 0.9 * best)
    assert 0.9 * best <= certificate.bound <= best


def test_a_split_counts_every_group_that_holds_its_jobs():
    """Pairs of equal jobs hold a job of their kind, too; else a case is split where it is whole."""
    jobs = [{"id": f"j{n}", "type": "a", "gpus": 2, "work_s": 600} for n in range(6)]
    jobs[0]["deadline_s"] = 1e9  # binds nothing, but makes it another kind of job
    jobs[4] |= {"deadline_s": 1e9, "max_slowdown": 1}
    watts = {"X": (30, 60, 300), "Y": (0, 0, 100)}
    instance = EacoInstance.from_document(
        {
            "schema": "optsched/eaco/1",
            "max_jobs_per_gpu": 2,
            "gpu_types": [
                {
                    "id": name,
                    "memory_gb": 16,
                    "power": {"bare_w": bare, "context_w": context, "peak_w": peak},
                }
                for name, (bare, context, peak) in watts.items()
            ],
            "nodes": [
                {"id": "x", "gpu": "X", "gpus": 2, "count": 3, "power": {"base_w": 0}},
                {
                    "id": "y",
                    "gpu": "Y",
                    "gpus": 3,
                    "count": 1,
                    "power": {"base_w": 400, "sleep_w": 40},
                },
            ],
            "types": [{"id": "a", "utilisation": 0.5}],
            "jobs": jobs,
        }
    )
    result = optsched.solve(instance, gap=0.0)
    optsched.verify(instance, result)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(0.2945333333333333)


def test_a_small_tree_comes_before_an_integer_program_that_takes_longer(monkeypatch):
    """Root and dive leave little more than the gap; the integer program took twice the rest."""
    asked = []
    monkeypatch.setattr(proving, "restricted_plan", lambda *_: asked.append(1))
    result = optsched.solve(sharing(30, 4, 0.25), gap=2e-4)
    assert result.status == "optimal"
    assert not asked


def test_a_dive_that_leaves_a_job_out_is_followed_by_another(monkeypatch):
    tried = []

    def dived(_, sure):
        tried.append(sure)
        return None if len(tried) < 2 else (np.zeros(0, dtype=int), np.zeros(0))

    monkeypatch.setattr(relaxation_dive, "_dived", dived)
    assert relaxation_dive.dive(None) is not None
    assert tried == list(SETTINGS.dive_surest[:2])
