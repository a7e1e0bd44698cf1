"""Tiresias by hand: queues, first starts, lease, skewed models, Gittins indices."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.tiresias.gittins import GittinsIndex, services_us
from optsched.rollout.registry import make
from optsched.traces.trace import FAILED, STATUSES, US, Failure
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law


def run(rows, policy, nodes=1, width=2, model=None, **parts):
    world = scenario(nodes, width, **parts)
    jobs = trace(*rows) if model is None else trace(*rows, model=model)
    return Engine(world, jobs, make(policy, world, 0), 0, keep_intervals=True).run()


def spans(record):
    """(job, from, to) in seconds."""
    return [(job, start / US, end / US) for job, start, end, _ in sorted(record.intervals)]


def test_jobs_of_one_queue_came_by_submission_not_by_first_start():
    """The gang is job 1, but job 2 starts before it; so when both have fallen, 2 comes first."""
    rows = [(0, 1, 30), (1, 2, 100), (2, 1, 200)]
    record = run(rows, "tiresias:thresholds_gpu_s=20,lease_s=0", epoch_s=10.0)
    assert spans(record) == [(0, 0, 30), (1, 30, 40), (1, 212, 302), (2, 2, 30), (2, 40, 212)]


def test_attained_service_counts_gpus_times_time():
    """A gang of two falls after 10 s of 20 GPU-seconds, a job of one after 20 s."""
    rows = [(0, 2, 60), (5, 1, 30)]
    record = run(rows, "tiresias:thresholds_gpu_s=20,lease_s=0", epoch_s=1.0)
    assert (record.jobs.first_start_us / US).tolist() == [0, 10]


@pytest.mark.parametrize(("lease", "start"), [("0", 10.0), ("25", 25.0), ("null", 20.0)])
def test_a_running_job_was_preempted_without_a_lease(lease, start):
    """The epoch is 5 s, but of `null` 20 s: the lease then, too."""
    epoch = 20.0 if lease == "null" else 5.0
    policy = f"tiresias:thresholds_gpu_s=20,lease_s={lease}"
    record = run([(0, 2, 100), (5, 2, 10)], policy, epoch_s=epoch)
    assert record.jobs.first_start_us[1] / US == start


@pytest.mark.parametrize(("model", "nodes"), [("skewed", {2}), ("even", {1, 2}), ("", {1, 2})])
def test_only_gangs_of_skewed_models_are_consolidated(model, nodes):
    """Node 0 is full, of node 1 one GPU is free, node 2 is empty."""
    models = {"skewed": {"locality": [1.0, 1.5]}, "even": {"locality": [1.0, 1.0]}}
    rows = [(0, 1, 50), (0, 1, 50), (0, 1, 50), (1, 2, 10)]
    told = {"model": ["skewed"] * 3 + [model], "models": models}
    record = run(rows, "tiresias", 3, 2, **told)
    assert {gpu // 2 for job, *_, gpus in record.intervals if job < 3 for gpu in gpus} == {0, 1}
    assert {gpu // 2 for job, *_, gpus in record.intervals if job == 3 for gpu in gpus} == nodes
    everyone = run(rows, "tiresias:consolidate=all", 3, 2, **told)
    assert (3, 1 * US, 11 * US, (4, 5)) in everyone.intervals


def test_without_a_profile_of_models_all_gangs_are_consolidated():
    record = run([(0, 1, 50), (1, 2, 10)], "tiresias", 2, 2)
    assert (1, 1 * US, 11 * US, (2, 3)) in record.intervals


# --- Gittins ----------------------------------------------------------------------------------


def by_words(services, attained, delta):
    """P(ends within delta) / E(service within delta), job by job."""
    left = [s - attained for s in services if s > attained]
    if not left:
        return 0.0
    ends = sum(s <= delta for s in left) / len(left)
    return ends / (sum(min(s, delta) for s in left) / len(left))


@law(100)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=12),
    st.integers(0, 70),
    st.integers(1, 40),
)
def test_the_gittins_index_is_its_definition(services, attained, delta):
    index = GittinsIndex(np.sort(np.array(services, dtype=float)), float(delta))
    found = index.of(np.array([attained]))[0]
    assert found == pytest.approx(by_words(services, attained, delta), rel=1e-12)


def test_services_are_gpus_times_time_and_of_failed_jobs_what_their_attempts_take():
    jobs = trace((0, 2, 100), (0, 4, 50), failures=[(), (Failure("Core dump", 7 * US),)])
    jobs = replace(jobs, status=np.array([0, STATUSES.index(FAILED)]))
    assert services_us(jobs).tolist() == [28 * US, 200 * US]


def test_who_will_likely_end_soon_comes_before_who_started_first():
    """Services 100, 100, 10, 10 and one GPU: at 50 s job 0 has no chance to end within 20 s."""
    rows = [(0, 1, 100), (0, 1, 100), (45, 1, 10), (45, 1, 10)]
    told = {"width": 1, "epoch_s": 10.0}
    options = "thresholds_gpu_s=20/1000,lease_s=0"
    plain = run(rows, f"tiresias:{options}", **told)
    gittins = run(rows, f"tiresias-gittins:{options}", **told)
    assert (gittins.jobs.end_us[2:] < 100 * US).all()
    assert gittins.jobs.end_us.mean() <= plain.jobs.end_us.mean()
    index = GittinsIndex(np.array([10.0, 10.0, 100.0, 100.0]), 20.0)
    assert index.of(np.array([0, 50, 85, 100])).tolist() == [2 / 4 / 15, 0, 1 / 15, 0]
