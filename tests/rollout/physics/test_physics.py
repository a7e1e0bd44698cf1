"""Physics of a rollout: published figures, and laws that hold wherever jobs are."""

import itertools
import pickle
import statistics
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import optsched
from optsched.boa.speedup_curves import speedup_at
from optsched.eaco.plan import Group
from optsched.eaco.verify.group_energy import ExactFigures
from optsched.rollout.engine.random_streams import stream
from optsched.rollout.engine.state import OFF, PPB, STARTING
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.physics.physics import Physics
from optsched.rollout.physics.speeds import Slowdowns
from optsched.traces.trace import US
from tests.support.builders.physics_parts import Held, jobs, occupied, physics, rates, scenario
from tests.support.strategies.common import law, tables

POWER = {
    "gpu": {"bare_w": 30, "context_w": 36, "peak_w": 300},
    "node": {"base_w": 500, "sleep_w": 20},
}
AMDAHL = {"kind": "amdahl", "parallel_fraction": 0.5, "max_gpus": 8}


# --- places -----------------------------------------------------------------------------------


def test_without_physics_every_job_runs_at_the_reference():
    laws, held = physics(scenario(), jobs([2, 8]), [0, 4])
    assert laws.is_plain
    assert laws.rate(0, held) == PPB
    assert laws.affected([0, 1], held) == []
    assert laws.watts(held) == 0
    assert laws.phases(0) == (100 * US * PPB,)


def test_philly_table_5_two_gpus_of_resnet_50():
    """Images per second alone on one server, on two, and there beside neighbours (ATC'19)."""
    world = scenario(
        locality=[1, 114.8 / 98.0], neighbours={"shared_server": 75.6 / 98.0}, gpus_per_node=4
    )
    trace = jobs([2, 2, 2])
    assert rates(world, trace, [0, 1]) == [PPB]
    [spread] = rates(world, trace, [0, 4])
    assert round(spread / PPB, 3) == 0.854
    crowded = rates(world, trace, [0, 4], [1, 2])[0]
    assert round(crowded / PPB, 3) == 0.659
    assert round(crowded / spread, 2) == 0.77
    assert 114.8 * crowded / PPB == pytest.approx(75.6, rel=1e-8)


