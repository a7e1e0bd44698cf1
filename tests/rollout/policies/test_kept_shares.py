"""Policies that keep what they know between calls decide as those that look at every job."""

from copy import deepcopy
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.capacity.equal_shares import Equi
from optsched.rollout.policies.capacity.least_work import Srpt
from optsched.rollout.policies.capacity.marginal import Marginal
from optsched.rollout.policies.capacity.requested import Requested
from optsched.rollout.policies.capacity.shared_by_kind import ActiveRows, SharedByKind
from optsched.rollout.policies.elastic import Elastic
from optsched.rollout.policies.fixed_capacity import SharedOut
from optsched.rollout.policies.held_gpus import Holdings
from optsched.rollout.registry import make
from optsched.traces.trace import Failure
from tests.rollout.policies.rounds.test_kept_rounds import check_against, still_scenarios
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law
from tests.support.strategies.rollout_random import scenarios

CURVE = {"kind": "table", "gpus": [1, 2, 4], "speedup": [1.0, 1.7, 2.5]}
FASTER = {"kind": "table", "gpus": [1, 2, 4], "speedup": [1.0, 1.9, 3.1]}
OTHER = {"kind": "table", "gpus": [1, 3], "speedup": [1.0, 1.2]}


@st.composite
def elastic_scenarios(draw):
    """Clusters with models of one, two or no widths of their own, some with nodes that close."""
    world = draw(still_scenarios())
    phases = [{"work_gpu_s": 50, "speedup": CURVE}]
    models = {"a": {"phases": phases}, "b": {"phases": phases * 2}, "c": {}}
    downtime = [{"nodes": [0], "from_s": 12.0, "to_s": 40.0, "kind": draw(st.sampled_from(KINDS))}]
    changes = {"models": models, "profile": None}
    if draw(st.booleans()):
        changes["downtime"] = downtime
    told = world.model_dump(by_alias=True, exclude_unset=True) | changes
    return type(world)(**told)


KINDS = ("drain", "outage")


@law(300)
@given(st.data())
def test_srpt_that_keeps_jobs_that_wait_in_order_decides_as_one_that_asks_them_all(data):
    check_against(data, data.draw(elastic_scenarios()), "srpt-k", (Srpt, "_ranked", _ranked_anew))


def test_a_job_that_failed_and_is_back_at_once_is_asked_what_it_has_left():
    """It waited with 70 s left, ran, failed, lost it all: 100 s are more than another one's 85."""
    world = scenario(1, 1, retries={"delay_s": 0.0, "limits": {}})
    failures = [[Failure("CPU out of memory", 40_000_000)], [], []]
    jobs = trace((0.0, 1, 100.0), (30.0, 1, 5.0), (32.0, 1, 85.0), failures=failures)
    record = Engine(world, jobs, make("srpt-k", world), 0).run()
    assert record.jobs.first_start_us.tolist() == [0, 30_000_000, 45_000_000]


def _ranked_anew(policy, view, jobs):
    return sorted(zip(policy.remaining_s(view, jobs), jobs, strict=True))


@law(300)
@given(st.data())
def test_a_queue_that_is_kept_starts_the_jobs_that_a_look_at_all_of_them_would(data):
    world = data.draw(elastic_scenarios())
    patches = [(Requested, "share_out", SharedOut.share_out), (Requested, "shares", _all_shares)]
    check_against(data, world, "fifo-requested", *patches)


def _all_shares(policy, view, jobs, gpus):
    shares = {job: policy.held.width(job) for job in jobs if job in policy.held.of}
    gpus -= sum(shares.values())
    for job in jobs:
        if job in shares:
            continue
        if view.demand(job) > gpus:
            break
        shares[job] = view.demand(job)
        gpus -= shares[job]
    return shares


