"""Laws that every rollout keeps, whatever the scenario, the trace and the policy."""

import copy
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.engine.state import DRAINING, READY, RUNNING, TRIAL
from optsched.rollout.engine.waiting import KINDS
from optsched.rollout.registry import ENTRIES, make
from optsched.rollout.results.outputs import epochs_frame, intervals_frame, jobs_frame
from optsched.rollout.results.parts_of_held_time import PARTS
from optsched.rollout.settings import SETTINGS
from optsched.traces.trace import US, trace_of
from tests.support.builders.rollout_parts import Fifo, gone_on, scenario, trace
from tests.support.oracles.rollout_replay import FIELDS, Replay
from tests.support.strategies.common import law
from tests.support.strategies.rollout_random import Anything, Observed, Watched, scenarios, traces

IDLE = 40


@pytest.fixture(autouse=True)
def short_idling(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "idle_epochs", IDLE)


@st.composite
def rollouts(draw):
    """An engine that has not begun, with a watched policy that does anything."""
    world = draw(scenarios(types=None))
    jobs = draw(traces(world))
    anything = Anything(draw(st.integers(0, 999)), wild_calls=draw(st.integers(0, 40)))
    policy = Watched(anything, every_epoch=draw(st.booleans()))
    engine = Engine(world, jobs, policy, draw(st.integers(0, 3)), keep_intervals=True)
    policy.world = engine.world
    return engine


def untimed(solves):
    """Solves without the seconds that they took."""
    return tuple(replace(solve, seconds=0.0, verification_s=0.0) for solve in solves)


def fingerprint(record):
    """All bytes of a record, but for what the clock said of its solves."""
    arrays = [getattr(record.jobs, field).tobytes() for field in FIELDS]
    numbers = (record.end_us, record.busy_gpu_us, record.available_gpu_us, record.spent_gpu_us)
    epochs = tuple(replace(epoch, solves=untimed(epoch.solves)) for epoch in record.epochs)
    rest = (numbers, record.energy_j, record.events, record.intervals, epochs)
    return pickle.dumps((arrays, repr(rest)))


def table(record):
    return {field: getattr(record.jobs, field).tolist() for field in FIELDS}


def check_state(world, before):
    """Invariants 1 to 5 and 7 of the state after a moment, and that some numbers only grow."""
    state, cluster = world.state, world.cluster
    most = (world.rules.is_shared and world.view.scenario.sharing.max_jobs_per_gpu) or 1
    for gpu, jobs in enumerate(state.jobs_on):
        assert len(jobs) <= most
        assert len(set(jobs)) == len(jobs)
        assert all(gpu in state.gpus_of[job] for job in jobs)
    for job, gpus in enumerate(state.gpus_of):
        assert (job in state.running) == bool(gpus) == (state.status[job] in (RUNNING, TRIAL))
        assert all(job in state.jobs_on[gpu] for gpu in gpus)
        assert list(gpus) == sorted(set(gpus))
        assert state.width[job] == len(gpus)
        assert 0 <= state.goal[job] <= state.remaining[job] <= state.saved[job] <= state.total[job]
    free = [0] * cluster.nodes
    for gpu, jobs in enumerate(state.jobs_on):
        free[cluster.node_of[gpu]] += not jobs
    assert free == state.free_of
    assert state.busy_gpus == cluster.gpus - sum(free)
    accounts = world.accounts
    for job in range(state.submitted):
        idle = accounts.overhead[job] + accounts.pre_run[job]
        parts = accounts.redone[job] + idle + state.unsaved_gpu_us[job]
        assert parts <= accounts.allocated[job]
    grown = (world.now, world.busy_gpu_us, world.available_gpu_us, world.spent_gpu_us, world.joules)
    assert all(new >= old for new, old in zip(grown, before, strict=True))
    assert world.busy_gpu_us <= world.available_gpu_us <= world.spent_gpu_us
    usable = [READY, DRAINING]
    held = sum(
        size - free[n] for n, size in enumerate(cluster.size) if state.node_state[n] in usable
    )
    empty = sum(count for n, count in enumerate(free) if state.node_state[n] == READY)
    assert state.ready_gpus == held + empty
    return grown


