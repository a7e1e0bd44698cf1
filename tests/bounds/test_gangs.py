"""Bounds by prices of gangs: exact completions and knapsacks against brute force, and forgeries."""

import itertools
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.bounds.bound import bound_of
from optsched.bounds.certificate import Bounds, GangCertificate
from optsched.bounds.least_times import world_of
from optsched.bounds.relaxation.prices import relaxed
from optsched.bounds.relaxation.rounding import certificate_of
from optsched.bounds.schedules import Schedules
from optsched.bounds.verify.bounds import proven_mean_jct_s, verify_bounds
from optsched.bounds.verify.completions import least_completion
from optsched.bounds.verify.fullest import fullest
from optsched.bounds.verify.gangs import ends_by_gangs_us, proven_by_gangs_us, rents_of
from optsched.bounds.verify.refusal import Refused
from optsched.bounds.worth import worth
from optsched.rollout.trace_source import jobs_of
from optsched.verification import Violation
from tests.bounds.test_small_cases import SMALL, best_total, by_gpus
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law

PLAIN = Schedules()
SECOND = 1_000_000


def priced(widths, prices, *, edges=None, bits=16):
    """A certificate in whole seconds."""
    rows = len(prices[0])
    found = list(range(rows + 1)) if edges is None else edges
    return GangCertificate(
        unit_us=SECOND, price_bits=bits, edges=found, widths=widths, prices=prices
    )


def found_of(scene, jobs):
    found = bound_of(scene, jobs, PLAIN)
    verify_bounds(scene, jobs, found)
    return found


# --- parts against brute force -------------------------------------------------------------------


@law(150)
@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=7),
    st.integers(0, 8),
    st.integers(1, 4),
    st.integers(1, 5),
)
def test_a_completion_is_the_least_of_all_choices_of_unit_times(prices, release, length, scale):
    last = len(prices)
    every = range(release, max(release, last) + length)
    costs = [prices[t] if t < last else 0 for t in range(every.stop)]
    best = min(
        (chosen[-1] + 1) * scale + sum(costs[t] for t in chosen)
        for chosen in itertools.combinations(every, length)
    )
    slot = min(release, last)
    found, end = least_completion(
        release, length, list(range(last + 1)), prices, slot, scale, 1 << 60
    )
    assert found == best
    assert release + length <= end <= every.stop


@law(150)
@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 3), max_size=4), st.integers(0, 9), st.integers(0, 9)),
        min_size=1,
        max_size=3,
    ),
    st.integers(1, 7),
    st.booleans(),
)
def test_the_dearest_gangs_are_those_of_all_numbers_that_fit(rows, gpus, has_single):
    widths = range(1 if has_single else 2, 9)
    gangs = [(k, sorted(rel)) for k, (rel, _, _) in zip(widths, rows, strict=False)]
    prices = [[early, late] for _, early, late in rows]
    found = fullest(gangs, prices, [2, 4], gpus)
    for slot, end in enumerate((2, 4)):
        there = [sum(r < end for r in releases) for _, releases in gangs]
        best = max(
            sum(n * row[slot] for n, row in zip(numbers, prices, strict=True))
            for numbers in itertools.product(*(range(n + 1) for n in there))
            if sum(n * k for n, (k, _) in zip(numbers, gangs, strict=True)) <= gpus
        )
        assert found[slot] == best


# --- bounds --------------------------------------------------------------------------------------


@law(100)
@given(SMALL, st.data())
def test_whatever_prices_gangs_have_no_schedule_is_below_what_they_prove(rows, data):
    jobs = sorted(rows)
    slots = data.draw(st.integers(1, 9))
    price = st.lists(st.integers(0, 3 << 16), min_size=slots, max_size=slots)
    widths = data.draw(st.sets(st.integers(1, 3), min_size=1))
    prices = [data.draw(price) for _ in widths]
    world = world_of(scenario(1, 3), trace(*jobs), PLAIN)
    proven = proven_by_gangs_us(world, priced(sorted(widths), prices))
    assert proven <= best_total(jobs, 3) * SECOND


@law(60)
@given(SMALL, st.data())
def test_times_scale_what_prices_prove_a_later_day_adds_itself_and_a_gpu_never_raises_it(
    rows, data
):
    slots, factor = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 5))
    row = st.lists(st.integers(0, 3 << 16), min_size=slots, max_size=slots)
    prices = [data.draw(row) for _ in range(3)]

    def proven(world, edges):
        return proven_by_gangs_us(world, priced([1, 2, 3], prices, edges=edges))

    edges, world = list(range(slots + 1)), _world(rows)
    before, rounding = proven(world, edges), factor * (len(rows) + 1)
    scaled = _world([(s * factor, k, t * factor) for s, k, t in rows])
    assert abs(proven(scaled, [e * factor for e in edges]) - before * factor) <= rounding
    later = later_by(world, 7 * SECOND)
    assert proven(later, [e + 7 for e in edges]) == before + 7 * len(rows) * SECOND
    assert proven(_world(rows, 4), edges) <= before


def _world(rows, gpus=3):
    return world_of(scenario(1, gpus), trace(*sorted(rows)), PLAIN)


def later_by(world, us):
    """The same jobs later: a trace begins with its first one."""
    jobs = [job._replace(release_us=job.release_us + us, end_us=job.end_us + us)
            for job in world.jobs]  # fmt: skip
    return world._replace(jobs=jobs)


