"""The verifier of EaCO: figures of a small cluster by hand, late jobs, and every rule."""

from fractions import Fraction

import pytest

from optsched.eaco import EacoInstance, EacoPlan, Group, performance
from optsched.eaco.verify.feasibility import exact_objective, objective, violations
from optsched.eaco.verify.group_energy import ExactFigures
from optsched.verification import BrokenRule

SMALL = {
    "schema": "optsched/eaco/1",
    "gpu_types": [
        {
            "id": "X",
            "memory_gb": 10,
            "power": {"bare_w": 10, "context_w": 20, "peak_w": 120},
            "levels": [{"id": "low", "limit_w": 60, "rate": 0.5, "power": 0.75}],
        },
        {
            "id": "Y",
            "memory_gb": 40,
            "power": {"bare_w": 20, "context_w": 40, "peak_w": 240},
        },
    ],
    "nodes": [
        {
            "id": "x",
            "gpu": "X",
            "gpus": 4,
            "count": 3,
            "on": 2,
            "power": {"base_w": 100, "sleep_w": 20, "wake_s": 10},
        },
        {"id": "y", "gpu": "Y", "gpus": 2, "count": 1, "power": {"base_w": 60}},
    ],
    "types": [
        {"id": "t", "utilisation": 0.5, "memory_gb": 6, "speeds": {"Y": 2}},
        {"id": "u", "utilisation": 0.25, "memory_gb": 3},
    ],
    "jobs": [
        {"id": "a", "type": "t", "work_s": 1000, "migration_s": 100},
        {"id": "b", "type": "u", "work_s": 1000, "migration_s": 50},
        {"id": "c", "type": "u", "work_s": 500, "waiting_penalty_kwh": 0.5},
        {"id": "d", "type": "t", "gpus": 4, "work_s": 100},
    ],
    "running": [{"id": "r", "nodes": "x", "node": 1, "jobs": ["a", "b"]}],
    "interference": {"groups": [{"types": ["t", "u"], "rates": [0.8, 0.5]}]},
}


def small(**changes):
    instance = EacoInstance.from_document(SMALL)
    return instance.changed({key.replace("__", "."): v for key, v in changes.items()})


def g(jobs, nodes="x", node=0, **more):
    return Group(jobs=tuple(jobs), nodes=nodes, node=node, **more)


D = g("d", node=2)
STAY = g("ab", node=1, location="r")
REST = (g("c"), D)
GOOD = EacoPlan(groups=(STAY, g("c"), D))


def test_a_plan_by_hand():
    instance = small()
    assert violations(instance, GOOD) == []
    share = Fraction(80, 4)
    # a and b: 1250 s at 0.5 x 0.8 + 0.25 x 0.5 = 0.525 of 100 W above 20, then b alone, 375 s
    together = 1250 * (20 + Fraction(525, 10) + share) + 375 * (20 + 25 + share)
    alone = 500 * (45 + share)
    gang = 4 * 100 * (70 + share)
    wake = 10 * (100 - 20)
    exact = (together + alone + gang + wake) / Fraction(3_600_000)
    assert float(exact_objective(instance, GOOD)) == pytest.approx(float(exact), rel=1e-12)
    figures = performance(instance, GOOD)
    assert (figures.nodes_on, figures.woken, figures.late) == (3, 1, ())
    a, b = figures.groups[0].jobs
    assert (a.slowdown, b.slowdown, a.run_s, b.run_s) == pytest.approx((1.25, 2, 1250, 1625))
    assert (a.latest_s, b.latest_s) == pytest.approx((1250, 2000))
    # sleeping y draws nothing; three nodes on; 3 + 3 + 0 empty GPUs at 10 W
    assert figures.power_w == pytest.approx(3 * 100 + 6 * 10 + 72.5 + 45 + 4 * 70)


