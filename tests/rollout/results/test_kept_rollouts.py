"""Comparisons in several processes and on Dask, and those that go on from what was kept."""

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.rollout.checkpoints.kept_records import plain_record, record_of
from optsched.rollout.checkpoints.plain_data import of_json, to_json
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from tests.rollout.test_invariants import told
from tests.support.builders.dask_cluster import WAIT_S, cluster, wait_for  # noqa: F401
from tests.support.builders.small_rollouts import scenario, trace
from tests.support.strategies.common import law
from tests.support.strategies.rollout_random import scenarios, traces

DASK = pytest.mark.skipif(find_spec("distributed") is None, reason="Dask is not installed")
SIGNALS = pytest.mark.skipif(os.name == "nt", reason="kills processes by signals")


@law(40)
@given(st.data())
def test_a_record_is_the_same_after_it_was_kept(data):
    world = data.draw(scenarios(plain=True))
    jobs = data.draw(traces(world))
    name = data.draw(st.sampled_from(["fifo", "las", "eaco-greedy", "equi"]))
    try:
        record = Engine(world, jobs, make(name, world, 0), 0, keep_intervals=True).run()
    except ValueError:  # not made for such a scenario
        return
    again = record_of(of_json(to_json(plain_record(record))), world, jobs)
    assert told(again) == told(record)
    assert again.window == record.window
    assert again.is_starved == record.is_starved


@pytest.mark.parametrize("change", ["jobs", "figures", "window", "epochs", "shape", "kind"])
def test_what_is_no_record_of_the_trace_is_refused(change):
    where, jobs = scenario(), trace()
    plain = plain_record(optsched.simulate(where, "fifo", trace=jobs).record)
    if change == "shape":
        plain["jobs"]["end_us"] = plain["jobs"]["end_us"][:-1]
    elif change == "kind":
        plain["jobs"]["end_us"] = plain["jobs"]["end_us"].astype(float)
    else:
        plain[change] = {} if change != "window" else []
    with pytest.raises(ValueError, match=r"record|jobs|unpack|state"):
        record_of(plain, where, jobs)


# --- executors --------------------------------------------------------------------------------


SMALL = {"trace.jobs": 50}
COMMAND = (
    *(sys.executable, "-m", "optsched", "compare", "philly-small", "--policy", "fifo,las"),
    *("--seeds", "2", "--set", "trace.jobs=50", "--no-bound"),
)


def compared(**options):
    where = optsched.read_scenario("philly-small").changed(SMALL)
    return optsched.compare(where, ["fifo", "las"], seeds=2, **options)


@pytest.fixture(scope="module")
def expected():
    return compared(executor=1).document().to_json()


def test_processes_change_nothing(expected):
    seen = []
    found = compared(executor=2, under_way=seen.append)
    assert found.document().to_json() == expected
    assert {each.called for point in seen for each in point} <= {"seed 0", "seed 1"}


def test_an_error_says_of_which_policy_and_seed_it_is():
    with pytest.raises(Exception, match="fails") as caught:
        optsched.compare(scenario(), ["fifo", Failing], trace=trace(), seeds=[3])
    assert caught.value.__notes__[-1] == "Failing: seed 3"


class Failing:
    name = "Failing"

    def decide(self, view):
        raise ValueError("it fails")


@DASK
@SIGNALS
def test_a_comparison_on_dask_ends_when_a_worker_is_killed(cluster, expected, tmp_path):  # noqa: F811
    file, workers = cluster
    address = json.loads(file.read_text())["address"]
    kept, written = tmp_path / "kept", tmp_path / "all.json"
    driver = subprocess.Popen(
        [*COMMAND, "--scheduler", address, "--cache", kept, "-o", written],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_for(lambda: any(kept.glob("*.json")) or driver.poll() is not None, "rollout")
        workers[0].send_signal(signal.SIGKILL)
        _, errors = driver.communicate(timeout=WAIT_S)
    finally:
        driver.kill()
        driver.wait()
    assert driver.returncode == 0, errors
    assert len(list(kept.glob("*.json"))) == 4
    assert written.read_text() == expected


# --- what was kept ----------------------------------------------------------------------------


def test_what_was_kept_is_not_run_again(expected, tmp_path, monkeypatch):
    assert compared(executor=1, cache=tmp_path).document().to_json() == expected
    assert len(list(tmp_path.glob("*.json"))) == 4
    shares = []
    with monkeypatch.context() as patched:
        patched.setattr("optsched.rollout.rollout_tasks.rolled_out", lambda *a, **k: 1 / 0)
        again = compared(executor=1, cache=tmp_path, progress=shares.append)
    assert again.document().to_json() == expected
    assert shares == [0.25, 0.5, 0.75, 1.0]


@SIGNALS
def test_a_comparison_that_is_killed_goes_on(expected, tmp_path):
    kept, written = tmp_path / "kept", tmp_path / "all.json"
    command = [*COMMAND, "--processes", "1", "--cache", kept, "-o", written]
    driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: any(kept.glob("*.json")) or driver.poll() is not None, "rollout")
    driver.kill()
    driver.wait()
    first = {path: path.stat().st_mtime_ns for path in kept.glob("*.json")}
    assert first
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=WAIT_S)
    assert written.read_text() == expected
    assert all(path.stat().st_mtime_ns == moment for path, moment in first.items())


def test_a_damaged_file_is_run_again(expected, tmp_path):
    compared(executor=1, cache=tmp_path)
    victims = sorted(tmp_path.glob("*.json"))
    victims[0].write_text(victims[0].read_text()[:-40])
    document = json.loads(victims[1].read_text())
    document["rollout"]["wall_s"] = 0.5
    victims[1].write_text(json.dumps(document))
    with pytest.warns(RuntimeWarning, match="damaged: its rollout is computed again"):
        again = compared(executor=1, cache=tmp_path)
    assert again.document().to_json() == expected


def test_other_seeds_options_and_scenarios_have_files_of_their_own(tmp_path):
    where = scenario()
    for policy in ("fifo", "fifo:backfill=true"):
        for seeds in ([0], [1]):
            optsched.compare(where, [policy], trace=trace(), seeds=seeds, cache=tmp_path)
    slower = where.model_copy(update={"epoch_s": 7.0})
    optsched.compare(slower, ["fifo"], trace=trace(), cache=tmp_path)
    optsched.compare(where, ["fifo"], trace=trace(5, 3), cache=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 6


def test_policies_that_are_objects_are_not_kept(tmp_path):
    class Mine:
        name = "mine"

        def decide(self, view):
            free = view.free_gpus(0)
            jobs = [job for job in view.pending.tolist() if view.demand(job) <= len(free)][:1]
            return optsched.rollout.Decision(place={job: free[: view.demand(job)] for job in jobs})

    found = optsched.compare(scenario(), ["fifo", Mine()], trace=trace(), cache=tmp_path)
    assert len(list(tmp_path.glob("*.json"))) == 1
    assert np.isfinite(found.frame().loc["mine", "jct_mean_s"])
