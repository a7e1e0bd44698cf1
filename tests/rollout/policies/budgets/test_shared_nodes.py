"""Nodes of their own for wide jobs, shared ones for narrow jobs, and a ledger that holds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.engine.engine import Engine
from optsched.rollout.policies.budgets.boa_budgeted import Budgeted, BudgetedOptions
from optsched.rollout.policies.budgets.ledger import Ledger, _left
from optsched.rollout.policies.budgets.ledgered import GRID, LULL, Ledgered
from optsched.rollout.policies.budgets.priced_jobs import LeastUse
from optsched.rollout.policies.budgets.spare_nodes import Spares
from optsched.rollout.run import simulate
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import US, trace_of
from tests.support.strategies.common import law

CURVES = {
    "poor": [1.0, 1.2, 1.3, 1.4, 1.6],
    "good": [1.0, 1.9, 2.7, 3.6, 6.0],
    "super": [1.0, 2.2, 3.1, 4.9, 9.0],
}
GPUS = [1, 2, 3, 4, 8]


class Watched(Budgeted):
    """Takes down what it was asked for and what it knew at each call."""

    def __init__(self, scenario, **options):
        super().__init__("watched", scenario, 0, BudgetedOptions(**options))
        self.calls = []

    def _step_of(self, view):
        step = super()._step_of(view)
        left = self.ledger.sure(view.now_us / US) - self.billed_s(view)
        bills = self.ledger.waste * self._promised(view)
        self.calls.append((self.ledger.silence_s, step, left, bills))
        return step


@st.composite
def rented_worlds(draw):
    """Up to a dozen jobs on rented nodes of 4 GPUs; curves from poor to better than linear."""
    names = draw(st.lists(st.sampled_from(sorted(CURVES)), min_size=1, max_size=3))
    models = {
        f"m{n}": {
            "rescale_s": draw(st.sampled_from([0.0, 5.0, 60.0])),
            "phases": [
                {
                    "work_gpu_s": draw(st.sampled_from([10.0, 200.0])),
                    "speedup": {"kind": "table", "gpus": GPUS, "speedup": CURVES[other]},
                }
                for other in (name, *draw(st.lists(st.sampled_from(sorted(CURVES)), max_size=2)))
            ],
        }
        for n, name in enumerate(names)
    }
    document = {
        "name": "rented",
        "nodes": draw(st.integers(2, 6)),
        "gpus_per_node": 4,
        "models": models,
        "trace": {"generator": "none", "jobs": 1},
        "epoch_s": 60.0,
        "rented": {"provision_s": draw(st.sampled_from([0.0, 20.0, 120.0]))},
    }
    count = draw(st.integers(1, 12))
    known = [*models, "fixed"]  # a model without curves has the width that it asks for
    columns = {
        "submit_s": sorted(draw(st.integers(0, 2000)) for _ in range(count)),
        "gpus": [draw(st.sampled_from([1, 2, 5])) for _ in range(count)],
        "run_s": [draw(st.sampled_from([30.0, 300.0, 3000.0])) for _ in range(count)],
        "model": [draw(st.sampled_from(known)) for _ in range(count)],
    }
    return Scenario.from_document(document, "rented"), trace_of("t", "", columns)


@law(200, is_costly=True)
@given(rented_worlds(), st.sampled_from([0.5, 3.0, 9.0]))
def test_in_a_lull_no_more_is_promised_than_is_allowed_but_at_the_dearest_price(world, budget):
    """Whether it ends or not: the budget of the time in it is not there before another job is."""
    scenario, trace = world
    policy = Watched(scenario, budget=budget)
    record = Engine(scenario, trace, policy, seed=0).run()
    assert (record.jobs.outcome == 0).all()
    assert policy.calls
    gap_s = super(Ledgered, policy).gap_s()
    for silence_s, step, left, bills in policy.calls:
        dearer = [n for n, other in enumerate(GRID) if other > step]
        if silence_s > LULL * gap_s and dearer:
            assert bills[: dearer[-1] + 1].max() <= left


@law(300)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 40), st.integers(1, 90)), min_size=1),
    st.integers(1, 9),
    st.integers(0, 100),
)
def test_the_ledger_allows_the_budget_and_the_drain(jobs, budget, silence):
    """In the end budget x time from first to last arrival + the rest of jobs after the last."""
    ledger, jobs = Ledger(float(budget)), sorted(jobs)
    for number, (arrival, seconds, gpu_s) in enumerate(jobs):
        ledger.enter(number, float(arrival), LeastUse(seconds / 2, gpu_s / 2), 2.0)
    first, last = jobs[0][0], jobs[-1][0]
    drain = sum(gpu_s * max(0, at + s - last) / s for at, s, gpu_s in jobs)
    final = budget * (last - first) + drain
    assert ledger.allowed(float(last)) == pytest.approx(final)
    assert ledger.allowed(1000.0) == budget * (1000.0 - first)
    # a lull at the end was given the budget of its time: boa-large was billed 1.124 of 60 GPUs
    assert ledger.sure(float(last + silence)) <= ledger.allowed(float(last))
    assert ledger.sure(float(last + silence)) <= ledger.allowed(float(last + silence))
    ledger.pass_time((last + silence) * US)
    assert ledger.silence_s == silence
    assert ledger.waste >= 1
    assert Ledger(float(budget)).allowed(5.0) == 0


def test_what_is_left_after_the_last_arrival_goes_to_the_jobs_at_hand():
    """Jobs to come, who never came, kept the price at its dearest: 0.84 of it was billed."""
    curve = {"kind": "table", "gpus": GPUS, "speedup": CURVES["good"]}
    phases = [{"work_gpu_s": 100.0, "speedup": curve}] * 20
    jobs = [(300 * n, 20_000.0) for n in range(12)]
    models = {"m": {"phases": phases, "rescale_s": 2.0}}
    scenario, trace = one_model(CURVES["good"], *jobs, nodes=12, models=models)
    told = simulate(scenario, "boa-budgeted:budget=20", trace=trace).metrics
    allowed = told["rented_gpu_hours"] - told["over_budget_gpu_h"]
    assert 0.97 * allowed < told["rented_gpu_hours"] <= 1.01 * allowed


@pytest.mark.parametrize("budget", [12, 20])
def test_a_long_phase_that_begins_is_promised_what_it_takes_at_the_price(budget):
    """It was promised what the one before it held: 1.41 and 1.23 of the allowance were billed."""
    wide = {"gpus": [1, 2, 3, 4, 8, 16, 32], "speedup": [1.0, 1.9, 2.7, 3.6, 6.0, 9.0, 12.0]}
    phases = [{"work_gpu_s": 100.0, "speedup": {"kind": "table", **wide}}] * 2
    jobs = [*((60.0 * n, 1000.0) for n in range(11)), (660.0, 20_000.0)]
    models = {"m": {"phases": phases, "rescale_s": 2.0}}
    scenario, trace = one_model(CURVES["good"], *jobs, nodes=20, models=models)
    told = simulate(scenario, f"boa-budgeted:budget={budget}", trace=trace).metrics
    allowed = told["rented_gpu_hours"] - told["over_budget_gpu_h"]
    assert 0.95 * allowed < told["rented_gpu_hours"] <= 1.01 * allowed


def test_a_long_job_is_promised_what_its_own_widths_take():
    """Not those of a mean job, which changes are dear for: 1.43 of the allowance was billed."""
    wide = {"gpus": [1, 2, 3, 4, 8, 16, 32], "speedup": [1.0, 1.9, 2.7, 3.6, 6.0, 9.0, 12.0]}
    phases = [{"work_gpu_s": 100.0, "speedup": {"kind": "table", **wide}}] * 2
    jobs = [*((60.0 * n, 400.0) for n in range(21)), (1300.0, 40_000.0)]
    models = {"m": {"phases": phases, "rescale_s": 120.0}}
    scenario, trace = one_model(CURVES["good"], *jobs, nodes=20, models=models)
    told = simulate(scenario, "boa-budgeted:budget=20", trace=trace).metrics
    allowed = told["rented_gpu_hours"] - told["over_budget_gpu_h"]
    assert 0.95 * allowed < told["rented_gpu_hours"] <= 1.01 * allowed


def test_a_stream_that_has_lasted_longer_has_longer_to_settle():
    """Eight hours were a sixth of boa-large's two days: its price rose and fell eightfold."""

    class AtFour(Watched):
        def width(self, view, job):
            return 4  # whatever the price, so that only the time to settle makes a difference

        def spares(self):
            return Spares(0, 0)  # for the same reason

    jobs = ((40.0 * n, 400.0) for n in range(12))
    world, trace = one_model(CURVES["good"], *jobs, nodes=12)
    calls = []
    for settle_s in (100.0, 300.0, 1200.0):
        policy = AtFour(world, budget=12.0, settle_s=settle_s)
        Engine(world, trace, policy, seed=0).run()
        calls.append([step for _, step, *_ in policy.calls])
    short, middle, long = calls
    assert short[-12:] == middle[-12:]
    assert short[-12:] != long[-12:]
    assert short != middle


