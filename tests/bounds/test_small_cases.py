"""Bounds of small cases: tight where theory says so, and never above the best schedule."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.bounds.bound import bound_of, relaxation
from optsched.bounds.certificate import Bounds
from optsched.bounds.least_times import world_of
from optsched.bounds.relaxation.prices import relaxed
from optsched.bounds.relaxation.rounding import certificate_of
from optsched.bounds.schedules import Schedules
from optsched.bounds.verify.bounds import proven_mean_jct_s, verify_bounds
from optsched.rollout.trace_source import jobs_of
from optsched.traces.trace import Failure
from optsched.verification import Violation
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

PLAIN = Schedules()


def jct(world, jobs):
    found = bound_of(world, jobs, PLAIN)
    verify_bounds(world, jobs, found)
    return found.jct_mean_s


def test_one_job_alone_is_as_long_as_it_is():
    assert jct(scenario(2, 4), trace((0, 8, 33.5))) == 33.5


def test_jobs_that_never_meet_are_each_as_long_as_they_are():
    assert jct(scenario(1, 1), trace((0, 1, 5), (7, 1, 3), (100, 1, 1))) == 3


def test_equal_jobs_on_one_gpu_are_within_a_slot_of_shortest_first():
    jobs = trace(*[(0, 1, 10)] * 6)
    assert 35 * 0.98 <= jct(scenario(1, 1), jobs) <= 35


def test_unlike_jobs_on_one_gpu_are_near_shortest_first():
    """The order of mean busy times is that of Smith's rule: its value is the optimum here."""
    lengths = [1, 2, 4, 8, 16]
    optimum = sum(itertools.accumulate(lengths)) / len(lengths)
    assert optimum * 0.97 <= jct(scenario(1, 1), trace(*((0, 1, t) for t in lengths))) <= optimum


def best_total(jobs, gpus):
    """The least sum of completion times over preemptive schedules in unit steps, by search."""
    start = tuple(run for _, _, run in jobs)
    states, total = {start: 0}, None
    for now in range(sum(start) + max(at for at, _, _ in jobs) + 1):
        after = {}
        for left, cost in states.items():
            if not any(left):
                total = cost if total is None else min(total, cost)
                continue
            ready = [n for n, (at, _, _) in enumerate(jobs) if at <= now and left[n]]
            for count in range(len(ready) + 1):
                for chosen in itertools.combinations(ready, count):
                    if sum(jobs[n][1] for n in chosen) > gpus:
                        continue
                    new = tuple(x - (n in chosen) for n, x in enumerate(left))
                    ends = sum(now + 1 for n in chosen if not new[n])
                    if cost + ends < after.get(new, 10**9):
                        after[new] = cost + ends
        states = after
    done = [cost for left, cost in states.items() if not any(left)]
    return min([*done, *([] if total is None else [total])])