def test_the_same_jobs_off_their_location_are_moved():
    """Each plan is what it is, whichever of the two was offered first."""
    instance = small()
    off = EacoPlan(groups=(g("ab", node=1), g("c"), D))
    assert violations(instance, GOOD) == violations(instance, off) == []
    stays, moved = exact_objective(instance, GOOD), exact_objective(instance, off)
    share = Fraction(80, 4)
    # 1100 of work at 0.8 are 1375 s; b has 1050 - 687.5 left, not 1000 - 625
    more = Fraction(125) * (20 + Fraction(525, 10) + share) - Fraction(25, 2) * (45 + share)
    assert float(moved - stays) == pytest.approx(float(more / 3_600_000), rel=1e-12)


def test_moving_adds_work_and_speed_and_level_count():
    instance = small()
    stay = performance(instance, GOOD).groups[0].jobs
    assert not any(job.is_moved for job in stay)
    moved = EacoPlan(groups=(g("a", "y"), g("b", node=1, location="r"), g("c", level="low"), D))
    assert violations(instance, moved) == []
    a, b, c, _ = [group.jobs[0] for group in performance(instance, moved).groups]
    assert (a.run_s, a.is_moved) == (600, True)  # 1000 / 2 + 100
    assert (b.run_s, b.is_moved) == (1000, False)
    assert (c.run_s, c.slowdown) == (1000, 2)
    low = performance(instance, moved).groups[2]
    assert low.gpu_w == 0.75 * 45
    limited = instance.changed({"gpu_types.X.levels.low.limit_w": 30})
    assert performance(limited, moved).groups[2].gpu_w == 30


def test_waiting_costs_the_energy_still_to_come_and_a_penalty():
    instance = small()
    waits = EacoPlan(groups=(STAY, D), waiting=("c",))
    assert violations(instance, waits) == []
    with_c = exact_objective(instance, GOOD) + Fraction(1, 2)
    assert exact_objective(instance, waits) == with_c  # alone on x is the least for c


def test_a_running_job_that_waits_is_moved_later():
    instance = small(jobs__b__waiting_penalty_kwh=0.25)
    waits = EacoPlan(groups=(g("a", node=1, location="r"), *REST), waiting=("b",))
    placed = EacoPlan(groups=(g("a", node=1, location="r"), g("b"), *REST))
    moved = exact_objective(instance, placed)  # to node 0 of x, where it takes least
    assert violations(instance, waits) == violations(instance, placed) == []
    assert exact_objective(instance, waits) == moved + Fraction(1, 4)


def test_prices_are_per_kwh():
    energy = exact_objective(small(), GOOD)
    assert exact_objective(small(price_usd_per_kwh=0.25), GOOD) == energy / 4
    carbon = small(carbon_g_per_kwh=274)
    assert exact_objective(carbon, GOOD) == energy * 274
    assert [i.unit for i in (small(), small(price_usd_per_kwh=1), carbon)] == [
        "kWh",
        "USD",
        "g CO2",
    ]


def test_epoch_by_hand():
    instance = small(objective="epoch", epoch_s=60, jobs__a__work_credit_w=200)
    plan = EacoPlan(groups=(STAY, g("c"), D))
    watts = 3 * 80 + 6 * 10 + Fraction(725, 10) + 45 + 4 * 70
    joules = 60 * watts + 10 * 80
    alone = {"b": 45 + 20, "c": 45 + 20, "d": 4 * (70 + 20)}
    credits = 200 * 60 * 0.8 + alone["b"] * 60 * 0.5 + alone["c"] * 60 + alone["d"] * 60
    assert objective(instance, plan) == pytest.approx((float(joules) - credits) / 3.6e6, rel=1e-9)


def test_epoch_alone_on_a_full_node_costs_nothing_by_default():
    """With the exclusive power as credit, running alone is the zero of the scale."""
    instance = small(objective="epoch", epoch_s=60, nodes__x__on=3)
    plan = EacoPlan(groups=(g("d", node=0), g("a", node=1), g("b", node=1), g("c", node=1)))
    one_empty = Fraction(60 * (20 + 10))  # its share of the node, and bare
    moved = 100 * exact_credit(instance, "a") + 50 * exact_credit(instance, "b")
    cheaper_on_y = 60 * (90 - exact_credit(instance, "a"))
    total = one_empty + moved + cheaper_on_y
    assert exact_objective(instance, plan) == total / Fraction(3_600_000)


