"""heSRPT, SmartFill and WHAM in rollouts: widths by hand, and theory's cost of a batch of jobs."""

import numpy as np
import pytest

from optsched.rollout.policies.malleable.optimal_shares import smartfill_weights
from optsched.rollout.registry import make
from optsched.rollout.run import simulate
from optsched.rollout.scenario import Scenario
from optsched.traces.trace import US, trace_of

LAWS = {"p": {"kind": "power", "exponent": 0.5, "max_gpus": 400}}


def batch(runs, gpus, speedup, **fields):
    """Jobs of one model that are all there at once, on nodes of one GPU."""
    document = {
        "name": "batch", "nodes": gpus, "gpus_per_node": 1, "epoch_s": 1e6,
        "models": {"m": {"phases": [{"work_gpu_s": 1.0, "speedup": speedup}]}},
        "trace": {"generator": "none", "jobs": len(runs)},
        **fields,
    }  # fmt: skip
    columns = {"submit_s": [0.0] * len(runs), "gpus": [1] * len(runs), "run_s": list(runs),
               "model": ["m"] * len(runs)}  # fmt: skip
    return Scenario.from_document(document, "batch"), trace_of("batch", "", columns)


def first_widths(policy, world, trace):
    record = simulate(world, policy, trace=trace, keep_intervals=True).record
    first = {job: gpus for job, start, _, gpus in reversed(record.intervals) if start == 0}
    return [len(first.get(job, ())) for job in range(len(trace.submit_us))]


def test_widths_by_hand():
    world, trace = batch([300, 200, 100], 9, LAWS["p"])
    assert first_widths("hesrpt", world, trace) == [1, 3, 5]
    assert first_widths("hesrpt:p=0.5,gpus=9", world, trace) == [1, 3, 5]
    assert first_widths("wham", world, trace) == [3, 3, 3]  # one curve: equal shares
    assert first_widths("wham:gpus=2", world, trace) == [1, 1, 0]
    table = {"kind": "table", "gpus": [1, 2, 4], "speedup": [1.0, 1.6, 2.0]}
    world, trace = batch([300, 100], 4, table)
    # the longer job costs 1/2 for each second of work, the shorter one 1.25 / 1.6 (at 2 GPUs);
    assert smartfill_weights([np.array([0, 1, 1.6, 1.8, 2])] * 2, 4) == [0.5, pytest.approx(0.75)]
    assert first_widths("smartfill", world, trace) == [2, 2]
    linear = {"kind": "table", "gpus": [1, 2, 4], "speedup": [1.0, 2.0, 4.0]}
    world, trace = batch([300, 100], 4, linear)
    assert first_widths("smartfill", world, trace) == [0, 4]
    assert first_widths("wham", world, trace) == [4, 0]  # sizes do not matter: the oldest


def test_the_exponent_is_fitted_to_the_curves():
    world, _ = batch([1.0], 8, LAWS["p"])
    assert make("hesrpt", world).exponent == pytest.approx(0.5)
    assert make("hesrpt:p=0.3", world).exponent == 0.3
    fixed, _ = batch([1.0], 8, {"kind": "table", "gpus": [1], "speedup": [1.0]})
    assert make("hesrpt", fixed).exponent == 0.5
    with pytest.raises(ValueError, match=r"option 'p': must be at most 0\.99"):
        make("hesrpt:p=1.0", world)


def test_a_batch_costs_what_theory_says_but_for_whole_gpus():
    """400 GPUs for five jobs of speed k ** 0.5: the optimum of shares, in closed form."""
    runs = [5000.0, 4000.0, 2500.0, 1200.0, 700.0]
    world, trace = batch(runs, 400, LAWS["p"])
    weights = np.diff(np.arange(6.0) ** 2) ** 0.5 / 20
    least = float(weights @ runs)
    totals = {}
    for policy in ("hesrpt", "smartfill", "wham", "equi", "srpt-k", "marginal-greedy"):
        record = simulate(world, policy, trace=trace).record
        totals[policy] = float((record.jobs.end_us - trace.submit_us).sum()) / US
        assert totals[policy] >= least * (1 - 1e-6), policy
    assert totals["hesrpt"] <= least * 1.001
    assert totals["smartfill"] <= least * 1.001
    assert min(totals["equi"], totals["srpt-k"], totals["wham"]) > least * 1.04
