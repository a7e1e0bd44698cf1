"""Bounds of the makespan by the worth of gangs: against brute force, laws, and forgeries."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.bounds.bound import bound_of
from optsched.bounds.certificate import MakespanCertificate
from optsched.bounds.least_times import world_of
from optsched.bounds.relaxation.makespan_values import makespan_certificate
from optsched.bounds.schedules import Schedules
from optsched.bounds.verify.bounds import proven_makespan_s, verify_bounds
from optsched.bounds.verify.makespan import end_by_gangs_us, least_end_us
from optsched.bounds.verify.refusal import Refused
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.trace_source import jobs_of
from optsched.verification import Violation
from tests.bounds.test_gangs import later_by
from tests.bounds.test_small_cases import SMALL
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

PLAIN = Schedules()
SECOND = 1_000_000


def world(rows, gpus=3):
    return world_of(scenario(1, gpus), trace(*sorted(rows)), PLAIN)


def least_makespan(jobs, gpus):
    """The last end of the best preemptive schedule in whole seconds, by search over all of them."""

    @cache
    def last(time, left):
        if not any(left):
            return time
        there = [n for n, (submit, _, _) in enumerate(jobs) if submit <= time and left[n]]
        sets = [()]
        for n in there:
            sets += [(*s, n) for s in sets if sum(jobs[m][1] for m in (*s, n)) <= gpus]
        return min(
            last(time + 1, tuple(rest - (n in s) for n, rest in enumerate(left)))
            for s in sets
            if s or not there
        )

    return last(0, tuple(length for _, _, length in jobs))


# --- values --------------------------------------------------------------------------------------


def test_gangs_that_do_not_fit_together_are_one_after_the_other():
    """Two of two GPUs on three: by their GPU time alone they could end after 13.3 seconds."""
    gangs = world([(0, 2, 10), (0, 2, 10)])
    assert least_end_us(gangs) == pytest.approx(40 / 3 * SECOND, abs=1)
    assert end_by_gangs_us(gangs, makespan_certificate(gangs)) == pytest.approx(20 * SECOND, abs=1)


def test_a_gang_that_may_have_company_is_worth_less_the_more_there_are():
    """A gang of three beside one of one on four; three of three beside two of one: 3 + 3 + 3."""
    gangs = world([(0, 3, 3), (0, 3, 3), (0, 3, 3), (0, 1, 4), (0, 1, 4)], 4)
    assert end_by_gangs_us(gangs, makespan_certificate(gangs)) == pytest.approx(9 * SECOND, abs=1)


def test_only_jobs_that_are_released_since_a_moment_count():
    rows = [(0, 2, 1), (50, 2, 10), (50, 2, 10)]
    certificate = makespan_certificate(world(rows))
    assert certificate.since_us == 50 * SECOND
    assert proven_makespan_s(world(rows), certificate) == pytest.approx(70, abs=1e-5)


def test_bundled_gangs_have_a_makespan_above_that_of_their_gpu_time():
    scene = optsched.read_scenario("pal-64")
    there = world_of(scene, jobs_of(scene, seed=2), PLAIN)
    assert proven_makespan_s(there, makespan_certificate(there)) > 1.13 * proven_makespan_s(there)


def test_none_is_looked_for_where_it_proves_no_more():
    assert makespan_certificate(world([(0, 1, 10), (0, 2, 10)])) is None
    assert makespan_certificate(world([])) is None
    elastic = optsched.read_scenario("boa-cloud").changed({"trace.jobs": 4})
    assert makespan_certificate(world_of(elastic, jobs_of(elastic), PLAIN)) is None


# --- laws ----------------------------------------------------------------------------------------


@law(150)
@given(SMALL, st.data())
def test_whatever_gangs_are_worth_no_schedule_ends_sooner(rows, data):
    jobs = sorted(rows)
    best = least_makespan(tuple(jobs), 3)
    widths = sorted(data.draw(st.sets(st.integers(1, 3), min_size=1)))
    certificate = MakespanCertificate(
        since_us=data.draw(st.integers(0, 9)) * SECOND,
        widths=widths,
        values=[data.draw(st.integers(0, 9)) for _ in widths],
    )
    assert end_by_gangs_us(world(rows), certificate) <= best * SECOND
    found = makespan_certificate(world(rows))
    assert found is None or end_by_gangs_us(world(rows), found) <= best * SECOND


@law(60)
@given(SMALL, st.integers(1, 5), st.integers(0, 40))
def test_times_scale_it_and_a_later_day_adds_itself(rows, factor, later):
    def proven(there):
        return proven_makespan_s(there, makespan_certificate(there))

    least = proven(world(rows))
    scaled = world([(s * factor, k, t * factor) for s, k, t in rows])
    assert proven(scaled) == pytest.approx(least * factor, abs=1e-5)
    after = later_by(world(rows), later * SECOND)
    assert proven(after) == pytest.approx(least + later, abs=1e-5)


VALUED = MakespanCertificate(since_us=0, widths=[1, 2, 3], values=[1, 3, 3])


@law(60)
@given(SMALL, st.integers(0, 6))
def test_a_gpu_more_or_a_job_in_two_never_raises_what_given_values_prove(rows, place):
    before = end_by_gangs_us(world(rows), VALUED)
    assert end_by_gangs_us(world(rows, 4), VALUED) <= before
    submit, width, run = rows[place % len(rows)]
    rest = [row for n, row in enumerate(rows) if n != place % len(rows)]
    parts = [(submit, width, run / 2)] * 2
    assert end_by_gangs_us(world([*rest, *parts]), VALUED) <= before


@law(60)
@given(SMALL, st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(1, 4)))
def test_a_job_more_never_lowers_it_where_as_many_as_fit_were_there(rows, job):
    """One that lets more fit at once may be worth less than that costs."""
    many = [*rows, *[job] * 3]
    before = end_by_gangs_us(world(many), VALUED)
    assert end_by_gangs_us(world([*many, job]), VALUED) >= before


# --- certificates --------------------------------------------------------------------------------


def test_values_of_any_scale_prove_the_same():
    gangs = world([(0, 2, 10), (0, 2, 10), (0, 1, 7)])
    found = makespan_certificate(gangs)
    twice = found.model_copy(update={"values": tuple(np.array(found.values) * 2)})
    assert end_by_gangs_us(gangs, twice) == end_by_gangs_us(gangs, found)


def test_a_makespan_that_is_not_proven_is_refused():
    scene, jobs = scenario(1, 3), trace((0, 2, 10), (0, 2, 10))
    found = bound_of(scene, jobs, PLAIN)
    verify_bounds(scene, jobs, found)
    assert found.makespan_s == pytest.approx(20, abs=1e-5)
    for change in (
        {"makespan_s": found.makespan_s + 1e-5},
        {"makespan": None},
        {"makespan": found.makespan.model_copy(update={"since_us": 1})},
    ):
        with pytest.raises(Violation, match="makespan_s"):
            verify_bounds(scene, jobs, found.model_copy(update=change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"widths": (2, 1)}, "widths must ascend"),
        ({"values": (1,)}, "one value for each width"),
    ],
)
def test_certificates_of_another_form_are_refused(change, words):
    certificate = MakespanCertificate(since_us=0, widths=[1, 2], values=[1, 1])
    with pytest.raises(Refused, match=words):
        end_by_gangs_us(world([(0, 2, 10)]), certificate.model_copy(update=change))


def test_elastic_jobs_count_with_their_least_gpu_time_not_that_of_full_speed():
    """Ten jobs, one GPU each, end on four after 30 s; at full speed they would hold 130 GPU-s."""
    curve = {"kind": "amdahl", "parallel_fraction": 0.9, "max_gpus": 4}
    models = {"m": {"phases": [{"work_gpu_s": 1.0, "speedup": curve}]}}
    scene = scenario(1, 4, models=models, decide_on=("arrival", "finish"))
    jobs = trace(*[(0, 1, 10)] * 10, model=["m"] * 10)
    found = bound_of(scene, jobs, PLAIN)
    verify_bounds(scene, jobs, found)
    assert found.makespan_s == pytest.approx(25, abs=1e-3)
    record = Engine(scene, jobs, make("fixed-width:k=1", scene), 0).run()
    assert found.makespan_s <= max(record.jobs.end_us) / SECOND == 30


def test_elastic_jobs_are_refused():
    scene = optsched.read_scenario("boa-cloud").changed({"trace.jobs": 4})
    certificate = MakespanCertificate(since_us=0, widths=[1], values=[1])
    with pytest.raises(Refused, match="elastic"):
        end_by_gangs_us(world_of(scene, jobs_of(scene), PLAIN), certificate)
