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
from optsched.bounds.verify.starts import (
    Phase,
    Task,
    least_changes,
    least_us,
    part_charges,
    window_least,
)
from optsched.verification import Violation
from tests.bounds.test_bill import cloud, elastic
from tests.support.builders.rollout_parts import scenario, trace
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


def test_a_long_job_with_short_overheads_was_believed_to_earn_by_changes():
    """Cells were nearly as long as overheads: what rounding gave away paid for a change in each."""
    scene, jobs = rented(1.9, rescale_s=5.0), elastic(5_000)
    teeth = [n * SLOT_S * RENT for n in (0, 1, 2, 3, 2, 1)]
    line = worth_of(0, 2).model_copy(update={"worth_us": [*(100 * teeth), 0]})
    none = starts_of(worth_of(0, 2), scene, jobs)
    assert 0.9 * none < starts_of(line, scene, jobs) < none


# --- brute force over plans of a job -------------------------------------------------------------


def charged(ready, moments, changes):
    """What changes of the GPUs held cost or bring, at moments in microseconds."""
    at = (np.asarray(moments, float) - ready.since) / ready.slot
    worth = np.interp(at, np.arange(len(ready.edges)), ready.edges, left=0, right=0)
    return np.tensordot(changes, worth, axes=1)


@st.composite
def tasks(draw):
    phases = draw(st.integers(1, 3))
    overhead = draw(st.sampled_from([5_000_000, 20_000_000, 61_000_000]))
    speedups = [draw(st.sampled_from([0.8, 1.3, 1.7, 1.95])) for _ in range(phases)]
    alone = [draw(st.integers(10, 120)) * 10**6 for _ in range(phases)]
    parts = [draw(st.integers(1, 6)) for _ in range(phases)]
    times = [(a // n, int(a / s) // n) for a, s, n in zip(alone, speedups, parts, strict=True)]
    rows = tuple(Phase(n, t) for n, t in zip(parts, times, strict=True))
    cell = draw(st.sampled_from([700_000, 3_000_000, 4_900_000]))
    release = draw(st.integers(0, 300)) * 10**6
    return Task(release, (1, draw(st.integers(2, 9))), rows, overhead, 1_500_000_000, cell)


@st.composite
def worths(draw):
    """Any worth of ready nodes that proves something."""
    start_us, teeth = 120_000_000, draw(st.integers(1, 6))
    price, slot = draw(st.sampled_from([10_000, 700_000, 2_000_000])), 10**7
    rise, most = price * slot // 10**6, price * start_us // 10**6
    edges = [0]
    for _ in range(teeth):
        edges += [edges[-1]] * draw(st.integers(0, 3))
        edges += [edges[-1] + rise * n for n in range(1, 1 + draw(st.integers(1, 14)))]
        edges.append(draw(st.sampled_from([0, 0, edges[-1] // 2])))
    edges = [min(most, edge) for edge in edges] + [0]
    whole = np.array(edges, np.int64)
    prices = price - -(-np.diff(whole) * 10**6 // slot)
    return ReadyNodes(price, 0, slot, whole, prices, int(whole.max()))


def least_of_plans(task, ready):
    """The least cost of one width for all, or another from some moment on, with a pause or none.

    Starts and changes are when the worth of ready nodes has corners, and the first at once, too.
    """
    times = np.array([[p.parts * t for t in p.times] for p in task.phases], float)
    ends, numbers = np.vstack([[0, 0], times.cumsum(axis=0)]), np.arange(len(times) + 1)
    corners = ready.since + ready.slot * np.arange(len(ready.edges))
    corners = np.unique([task.release, *corners[corners > task.release][:40]]).astype(float)
    begin, change, again = np.meshgrid(corners, corners, corners, indexing="ij", sparse=True)
    least, rent = np.inf, ready.price_ppm / 1e6
    for first, second in itertools.product((0, 1), repeat=2):
        k, m = task.widths[first], task.widths[second]
        whole = begin + task.overhead + ends[-1, first]
        cost = whole - task.release + rent * k * (whole - begin)
        alone = cost + charged(ready, np.stack([begin, whole]), np.array([k, -k]))
        share = np.interp(change - begin - task.overhead, ends[:, first], numbers)
        end = again + task.overhead + ends[-1, second] - np.interp(share, numbers, ends[:, second])
        cost = end - task.release + rent * (k * (change - begin) + m * (end - again))
        moments = np.stack(np.broadcast_arrays(begin, change, again, end))
        cost = cost + charged(ready, moments, np.array([k, -k, m, -m]))
        is_plan = (change >= begin + task.overhead) & (again >= change) & (change <= whole)
        least = min(least, alone.min(), cost[is_plan].min(initial=np.inf))
    return least


@law(80)
@given(tasks(), worths())
def test_no_plan_of_a_job_costs_less_than_is_proven(task, ready):
    assert least_us(task, ready) <= least_of_plans(task, ready) + 1


@law(80)
@given(tasks(), worths(), st.data())
def test_where_a_job_never_changes_the_grid_is_below_the_best_begin_and_near_it(task, ready, data):
    """Overheads are so long that none does, and parts so short that none is free."""
    width, cell = data.draw(st.sampled_from([1, 3])), data.draw(st.sampled_from([10**5, 3 * 10**6]))
    rows = tuple(Phase(60, (p.times[0] * p.parts // 60,)) for p in task.phases)
    task = task._replace(widths=(width,), phases=rows, overhead=300_000_000, cell=cell)
    span = task.overhead + sum(p.parts * p.times[0] for p in rows)
    begin = task.release + np.linspace(0, 600e6, 6001)
    cost = begin - task.release + span * (1 + ready.price_ppm * width / 1e6)
    moments = np.stack([begin, begin + span])
    best = (cost + charged(ready, moments, np.array([width, -width]))).min()
    steepest = 1 + width * max(ready.price_ppm, int(ready.prices.max())) / 1e6
    found = least_us(task, ready)
    assert found <= best + 1
    assert best - 8 * (task.cell + 10**5) * steepest <= found or best >= task.until


# --- parts of the program beside what they are defined as ----------------------------------------


@law(80)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=20), st.integers(1, 25))
def test_the_least_of_a_window_is_that_of_its_values(values, length):
    expected = [min(values[n : n + length]) for n in range(len(values))]
    assert window_least(np.array(values), length).tolist() == expected


@law(80)
@given(st.data())
def test_a_change_costs_the_least_window_that_begins_now_or_later(data):
    """The part's time and GPU time are any mixture of widths; what it costs is the least price."""
    times = data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=4, unique=True))
    task = Task(0, tuple(range(1, 1 + len(times))), (), 100, 40 * 7, 7)
    phase = Phase(1, tuple(sorted(times, reverse=True)))
    level = st.sampled_from([0, 10**6]) if data.draw(st.booleans()) else st.just(10**6)
    price = np.array(data.draw(st.lists(level, min_size=55, max_size=55)))
    steps = st.sampled_from([0, 0, 0, 1, 20, 400])  # what follows may be dear from a moment on
    free = np.cumsum(data.draw(st.lists(steps, min_size=41, max_size=41)))
    ready = ReadyNodes(10**6, 0, 1, price, price, 0)
    found = least_changes(free, part_charges(task, phase, price, ready))
    begin, share = np.arange(39 * 7)[:, None], np.linspace(0, 1, 9)
    for first, second in itertools.product(range(len(times)), repeat=2):
        held = [share * phase.times[first], (1 - share) * phase.times[second]]
        end = (begin + sum(held)).astype(int) // 7
        least = [[price[b // 7 : e + 1].min() for e in row] for b, row in enumerate(end)]
        charge = np.array(least) * ((first + 1) * held[0] + (second + 1) * held[1]) / 10**6
        cost = (charge + free[end.clip(max=40)]).min(axis=1).reshape(39, 7).min(axis=1)
        assert (found[:39] <= np.minimum.accumulate(cost[::-1])[::-1] + 1e-9).all()


# --- rollouts ------------------------------------------------------------------------------------


@law(200)
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


def test_slots_of_microseconds_are_refused_before_memory_is_taken():
    line = worth_of(0, 2).model_copy(update={"slot_us": 10})
    with pytest.raises(Refused, match="too many cells"):
        starts_of(line, rented(1.0), elastic(10_000))


def test_a_job_of_a_day_with_many_widths_was_taken_for_too_great():
    """A day times a million parts of a price times a width of 64 is beyond 64 bits; no term is."""
    wide = {"kind": "table", "gpus": [1, 64], "speedup": [1.0, 64.0]}
    models = {"e": {"phases": [{"work_gpu_s": 1.0, "speedup": wide}], "rescale_s": 2_000.0}}
    scene = scenario(64, 1, models=models, rented={"provision_s": 40.0})
    jobs = trace((0, 1, 86_400), model=["e"])
    line = worth_of(0, 2)
    one, many = (86_400 + 2_000) * 1.4, (86_400 / 64 + 2_000) * (1 + 0.4 * 64)
    assert 0.8 * min(one, many) < starts_of(line, scene, jobs) <= min(one, many)


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