@law(2000)
@given(rollouts())
def test_rollout_is_as_the_second_engine_has_it(engine):
    grown = (0,) * 5
    while engine.step():
        grown = check_state(engine.world, grown)
    record, policy = engine.record(), engine.policy
    replay = Replay(
        engine.scenario,
        engine.trace,
        engine.seed,
        policy.calls,
        policy.given_up,
        policy.every_epoch,
        IDLE,
    ).run()
    assert table(record) == replay.jobs_table()
    assert sorted(record.intervals) == replay.intervals()
    integrals = (record.busy_gpu_us, record.available_gpu_us, record.spent_gpu_us)
    assert integrals == (replay.busy, replay.available, replay.spent)
    assert (record.end_us, record.events) == (replay.now, replay.events)
    assert record.is_starved == replay.starved
    assert len(record.epochs) <= len(policy.calls)
    assert tuple(map(tuple, record.window)) == replay.counted_in_window()
    assert record.energy_j == pytest.approx(replay.joules, rel=1e-9, abs=1e-9)
    assert record.billed_usd == pytest.approx(replay.usd, rel=1e-6, abs=1e-9)
    check_record(record)


KNOWN = (
    *("fifo", "fifo:relax_s=15,backfill=true", "las", "srtf", "tiresias", "packed-sticky"),
    *("packed-non-sticky", "random-sticky", "wsrpt", "random-non-sticky", "pm-first", "pal-greedy"),
    *("philly:pre_run=true,pre_run_s=3,stop_retrying=true", "philly:dedicated=true"),
    "philly:spread=true,relax_by=one,relax_for=place",
    "foresight:simulated=20",
    "philly:retry_s=2,defragment=true,dedicated=true,share_after=3,pre_run=true,pre_run_s=3,pool=1,"
    "stop_retrying=true,stop_below=0.45,learn_by=queue",
)


@pytest.mark.parametrize("name", KNOWN)
@law(50)
@given(st.data())
def test_policies_of_the_registry_as_the_second_engine_has_them(name, data):
    assert_as_the_second_engine_has_it(name, data.draw(scenarios(plain=True)), data)


def assert_as_the_second_engine_has_it(name, world, data):
    jobs = data.draw(traces(world))
    policy = Observed(make(name, world, 0))
    engine = Engine(world, jobs, policy, 0, keep_intervals=True)
    policy.world = engine.world
    record = engine.run()
    calls, given_up = policy.calls, policy.given_up
    replay = Replay(world, jobs, 0, calls, given_up, policy.every_epoch, IDLE).run()
    assert table(record) == replay.jobs_table()
    assert sorted(record.intervals) == replay.intervals()


@pytest.mark.parametrize("name", ["pollux", "pollux-autoscaling:rounds=2", "sia", "time-slicing"])
@law(50)
@given(st.data())
def test_adaptive_policies_as_the_second_engine_has_them(name, data):
    none = {"quotas": {}, "downtime": [], "rented": None, "costs.stop_loses_work": False}
    plain = name != "time-slicing"  # that packs jobs
    world = data.draw(scenarios(plain=plain)).changed(none)
    assert_as_the_second_engine_has_it(name, world, data)


@pytest.mark.parametrize("name", ["equi", "equi:placement=best-fit", "pollux", "sia"])
@law(100)
@given(st.data())
def test_policies_that_know_gpu_types_as_the_second_engine_has_them(name, data):
    none = {"quotas": {}, "downtime": [], "costs.stop_loses_work": False}
    world = data.draw(scenarios(plain=True, types=True)).changed(none)
    assert_as_the_second_engine_has_it(name, world, data)


POLICIES = (
    *(entry.name for entry in ENTRIES),
    *("philly:pre_run=yes,pre_run_s=3,dedicated=yes,defragment=yes", "tiresias:promote=0.5"),
    "philly:spread=yes,relax_by=one,relax_for=place",
    "philly:stop_retrying=yes,stop_below=0.45,pre_run=yes,pre_run_s=2,pool=1,share_after=2",
    *("boa:rates=history,widths=mixed,every_s=9", "boa-budgeted:rates=history,sizes=estimates"),
    *("fifo:relax_s=9,backfill=yes", "equi:placement=pal", "las:backfill=yes"),
)


@law(300)
@given(st.data())
def test_a_rollout_that_is_interrupted_at_any_event_ends_as_one_that_is_not(data):
    """Of every registered policy, cut several times; `steps` counts from cut to cut."""
    name = data.draw(st.sampled_from(POLICIES))
    types = name in ("equi", "pollux", "sia") and data.draw(st.booleans())
    world = data.draw(scenarios(plain=True, types=types))
    cuts = data.draw(st.lists(st.integers(0, 12)))
    jobs, seed = data.draw(traces(world)), data.draw(st.integers(0, 2))

    def begun():
        return Engine(world, jobs, make(name, world, seed), seed, keep_intervals=True)

    try:
        whole = begun().run()
    except ValueError:  # a policy that does not know such a scenario, or such a gang
        return
    engine = begun()
    for steps in cuts:
        for _ in range(steps):
            engine.step()
        engine = gone_on(engine, begun())
    assert told(engine.run()) == told(whole)