@law(300)
@given(st.data())
def test_pal_iteration_times_of_its_simulator(data):
    """Base time x max V x 1.7 off one node (docs/math/pal.md, Iteration times), on 64 GPUs."""
    instance = optsched.read("pal/sia-64")
    penalties = (1.0, 1.7)
    world = scenario(
        topology=instance.topology.model_dump(mode="json", by_alias=True),
        profile=instance.profile.model_dump(mode="json"),
        locality=penalties,
        reference_place="one-node",
        models={"m": {"application_class": "A"}},
    )
    gpus = sorted(data.draw(st.sets(st.integers(0, 63), min_size=1, max_size=16)))
    values = instance.profile.slowdown["A"]
    by_id = dict(zip(instance.profile.gpus, values, strict=True))
    worst = max(by_id[instance.topology.gpus[gpu]] for gpu in gpus)
    spread = 1.7 if len({gpu // 4 for gpu in gpus}) > 1 else 1.0
    [rate] = rates(world, jobs([len(gpus)], "m"), gpus)
    assert rate == round(PPB / (worst * spread))


def test_a_profile_is_read_by_id_with_a_topology_and_by_position_without():
    slow = {"gpus": ["b", "a"], "slowdown": {"A": [2.0, 1.0]}, "kind": "persistent"}
    models = {"m": {"application_class": "A"}, "other": {}}
    domains = [{"id": "n", "level": "node", "gpus": ["a", "b"]}]
    tree = {"levels": ["node"], "domains": domains}
    trace = jobs([1, 1, 1], ["m", "m", "other"])
    world = scenario(topology=tree, profile=slow, models=models)
    assert rates(world, trace, [0], [1]) == [PPB, PPB // 2]
    world = scenario(1, 2, profile=slow, models=models)
    assert rates(world, trace, [0], [1]) == [PPB // 2, PPB]
    assert rates(world, trace, [], [], [0]) == [PPB]


def test_slowdowns_that_policies_are_told():
    slow = {"gpus": ["a", "b"], "slowdown": {"A": [2.0, 1.0]}, "kind": "persistent"}
    world = scenario(1, 2, profile=slow)
    told = Slowdowns(world, Cluster(world))
    assert told.of("A") == (2.0, 1.0)
    with pytest.raises(optsched.UnknownNameError, match="known: A"):
        told.of("B")
    plain = scenario(1, 2)
    assert Slowdowns(plain, Cluster(plain)).of("anything") == (1.0, 1.0)


def test_locality_goes_by_the_level_where_gpus_meet_and_by_model():
    domains = [
        {"id": "all", "level": "cluster"},
        *({"id": f"r{r}", "level": "rack", "parent": "all"} for r in range(2)),
        *(
            {"id": f"n{n}", "level": "node", "parent": f"r{n // 2}", "gpus": [f"{n}a", f"{n}b"]}
            for n in range(4)
        ),
    ]
    tree = {"levels": ["node", "rack", "cluster"], "domains": domains}
    world = scenario(topology=tree, locality=[1, 2, 4], models={"m": {"locality": [1, 1, 5]}})
    trace = jobs([2, 2], ["unknown", "m"])
    for gpus, factors in (([0, 1], (1, 1)), ([0, 2], (2, 1)), ([1, 7], (4, 5))):
        laws, held = physics(world, trace, gpus, [])
        assert laws.rate(0, held) == PPB // factors[0]
        laws, held = physics(world, trace, [], gpus)
        assert laws.rate(1, held) == PPB // factors[1]


# --- neighbours -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("other", "gang", "is_slower"),
    [
        ([2, 3], 2, True),
        ([3, 4], 2, True),
        ([2], 1, False),  # small jobs hardly load the links
        ([4, 5], 2, False),  # another server
        ([0, 1], 2, False),  # on the very same GPUs: not beside it
        ([1, 2], 2, False),
    ],
)
def test_who_is_a_neighbour(other, gang, is_slower):
    world = scenario(neighbours={"shared_server": 0.77}, sharing=generous(2))
    beside = rates(world, jobs([2, gang]), [0, 1], other)[0]
    assert beside == (770_000_000 if is_slower else PPB)


def generous(most):
    """Sharing without any interference."""
    rule = {"fallback": "utilisation", "saturation_slope": 0, "partner_slowdown": 0}
    return {"max_jobs_per_gpu": most, "interference": rule}


def test_a_job_on_one_gpu_has_no_neighbours():
    world = scenario(neighbours={"shared_server": 0.5})
    assert rates(world, jobs([1, 2]), [0], [1, 2]) == [PPB, PPB]


# --- widths and phases ------------------------------------------------------------------------


def test_speed_is_relative_to_the_gang_asked_for():
    phases = [{"work_gpu_s": 60, "speedup": AMDAHL}, {"work_gpu_s": 30, "speedup": AMDAHL}]
    world = scenario(models={"m": {"phases": phases}})
    laws, held = physics(world, jobs([1, 2], "m"), [0, 1], [2, 3, 4, 5])
    assert laws.rate(0, held) == round(PPB * 4 / 3)  # 1 / (1/2 + 1/4)
    assert laws.rate(1, held) == round(PPB * 1.6 / (4 / 3))
    held.place(0, 0)
    assert laws.rate(0, held) == PPB
    assert laws.phases(0) == (200 * US * PPB // 3, 100 * US * PPB // 3 + 1)
    assert not laws.is_plain
    assert list(laws.widths(0, 1)) == list(range(1, 9))


def test_widths_that_were_not_measured():
    """Between two: interpolated; above the last: as there; below the first: in proportion."""
    table = {"kind": "table", "gpus": [2, 4], "speedup": [2, 3]}
    world = scenario(models={"m": {"phases": [{"work_gpu_s": 1, "speedup": table}]}})
    laws, held = physics(world, jobs([2], "m"))
    measured = [laws.rate(0, held.place(0, *range(width))) / PPB for width in (1, 2, 3, 4, 6)]
    assert measured == [0.5, 1, 1.25, 1.5, 1.5]


@law(300)
@given(
    st.lists(st.tuples(st.floats(0.1, 100), tables()), min_size=1, max_size=4),
    st.integers(1, 16),
    st.integers(1, 10**15),
    st.data(),
)
def test_phases_add_up_and_take_their_shares(parts, demand, run_us, data):
    phases = [{"work_gpu_s": w, "speedup": t.model_dump(mode="json")} for w, t in parts]
    world = scenario(1, 16, models={"m": {"phases": phases}})
    laws, held = physics(world, jobs([demand], "m", run_us / US))
    run_us = int(laws.trace.run_us[0])
    units = laws.phases(0)
    assert len(units) == len(parts)
    assert sum(units) == run_us * PPB
    assert min(units) >= 0
    # At any measured width, each phase takes what BOA says, scaled to the run time of the job.
    width = data.draw(st.integers(1, 16))
    assume(all(t.widths[0] <= min(width, demand) for _, t in parts))
    held.place(0, *range(width))
    scale = run_us / sum(w / speedup_at(t, demand) for w, t in parts)
    for phase, (work, table) in enumerate(parts):
        held.phase[0] = phase
        took = Fraction(units[phase], laws.rate(0, held))
        expected = scale * work / speedup_at(table, width)
        assert float(took) == pytest.approx(expected, rel=1e-6, abs=1)


# --- sharing ----------------------------------------------------------------------------------


def test_the_slowest_gpu_of_a_job_counts():
    groups = [{"types": ["x", "y"], "rates": [0.9, 0.8]}, {"types": ["x", "x"], "rates": [0.6] * 2}]
    world = scenario(
        models={"x": {}, "y": {}},
        sharing={"max_jobs_per_gpu": 2, "interference": {"groups": groups}},
    )
    measured = rates(world, jobs([2, 1, 1], ["x", "y", "x"]), [0, 1], [0], [1])
    assert measured == [600_000_000, 800_000_000, 600_000_000]


def test_jobs_of_unknown_models_share_by_the_utilisation_of_the_trace():
    world = scenario(sharing={"max_jobs_per_gpu": 2})
    trace = jobs([1, 1, 1], "z", utilization=[0.75, 0.75, float("nan")])
    assert rates(world, trace, [0], [0]) == [round(PPB / (1 + 0.56 * 0.5 + 0.02))] * 2
    assert rates(world, trace, [0], [], [0]) == [round(PPB / (1 + 0.56 * 0.75 + 0.02))] * 2


@pytest.mark.parametrize(
    ("sharing", "rule"),
    [
        ({"max_jobs_per_gpu": 1}, "sharing-limit"),
        ({"max_jobs_per_gpu": 2, "memory_gb": 15.9}, "memory"),
        ({"max_jobs_per_gpu": 2, "memory_gb": 16}, None),
        ({"max_jobs_per_gpu": 2}, None),
        ({"max_jobs_per_gpu": 2, "interference": {"fallback": "none"}}, "interference"),
        (
            {
                "max_jobs_per_gpu": 2,
                "interference": {"groups": [{"types": ["x", "x"], "rates": [0, 0]}]},
            },
            "interference",
        ),
    ],
)
def test_what_fits(sharing, rule):
    world = scenario(models={"x": {"memory_gb": 8}}, sharing=sharing)
    laws, held = physics(world, jobs([1, 2], "x"), [1])
    assert laws.fits(1, [0, 1], held) == rule
    assert laws.fits(1, [2, 3], held) is None
    assert laws.fits(0, [1], held) is None
    held.place(1, 0, 1)  # the answer is the same once it is there
    assert laws.fits(1, [0, 1], held) == rule


def run_to_completion(laws, held, work_s):
    """Run jobs without an engine until all have ended; return their ends and the joules."""
    left = {job: Fraction(work) for job, work in work_s.items()}
    now, joules, ends = Fraction(0), 0.0, {}
    while left:
        speed = {job: Fraction(laws.rate(job, held), PPB) for job in left}
        step = min(left[job] / speed[job] for job in left)
        joules += float(step) * laws.watts(held)
        now += step
        left = {job: rest - step * speed[job] for job, rest in left.items()}
        for job in [job for job, rest in left.items() if rest <= 1e-6 * work_s[job]]:
            held.free(job)
            ends[job] = float(now)
            del left[job]
    return ends, joules


def compared_with_the_book(instance, kinds, work_s, curve=None):
    """Run a group of jobs by the physics and by EaCO's judge on one 8-GPU node."""
    gpu = instance.gpu_types[0]
    document = instance.model_dump(mode="json", by_alias=True, exclude_none=True)
    names = [f"j{n}" for n in range(len(kinds))]
    document["jobs"] = [
        {"id": name, "type": kind, "gpus": 8, "work_s": work}
        for name, kind, work in zip(names, kinds, work_s, strict=True)
    ]
    document["running"] = []
    document["nodes"] = [{"id": "n", "gpu": gpu.id, "gpus": 8, "count": 1, "power": POWER["node"]}]
    if curve is not None:
        document["gpu_types"][0]["power"] |= {"curve": curve}
    book = ExactFigures(type(instance).from_document(document))
    world = scenario(
        1,
        8,
        models={t.id: {"utilisation": t.utilisation} for t in instance.types},
        sharing={"max_jobs_per_gpu": 4, "interference": document["interference"]},
        power={"gpu": document["gpu_types"][0]["power"], "node": POWER["node"]},
    )
    group = Group(jobs=tuple(names), nodes="n")
    laws, held = physics(world, jobs([8] * len(kinds), list(kinds)), *[range(8)] * len(kinds))
    assume(book.rates(names, book.nodes["n"]).fits)
    ends, joules = run_to_completion(laws, held, dict(enumerate(work_s)))
    phases = book.phases(group)
    seconds = float(sum(phase.seconds for phase in phases))
    assert max(ends.values()) == pytest.approx(seconds, rel=1e-6)
    above_sleep = joules - POWER["node"]["sleep_w"] * seconds
    assert above_sleep == pytest.approx(float(book.energy_j(group, phases)), rel=1e-6)


PAPER = optsched.read("eaco/paper-four")
SETS = [group.types for group in PAPER.interference.groups]


@law(200)
@given(st.sampled_from(SETS), st.lists(st.floats(10, 1e5), min_size=4, max_size=4))
def test_groups_of_the_eaco_paper_run_as_its_verifier_says(kinds, work_s):
    """Only ten sets were measured: what remains of one may be unknown, and stays as it was."""
    compared_with_the_book(PAPER, kinds, work_s[: len(kinds)])


@law(300)
@given(
    st.one_of(
        st.sampled_from(SETS),
        st.lists(st.sampled_from([kind.id for kind in PAPER.types]), min_size=1, max_size=4),
    ),
    st.lists(st.floats(10, 1e5), min_size=4, max_size=4),
    st.sampled_from(["none", "larger", "pairs", "utilisation"]),
    st.sampled_from([{"kind": "affine"}, {"kind": "power-law"}, {"kind": "fan"}]),
    st.booleans(),
)
def test_any_group_runs_as_the_verifier_of_eaco_says(kinds, work_s, fallback, curve, has_watts):
    drop = {} if has_watts else {"interference.groups.*.gpu_power_w": None}
    instance = PAPER.changed({"interference.fallback": fallback, **drop})
    compared_with_the_book(instance, tuple(kinds), work_s[: len(kinds)], curve)


def test_the_four_jobs_of_the_paper_take_93_66_kwh():
    work = PAPER.jobs[0].work_s
    document = PAPER.model_dump(mode="json", by_alias=True, exclude_none=True)
    power = {"gpu": document["gpu_types"][0]["power"], "node": {"base_w": 0}}
    world = scenario(
        1,
        8,
        models={t.id: {"utilisation": t.utilisation} for t in PAPER.types},
        sharing={"max_jobs_per_gpu": 4, "interference": document["interference"]},
        power=power,
    )
    kinds = [t.id for t in PAPER.types]
    laws, held = physics(world, jobs([8] * 4, kinds), *[range(8)] * 4)
    _, joules = run_to_completion(laws, held, dict.fromkeys(range(4), work))
    assert joules / 3.6e6 == pytest.approx(93.66, abs=0.005)


# --- power ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("idle", "empty"), [("on", 620), ("sleep", 20)])
def test_watts_of_nodes(idle, empty):
    """4 GPUs, one with a job at half load: base 500 + 3 bare of 30 + 36 + 0.5 x 264."""
    world = scenario(power=POWER | {"idle_nodes": idle}, models={"m": {"utilisation": 0.5}})
    laws, held = physics(world, jobs([1], "m"), [2])
    assert laws.node_watts(0, held) == 500 + 90 + 168
    assert laws.node_watts(1, held) == empty
    assert laws.watts(held) == 758 + empty


def test_what_was_measured_for_a_group_takes_the_place_of_the_model():
    """Watts if they were measured, else those at the measured utilisation, else of the sum."""
    groups = [
        {"types": ["a", "a"], "rates": [1, 1], "utilisation": 0.25},
        {"types": ["a", "b"], "rates": [1, 1], "utilisation": 0.25, "gpu_power_w": 111},
    ]
    table = {"groups": groups, "saturation_slope": 0, "partner_slowdown": 1}
    world = scenario(
        power=POWER,
        models={"a": {"utilisation": 0.5}, "b": {"utilisation": 0.4}},
        sharing={"max_jobs_per_gpu": 2, "interference": table},
    )
    trace = jobs([1] * 6, list("aaabbb"))
    laws, held = physics(world, trace, [0], [0], [1], [1], [2], [2])
    by_sum = 36 + 264 * (0.4 + 0.4) / 2
    assert laws.node_watts(0, held) == pytest.approx(500 + 30 + (36 + 66) + 111 + by_sum)


def test_nodes_that_are_not_rented_draw_nothing_and_starting_ones_idle():
    world = scenario(power=POWER, rented={})
    laws, held = physics(world, jobs([1]))
    held.node_state = [OFF, STARTING]
    assert [laws.node_watts(node, held) for node in (0, 1)] == [0, 620]


def test_a_job_of_an_unknown_model_draws_by_the_utilisation_of_the_trace():
    trace = jobs([1, 1], utilization=[0.25, float("nan")])
    laws, held = physics(scenario(power=POWER), trace, [0], [4])
    assert laws.node_watts(0, held) == 500 + 90 + 36 + 0.25 * 264
    assert laws.node_watts(1, held) == 500 + 90 + 300


# --- passing trouble --------------------------------------------------------------------------

EVENTS = {"mean_between_s": 1000, "mean_length_s": 100, "factor": [2, 3]}


def test_trouble_slows_the_jobs_of_a_node_while_it_lasts():
    laws, held = physics(scenario(events=EVENTS), jobs([1, 1, 2]), [0], [4], [1, 5])
    laws.transients.change(1)
    factor = laws.transients.factor[1]
    assert 2 <= factor <= 3
    slow = round(PPB / factor)
    assert [laws.rate(job, held) for job in range(3)] == [PPB, slow, slow]
    assert laws.jobs_on_node(1, held) == [1, 2]
    laws.transients.change(1)
    assert [laws.rate(job, held) for job in range(3)] == [PPB] * 3


def test_trouble_of_a_class_leaves_others_alone():
    profile = {
        "gpus": [f"{n}" for n in range(8)],
        "slowdown": {"A": [1.5] * 8, "B": [1.0] * 8},
        "kind": "persistent",
    }
    models = {"a": {"application_class": "A"}, "b": {"application_class": "B"}}
    events = EVENTS | {"application_class": "A", "factor": [2, 2]}
    world = scenario(events=events, models=models, profile=profile)
    laws, held = physics(world, jobs([1, 1, 1], ["a", "b", ""]), [0], [1], [2])
    laws.transients.change(0)
    assert [laws.rate(job, held) for job in range(3)] == [round(PPB / 3), PPB, PPB]


def stretches(laws, node, count):
    """Return the ends of a node's first stretches and the factor in each."""
    measured = []
    for _ in range(count):
        measured.append((laws.transients.until_us[node], laws.transients.factor[node]))
        laws.transients.change(node)
    return measured


def test_trouble_depends_on_seed_and_node_only():
    world, trace = scenario(events=EVENTS), jobs([1])
    first, second = physics(world, trace, seed=3)[0], physics(world, trace, seed=3)[0]
    ahead = [stretches(first, node, 20) for node in (0, 1)]
    assert [stretches(second, node, 20) for node in (1, 0)] == ahead[::-1]
    assert ahead[0] != ahead[1]
    assert stretches(physics(world, trace, seed=4)[0], 0, 20) != ahead[0]
    larger = physics(scenario(nodes=5, events=EVENTS), jobs([1, 1]), seed=3)[0]
    assert stretches(larger, 1, 20) == ahead[1]


def test_lengths_of_trouble_have_the_stated_means():
    laws, _ = physics(scenario(events=EVENTS), jobs([1]), seed=1)
    ends = stretches(laws, 0, 8001)
    lengths = [b[0] - a[0] for a, b in itertools.pairwise(ends)]
    assert min(lengths) >= 1
    assert statistics.mean(lengths[0::2]) / US == pytest.approx(100, rel=0.05)
    assert statistics.mean(lengths[1::2]) / US == pytest.approx(1000, rel=0.05)
    assert {factor for _, factor in ends[0::2]} == {1.0}
    assert statistics.mean(factor for _, factor in ends[1::2]) == pytest.approx(2.5, abs=0.02)


def test_streams_are_independent_of_each_other_and_of_their_order():
    draws = {name: stream(1, name).random() for name in ("events", "estimates", "policy")}
    assert len(set(draws.values())) == 3
    assert stream(1, "estimates").random() == draws["estimates"]
    assert stream(1, "events", 0).random() != stream(1, "events", 1).random()


# --- laws -------------------------------------------------------------------------------------


def all_rates(laws, held):
    return {job: laws.rate(job, held) for job, gpus in enumerate(held.gpus_of) if gpus}


@law(1000)
@given(occupied())
def test_fixed_widths_on_gpus_no_faster_than_the_median_never_beat_the_reference(case):
    laws, held, _ = case
    assert all(1 <= rate <= PPB for rate in all_rates(laws, held).values())


@law(1000)
@given(occupied(elastic=True))
def test_fewer_jobs_never_make_another_one_slower(case):
    laws, held, placed = case
    before = all_rates(laws, held)
    for job in placed:
        held.free(job)
        after = all_rates(laws, held)
        assert all(after[other] >= before[other] for other in after)
        before = after


@law(1000)
@given(occupied())
def test_only_jobs_that_are_affected_change_their_rates(case):
    laws, held, placed = case
    assume(placed)
    before = all_rates(laws, held)
    for job in placed:
        gpus = held.gpus_of[job]
        affected = set(laws.affected(gpus, held))
        held.free(job)
        after = all_rates(laws, held)
        changed = {other for other in after if after[other] != before[other]}
        assert changed <= set(laws.affected(gpus, held)) <= affected
        before = after


@law(300)
@given(occupied())
def test_watts_lie_between_asleep_and_all_gpus_at_their_peak(case):
    laws, held, _ = case
    power, cluster = laws.scenario.power, laws.cluster
    base = sum(laws.node_watts(node, held) for node in range(cluster.nodes))
    assert laws.watts(held) == pytest.approx(base)
    for node in range(cluster.nodes):
        watts = laws.node_watts(node, held)
        assert watts <= power.node.base_w + cluster.size[node] * power.gpu.peak_w
        is_busy = bool(laws.jobs_on_node(node, held))
        idle = power.node.base_w + cluster.size[node] * power.gpu.bare_w
        if is_busy:
            assert watts > idle
        else:
            assert watts == (power.node.sleep_w if power.idle_nodes == "sleep" else idle)


@law(300)
@given(occupied())
def test_remembered_or_pickled_physics_say_the_same_as_new_ones(case):
    laws, held, _ = case
    expected = all_rates(laws, held), laws.watts(held)
    fresh = Physics(laws.scenario, Cluster(laws.scenario), laws.trace, 0)
    for other in (laws, pickle.loads(pickle.dumps(laws)), fresh):
        assert (all_rates(other, held), other.watts(held)) == expected


@law(300)
@given(occupied())
def test_the_order_of_jobs_on_a_gpu_does_not_matter(case):
    laws, held, _ = case
    expected = all_rates(laws, held), laws.watts(held)
    turned = Held(len(held.gpus_of), laws.cluster)
    turned.gpus_of = held.gpus_of
    turned.jobs_on = [on[::-1] for on in held.jobs_on]
    assert (all_rates(laws, turned), laws.watts(turned)) == expected