SMALL = st.lists(
    st.tuples(st.integers(0, 4), st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=4
)


@law(60)
@given(SMALL)
def test_no_schedule_in_whole_steps_is_below_the_bound(rows):
    jobs = sorted(rows)
    submit = sum(at for at, _, _ in jobs)
    found = jct(scenario(1, 3), trace(*jobs))
    assert found <= (best_total(jobs, 3) - submit) / len(jobs) + 1e-12


def test_rounds_are_held_whole():
    world = scenario(1, 1, decide_on=(), finish_at_epochs=True)
    assert jct(world, trace((0, 1, 5), (3, 1, 5))) == (10 + 17) / 2
    assert jct(world, trace((0, 1, 15))) == 20


def test_what_checkpoints_could_keep_of_a_failed_attempt_is_not_counted_twice():
    """The first trap: with checkpoints the failed 30 s may have done 30 s of the work."""
    failures = [[Failure("x", 30_000_000)]]
    jobs = trace((0, 1, 40), failures=failures, status=["passed"])
    assert jct(scenario(1, 1), jobs) == 70
    assert jct(scenario(1, 1, costs={"checkpoint_every_s": 7.0}), jobs) == 40
    kept = {"checkpoint_every_s": 7.0, "restore_s": 1.0, "start_s": 1.0}
    assert jct(scenario(1, 1, costs=kept), jobs) == 43
    lost = {"checkpoint_every_s": 7.0, "stop_loses_work": True}
    assert jct(scenario(1, 1, costs=lost), jobs) == 42


def test_a_slow_gpu_and_distance_count_only_where_no_place_avoids_them():
    profile = {"gpus": ["a", "b", "c"], "slowdown": {"A": [1, 1, 2.0]}, "kind": "persistent"}
    world = scenario(
        *((3, 1)),
        profile=profile,
        models={"m": {"application_class": "A"}},
        locality=(1.0, 1.5),
        reference_place="one-node",
    )
    lengths = [jct(world, trace((0, width, 9), model=["m"])) for width in (1, 2, 3)]
    assert lengths == pytest.approx([9, 13.5, 27], rel=1e-6)


def by_gpus(scene, jobs):
    """Bounds by prices of GPUs, as where there are too many gangs for prices of their own."""
    found, world = bound_of(scene, jobs, PLAIN), world_of(scene, jobs, PLAIN)
    certificate = certificate_of(relaxed(world), len(jobs))
    told = {"jct": certificate, "jct_mean_s": proven_mean_jct_s(world, certificate)}
    return found.model_copy(update=told)


def test_any_prices_prove_their_value_and_no_more():
    scene, jobs = scenario(1, 2), trace(*[(n, 1 + n % 2, 5 + n) for n in range(8)])
    found = by_gpus(scene, jobs)
    document = found.model_dump(mode="json", by_alias=True)
    for price in (0, 1, 2**39):
        prices = [price] * len(found.jct.prices)
        forged = Bounds.model_validate(document | {"jct": document["jct"] | {"prices": prices}})
        with pytest.raises(Violation, match="jct_mean_s"):
            verify_bounds(scene, jobs, forged)


@pytest.mark.parametrize(
    "change",
    [
        *({"jct_mean_s": 1e9}, {"makespan_s": 1e9}, {"jobs": 7}, {"trace_sha256": "0"}),
        *({"scenario_sha256": "0"}, {"class_of_schedules": "all"}, {"jct_mean_s": None}),
    ],
)
def test_what_is_not_so_is_refused(change):
    scene, jobs = scenario(1, 2), trace(*[(n, 1 + n % 2, 5 + n) for n in range(8)])
    forged = bound_of(scene, jobs, PLAIN).model_copy(update=change)
    with pytest.raises(Violation):
        verify_bounds(scene, jobs, forged)


@pytest.mark.parametrize("part", ["edges", "prices", "thresholds"])
def test_certificates_of_another_shape_are_refused(part):
    scene, jobs = scenario(1, 2), trace(*[(0, 1, 5 + n) for n in range(4)])
    found = by_gpus(scene, jobs)
    verify_bounds(scene, jobs, found)
    short = found.jct.model_copy(update={part: getattr(found.jct, part)[:-1]})
    with pytest.raises(Violation, match=r"certificate|jct_mean_s"):
        verify_bounds(scene, jobs, found.model_copy(update={"jct": short}))


@pytest.mark.parametrize("name", ["philly-small", "pal-64", "eaco-28", "boa-cloud"])
def test_bundled_scenarios_have_bounds_that_are_proven(name):
    found = optsched.bound(name)
    world = optsched.read_scenario(name)
    verify_bounds(world, jobs_of(world), found)
    assert found.jct_mean_s > 0


def test_alpha_points_are_in_the_order_of_alpha():
    world = optsched.read_scenario("pal-64")
    found = relaxation(world, jobs_of(world))
    points = [found.alpha_points(alpha) for alpha in (0.0, 0.3, 1.0)]
    assert (points[0] <= points[1]).all()
    assert (points[1] <= points[2]).all()
    assert (points[0] >= found.rows.release).all()
