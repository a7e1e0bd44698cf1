"""Pollux and Sia: what they give by hand, how fast jobs grow, and who is beside whom on a node."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout import simulate
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import trace_of
from tests.support.builders.rollout_stub import ElasticView, scenario, widths
from tests.support.strategies.common import law


def model(gpus, speedup, **fields):
    table = {"kind": "table", "gpus": gpus, "speedup": speedup}
    return {"phases": [{"work_gpu_s": 100.0, "speedup": table}], **fields}


MODELS = {
    "linear": model([1, 2, 3, 4, 6, 8], [1.0, 2.0, 3.0, 4.0, 6.0, 8.0]),
    "root": model([1, 2, 4, 8], [1.0, 1.4, 2.0, 2.8]),
    "wide": model([2, 4, 6], [1.0, 1.8, 2.4]),
    "flat": model([1, 4], [1.0, 1.0]),
}
WORLD = scenario(2, 4, models=MODELS, epoch_s=60.0)


def rounds(policy, names, count, world=WORLD):
    """Return the widths of jobs that come at once, round after round."""
    view, policy, seen = ElasticView(world), make(policy, world), []
    for name in names:
        view.submit(1, model=name)
    for _ in range(count):
        view.step(policy)
        seen.append(widths(view))
        view.wait(60)
    return seen


# --- how fast jobs grow -----------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["pollux", "pollux-autoscaling:min_nodes=2", "sia"])
def test_a_job_starts_at_its_least_width_and_doubles(policy):
    assert rounds(policy, ["linear"], 5) == [[1], [2], [4], [8], [8]]
    assert rounds(policy, ["wide"], 3)[0] == [2]
    assert rounds(policy, ["wide"], 3)[1] == [4]


@pytest.mark.parametrize("policy", ["pollux", "sia"])
def test_a_width_counts_when_the_job_has_run_at_it(policy):
    """A start and a change take 100 s, longer than a round of 60 s."""
    models = {"linear": MODELS["linear"] | {"rescale_s": 100.0}}
    world = scenario(2, 4, models=models, epoch_s=60.0)
    seen = [row[0] for row in rounds(policy, ["linear"], 5, world)]
    assert seen[:3] == [1, 1, 2]
    assert seen[3] == 2


def test_without_a_limit_a_job_gets_all_at_once():
    assert rounds("pollux:growth=null", ["linear"], 1) == [[8]]
    assert rounds("sia:growth=null", ["linear"], 1) == [[8]]
    assert rounds("pollux:growth=4", ["linear"], 3) == [[1], [4], [8]]


def elastic(draw):
    """A small cluster, and jobs of its models that come over some minutes."""
    nodes, size = draw(st.integers(1, 4)), draw(st.sampled_from([2, 4]))
    costs = draw(st.sampled_from([{}, {"start_s": 30.0, "restore_s": 70.0, "rescale_s": 45.0}]))
    world = Scenario.from_document(
        {
            "name": "elastic", "nodes": nodes, "gpus_per_node": size, "models": MODELS,
            "epoch_s": 60.0, "costs": costs, "trace": {"generator": "none", "jobs": 1},
            "locality": [1.0, 1.2],
        },
        "elastic",
    )  # fmt: skip
    names = draw(st.lists(st.sampled_from([*MODELS, ""]), min_size=1, max_size=8))
    gangs = [draw(st.integers(1, nodes * size)) if name in ("", "linear") else 2 for name in names]
    columns = {
        "submit_s": sorted(draw(st.integers(0, 900)) for _ in names),
        "run_s": [draw(st.integers(1, 2000)) for _ in names],
        "gpus": gangs,
        "model": names,
    }
    return world, trace_of("t", "", columns)


@law(200, is_costly=True)
@given(st.data())
@pytest.mark.parametrize("policy", ["pollux", "pollux-autoscaling:rounds=2", "sia"])
def test_no_job_gets_more_than_twice_the_gpus_that_it_has_run_on(policy, data):
    world, trace = elastic(data.draw)
    record = Engine(world, trace, make(policy, world), 0, keep_intervals=True).run()
    assert (record.jobs.outcome == 0).all()
    most = {}
    for job, start, end, gpus in sorted(record.intervals, key=lambda row: (row[1], row[0])):
        table = MODELS.get(trace.model[job])
        least = table["phases"][0]["speedup"]["gpus"][0] if table else int(trace.gpus[job])
        if least > world.gpus:
            least = int(trace.gpus[job])
        assert len(gpus) <= max(2 * most.get(job, 0), least)
        if end > start:
            most[job] = max(most.get(job, 0), len(gpus))


# --- who is beside whom -----------------------------------------------------------------------


@law(200)
@given(st.data())
@pytest.mark.parametrize("policy", ["pollux", "pollux:growth=null", "pollux-autoscaling:rounds=2"])
def test_at_most_one_job_of_several_nodes_is_on_a_node(policy, data):
    world, trace = elastic(data.draw)
    record = Engine(world, trace, make(policy, world), 0, keep_intervals=True).run()
    size, spread = world.node_sizes[0], []
    for job, start, end, gpus in record.intervals:
        nodes = {gpu // size for gpu in gpus}
        spread += [(job, start, end, nodes)] if len(nodes) > 1 else []
    for (one, a, b, here), (other, c, d, there) in itertools.combinations(spread, 2):
        together = one != other and max(a, c) < min(b, d)
        assert not (together and here & there)


def test_jobs_stay_on_one_node_where_they_fit():
    """Three jobs of three GPUs on two nodes of four: 3 + 3, and the third gets one GPU of two."""
    models = {"three": model([1, 3], [1.0, 4.0])}
    world = scenario(2, 4, models=models, epoch_s=60.0)
    view, policy = ElasticView(world), make("pollux:growth=null", world)
    for _ in range(3):
        view.submit(1, model="three")
    view.step(policy)
    assert sorted(widths(view)) == [1, 3, 3]
    for gpus in view.held.values():
        assert len({gpu // 4 for gpu in gpus}) == 1


def test_a_second_job_of_several_nodes_gets_less_where_it_would_meet_the_first():
    """Two of six GPUs on three nodes of four have twelve in all, but one node for both."""
    world = scenario(3, 4, models={"six": model([2, 4, 6], [1.0, 2.0, 3.0])}, epoch_s=60.0)
    view, policy = ElasticView(world), make("pollux:growth=null", world)
    for _ in range(2):
        view.submit(1, model="six")
    view.step(policy)
    assert widths(view) == [6, 4]
    view.wait(60)
    assert not view.step(policy).place  # asked for six again, it keeps its four
    plain = make("pollux:growth=null,placement=lowest", world)
    view = ElasticView(world)
    for _ in range(2):
        view.submit(1, model="six")
    view.step(plain)
    assert widths(view) == [6, 6]


def test_a_gang_that_finds_no_place_has_all_placed_anew():
    """A gang of 5 is wanted; two jobs of 3 on two nodes each bar all nodes but for moves."""
    world = scenario(2, 4, epoch_s=60.0)
    view, policy = ElasticView(world), make("pollux", world)
    jobs = [view.submit(gpus) for gpus in (2, 2, 2, 1)]
    view.step(policy)
    assert sum(widths(view)) == 7
    view.finish(jobs[1], jobs[3])
    last = view.submit(4)
    view.wait(60)
    view.step(policy)
    assert len(view.held[last]) == 4


# --- what is maximised ------------------------------------------------------------------------


def test_speedups_are_over_a_fair_share():
    """Eight GPUs, three jobs: a fair share is three, of which they could use 3, 2 and 2.

    4, 2 and 2 GPUs: 3/4 + 1.4/1.4 + 1/1 = 2.75; 2, 2 and 4: 3/2 + 1 + 1/1.8 = 3.06. Over the least
    width of each the second would be better: 1/2 + 1/1.4 + 1/1.8 = 1.77 against 1.96.
    """
    names = ["linear", "root", "wide"]
    assert rounds("pollux:growth=null,placement=lowest", names, 1) == [[4, 2, 2]]


@law(200)
@given(st.data())
def test_widths_are_the_best_of_all(data):
    """Without limits: no other widths have a smaller sum of fair goodput over goodput."""
    names = data.draw(st.lists(st.sampled_from([*MODELS]), min_size=1, max_size=4))
    found = rounds("pollux:growth=null,placement=lowest", names, 1)[0]
    fair = -(-8 // len(names))

    def cost(name, width):
        table = MODELS[name]["phases"][0]["speedup"]
        speed = dict(zip(table["gpus"], table["speedup"], strict=True))
        base = speed[max((k for k in speed if k <= fair), default=min(speed))]
        return min(100.0, base / speed[width]) if width else 100.0

    tables = [[0, *MODELS[name]["phases"][0]["speedup"]["gpus"]] for name in names]
    choices = (row for row in itertools.product(*tables) if sum(row) <= 8)
    least = min(sum(map(cost, names, row)) for row in choices)
    assert sum(map(cost, names, found)) == pytest.approx(least)


def test_restarts_weigh_on_what_is_changed_again():
    """After many restarts a job keeps its width though the other half falls free."""
    for restarts, width in ((0, 8), (3, 4)):
        view, policy = ElasticView(WORLD), make("pollux:growth=null", WORLD)
        stays, ends = (view.submit(1, model="linear") for _ in range(2))
        view.step(policy)
        assert widths(view) == [4, 4]
        policy.history.restarts[stays] = restarts
        view.wait(120)  # 8 GPUs count (120 - 30 x restarts) / 150 as much: 6.4, or 1.6
        view.finish(ends)
        view.step(policy)
        assert widths(view) == [width]


# --- autoscaling ------------------------------------------------------------------------------


def test_the_cluster_grows_when_the_average_of_all_rounds_says_so():
    """Utilities of 0, 1 and 1 on one node of four are 2/3 on average, above 0.65.

    Each of the six may have two GPUs then: on 16 GPUs their utility is 6 x 1.4 / 16 = 0.525, on 20
    it is 0.42; so 16 are nearest to 0.5, the middle of the band.
    """
    world = scenario(8, 4, models={"root": MODELS["root"]}, epoch_s=60.0)
    view, policy, sizes = ElasticView(world), make("pollux-autoscaling:rounds=3", world), []
    for _ in range(6):
        view.submit(1, model="root")
    for _ in range(4):
        view.step(policy)
        sizes.append(policy.gpus)
        view.wait(60)
    assert sizes == [4, 4, 16, 16]


def test_a_busy_small_cloud_ends_all_its_jobs():
    """Gangs of 12 on nodes of four, between small jobs that keep one node in use."""
    world = scenario(6, 4, models=MODELS, epoch_s=60.0)
    columns = {
        "submit_s": [60.0 * n for n in range(40)],
        "gpus": [12 if n % 10 == 5 else 1 for n in range(40)],
        "run_s": [200.0] * 40,
        "model": ["" if n % 10 == 5 else "root" for n in range(40)],
    }
    result = simulate(world, "pollux-autoscaling", trace=trace_of("t", "", columns))
    assert result.metrics["passed"] == 40
