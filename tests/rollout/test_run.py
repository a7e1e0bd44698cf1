"""simulate(): outputs, seeds, traces, and what is refused."""

import json
import os
import pickle
import subprocess
import sys

import pytest

import optsched
from optsched.documents.faults import InstanceError
from optsched.instances import build_scenarios
from optsched.registry import UnknownNameError
from optsched.rollout import TraceSource, registry
from optsched.rollout.engine.decision import InvalidDecision
from optsched.rollout.engine.engine import Engine
from optsched.rollout.results.outputs import epochs_frame, jobs_frame
from optsched.rollout.settings import SETTINGS
from optsched.rollout.trace_source import jobs_of
from optsched.traces.trace import Failure, trace_of
from tests.rollout.test_metrics import assert_recomputable
from tests.support.builders.rollout_parts import gone_on
from tests.support.builders.small_rollouts import (
    FILES,
    POLICIES,
    FirstFit,
    Greedy,
    contents,
    roll,
    scenario,
    trace,
)


@pytest.fixture
def registered(monkeypatch):
    """Register policies of the tests: `first`, and `other`, which draws other GPUs."""
    monkeypatch.setattr(registry, "ENTRIES", (*registry.ENTRIES, *POLICIES))


# --- the name ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [
        "import optsched",
        "import optsched.rollout.physics.cluster",
        "import optsched.rollout.run",
        "from optsched.rollout.run import simulate",
        "from optsched import simulate",
        "from optsched import rollout",
    ],
)
def test_the_names_of_package_and_function_mean_the_same_whatever_was_imported_before(first):
    code = (
        f"{first}; import optsched; import optsched.rollout.physics.cluster as c; import sys; "
        "assert optsched.rollout is sys.modules['optsched.rollout']; "
        "assert type(optsched.rollout) is type(sys); assert callable(optsched.simulate); "
        "assert optsched.rollout.run.simulate is optsched.simulate is optsched.rollout.simulate; "
        "assert c is optsched.rollout.physics.cluster; "
        "assert callable(optsched.compare); optsched.rollout.run"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


# --- rollouts ---------------------------------------------------------------------------------


def test_rollout_shows_itself():
    outcome = roll(keep_intervals=True)
    assert len(outcome.jobs()) == 60
    assert len(outcome.epochs()) == len(outcome.record.epochs) + 1
    assert outcome.metrics["jobs"] == 60
    assert outcome.metrics["unfinished"] == 0
    assert outcome.metrics_of(10, 20)["jobs"] == 10
    assert outcome.metrics_by().loc["size", "jobs"].sum() == 60
    assert len(outcome.intervals()) == len(outcome.record.intervals) > 50
    assert outcome.timing()["solver_calls"] == outcome.metrics["solver_calls"] > 0
    assert "jct_mean_s" in str(outcome)
    assert "<Rollout of first-fit on by hand: 60 jobs, mean JCT" in repr(outcome)
    assert "mean job completion time" in outcome._repr_html_()
    pickle.loads(pickle.dumps(outcome))


def test_metrics_of_a_rollout_can_be_computed_again_from_its_files(tmp_path):
    outcome = roll(output=tmp_path)
    assert_recomputable(tmp_path)
    assert json.loads((tmp_path / "summary.json").read_text())["metrics"] == outcome.metrics
    assert sorted(os.listdir(tmp_path)) == FILES


def test_same_seed_same_bytes_and_not_dependent_on_saving(tmp_path, monkeypatch):
    roll(output=tmp_path / "a")
    monkeypatch.setitem(vars(SETTINGS), "save_every_s", 0.0)
    monkeypatch.setitem(vars(SETTINGS), "save_share", 1e9)
    roll(output=tmp_path / "b")
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    roll(FirstFit(seed=5), output=tmp_path / "c")
    assert contents(tmp_path / "a") != contents(tmp_path / "c")


def test_a_policy_of_ones_own_is_copied_and_a_folder_holds_one_rollout(tmp_path):
    policy = FirstFit()
    first = roll(policy, output=tmp_path, keep_intervals=True)
    assert (tmp_path / "intervals.csv").exists()
    again = roll(policy, output=tmp_path)
    assert first.jobs().equals(again.jobs())
    assert sorted(os.listdir(tmp_path)) == FILES


def test_progress_rises_to_one():
    shares = []
    roll(progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_broken_rules_are_raised():
    with pytest.raises(InvalidDecision):
        roll(Greedy())


def test_names_of_policies_and_scenarios_are_looked_up(registered):
    assert roll("first:pause_s=0").record.policy == "first:pause_s=0"
    with pytest.raises(UnknownNameError, match="did you mean 'first'"):
        roll("frist")
    with pytest.raises(ValueError, match="policy 'first:pase_s=1'"):
        roll("first:pase_s=1")
    with pytest.raises(FileNotFoundError):
        optsched.simulate("no-such-scenario")


# --- traces -----------------------------------------------------------------------------------


def test_gangs_that_never_fit_are_named_or_left_out():
    large = trace_of("big", "", {"ids": ["s", "m", "l"], "submit_s": [0, 5, 9],
                                 "gpus": [1, 16, 32], "run_s": [10, 10, 10],
                                 "failures": [(), (), (Failure("oom", 1),)]})  # fmt: skip
    message = "trace 'big': job 'm' needs 16 GPUs, but scenario 'by hand' has 12; 1 more"
    with pytest.raises(ValueError, match=message):
        roll(trace=large)
    kept = jobs_of(scenario(trace=dict(generator="poisson", jobs=1, drop_larger=True)), large)
    assert kept.ids == ("s",)
    assert kept.failures == {}
    above = r"quota of its queue 'x' is 3; .* \(drop_larger leaves such jobs out\)"
    with pytest.raises(ValueError, match=above):
        optsched.simulate(scenario(quotas={"x": 3}), FirstFit(), trace=trace())
    source = dict(generator="poisson", jobs=1, drop_larger=True)
    assert 0 < len(jobs_of(scenario(quotas={"x": 3}, trace=source), trace())) < len(trace())


def test_dropping_keeps_failures_with_their_jobs():
    columns = {"ids": ["l", "s"], "submit_s": [0, 5], "gpus": [64, 1], "run_s": [10, 10],
               "failures": [(), (Failure("oom", 1),)]}  # fmt: skip
    where = scenario(trace=dict(generator="poisson", jobs=1, drop_larger=True))
    kept = jobs_of(where, trace_of("two", "", columns))
    assert kept.failures == {0: (Failure("oom", 1),)}
    assert kept.submit_us.tolist() == [5_000_000]


def test_each_seed_draws_a_trace_of_its_own():
    pytest.importorskip("optsched.traces.generators.registry")
    where = scenario(trace=dict(generator="poisson", jobs=30))
    first, again, other = (jobs_of(where, seed=seed) for seed in (0, 0, 1))
    assert (first.submit_us == again.submit_us).all()
    assert (first.submit_us != other.submit_us).any()


def test_a_source_replaces_the_trace_of_the_scenario(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "workload,job_id,num_gpus,submit_time,iterations,model,pal_class,iter_time_s\n"
        "1,one,1,0,100,bert,A,0.5\n1,two,2,10,100,bert,A,0.5\n2,three,2,10,100,bert,A,0.5\n"
    )
    source = TraceSource(file=str(path), format="pal", workload=1)
    outcome = roll(trace=source)
    assert outcome.metrics["jobs"] == 2
    assert outcome.record.scenario.trace == source
    path.write_text(path.read_text().replace("two,2", "two,zwei"))
    with pytest.raises(InstanceError, match=r"line 3, column num_gpus"):
        roll(trace=source)


# --- bundled scenarios and registered policies ------------------------------------------------


def test_bundled_scenarios_are_what_the_script_writes():
    for name, text in build_scenarios.documents().items():
        assert (build_scenarios.FOLDER / name).read_text() == text


def test_philly_small_has_failures_delays_energy_and_costs():
    told = optsched.simulate("philly-small", "fifo").metrics
    assert told["jobs"] == 400
    for key in ("failures", "retries", "killed", "redone_gpu_h", "overhead_gpu_h", "energy_kwh"):
        assert told[key] > 0, key


@pytest.mark.parametrize("name", [entry.name for entry in registry.ENTRIES])
def test_policies_survive_being_saved_at_any_moment(name):
    small = {"trace.jobs": 25, "epoch_s": 1800, "nodes": 8, "gpus_per_node": 8}
    where = optsched.read_scenario("philly-small").changed(small)  # EaCO's need equal nodes
    jobs = jobs_of(where)

    def begun():
        return Engine(where, jobs, registry.make(name, where, 0), 0)

    whole, engine, steps = begun().run(), begun(), 0
    while engine.step():
        steps += 1
        if steps % 9 == 0:
            engine = gone_on(engine, begun())
    record = engine.record()
    assert jobs_frame(record).equals(jobs_frame(whole))
    assert epochs_frame(record).equals(epochs_frame(whole))