def test_a_job_that_runs_on_has_the_mean_of_its_class_left():
    """It was about to end, as jobs of its class do, for hours: others were given what it took."""
    good = {"kind": "table", "gpus": GPUS, "speedup": CURVES["good"]}
    models = {"m": {"phases": [{"work_gpu_s": 100.0, "speedup": good}] * 2, "rescale_s": 2.0}}
    jobs = [*((60.0 * n, 1000.0) for n in range(9)), (540.0, 40_000.0)]
    scenario, trace = one_model(CURVES["good"], *jobs, models=models)
    seen = []

    class Shown(Watched):
        every_epoch = property(lambda _: True, lambda _, value: None)

        def _step_of(self, view):
            step = super()._step_of(view)
            if 9 in self.held.of and 9 not in self.scales:
                done_s = float(view.done_us([9])[0]) / US
                seen.append((self.scale(view, 9) * 4900.0, 2 * done_s))  # 4,900 s on average
            return step

    Engine(scenario, trace, Shown(scenario, budget=9.0), seed=0).run()
    assert max(least for _, least in seen) > 39_000
    for known, least in seen:
        assert known == pytest.approx(least + 4900.0)


def test_jobs_to_come_bring_the_drain_of_long_jobs_not_of_mean_ones():
    """Half of it was expected: boa-cloud saved what was allowed anyway, at the dearest price."""
    scenario, trace = one_model(CURVES["good"], *((36.0 * n, 400.0) for n in range(101)))
    policy = Budgeted("b", scenario, 0, BudgetedOptions(budget=9.0))
    policy.prepare(trace)
    (key,) = policy.streams
    least, per_s = policy.least_use(key), policy.streams[key].rate_per_h / 3600
    shares = (np.arange(300) + 0.5) / 300
    sizes = -np.log(shares)  # as many of each tile of the exponential law
    for ahead_s in (0.3 * least.seconds, 1.0 * least.seconds, 8.0 * least.seconds):
        left = [
            _left((ahead_s * share, least.seconds * size, least.gpu_s * size), ahead_s)
            for share in shares.tolist()
            for size in sizes.tolist()
        ]
        assert policy._drain(ahead_s) == pytest.approx(per_s * ahead_s * np.mean(left), rel=0.01)


