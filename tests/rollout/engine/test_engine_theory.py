"""The engine against queueing theory and against other ways to compute the same schedule."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from optsched.rollout.engine.decision import Decision
from optsched.rollout.engine.engine import Engine
from optsched.traces.trace import US, trace_of
from tests.support.builders.rollout_parts import BestFit, scenario, trace
from tests.support.strategies.common import law

JOBS = 20_000


def run_fifo(nodes, gpus_per_node, jobs):
    world = scenario(nodes, gpus_per_node, epoch_s=1e6)
    return Engine(world, jobs, BestFit(world), 0).run()


def queue_of(gaps, runs):
    """Jobs of one GPU with these times between arrivals and run times."""
    submit = np.cumsum(gaps)
    return trace_of(
        "queue", "", {"submit_s": submit, "gpus": np.ones(len(runs), int), "run_s": runs}
    )


def waits_s(record):
    return (record.jobs.first_start_us - record.trace.submit_us) / US


def interval(values, batches=25, level=0.999):
    """Confidence interval of a mean by batch means."""
    means = values[: len(values) // batches * batches].reshape(batches, -1).mean(axis=1)
    half = stats.t.ppf((1 + level) / 2, batches - 1) * means.std(ddof=1) / math.sqrt(batches)
    return means.mean() - half, means.mean() + half


def erlang_c(servers, load):
    """Probability of waiting in M/M/c with an offered load in Erlangs."""
    terms = [load**n / math.factorial(n) for n in range(servers)]
    last = load**servers / math.factorial(servers) * servers / (servers - load)
    return last / (sum(terms) + last)


@pytest.mark.parametrize(("servers", "load"), [(1, 0.7), (4, 3.0), (8, 6.8)])
def test_mmc_waits_as_erlang_says(servers, load):
    random = np.random.default_rng(11)
    jobs = queue_of(random.exponential(10 / load, JOBS), random.exponential(10, JOBS))
    waits = waits_s(run_fifo(1, servers, jobs))[1000:]
    expected = erlang_c(servers, load) * 10 / (servers - load)
    low, high = interval(waits)
    assert low < expected < high
    assert high - low < 0.6 * expected
    low, high = interval((waits > 0).astype(float))
    assert low < erlang_c(servers, load) < high


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_md1_waits_as_pollaczek_and_khinchine_say(load):
    random = np.random.default_rng(5)
    jobs = queue_of(random.exponential(10 / load, JOBS), np.full(JOBS, 10.0))
    low, high = interval(waits_s(run_fifo(1, 1, jobs))[1000:])
    expected = load * 10 / (2 * (1 - load))
    assert low < expected < high
    assert high - low < 0.6 * expected


def test_one_server_waits_as_lindley_says():
    random = np.random.default_rng(3)
    jobs = queue_of(random.exponential(9, 3000), random.lognormal(1.5, 1, 3000))
    record = run_fifo(1, 1, jobs)
    wait, waits = 0, [0]
    for gap, run in zip(np.diff(jobs.submit_us).tolist(), jobs.run_us.tolist(), strict=False):
        wait = max(0, wait + run - gap)
        waits.append(wait)
    assert (record.jobs.first_start_us - jobs.submit_us).tolist() == waits


class Srpt:
    """Shortest remaining processing time on one GPU, with preemption."""

    name = "srpt"

    def decide(self, view):
        jobs = view.pending.tolist() + view.running.tolist()
        if not jobs:
            return Decision()
        left = view.remaining_us(jobs)
        _, best = min((round(time), job) for time, job in zip(left, jobs, strict=True))
        running = view.running.tolist()
        if best in running:
            return Decision()
        return Decision(place={best: (0,)}, stop=running)


def srpt_ends(submit, run):
    """Ends by SRPT, from arrival to arrival."""
    left, ends = dict(enumerate(run)), [0] * len(run)
    now = 0
    while left:
        here = [job for job in left if submit[job] <= now]
        later = [submit[job] for job in left if submit[job] > now]
        if not here:
            now = min(later)
            continue
        job = min(here, key=lambda n: (left[n], n))
        span = min([left[job], *(time - now for time in later)])
        now, left[job] = now + span, left[job] - span
        if not left[job]:
            del left[job]
            ends[job] = now
    return ends


@law(500)
@given(st.lists(st.tuples(st.integers(0, 100), st.integers(1, 40)), min_size=1, max_size=20))
def test_srpt_on_one_machine(rows):
    rows = sorted(rows, key=lambda row: row[0])
    jobs = trace(*[(float(submit), 1, float(run)) for submit, run in rows])
    record = Engine(scenario(1, 1, epoch_s=1e6), jobs, Srpt(), 0).run()
    assert record.jobs.end_us.tolist() == srpt_ends(jobs.submit_us.tolist(), jobs.run_us.tolist())


def gang_starts(jobs, capacity):
    """Starts of strict FIFO with gangs, each by looking at all jobs before it."""
    rows = list(zip(jobs.submit_us.tolist(), jobs.gpus.tolist(), jobs.run_us.tolist(), strict=True))
    starts, ends = [], []
    for submit, gpus, run in rows:
        earliest = max([submit, *starts[-1:]])
        for time in sorted({earliest, *(end for end in ends if end > earliest)}):
            used = sum(rows[n][1] for n, end in enumerate(ends) if starts[n] <= time < end)
            if used + gpus <= capacity:
                break
        starts.append(time)
        ends.append(time + run)
    return starts


def random_gangs(seed, count, capacity):
    random = np.random.default_rng(seed)
    return trace_of(
        "gangs",
        "",
        {
            "submit_s": np.cumsum(random.exponential(20, count)),
            "gpus": np.minimum(2 ** random.integers(0, 5, count), capacity),
            "run_s": random.lognormal(4, 1, count),
        },
    )


@pytest.mark.parametrize("seed", range(3))
def test_fifo_gangs_are_as_brute_force_has_them(seed):
    jobs = random_gangs(seed, 300, 16)
    record = run_fifo(4, 4, jobs)
    assert record.jobs.first_start_us.tolist() == gang_starts(jobs, 16)
    assert record.jobs.waiting_us.max() > 0


@law(500)
@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 6), st.integers(0, 30)),
        min_size=1,
        max_size=25,
    )
)
def test_fifo_gangs_are_as_brute_force_has_them_with_many_ties(rows):
    jobs = trace(*[(float(submit), gpus, float(run)) for submit, gpus, run in rows])
    assert run_fifo(2, 3, jobs).jobs.first_start_us.tolist() == gang_starts(jobs, 6)


def simpy_schedule(simpy, jobs, capacity):
    """Starts and ends with SimPy: one Container of GPUs, first come, first served."""
    starts, ends = [0] * len(jobs), [0] * len(jobs)
    environment = simpy.Environment()
    pool = simpy.Container(environment, capacity=capacity, init=capacity)

    def job(number, submit, gpus, run):
        yield environment.timeout(submit)
        yield pool.get(gpus)
        starts[number] = environment.now
        yield environment.timeout(run)
        ends[number] = environment.now
        yield pool.put(gpus)

    rows = zip(jobs.submit_us.tolist(), jobs.gpus.tolist(), jobs.run_us.tolist(), strict=True)
    for number, row in enumerate(rows):
        environment.process(job(number, *row))
    environment.run()
    return starts, ends


@pytest.mark.parametrize("seed", range(3))
def test_simpy_has_the_same_schedule(seed):
    simpy = pytest.importorskip("simpy", reason="SimPy is the second engine: pip install simpy")
    jobs = random_gangs(seed, 1000, 32)
    record = run_fifo(4, 8, jobs)
    starts, ends = simpy_schedule(simpy, jobs, 32)
    assert record.jobs.first_start_us.tolist() == starts
    assert record.jobs.end_us.tolist() == ends
    assert record.jobs.waiting_us.max() > 0
