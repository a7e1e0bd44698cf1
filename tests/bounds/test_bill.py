"""Bounds of bills, and of mean JCT by GPU-hours: below all rollouts, tight where theory says so."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.bounds.bound import bound_of
from optsched.bounds.certificate import Bounds
from optsched.bounds.schedules import Schedules
from optsched.bounds.verify.bounds import proven_trade, verify_bounds
from optsched.rollout.engine.engine import Engine
from optsched.rollout.results.metrics import metrics
from optsched.rollout.settings import SETTINGS
from optsched.verification import Violation
from tests.bounds.test_energy import Fitting, worlds
from tests.support.builders.rollout_parts import scenario, trace
from tests.support.strategies.common import law
from tests.support.strategies.rollout_random import traces

FIXED = Schedules(moves=False)


@pytest.fixture(autouse=True)
def _short_idle(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "idle_epochs", 30)


def cloud(*tables, rescale_s=0.0, nodes=4, **parts):
    """Rented nodes of a GPU each, and a model `e` with a phase of equal work for each table."""
    phases = [
        {"work_gpu_s": 1.0, "speedup": {"kind": "table", "gpus": [1, 2], "speedup": [1.0, s]}}
        for s in tables
    ]
    models = {"e": {"phases": phases, "rescale_s": rescale_s}}
    return scenario(nodes, 1, models=models, rented={}, price_usd_per_gpu_h=3.6, **parts)


def elastic(*times):
    return trace(*[(0, 1, t) for t in times], model=["e"] * len(times))


def found_of(scene, jobs, schedules=FIXED):
    found = bound_of(scene, jobs, schedules)
    verify_bounds(scene, jobs, found)
    return found


# --- known values --------------------------------------------------------------------------------


def test_the_least_bill_is_of_the_widths_of_the_most_work_per_gpu():
    found = found_of(cloud(1.5), elastic(100, 50))
    assert found.rented_gpu_hours == pytest.approx(150 / 3600)
    assert found.cost_usd == pytest.approx(0.15)
    wider = found_of(cloud(2.5), elastic(100, 50))
    assert wider.rented_gpu_hours == pytest.approx(2 * 60 / 3600)


def test_a_cluster_of_its_own_is_paid_for_until_the_last_end():
    found = found_of(scenario(3, 2, price_usd_per_gpu_h=1.0), trace((0, 2, 100), (50, 1, 100)))
    assert found.rented_gpu_hours == pytest.approx(6 * 150 / 3600)
    assert found.cost_usd == pytest.approx(6 * 150 / 3600)
    assert found.trade is None


def test_energy_is_paid_for_too():
    power = {
        "gpu": {"bare_w": 0, "context_w": 100, "peak_w": 200},
        "node": {"base_w": 0},
        "price_usd_per_kwh": 0.5,
    }
    found = found_of(scenario(1, 1, power=power), trace((0, 1, 3600)))
    assert found.cost_usd == pytest.approx(0.5 * 0.2, rel=1e-6)
    assert found_of(scenario(1, 1), trace((0, 1, 3600))).cost_usd is None


def test_a_job_alone_trades_time_for_gpus_along_its_widths():
    """100 s on one GPU; 62.5 s on two, for 125 GPU-s; between them any mixture."""
    found = found_of(cloud(1.6), elastic(100))
    for gpu_s, least in ((100, 100), (112.5, 81.25), (125, 62.5)):
        assert found.trade.jct_mean_s_at(gpu_s / 3600, 1) == pytest.approx(least, rel=2e-2)
        assert found.trade.jct_mean_s_at(gpu_s / 3600, 1) <= least * (1 + 1e-9)
    assert found.trade.jct_mean_s_at(1000.0, 1) <= 62.5


def test_starts_and_changes_of_width_cost_what_no_move_can_cut_short():
    scene, jobs = cloud(1.0, 2.0, rescale_s=7.0), elastic(100)
    line = proven_trade(scene, jobs, FIXED, [100_000]).jct_mean_s[0]
    stays = [(7 + 50 + 50) * 1.1, (7 + 50 + 25) * 1.2]
    changes = (7 + 50) * 1.1 + (7 + 25) * 1.2
    assert line == pytest.approx(min(*stays, changes), rel=1e-6)
    free = proven_trade(scene, jobs, Schedules(), [100_000]).jct_mean_s[0]
    assert free == pytest.approx(50 * 1.1 + 25 * 1.2, rel=1e-6)


# --- brute force ---------------------------------------------------------------------------------


@law(40)
@given(
    st.lists(st.sampled_from([0.5, 0.9, 1.3, 2.0, 3.0]), min_size=1, max_size=4),
    st.sampled_from([0.0, 3.0, 40.0]),
    st.integers(0, 3_000_000),
)
def test_a_line_is_that_of_the_best_of_all_widths_of_phases(tables, rescale_s, price_ppm):
    scene, jobs, price = cloud(*tables, rescale_s=rescale_s), elastic(90), price_ppm / 1e6
    costs = []
    for widths in itertools.product((1, 2), repeat=len(tables)):
        cost, before = 0.0, None
        for width, speed in zip(widths, tables, strict=True):
            time = 90 / len(tables) / (speed if width == 2 else 1.0)
            cost += (1 + price * width) * (time + (rescale_s if width != before else 0.0))
            before = width
        costs.append(cost)
    line = proven_trade(scene, jobs, FIXED, [price_ppm]).jct_mean_s[0]
    assert line == pytest.approx(min(costs), rel=1e-6)
    assert line <= min(costs)


# --- laws ----------------------------------------------------------------------------------------


@law(200)
@given(st.data())
def test_no_rollout_is_billed_less_or_quicker_at_its_bill(data):
    scene = data.draw(worlds()).changed(
        {"price_usd_per_gpu_h": 2.0, "power.price_usd_per_kwh": 0.3}
    )
    jobs = data.draw(traces(scene))
    trials, gives_up = data.draw(st.booleans()), data.draw(st.booleans())
    allowed = Schedules(trials=trials, gives_up=gives_up)
    policy = Fitting(data.draw(st.integers(0, 999)), data.draw(st.integers(0, 40)), allowed)
    engine = Engine(scene, jobs, policy, 0)
    policy.world = engine.world
    record = engine.run()
    if not len(jobs) or min(record.jobs.end_us.tolist()) < 0:
        return
    told = metrics(record)
    schedules = allowed.model_copy(update={"moves": bool(told["migrations"])})
    found = found_of(scene, jobs, schedules)
    assert found.rented_gpu_hours <= told["rented_gpu_hours"]
    assert (found.cost_usd or 0.0) <= told["cost_usd"]
    trade = proven_trade(scene, jobs, schedules, [0, 3_000, 100_000, 2_000_000, 10**9])
    for hours in (told["rented_gpu_hours"], told["gpu_hours"]):
        assert trade.jct_mean_s_at(hours, len(jobs)) <= told["jct_mean_s"] * (1 + 1e-12) + 1e-6


@law(30)
@given(st.lists(st.integers(1, 90), min_size=1, max_size=4), st.integers(0, 3_000_000))
def test_times_scale_it_and_more_work_or_dearer_gpus_never_lower_it(times, price_ppm):
    scene = cloud(1.3, 1.9)
    line = proven_trade(scene, elastic(*times), FIXED, [price_ppm]).jct_mean_s[0]
    twice = proven_trade(scene, elastic(*(2 * t for t in times)), FIXED, [price_ppm]).jct_mean_s[0]
    dearer = proven_trade(scene, elastic(*times), FIXED, [price_ppm + 1000]).jct_mean_s[0]
    assert twice == pytest.approx(2 * line, rel=1e-6)
    assert dearer >= line
    more = proven_trade(cloud(1.3, 1.9, nodes=8), elastic(*times), FIXED, [price_ppm])
    assert more.jct_mean_s[0] <= line * (1 + 1e-9)


# --- certificates --------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["rented_gpu_hours", "cost_usd"])
def test_bills_that_are_not_proven_are_refused(key):
    scene, jobs = cloud(1.5), elastic(100, 50)
    found = found_of(scene, jobs)
    more = found.model_copy(update={key: getattr(found, key) * (1 + 1e-9)})
    with pytest.raises(Violation, match=key):
        verify_bounds(scene, jobs, more)


def test_lines_that_are_not_proven_are_refused():
    scene, jobs = cloud(1.5), elastic(100, 50)
    found = found_of(scene, jobs)
    trade = found.trade
    dear = tuple(p + 1 for p in trade.prices_ppm)
    for change in (
        {"jct_mean_s": tuple(s * (1 + 1e-9) for s in trade.jct_mean_s)},
        {"jct_mean_s": trade.jct_mean_s[1:]},
        {"prices_ppm": tuple(max(0, p // 2) for p in trade.prices_ppm)},
    ):
        forged = found.model_copy(update={"trade": trade.model_copy(update=change)})
        with pytest.raises(Violation, match="trade"):
            verify_bounds(scene, jobs, forged)
    dearer = found.model_copy(update={"trade": trade.model_copy(update={"prices_ppm": dear})})
    verify_bounds(scene, jobs, dearer)  # proves less than dearer prices would: it holds


def test_numbers_that_are_none_are_refused():
    found = found_of(cloud(1.5), elastic(100, 50))
    document = found.model_dump(mode="json", by_alias=True)
    for key in ("jct_mean_s", "makespan_s", "energy_kwh", "cost_usd", "rented_gpu_hours"):
        with pytest.raises(ValueError, match=key):
            Bounds.model_validate(document | {key: float("nan")})