def told(record):
    """All that a rollout writes, but for the seconds of solvers."""
    frames = (jobs_frame(record), epochs_frame(record), intervals_frame(record))
    return [frame.to_csv() for frame in frames], record.events, record.energy_j


def check_record(record):
    """Invariants 3 to 5, 7 and 8 of a record, from its intervals."""
    jobs, count = record.jobs, len(record.trace)
    held = np.zeros(count, dtype=np.int64)
    by_job = [[] for _ in range(count)]
    for job, start, end, gpus in record.intervals:
        held[job] += (end - start) * len(gpus)
        by_job[job].append((start, end))
    assert np.array_equal(held, jobs.allocated_gpu_us)
    parts = {part: getattr(jobs, f"{part}_gpu_us") for part in PARTS}
    assert all(np.all(parts[name] >= 0) for name in set(PARTS) - {"width_loss", "slow_gpu_loss"})
    assert np.array_equal(sum(parts.values()), jobs.allocated_gpu_us)
    assert np.all((jobs.effective_gpu_us >= 0) & (jobs.effective_gpu_us <= jobs.allocated_gpu_us))
    assert jobs.effective_gpu_us.sum() <= record.busy_gpu_us
    for job, spans in enumerate(by_job):
        spans.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(spans))
        assert sum(end - start for start, end in spans) == jobs.running_us[job]
        if spans:
            assert jobs.first_start_us[job] == spans[0][0] >= record.trace.submit_us[job]
        if jobs.outcome[job] >= 0 and spans:
            assert spans[-1][1] <= jobs.end_us[job] <= record.end_us
        if jobs.outcome[job] == 0:
            ends = jobs.failures[job] + jobs.preemptions[job] + jobs.outages[job]
            assert jobs.attempts[job] == ends + 1
    kinds = [getattr(jobs, f"{kind}_us") for kind in KINDS]
    assert np.all(np.array(kinds) >= 0)
    assert np.array_equal(sum(kinds), jobs.waiting_us)
    assert np.array_equal(jobs.outcome == -1, jobs.end_us == -1)


@law(500)
@given(rollouts(), st.integers(0, 30))
def test_saving_between_any_two_steps_changes_nothing(engine, steps):
    twin, new = copy.deepcopy(engine), copy.deepcopy(engine)
    record = engine.run()
    for _ in range(steps):
        twin.step()
    twin.record()  # asking for a record on the way changes nothing either
    assert fingerprint(gone_on(twin, new).run()) == fingerprint(record)


@law(200)
@given(rollouts())
def test_same_seed_same_bytes(engine):
    twin = copy.deepcopy(engine)
    assert fingerprint(engine.run()) == fingerprint(twin.run())


@st.composite
def gangs(draw):
    """Up to 12 jobs (submit_s, gpus, run_s) of up to 4 GPUs."""
    seconds = st.integers(0, 60).map(float)
    return draw(st.lists(st.tuples(seconds, st.integers(1, 4), seconds), min_size=1, max_size=12))


def fifo_run(world, rows):
    return Engine(world, trace(*rows), Fifo(), 0).run()


@law(500)
@given(gangs(), st.sampled_from([2, 3, 7]))
def test_times_scale(rows, factor):
    once = fifo_run(scenario(1, 4), rows)
    longer = [(submit * factor, gpus, run * factor) for submit, gpus, run in rows]
    scaled = fifo_run(scenario(1, 4, epoch_s=10.0 * factor), longer)
    assert np.array_equal(scaled.jobs.end_us, once.jobs.end_us * factor)
    assert scaled.busy_gpu_us == once.busy_gpu_us * factor


@law(500)
@given(gangs())
def test_nodes_that_are_never_used_change_nothing(rows):
    once = fifo_run(scenario(12, 4), rows)  # 12 jobs of 4: all at once
    more = fifo_run(scenario(13, 4), rows)
    assert table(once) == table(more)
    assert once.busy_gpu_us == more.busy_gpu_us


@law(500)
@given(gangs())
def test_without_load_jobs_take_their_run_time(rows):
    record = fifo_run(scenario(12, 4), rows)
    runs = record.trace.run_us
    assert np.array_equal(record.jobs.end_us - record.trace.submit_us, runs)
    assert not record.jobs.waiting_us.any()