def exact_credit(instance, name):
    """Least watts alone, over the speed there: t draws 70 + 20 W on x, (140 + 30) / 2 on y."""
    return {"a": Fraction(85), "b": Fraction(65)}[name]


def test_equation_1_of_the_paper():
    instance = EacoInstance.from_document(
        SMALL
        | {
            "jobs": [
                {k: v for k, v in j.items() if k[0] != "w" or k == "work_s"}
                | {"training_epoch_s": 360}
                for j in SMALL["jobs"]
            ],
            "objective": "eaco",
            "energy_weight": 0.25,
        }
    )
    energy = exact_objective(small(), GOOD)
    mean_h = Fraction(360, 3600) * (Fraction(1.25) + 2 + 1 + 1) / 4
    expected = energy / 4 + mean_h * 3 / 4
    assert objective(instance, GOOD) == pytest.approx(float(expected), rel=1e-12)
    assert objective(instance.changed({"energy_weight": 1}), GOOD) == float(energy)


# --- late jobs --------------------------------------------------------------------------------


def test_a_late_job_is_due_at_the_earliest_end_that_it_can_have_alone():
    """On y, moved, job a ends in 600 s; with b on x, in 1250 s."""
    instance = small(jobs__a__deadline_s=-5, jobs__d__deadline_s=99)
    broken = violations(instance, GOOD)
    assert [b.rule for b in broken] == ["deadline"]
    text = "its deadline is in -5.0 s, so it is due at the earliest end that it can have alone"
    assert text in broken[0].message
    moved = EacoPlan(groups=(g("a", "y"), g("b", node=1, location="r"), *REST))
    assert violations(instance, moved) == []
    runs = performance(instance, moved)
    assert runs.late == ("a", "d")
    assert [group.jobs[0].due_s for group in runs.groups] == [600, None, None, 100]


def test_a_deadline_missed_by_a_second_binds_as_the_second_before():
    """Once it bound nothing, and the job was slowed down as far as it tolerates."""
    for deadline in (600, 599, -1e9):
        instance = small(jobs__a__deadline_s=deadline)
        assert [b.rule for b in violations(instance, GOOD)] == ["deadline"]
        assert ExactFigures(instance).due_s(instance.jobs[0]) == 600


def test_a_deadline_that_can_be_met_must_be():
    broken = violations(small(jobs__a__deadline_s=1240), GOOD)
    assert [b.rule for b in broken] == ["deadline"]
    assert "job 'a' may take 1250.0 s, its deadline is in 1240.0 s" in broken[0].message
    assert violations(small(jobs__a__deadline_s=1250), GOOD) == []


def test_deadlines_count_the_whole_group_throughout():
    assert violations(small(jobs__b__deadline_s=2000), GOOD) == []
    broken = violations(small(jobs__b__deadline_s=1999), GOOD)  # though b would end at 1625
    assert [b.rule for b in broken] == ["deadline"]


def test_late_means_late_wherever_it_is_put():
    """On y, job a would take 600 s with its move: then a deadline of 700 s binds on x, too."""
    assert [b.rule for b in violations(small(jobs__a__deadline_s=700), GOOD)] == ["deadline"]
    moved = EacoPlan(groups=(g("a", "y"), g("b", node=1, location="r"), *REST))
    assert performance(small(jobs__a__deadline_s=600), moved).late == ()
    assert performance(small(jobs__a__deadline_s=599), moved).late == ("a",)