def one_model(speedup, *jobs, nodes=6, **fields):
    """Jobs (submit_s, run_s) of one model, on nodes of 4 GPUs that take 10 s to start."""
    table = {"kind": "table", "gpus": GPUS, "speedup": speedup}
    document = {
        "name": "one",
        "nodes": nodes,
        "gpus_per_node": 4,
        "models": {"m": {"phases": [{"work_gpu_s": 100.0, "speedup": table}], "rescale_s": 2.0}},
        "trace": {"generator": "none", "jobs": 1},
        "rented": {"provision_s": 10.0},
        **fields,
    }
    submit, run = zip(*jobs, strict=True)
    columns = {
        "submit_s": submit,
        "gpus": [1] * len(jobs),
        "run_s": run,
        "model": ["m"] * len(jobs),
    }
    return Scenario.from_document(document, "one"), trace_of("t", "", columns)


def test_jobs_that_scale_badly_share_a_node_and_take_what_is_idle_beside_them():
    flat = [1.0, 1.05, 1.1, 1.2, 1.25]
    world, trace = one_model(flat, (0.0, 400.0), (100.0, 400.0), (100.0, 400.0), (100.0, 400.0))
    told = simulate(world, "boa-budgeted:budget=0.1", trace=trace, keep_intervals=True)
    record = told.record
    widths = [[len(gpus) for j, *_, gpus in record.intervals if j == job] for job in range(4)]
    assert widths[0][0] == 4  # alone on a node: all of it
    assert 1 in widths[0]  # and no more than it wants when three others have come
    assert {epoch.rented_nodes for epoch in record.epochs if epoch.busy_gpus} == {1}