@law(500)
@given(gangs(), st.permutations(range(12)))
def test_names_do_not_matter(rows, names):
    names = [f"job-{names[n]}" for n in range(len(rows))]
    plain = fifo_run(scenario(1, 4), rows)
    named = Engine(scenario(1, 4), trace(*rows, ids=names), Fifo(), 0).run()
    assert table(plain) == table(named)


@law(500)
@given(gangs())
def test_makespan_and_jct_have_their_lower_bounds(rows):
    record = fifo_run(scenario(1, 4), rows)
    work = (record.trace.gpus * record.trace.run_us).sum()
    assert 4 * record.end_us >= work
    assert record.end_us >= (record.trace.submit_us + record.trace.run_us).max()
    jct = record.jobs.end_us - record.trace.submit_us
    assert 4 * jct.sum() >= srpt_on_one_fast_machine(record.trace)


def srpt_on_one_fast_machine(jobs):
    """Sum of JCTs, x 4, if the cluster were one machine that may split its GPUs as it likes."""
    left = [int(work) for work in jobs.gpus * jobs.run_us]
    submit = [4 * int(time) for time in jobs.submit_us]  # in GPU-microseconds of 4 GPUs
    now, total, done = 0, 0, set()
    while len(done) < len(left):
        here = [n for n in range(len(left)) if n not in done and submit[n] <= now]
        later = [time for n, time in enumerate(submit) if n not in done and time > now]
        if not here:
            now = min(later)
            continue
        job = min(here, key=lambda n: left[n])
        span = min([left[job], *(time - now for time in later)])
        left[job], now = left[job] - span, now + span
        if not left[job]:
            done.add(job)
            total += now - submit[job]
    return total


@law(500)
@given(gangs(), st.sampled_from([5.0, 8.0, 40.0]))
def test_half_the_epoch_starts_no_job_later(rows, epoch_s):
    """FIFO on counts is monotone: every job starts no later when there are more epochs."""
    rare = fifo_run(scenario(1, 4, epoch_s=epoch_s, decide_on=()), rows)
    often = fifo_run(scenario(1, 4, epoch_s=epoch_s / 2, decide_on=()), rows)
    assert np.all(often.jobs.first_start_us <= rare.jobs.first_start_us)
    assert np.all(often.jobs.end_us <= rare.jobs.end_us)


class NeverIdle(Fifo):
    def decide(self, view):
        decision = super().decide(view)
        placed = sum(len(gpus) for gpus in decision.place.values())
        if self.queue:
            assert view.demand(self.queue[0]) > view.free.sum() - placed
        return decision


@law(200)
@given(gangs())
def test_fifo_leaves_no_gpus_to_a_head_that_fits(rows):
    record = Engine(scenario(1, 4), trace(*rows), NeverIdle(), 0).run()
    assert np.all(record.jobs.outcome == 0)


def test_no_jobs_no_events_and_idle_energy():
    power = {
        "gpu": {"bare_w": 30, "context_w": 36, "peak_w": 300},
        "node": {"base_w": 500, "sleep_w": 20},
    }
    empty = trace_of("none", "", {"submit_s": [], "gpus": [], "run_s": []})
    record = Engine(scenario(2, 4, power=power, end_s=50.0), empty, Fifo(), 0).run()
    assert (record.end_us, record.events, len(record.epochs)) == (0, 0, 0)
    late = trace((0.0, 1, 0.0), (50.0, 1, 0.0))
    record = Engine(scenario(2, 4, power=power), late, Fifo(), 0).run()
    assert record.energy_j == pytest.approx(50 * 2 * (500 + 4 * 30))
    assert record.available_gpu_us == 50 * 8 * US


SCRIPT = """
import hashlib, random
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.rollout_random import Anything
from optsched.rollout.engine.engine import Engine
rows = [(n * 3.0, 1 + n % 4, 5.0 + n) for n in range(30)]
policy = Anything(1, 200)
policy.name = "anything"
models = {"m": {"utilisation": 0.5, "memory_gb": 1.0}}
world = scenario(3, 4, sharing={"max_jobs_per_gpu": 2}, neighbours={"shared_server": 0.77},
                 models=models, quotas={"q": 9})
jobs = trace(*rows, model=["m"] * 30, queue=["q", "r"] * 15)
record = Engine(world, jobs, policy, 0, True).run()
print(hashlib.sha256(repr((record.intervals, list(record.epochs))).encode()).hexdigest())
"""


def test_hashing_of_strings_does_not_matter():
    root = str(Path(__file__).parents[2])
    outputs = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": root}
        command = [sys.executable, "-c", SCRIPT]
        outputs.add(subprocess.check_output(command, env=environment, text=True))
    assert len(outputs) == 1