@st.composite
def phased_scenarios(draw):
    """The same with jobs of several phases, some of whose widths differ, and nodes for rent."""
    world = draw(elastic_scenarios())
    curves = draw(st.lists(st.sampled_from([CURVE, FASTER, OTHER]), min_size=2, max_size=6))
    phases = [{"work_gpu_s": 1 + n, "speedup": curve} for n, curve in enumerate(curves)]
    changes = {"models": {"a": {"phases": phases}, "b": {"phases": phases[1:]}, "c": {}}}
    if not world.downtime and draw(st.booleans()):
        changes["rented"] = {"provision_s": draw(st.sampled_from([0.0, 7.0])), "at_start": 1}
    told = world.model_dump(by_alias=True, exclude_unset=True) | changes
    return type(world)(**told)


@pytest.mark.parametrize(
    "policy", ["equi", "fixed-width:k=3", "fixed-width:k=2,placement=best-fit", "boa-budgeted"]
)
@law(200)
@given(st.data())
def test_phases_that_change_no_width_are_passed_over_as_if_all_had_been_looked_at(policy, data):
    never = (Elastic, "_stays", lambda *_: False), (Equi, "goes_on", lambda *_: False)
    check_against(data, data.draw(phased_scenarios()), policy, *never)


@pytest.mark.parametrize("policy", ["equi", "hesrpt", "smartfill", "wham"])
@law(200)
@given(st.sampled_from(["lowest", "best-fit", "pal"]), st.data())
def test_rows_of_jobs_that_are_kept_give_the_widths_of_rows_made_anew(policy, placement, data):
    """Of jobs of several phases, whose curves differ, too."""
    anew = (SharedByKind, "share_out", SharedOut.share_out)
    policy = f"{policy}:placement={placement}"
    check_against(data, data.draw(phased_scenarios()), policy, anew)


@law(100)
@given(st.data())
def test_rows_of_jobs_that_get_less_than_their_share_of_a_type_are_made_anew(data):
    world = data.draw(scenarios(plain=True, types=True)).changed({"quotas": {}})
    check_against(data, world, "equi", (SharedByKind, "share_out", SharedOut.share_out))


@law(500)
@given(st.integers(0, 1 << 30))
def test_rows_are_those_of_the_jobs_that_came_and_did_not_leave(seed):
    draw, rows, known = Random(seed), ActiveRows(), {}
    for _ in range(draw.choice((5, 400))):
        job = draw.randint(0, draw.choice((4, 300)))
        if draw.random() < 0.3:
            rows.remove(job)
            known.pop(job, None)
        else:
            known[job] = draw.randint(0, 9), draw.random(), draw.randint(0, 9)
            rows.add(job, *known[job])
    assert rows.jobs == sorted(known)
    columns = rows.kinds.tolist(), rows.speeds.tolist(), rows.widths.tolist()
    assert list(zip(*columns, strict=True)) == [known[job] for job in rows.jobs]


@pytest.mark.parametrize("policy", ["hesrpt", "equi", "fixed-width:k=3", "srpt-k"])
@law(100)
@given(st.data())
def test_gpus_that_are_given_back_and_taken_at_once_are_those_that_were_free(policy, data):
    def release(held, jobs):
        for gpus in [held.of.pop(job) for job in jobs if job in held.of]:
            held.nodes.release(gpus)

    def take_lowest(held, count, back):
        held.nodes.release(sorted(back))
        gpus = held.nodes.lowest(count, held.usable)
        held.nodes.take(gpus)
        return gpus

    anew = (Holdings, "release", release), (Holdings, "take_lowest", take_lowest)
    check_against(data, data.draw(phased_scenarios()), policy, *anew)


def test_gpus_that_were_given_back_are_free_after_a_restore():
    world = scenario(1, 4)
    held, other = Holdings(world), Holdings(world)
    held.hold(0, (0, 2))
    held.release([0])
    other.restore(deepcopy(held.snapshot()))
    for each in (held, other):
        assert (each.free, each.taken) == (4, 0)
        assert each.take_lowest(3, []) == [0, 1, 2]
        assert (each.free, each.taken, each.lowest(4)) == (1, 3, (3,))
        each.release([0])  # it holds nothing any more
        assert each.take_lowest(2, [1]) == [1, 3]


