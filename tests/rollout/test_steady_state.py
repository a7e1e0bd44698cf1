"""The window of the steady state: by hand, and laws; the second engine has it exactly."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.documents.faults import InstanceError
from optsched.rollout.engine.engine import Engine
from optsched.rollout.results.metrics import metrics
from optsched.traces.trace import US
from tests.support.builders.rollout_parts import Fifo, scenario, trace
from tests.support.strategies.common import law

PAID = {
    "price_usd_per_gpu_h": 3600.0,
    "power": {
        "gpu": {"bare_w": 30, "context_w": 36, "peak_w": 300},
        "node": {"base_w": 500},
        "price_usd_per_kwh": 1.0,
    },
}
KEYS = ("utilization", "utilization_effective", "rented_gpus_mean", "cost_usd", "energy_kwh")


def figures(rows, **parts):
    return metrics(Engine(scenario(1, 4, **PAID, **parts), trace(*rows), Fifo(), 0).run())


def test_the_drain_is_told_apart_from_the_time_of_arrivals():
    """Four GPUs are full until 100 s, when the last job of all comes; it runs alone for 900 s."""
    told = figures([(0, 4, 100), (50, 2, 10), (100, 1, 900)])
    assert (told["steady_s"], told["drain_s"]) == (100, 900)
    assert told["steady_utilization"] == 1
    assert told["steady_waiting_jobs_mean"] == 0.5
    assert told["steady_cost_usd"] == pytest.approx(400 + told["steady_energy_kwh"])
    assert told["drain_utilization"] == (2 * 10 + 900) / (4 * 900)
    assert told["utilization"] == (400 + 20 + 900) / 4000


def test_a_window_must_ascend():
    document = {"schema": "optsched/scenario/1", "nodes": 1, "gpus_per_node": 1, "steady_s": [9, 3],
                "trace": {"generator": "poisson", "jobs": 1}}  # fmt: skip
    with pytest.raises(InstanceError, match="steady_s: 3 after 9: must ascend"):
        type(scenario()).from_document(document)


SECONDS = st.integers(0, 90)


@law(300)
@given(
    st.lists(st.tuples(SECONDS, st.integers(1, 4), SECONDS), min_size=1, max_size=6),
    st.lists(st.integers(0, 300), min_size=3, max_size=3).map(sorted),
)
def test_windows_that_meet_add_up_and_a_window_of_all_is_the_whole(rows, moments):
    rows = sorted(rows)
    first, middle, last = moments
    one, other, both = (
        figures(rows, steady_s=window)
        for window in ((first, middle), (middle, last), (first, last))
    )
    for key in ("steady_cost_usd", "steady_energy_kwh", "steady_s"):
        assert one[key] + other[key] == pytest.approx(both[key], abs=1e-9)
    whole = figures(rows, steady_s=(0, 10**6))
    assert whole["drain_s"] == 0
    for key in KEYS:
        assert whole[f"steady_{key}"] == whole[key]
    waited = Engine(scenario(1, 4), trace(*rows), Fifo(), 0).run().jobs.waiting_us.sum() / US
    if whole["steady_s"]:
        mean = waited / whole["steady_s"]
        assert whole["steady_waiting_jobs_mean"] == pytest.approx(mean)
