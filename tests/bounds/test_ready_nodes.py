"""Starts of rented nodes in bounds: below all plans of a job and all rollouts."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.bounds.bound import bound_of
from optsched.bounds.certificate import Bounds, StartsCertificate
from optsched.bounds.relaxation.start_plans import Alone, Prices, best_plan
from optsched.bounds.schedules import Schedules, UnknownPhysics
from optsched.bounds.verify.bounds import proven_starts_s, verify_bounds
from optsched.bounds.verify.ready_nodes import ReadyNodes, ready_nodes
from optsched.bounds.verify.refusal import Refused
from optsched.bounds.verify.starts import Phase, Task, least_us
from optsched.verification import Violation
from tests.bounds.test_bill import cloud, elastic
from tests.support.builders.rollout_parts import trace
from tests.support.strategies.common import law

FIXED = Schedules(moves=False)
SLOT_S, RENT = 10, 400_000


def rented(*tables, provision_s=40.0, rescale_s=7.0, **parts):
    scene = cloud(*tables, rescale_s=rescale_s, **parts)
    return scene.changed({"rented.provision_s": provision_s})


def two(apart_s, *times):
    """A job at once, for nothing is worth anything before the first, and others after a while."""
    return trace((0, 1, 1), *[(apart_s, 1, t) for t in times], model=["e"] * (1 + len(times)))


def worth_of(ready_s, slots, falls_at=None):
    """A certificate: a ready node is worth so many seconds' rent, from when that may be on."""
    rise = SLOT_S * RENT
    most = min(int(ready_s * RENT), slots * rise)
    values = [min(most, n * rise) for n in range(slots + 1)]
    values[-1] = 0
    if falls_at is not None:
        values[falls_at:] = [0] * len(values[falls_at:])
    return StartsCertificate(
        price_ppm=RENT, since_us=0, slot_us=SLOT_S * 10**6, worth_us=values, jct_mean_s=0.0
    )


def starts_of(line, scene, jobs, schedules=FIXED):
    return proven_starts_s(scene, jobs, schedules, line)


# --- known values --------------------------------------------------------------------------------


def test_a_job_pays_for_the_start_of_its_node():
    scene, jobs = rented(1.0), two(500, 300)
    still = bound_of(scene, jobs, FIXED).trade
    plain = next(
        jct_s
        for jct_s, ppm in zip(still.jct_mean_s, still.prices_ppm, strict=True)
        if ppm == still.prices_ppm[-1]
    )
    assert plain > 0
    # 1 + 300 s of work with 7 s of overhead each; from second 40 on, a start of a node of a GPU
    paid = (1 + 7 + 300 + 7) * (1 + RENT / 1e6)
    none = starts_of(worth_of(0, 100), scene, jobs)
    assert none * 2 == pytest.approx(paid, rel=2e-2)
    assert none * 2 <= paid
    full = starts_of(worth_of(39, 100, falls_at=60), scene, jobs)
    assert full * 2 == pytest.approx(paid + 39 * RENT / 1e6, rel=2e-2)
    assert full * 2 <= paid + 39 * RENT / 1e6


def test_what_a_node_is_worth_comes_back_when_it_is_given_on():
    scene, jobs = rented(1.0), two(500, 300)
    stays = starts_of(worth_of(39, 200), scene, jobs)
    falls = starts_of(worth_of(39, 200, falls_at=60), scene, jobs)
    assert stays * 2 == pytest.approx(falls * 2 - 39 * RENT / 1e6, rel=2e-2)


# --- brute force over plans of a job -------------------------------------------------------------


def charged(ready, moments, changes):
    """What changes of the GPUs held cost or bring, at moments in microseconds."""
    at = (np.asarray(moments, float) - ready.since) / ready.slot
    worth = np.interp(at, np.arange(len(ready.edges)), ready.edges, left=0, right=0)
    return (worth * changes).sum(axis=0)


