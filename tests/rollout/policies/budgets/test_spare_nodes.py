"""Spare nodes: the stock of a newsvendor, and nodes that are there when jobs come."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.rollout.policies.budgets.spare_nodes import Spares, stock
from optsched.rollout.policy_options import OptionError
from optsched.rollout.registry import make
from optsched.rollout.run import simulate
from optsched.rollout.scenario import Scenario
from optsched.rollout.scenario_files import read_scenario
from optsched.traces.trace import US, trace_of
from tests.support.strategies.common import law

MOST = 12  # jobs of one width that come while a node starts: more are as good as none


def net_savings(jobs, price, node_gpus, nodes, kept):
    """By the number of nodes what they save, by enumeration of how many jobs of each width come."""
    widths, chances = list(jobs), []
    for counts in itertools.product(range(MOST + 1), repeat=len(widths)):
        pairs = zip(counts, jobs.values(), strict=True)
        chance = math.prod(math.exp(-m) * m**n / math.factorial(n) for n, m in pairs)
        asked = sum(n * w for n, w in zip(counts, widths, strict=True))
        chances.append((asked, chance))
    asked, chance = np.array(chances).T
    net = []
    for count in range(nodes + 1):
        gpus = count * node_gpus
        idle = float((np.maximum(gpus - asked, 0) * chance).sum())
        saved = sum(
            m * (1 + kept * price * w) * float(chance[asked + w <= gpus].sum())
            for w, m in jobs.items()
        )
        net.append(saved - price * idle)
    return net


@law(100)
@given(
    st.dictionaries(
        st.sampled_from([1, 2, 4, 8, 12]), st.sampled_from([0.05, 0.4, 1.0]), max_size=3
    ),
    st.sampled_from([1e-4, 0.003, 0.05, 0.2, 1.0, 20.0]),
    st.sampled_from([1, 4, 8]),
)
def test_no_other_number_of_spare_nodes_saves_more(jobs, price, node_gpus):
    found = stock(jobs, price, node_gpus, 9)
    for kept, count in enumerate(found):
        net = net_savings(jobs, price, node_gpus, 9, kept)
        assert net[count] >= max(net) - 1e-6
    assert 0 <= found.ordered <= found.kept <= 9


def test_a_stock_of_more_nodes_where_time_of_gpus_is_cheaper_and_none_where_it_is_dear():
    jobs = {4: 0.7, 16: 0.1}
    ordered = [stock(jobs, price, 4, 50).ordered for price in (1.0, 0.1, 0.01, 0.001)]
    assert ordered == sorted(ordered)
    assert ordered[0] == 0 < ordered[1] < ordered[-1]
    assert stock({}, 0.1, 4, 50) == stock({4: 0.0}, 0.1, 4, 50) == Spares(0, 0)
    assert stock({4: 2000.0}, 1e-9, 4, 50) == Spares(0, 0)  # more than floating point can tell


def stream(*jobs, phases=1):
    """Jobs (submit_s, run_s) on 40 nodes of 4 GPUs that take two minutes to start."""
    curve = {"kind": "table", "gpus": [4], "speedup": [4.0]}
    document = {
        "name": "stream",
        "nodes": 40,
        "gpus_per_node": 4,
        "models": {"m": {"phases": [{"work_gpu_s": 100.0, "speedup": curve}] * phases}},
        "trace": {"generator": "none", "jobs": 1},
        "epoch_s": 60.0,
        "rented": {"provision_s": 120.0},
    }
    submit, run = zip(*jobs, strict=True)
    named = {"gpus": [1] * len(jobs), "model": ["m"] * len(jobs)}
    trace = trace_of("t", "", {"submit_s": submit, "run_s": run, **named})
    return Scenario.from_document(document, "stream"), trace


def waits_s(record):
    """By job, seconds until it starts."""
    return (record.jobs.first_start_us - record.trace.submit_us) / US


def test_jobs_find_nodes_ready_where_time_of_gpus_is_cheap():
    """Each waited two minutes for a node, whatever the price: 9 % of mean JCT on boa-large."""
    rng = np.random.default_rng(0)
    jobs = [(at, 2400.0) for at in np.cumsum(rng.exponential(150.0, 60)).tolist()]
    scenario, trace = stream(*jobs)
    cheap, dear = (
        simulate(scenario, f"boa-budgeted:price={price}", trace=trace).record
        for price in (0.001, 1.0)
    )
    assert np.median(waits_s(cheap)) == 0
    assert waits_s(cheap).mean() < 20
    assert waits_s(dear).mean() > 80
    ordered = stock({4: 120 / 150}, 0.001, 4, 40).ordered
    assert cheap.spent_gpu_us - cheap.busy_gpu_us < 4 * (ordered + 1) * cheap.end_us


def test_spare_nodes_are_given_back_in_a_lull_in_which_nothing_happens():
    """The last job runs for days, and nobody is called until it ends but at the epochs."""
    jobs = [*((100.0 * n, 1200.0) for n in range(30)), (3000.0, 200_000.0)]
    scenario, trace = stream(*jobs)
    record = simulate(scenario, "boa-budgeted:price=0.001", trace=trace).record
    rented = {epoch.now_us / US: epoch.rented_nodes for epoch in record.epochs}
    assert max(nodes for at, nodes in rented.items() if at < 3000) > 3
    assert {nodes for at, nodes in rented.items() if at > 3000 + 1500} <= {0, 1}
    assert record.spent_gpu_us / US < 4 * (30 * 1200 + 60_000)


def test_nothing_is_rented_while_there_are_no_jobs():
    """No call comes before the next job, and it may be days away."""
    jobs = [(100.0 * n, 1200.0) for n in range(30)]
    scenario, trace = stream(*jobs, *((1e5 + at, run) for at, run in jobs))
    record = simulate(scenario, "boa-budgeted:price=0.00001", trace=trace).record
    assert max(epoch.rented_nodes for epoch in record.epochs) > 6
    assert record.spent_gpu_us / US < 4 * 10 * 2 * 4000


# --- announced jobs ---------------------------------------------------------------------------


def test_announced_jobs_find_nodes_ready_though_time_of_gpus_is_dear():
    """Nodes are ordered at epochs of 60 s, so that they wait for less than one."""
    apart = [(1003.0 * n, 1200.0) for n in range(1, 20)]
    scenario, trace = stream((0.0, 100_000.0), *apart)  # somebody is always there
    told, untold = (
        simulate(scenario, f"boa-budgeted:price=1.0,notice_s={notice_s}", trace=trace).record
        for notice_s in (500.0, 0.0)
    )
    assert waits_s(untold)[1:].min() >= 120
    assert 0 < waits_s(told)[1:].max() < 60
    assert told.spent_gpu_us <= untold.spent_gpu_us


def test_half_the_notice_saves_half_the_wait():
    scenario, trace = stream((0.0, 100_000.0), *((1020.0 * n, 1200.0) for n in range(1, 20)))
    policy = "boa-budgeted:price=1.0,notice_s=60.0"
    record = simulate(scenario, policy, trace=trace).record
    assert set(waits_s(record)[1:].tolist()) == {60.0}


@law(60, is_costly=True)
@given(
    st.lists(st.integers(0, 3000), min_size=2, max_size=12, unique=True).map(sorted),
    st.sampled_from([20.0, 90.0, 120.0, 500.0]),
    st.data(),
)
def test_nobody_knows_of_jobs_beyond_the_notice(submit_s, notice_s, data):
    """Until the first of them could be announced, all is as if they never came."""
    known = data.draw(st.integers(1, len(submit_s) - 1))
    records = []
    for count in (known, len(submit_s)):
        scenario, trace = stream(*((float(at), 900.0) for at in submit_s[:count]))
        policy = f"boa-budgeted:rates=history,notice_s={notice_s}"
        records.append(simulate(scenario, policy, trace=trace).record)
    until_us = (submit_s[known] - submit_s[0] - min(notice_s, 120.0)) * US
    few, all_ = (
        [
            (epoch.now_us, epoch.rented_nodes)
            for epoch in record.epochs
            if epoch.now_us < until_us and epoch.rented_nodes
        ]
        for record in records
    )
    assert few == all_


@pytest.mark.parametrize("name", ["philly-small", "rented-types"])
def test_a_notice_is_refused_where_it_would_change_nothing(name):
    with pytest.raises(OptionError, match=r"option 'notice_s': nodes of scenario .* not rented"):
        make("boa-budgeted:notice_s=60.0", read_scenario(name))