def test_gangs_that_do_not_fit_together_are_one_after_the_other():
    """Two of two GPUs on three: by prices of GPUs alone they would share them."""
    scene, jobs = scenario(1, 3), trace((0, 2, 10), (0, 2, 10))
    found = found_of(scene, jobs)
    world = world_of(scene, jobs, PLAIN)
    assert isinstance(found.jct, GangCertificate)
    assert 14.85 <= found.jct_mean_s <= 15
    assert proven_mean_jct_s(world, certificate_of(relaxed(world), 2)) < 13.5


def test_gangs_that_were_not_released_take_nothing():
    scene, jobs = scenario(1, 2), trace((0, 1, 8), (4, 2, 4))
    world = world_of(scene, jobs, PLAIN)
    certificate = priced([1, 2], [[1] * 8, [9] * 8])
    assert rents_of(world, certificate, 2) == [1] * 4 + [9] * 4
    assert rents_of(world, certificate, 3) == [1] * 4 + [10] * 4


def test_what_one_more_gpu_is_worth_knows_which_gangs_fit():
    scene, jobs = scenario(1, 3), trace((0, 2, 10), (0, 2, 10))
    told = worth(scene, jobs, found_of(scene, jobs))
    assert 4.5 <= told.gpu_s <= 10.5  # with a fourth, both end after ten seconds
    assert told.node_s == pytest.approx(told.gpu_s)
    assert sum(share for _, share in told.hours) == pytest.approx(1)


def test_jobs_of_another_width_than_priced_count_until_their_earliest_ends():
    world = world_of(scenario(1, 3), trace((0, 2, 10), (0, 3, 7)), PLAIN)
    ends = ends_by_gangs_us(world, priced([2], [[1 << 20] * 30]))
    assert ends == [40 * SECOND, 7 * SECOND]


def test_bundled_gangs_have_bounds_above_those_of_gpus_alone():
    scene = optsched.read_scenario("pal-64")
    jobs = jobs_of(scene, seed=2)
    world = world_of(scene, jobs, PLAIN)
    by_gpus = proven_mean_jct_s(world, certificate_of(relaxed(world), len(jobs)))
    assert found_of(scene, jobs).jct_mean_s > 1.03 * by_gpus


# --- certificates --------------------------------------------------------------------------------


@cache
def four():
    """Four jobs with their bounds and the least mean JCT."""
    rows = [(n, 1 + n % 3, 2 + n) for n in range(4)]
    scene, jobs = scenario(1, 3), trace(*rows)
    return scene, jobs, found_of(scene, jobs), best_total(rows, 3) / 4 - 1.5


@law(30)
@given(st.data())
def test_a_changed_price_or_slot_proves_what_it_proves_or_is_refused(data):
    scene, jobs, found, optimum = four()
    document = found.jct.model_dump(mode="json")
    rows = [list(row) for row in document["prices"]]
    edges = list(document["edges"])
    row, slot = data.draw(st.integers(0, 2)), data.draw(st.integers(0, len(rows[0]) - 1))
    if data.draw(st.booleans()):
        rows[row][slot] = data.draw(st.integers(0, 1 << 39))
    else:
        edges[slot] = data.draw(st.integers(0, 1 << 35))
    certificate = GangCertificate.model_validate(document | {"prices": rows, "edges": edges})
    try:
        proven = proven_mean_jct_s(world_of(scene, jobs, PLAIN), certificate)
    except Refused:
        return
    assert proven <= optimum
    forged = found.model_copy(update={"jct": certificate, "jct_mean_s": proven * (1 + 1e-9)})
    with pytest.raises(Violation, match="jct_mean_s"):
        verify_bounds(scene, jobs, forged)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"edges": (0, 5, 5)}, "edges: must ascend"),
        ({"widths": (2, 1)}, "widths: must ascend"),
        ({"prices": ((1, 1),)}, "one row for each width"),
        ({"prices": ((1, 1), (1,))}, "one for each slot"),
    ],
)
def test_certificates_of_another_form_are_refused(change, words):
    world = world_of(scenario(1, 3), trace((0, 2, 10)), PLAIN)
    certificate = priced([1, 2], [[1, 1], [1, 1]]).model_copy(update=change)
    with pytest.raises(Refused, match=words):
        proven_by_gangs_us(world, certificate)


def test_a_cluster_with_more_gangs_than_can_be_looked_at_is_refused():
    with pytest.raises(Refused, match="too many"):
        fullest([(2, [0] * 10_000)], [[1] * 4_000], list(range(4_000)), 20_000)


def test_elastic_jobs_are_refused():
    scene = optsched.read_scenario("boa-cloud").changed({"trace.jobs": 4})
    world = world_of(scene, jobs_of(scene), PLAIN)
    with pytest.raises(Refused, match="elastic"):
        proven_by_gangs_us(world, priced([1], [[1, 1]]))


def test_files_of_the_first_kind_are_proven_still():
    scene, jobs = scenario(1, 3), trace((0, 2, 10), (0, 2, 10))
    document = by_gpus(scene, jobs).model_dump(mode="json", by_alias=True)
    verify_bounds(scene, jobs, Bounds.model_validate(document))
    other = document | {"jct": document["jct"] | {"kind": "another"}}
    with pytest.raises(ValueError, match="kind"):
        Bounds.model_validate(other)