@st.composite
def tasks(draw):
    phases = draw(st.integers(1, 3))
    overhead = draw(st.sampled_from([5_000_000, 20_000_000, 61_000_000]))
    speedups = [draw(st.sampled_from([0.8, 1.3, 1.7, 1.95])) for _ in range(phases)]
    alone = [draw(st.integers(10, 120)) * 10**6 for _ in range(phases)]
    parts = [draw(st.integers(1, 6)) for _ in range(phases)]
    times = [(a // n, int(a / s) // n) for a, s, n in zip(alone, speedups, parts, strict=True)]
    rows = tuple(Phase(n, t) for n, t in zip(parts, times, strict=True))
    cell = draw(st.sampled_from([200_000, 700_000, 3_000_000]))
    release = draw(st.integers(0, 60)) * 10**6
    return Task(release, (1, 2), rows, overhead, 1_500_000_000, cell)


@st.composite
def worths(draw):
    """Any worth of ready nodes that proves something."""
    start_us, count = 120_000_000, draw(st.integers(3, 40))
    price, slot = draw(st.integers(10_000, 2_000_000)), draw(st.sampled_from([10, 45])) * 10**6
    rise, most = price * slot // 10**6, price * start_us // 10**6
    edges = [0]
    for _ in range(count):
        up = draw(st.sampled_from([0, 1, 1, -1, -4]))
        edges.append(min(most, max(0, edges[-1] + up * rise)))
    edges.append(0)
    whole = np.array(edges, np.int64)
    prices = price - -(-np.diff(whole) * 10**6 // slot)
    return ReadyNodes(price, 0, slot, whole, prices, int(whole.max()))


@law(40)
@given(tasks(), worths())
def test_no_plan_of_a_job_costs_less_than_is_proven(task, ready):
    """Waits, then one width for all, or another from some moment of some phase on, with a pause."""
    times = np.array([[p.parts * t for t in p.times] for p in task.phases], float)
    ends = np.vstack([[0, 0], times.cumsum(axis=0)])
    waits = np.linspace(0, 400e6, 41)[:, None, None]
    shares = np.linspace(0, len(times), 10 * len(times) + 1)[None, :, None]
    pauses = np.array([0.0, 3e6, 30e6, 90e6])[None, None, :]
    least, rent = np.inf, ready.price_ppm / 1e6
    for first, second in itertools.product((0, 1), repeat=2):
        before = np.interp(shares, np.arange(len(ends)), ends[:, first])
        after = ends[-1, second] - np.interp(shares, np.arange(len(ends)), ends[:, second])
        begin = task.release + waits + 0 * shares + 0 * pauses
        change = begin + task.overhead + before
        again = change + pauses
        end = again + task.overhead + after
        k, m = task.widths[first], task.widths[second]
        moments = np.stack([begin, change, again, end])
        signs = np.array([k, -k, m, -m])[:, None, None, None]
        held = k * (change - begin) + m * (end - again)
        cost = end - task.release + rent * held + charged(ready, moments, signs)
        least = min(least, cost.min())
        alone = begin[..., :1] + task.overhead + ends[-1, first]
        moments = np.stack([begin[..., :1], alone])
        cost = alone - task.release + rent * k * (alone - begin[..., :1])
        cost = cost + charged(ready, moments, np.array([k, -k])[:, None, None, None])
        least = min(least, cost.min())
    assert least_us(task, ready) <= least + 1


@law(40)
@given(tasks(), worths(), st.data())
def test_the_grid_loses_little_where_a_job_never_changes(task, ready, data):
    """With one width and parts as small as cells, the bound is that of the best moment to begin."""
    width = data.draw(st.sampled_from([1, 3]))
    rows = tuple(Phase(60, (p.times[0] * p.parts // 60,)) for p in task.phases)
    task = task._replace(widths=(width,), phases=rows, overhead=300_000_000, cell=100_000)
    span = task.overhead + sum(p.parts * p.times[0] for p in rows)
    begin = task.release + np.linspace(0, 600e6, 6001)
    cost = begin - task.release + span * (1 + ready.price_ppm * width / 1e6)
    signs = np.array([width, -width])[:, None]
    best = (cost + charged(ready, np.stack([begin, begin + span]), signs)).min()
    rent = 1 + ready.price_ppm / 1e6 * width
    steepest = 1 + width * max(rent, float(ready.prices.max()) / 1e6)
    assert best - 8 * task.cell * steepest <= least_us(task, ready) or best >= task.until


# --- rollouts ------------------------------------------------------------------------------------


@law(25)
@given(st.data())
def test_no_rollout_is_quicker_at_its_bill_than_starts_allow(data):
    tables = data.draw(st.lists(st.sampled_from([0.9, 1.4, 1.9]), min_size=1, max_size=2))
    scene = rented(
        *tables,
        provision_s=float(data.draw(st.sampled_from([20, 60, 200]))),
        rescale_s=float(data.draw(st.sampled_from([5, 30]))),
        nodes=6,
        budget_gpus=4.0,
        epoch_s=10.0,
    )
    scene = scene.changed({"rented.at_start": data.draw(st.integers(0, 3))})
    moments = data.draw(st.lists(st.integers(0, 600), min_size=1, max_size=6))
    rows = [(m, 1, data.draw(st.integers(5, 400))) for m in sorted([0, *moments])]
    jobs = trace(*rows, model=["e"] * len(rows))
    policy = data.draw(st.sampled_from(["boa-budgeted", "equi", "boa"]))
    told = optsched.simulate(scene, policy, trace=jobs).metrics
    if told["unfinished"]:
        return
    price = data.draw(st.integers(1_000, 2_000_000))
    most = price * (round(scene.rented.provision_s * 10**6) - 1) // 10**6
    edges = [0]
    for _ in range(data.draw(st.integers(2, 60))):
        up = data.draw(st.sampled_from([0, 1, 1, 1, -1, -6]))
        edges.append(min(most, max(0, edges[-1] + up * price * 20)))
    line = StartsCertificate(
        price_ppm=price, since_us=0, slot_us=20 * 10**6, worth_us=[*edges, 0], jct_mean_s=0.0
    )
    schedules = Schedules(moves=bool(told["migrations"]))
    try:
        least = starts_of(line, scene, jobs, schedules)
    except Refused:
        assert schedules.moves
        return
    spent_s = told["rented_gpu_hours"] * 3600 / len(jobs)
    assert least - price / 1e6 * spent_s <= told["jct_mean_s"] * (1 + 1e-9)


# --- what is found -------------------------------------------------------------------------------


def test_bounds_at_a_bill_are_proven_and_greater_than_those_without_starts():
    scene = rented(1.5, 1.9, provision_s=60.0, rescale_s=20.0, nodes=8)
    rows = [(n * 400, 1, 120 + 40 * n) for n in range(5)]
    jobs = trace(*rows, model=["e"] * len(rows))
    hours = bound_of(scene, jobs, FIXED).rented_gpu_hours * 1.6
    found = bound_of(scene, jobs, FIXED, 0, [hours])
    verify_bounds(scene, jobs, found)
    assert Bounds.model_validate_json(found.to_json()) == found
    still = max(found.trade.jct_mean_s_at(hours, len(jobs)), found.jct_mean_s)
    assert found.jct_mean_s_at_bill(hours) > still * 1.01
    higher = found.starts[0].model_copy(update={"jct_mean_s": found.starts[0].jct_mean_s * 1.001})
    with pytest.raises(Violation, match=r"starts\[0\]"):
        verify_bounds(scene, jobs, found.model_copy(update={"starts": [higher]}))


def test_a_plan_costs_what_its_events_say():
    job = Alone(5.0, np.array([1.0, 2.0]), np.array([[40.0, 30.0], [60.0, 31.0]]), 10.0)
    prices = Prices(0.2, np.arange(0.0, 300.0, 20.0), np.r_[0.0, np.full(13, 3.0), 0.0])
    plan = best_plan(job, prices)
    assert plan.seconds == pytest.approx(plan.moments[-1] - 5.0)
    held = np.cumsum(plan.changes)[:-1] @ np.diff(plan.moments)
    assert plan.gpu_s == pytest.approx(held)
    assert plan.changes.sum() == 0


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0, 16_000_001, 0], "more than what a start"),
        ([0, 4_000_001, 0], "more than its rent"),
        ([1, 0, 0], "before the first job"),
        ([0, 0, 1], "before the first job"),
    ],
)
def test_worth_that_would_prove_too_much_is_refused(values, words):
    line = worth_of(0, 2).model_copy(update={"worth_us": values})
    with pytest.raises(Refused, match=words):
        ready_nodes(rented(1.0), elastic(100), line)


def test_a_node_that_is_ready_when_the_first_job_comes_is_worth_nothing_then():
    line = worth_of(9, 4)
    late = replace(elastic(100), submit_us=np.array([30_000_000]))
    with pytest.raises(Refused, match="before the first job"):
        ready_nodes(rented(1.0), late, line)


def test_worlds_without_starts_are_refused():
    line = worth_of(0, 2)
    with pytest.raises(Refused, match="start"):
        starts_of(line, cloud(1.0, rescale_s=7.0), elastic(100))
    with pytest.raises(Refused, match="cost nothing"):
        starts_of(line, rented(1.0), elastic(100), Schedules())
    with pytest.raises(UnknownPhysics, match="starts of nodes"):
        bound_of(cloud(1.0, rescale_s=7.0), elastic(100), FIXED, 0, [1.0])
    with pytest.raises(ValueError, match="above 0"):
        bound_of(rented(1.0), elastic(100), FIXED, 0, [-1.0])


def test_numbers_beyond_64_bits_are_refused_and_never_wrap():
    line = worth_of(0, 2).model_copy(update={"price_ppm": 10**15})
    with pytest.raises(Refused, match="64 bits"):
        starts_of(line, rented(1.0), elastic(10**7))


def test_cells_are_outward_of_every_moment_in_them():
    values = np.array([0, 700, 100, 1_000, 0], np.int64)
    ready = ReadyNodes(10**6, 50, 1_000, values, np.full(4, 300), 1_000)
    cells = ready.cells(0, 333, 14)
    for number in range(14):
        for moment in range(number * 333, (number + 1) * 333):
            slot, behind = divmod(moment - 50, 1_000)
            exact = Fraction(0)
            if 0 <= slot < 4:
                rise = int(values[slot + 1] - values[slot])
                exact = int(values[slot]) + Fraction(rise * behind, 1_000)
            assert cells.least[number] <= exact <= cells.most[number]