def concave_scenario(draw):
    """A cluster and models of which each GPU adds less than the one before; not all is as told."""
    models = {name: {"phases": [_amdahl(draw.choice((0.5, 0.9, 0.99)), 64)]} for name in "ab"}
    parts = {"models": models | {"c": {}}, "end_s": 20_000.0}
    parts["costs"] = {"start_s": draw.choice((0.0, 30.0)), "restore_s": draw.choice((0.0, 70.0))}
    parts["retries"] = {"delay_s": draw.choice((0.0, 50.0)), "limits": {}}
    if draw.random() < 0.3:
        parts["locality"], parts["reference_place"] = [1.0, 1.5], draw.choice(("best", "one-node"))
    if draw.random() < 0.3:
        parts["neighbours"] = {"shared_server": 0.77}
    if draw.random() < 0.3:
        parts["beliefs"] = {"speedups": draw.choice((0.2, 1.0))}
    if draw.random() < 0.3:
        kinds = ("noisy", "history", "history", "none")
        parts["estimates"] = {"kind": draw.choice(kinds)}
    if draw.random() < 0.3:
        closed = {"nodes": [0], "from_s": 900.0, "to_s": 4000.0, "kind": draw.choice(KINDS)}
        parts["downtime"] = [closed]
    return scenario(draw.randint(2, 8), 8, **parts)


def _amdahl(fraction, most):
    speedup = {"kind": "amdahl", "parallel_fraction": fraction, "max_gpus": most}
    return {"work_gpu_s": 50, "speedup": speedup}


def long_trace(draw):
    """Jobs that run on while others come and go, some of them alike, some over at once."""

    def spans():
        return (0.0, *(draw.uniform(1, 9000) for _ in range(19)))

    rows = [
        (draw.choice((0.0, draw.randint(0, 9000))), draw.choice((1, 2, 8)), draw.choice(spans()))
        for _ in range(draw.randint(1, 40))
    ]
    rows += [draw.choice(rows) for _ in range(draw.choice((0, 0, 5)))]
    fails = [Failure("CPU out of memory", draw.randint(0, 900) * 1_000_000) for _ in rows]
    failures = [[failure] if draw.random() < 0.1 else [] for failure in fails]
    return trace(*rows, failures=failures, model=draw.choices("aaabbc", k=len(rows)))


@pytest.mark.parametrize("policy", ["equi", "hesrpt", "smartfill", "wham"])
@law(100, is_costly=True)
@given(st.data(), st.integers(0, 1 << 30))
def test_rows_of_many_jobs_of_which_some_are_held_on_closed_nodes_are_as_anew(policy, data, seed):
    draw = Random(seed)
    world, jobs = concave_scenario(draw), st.just(long_trace(draw))
    anew = (SharedByKind, "share_out", SharedOut.share_out)
    check_against(data, world, policy, anew, traces=lambda _: jobs)


@law(400, is_costly=True)
@given(st.data(), st.integers(0, 1 << 30), st.sampled_from(["lowest", "best-fit", "pal"]))
def test_who_is_far_from_the_cut_takes_the_steps_that_a_look_at_all_gives(data, seed, placement):
    draw = Random(seed)
    world, jobs = concave_scenario(draw), st.just(long_trace(draw))
    anew = (Marginal, "share_out", SharedOut.share_out)
    policy = f"marginal-greedy:placement={placement}"
    check_against(data, world, policy, anew, traces=lambda _: jobs)


def test_few_jobs_are_asked_what_they_have_left(monkeypatch):
    """Of 60 that share 320 GPUs, once it was seen how fast they get on."""
    world = scenario(40, 8, models={"a": {"phases": [_amdahl(0.99, 64)]}})
    jobs = trace(
        *[(40.0 * n, 1, 20_000.0 + 977 * (n * n % 61)) for n in range(90)], model=["a"] * 90
    )
    engine, asked, active = Engine(world, jobs, policy := make("marginal-greedy", world), 0), [], []
    ask = policy.remaining_s
    monkeypatch.setattr(
        policy, "remaining_s", lambda view, jobs: asked.append(len(jobs)) or ask(view, jobs)
    )
    while engine.step():
        active.append(len(policy.active))
    assert sum(asked) < 0.6 * sum(active)