def test_a_job_that_wants_whole_nodes_has_them_for_itself():
    linear = [1.0, 2.0, 3.0, 4.0, 8.0]
    world, trace = one_model(linear, (0.0, 400.0), (1.0, 400.0), (2.0, 400.0))
    record = simulate(world, "boa-budgeted:budget=1000000", trace=trace, keep_intervals=True).record
    nodes = [{gpu // 4 for gpu in gpus} for *_, gpus in record.intervals]
    assert [len(gpus) for *_, gpus in record.intervals] == [8, 8, 8]
    assert sum(map(len, nodes)) == len(set().union(*nodes)) == 6


@pytest.mark.parametrize(("provision_s", "arrival_s", "nodes"), [(10.0, 53.0, 1), (5.0, 45.0, 2)])
def test_a_node_is_not_ordered_when_one_is_about_to_be_free(provision_s, arrival_s, nodes):
    """The first job has a phase behind it, so that it is known for how long it goes on."""
    table = {"kind": "table", "gpus": [4], "speedup": [4.0]}
    phases = [{"work_gpu_s": 100.0, "speedup": table} for _ in range(2)]
    fields = {"models": {"m": {"phases": phases, "rescale_s": 0.0}}}
    fields["rented"] = {"provision_s": provision_s}
    world, trace = one_model([1.0] * 5, (0.0, 200.0), (arrival_s, 200.0), **fields)
    record = simulate(world, "boa-budgeted:budget=9", trace=trace).record
    assert record.jobs.end_us[0] == pytest.approx((provision_s + 50) * US, abs=2)
    assert max(epoch.rented_nodes for epoch in record.epochs) == nodes


def test_a_node_that_falls_empty_goes_to_a_job_that_would_not_order_it():
    """Nodes were given back at once, and the next one was ordered and waited for."""
    good = {"kind": "table", "gpus": GPUS, "speedup": CURVES["good"]}
    models = {"m": {"phases": [{"work_gpu_s": 100.0, "speedup": good}], "rescale_s": 2.0}}
    fields = {"models": models, "rented": {"provision_s": 120.0}}
    rare = (400_000.0, 400.0)  # so that no nodes are kept for jobs to come
    world, trace = one_model(CURVES["good"], (0.0, 400.0), (0.0, 3000.0), rare, **fields)
    record = simulate(world, "boa-budgeted:price=0.3", trace=trace, keep_intervals=True).record
    widths = [[len(gpus) for j, *_, gpus in record.intervals if j == job] for job in range(2)]
    assert widths == [[4], [4, 8]]
    assert max(epoch.rented_nodes for epoch in record.epochs) == 2


def test_the_ledger_knows_how_long_a_job_is_to_the_digit():
    """Sizes rounded to half powers of 2 let long jobs bill up to 1.034 of the allowance."""
    good = {"kind": "table", "gpus": GPUS, "speedup": CURVES["good"]}
    models = {"m": {"phases": [{"work_gpu_s": 100.0, "speedup": good}] * 2, "rescale_s": 2.0}}
    world, trace = one_model(CURVES["good"], (0.0, 1000.0), (0.0, 3000.0), models=models)
    seen = {}

    class Sized(Watched):
        def _step_of(self, view):
            seen.update(self.scales)
            return super()._step_of(view)

    Engine(world, trace, Sized(world, budget=9.0), seed=0).run()
    assert seen == pytest.approx({0: 0.5, 1: 1.5}, rel=1e-4)


def test_a_job_of_one_phase_that_has_ended_has_nothing_left():
    """It was promised a part of the mean, and allowed its drain: spot-types was billed 1.26."""
    world, trace = one_model(CURVES["good"], (0.0, 1000.0), (0.0, 20_000.0))
    seen = []

    class Sized(Watched):
        def _step_of(self, view):
            if 0 in view.ended:
                seconds = self.ledger.jobs[0][1] / self.least_use(self.key(view, 0)).seconds
                seen.append((seconds, self.left_of_phases(view)[0]))
            return super()._step_of(view)

    Engine(world, trace, Sized(world, budget=9.0), seed=0).run()
    assert seen == [(pytest.approx(1000 / 10_500), pytest.approx(0.0, abs=1e-9))]