# --- rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "groups", "rule", "message"),
    [
        ({}, (STAY, *REST, g("e")), "known-job", "the instance has no job 'e'"),
        ({}, (STAY, *REST, g("c")), "one-place-per-job", "job 'c' stands in the plan 2 times"),
        ({}, (STAY, g("cc"), D), "one-place-per-job", "job 'c' stands in the plan 2 times"),
        ({}, (STAY, D), "every-job", "job 'c' is neither placed nor waiting"),
        ({}, (STAY, g("c", "z"), D), "known-nodes", "group 'c': there are no nodes 'z'"),
        ({}, (STAY, g("c", level="h"), D), "known-level", "'X' has no power level 'h'"),
        ({}, (STAY, g("c", "y", level="low"), D), "known-level", "'Y' has no power level 'low'"),
        ({}, (STAY, g("cd")), "equal-gangs", "gangs differ, 1 of 'c', 4 of 'd' GPUs"),
        ({}, (g("ab", location="q"), *REST), "known-location", "nothing runs at a location 'q'"),
        ({}, (g("ab", location="r"), *REST), "location-nodes", "on node 1 of 'x', not on node 0"),
        ({}, (g("ab", "y", 1, location="r"), *REST), "location-nodes", "not on node 1 of 'y'"),
        (
            {},
            (g("ab"), g("c", node=1, location="r"), D),
            "location-kept",
            "none of its jobs runs at location 'r' now",
        ),
        (
            {},
            (g("a", node=1, location="r"), g("b", node=1, location="r"), *REST),
            "location-once",
            "2 groups are at location 'r'",
        ),
        ({}, (g("ab"), g("c"), g("d", node=1, location="r")), "location-size", "has 1 GPUs, the"),
        ({}, (STAY, g("c", node=3), D), "known-node", "there is no node 3, 3 are numbered from 0"),
        ({}, (STAY, g("c"), g("d", "y")), "gang-fits", "4 GPUs fit neither into a node of 2"),
        ({"max_jobs_per_gpu": 1}, (STAY, *REST), "jobs-per-gpu", "2 jobs share GPUs, 1 may"),
        ({"types__u__memory_gb": 5}, (STAY, *REST), "memory", "11.0 GB on each GPU, 10.0 are free"),
        ({"memory_headroom": 0.25}, (STAY, *REST), "memory", "9.0 GB on each GPU, 7.5 are free"),
        (
            {"utilisation_limit": 0.5},
            (STAY, *REST),
            "utilisation",
            "utilisation 0.525, the limit is 0.5",
        ),
        (
            {"interference__fallback": "none"},
            (g("a", node=1, location="r"), g("bc"), D),
            "known-rates",
            "not measured, and beyond fallback 'none'",
        ),
        (
            {"interference__groups__0__rates": [0, 0]},
            (STAY, *REST),
            "fits",
            "measured not to fit together",
        ),
        ({"jobs__b__max_slowdown": 1.9}, (STAY, *REST), "slowdown", "down by 2.0, it bears 1.9"),
        ({"jobs__c__max_slowdown": 1.9}, (STAY, g("c", level="low"), D), "slowdown", "'c' is slow"),
        ({}, (STAY, g("c", node=2), D), "node-gpus", "node 2 of 'x' has 4 GPUs, 5 are used"),
        ({"power_cap_w": 757}, (STAY, *REST), "power-cap", "757.5 W, the cap is 757.0 W; with all"),
    ],
)
def test_broken_rules(changes, groups, rule, message):
    broken = violations(small(**changes), EacoPlan(groups=groups))
    assert rule in {b.rule for b in broken}
    assert any(message in b.message for b in broken if b.rule == rule), broken


def test_waiting_must_be_allowed_and_known():
    broken = violations(small(), EacoPlan(groups=(STAY, g("c")), waiting=("d", "z", "c")))
    assert {b.rule for b in broken} == {"may-wait", "known-job", "one-place-per-job"}


def test_power_cap_names_the_idle_floor():
    instance = small(power_cap_w=59, jobs__c__waiting_penalty_kwh=1)
    assert instance.idle_floor_w == 60
    (broken,) = violations(instance, GOOD)
    assert isinstance(broken, BrokenRule)
    assert broken.message.endswith("with all nodes asleep it draws 60.0 W")
    assert violations(small(power_cap_w=758), GOOD) == []


def test_gangs_over_several_nodes_fill_them():
    instance = small(jobs__d__gpus=8, nodes__x__on=3)
    wide = EacoPlan(groups=(g("d", node=1), g("ab"), g("c")))
    assert violations(instance, wide) == []
    assert performance(instance, wide).nodes_on == 3
    over = EacoPlan(groups=(g("d", node=2), g("ab"), g("c")))
    assert [b.rule for b in violations(instance, over)] == ["known-node"]
    beside = EacoPlan(groups=(g("d", node=0), STAY, g("c", node=2)))
    assert [b.rule for b in violations(instance, beside)] == ["node-gpus"]
