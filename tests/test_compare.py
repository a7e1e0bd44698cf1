"""compare(): ratios, intervals over seeds, and what is refused."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import optsched
import records
from optsched.problems import UnknownNameError
from optsched.rollout import registry, run
from optsched.rollout.comparison import RATIOS, Comparison
from small_rollouts import POLICIES, scenario, trace


@pytest.fixture
def registered(monkeypatch):
    """Register policies of the tests: `first`, and `other`, which draws other GPUs."""
    monkeypatch.setattr(registry, "ENTRIES", (*registry.ENTRIES, *POLICIES))


def test_compare_by_hand(registered):
    found = optsched.compare(scenario(), ["first", "other"], trace=trace(), seeds=4)
    frame = found.frame()
    runs = {name: [optsched.rollout(scenario(), name, trace=trace(), seed=seed).metrics
                   for seed in range(4)] for name in ("first", "other")}  # fmt: skip
    for name in runs:
        values = [told["jct_mean_s"] for told in runs[name]]
        base = [told["jct_mean_s"] for told in runs["first"]]
        row = frame.loc[name]
        assert row["jct_mean_s"] == pytest.approx(np.mean(values))
        logs = [math.log(a / b) for a, b in zip(values, base, strict=True)]
        assert row["jct_mean_s_ratio"] == pytest.approx(math.exp(np.mean(logs)))
        for key in ("jct_mean_s", "jct_mean_s_ratio"):
            assert row[f"{key}_low"] <= row[key] * (1 + 1e-9)
            assert row[key] <= row[f"{key}_high"] * (1 + 1e-9)
        assert min(values) * (1 - 1e-9) <= row["jct_mean_s_low"]
    assert frame.loc["first", "jct_mean_s_ratio_low"] == 1.0
    assert found.frame().equals(found.frame())
    assert "first" in str(found)
    assert repr(found) == "<Comparison on by hand: first, other; seeds: 4>"
    assert "jct_mean_s_ratio" in found._repr_html_()


def test_compare_draws_a_trace_for_each_seed_and_reads_a_file_once(registered, monkeypatch):
    found = optsched.compare("philly-small", ["first"], seeds=2)
    drawn = [run.record.trace for run in found.rollouts["first"]]
    assert (drawn[0].submit_us != drawn[1].submit_us).any()
    one = optsched.rollout("philly-small", "first", seed=1)
    assert found.rollouts["first"][1].metrics == one.metrics
    same = optsched.compare(scenario(), ["first"], trace=trace(), seeds=2).rollouts["first"]
    assert same[0].record.trace is same[1].record.trace
    assert same[0].record.seed != same[1].record.seed


def test_compare_of_one_seed_has_no_intervals(registered):
    frame = optsched.compare(scenario(), ["first"], trace=trace()).frame()
    assert not [name for name in frame if name.endswith(("_low", "_high"))]
    assert (frame[[f"{key}_ratio" for key in RATIOS]].iloc[0] == 1).all()


def test_an_executor_gives_the_same(registered):
    names = ["first", "other"]
    alone, shares = optsched.compare(scenario(), names, trace=trace(), seeds=2), []
    with ThreadPoolExecutor(2) as pool:
        together = optsched.compare(
            scenario(), names, trace=trace(), seeds=2, executor=pool, progress=shares.append
        )
    assert alone.frame().equals(together.frame())
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_metrics_that_are_missing_have_no_ratio(registered):
    made = records.record(energy_j=0.0)
    found = Comparison({"a": (run.Rollout(made, 0.0),) * 2, "b": (run.Rollout(made, 0.0),) * 2})
    row = found.frame().loc["b"]
    assert np.isnan(row["energy_kwh"])
    assert row[["energy_kwh_ratio", "energy_kwh_ratio_low"]].isna().all()
    assert row["jct_mean_s_ratio_high"] == 1


@pytest.mark.parametrize(
    ("policies", "seeds", "text"),
    [
        (["first"], 0, "seeds: must be at least 1, found 0"),
        ([], 1, "policies: expected some, each once, found none"),
        (["first", "first"], 1, "each once, found first, first"),
    ],
)
def test_compare_refuses(policies, seeds, text, registered):
    with pytest.raises(ValueError, match=text):
        optsched.compare(scenario(), policies, trace=trace(), seeds=seeds)


def test_misspelt_policies_are_found_before_anything_runs(registered, monkeypatch):
    monkeypatch.setattr("optsched.rollout.comparison.rollout", lambda *a, **k: 1 / 0)
    with pytest.raises(UnknownNameError, match="there is no policy 'othr'"):
        optsched.compare(scenario(), ["first", "othr"], trace=trace())


def test_plots(registered, monkeypatch):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    found = optsched.compare(scenario(), ["first", "other"], trace=trace())
    assert len(found.plot().axes) == 4
    assert len(found.rollouts["first"][0].plot().axes) == 4
    plt.close("all")
