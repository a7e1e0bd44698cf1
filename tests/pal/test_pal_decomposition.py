"""The method "decomposition": plans of parts, and bounds for the whole."""

import functools
import json
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from multiprocessing import get_context

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import optsched
from optsched.cli import main as cli
from optsched.pal.decomposition import partition, subproblems
from optsched.pal.decomposition import solver as blocks
from optsched.pal.instance import PalInstance
from optsched.pal.settings import SETTINGS
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "block_gpus", 64)
    monkeypatch.setitem(vars(SETTINGS), "few_options", 0)
    monkeypatch.setitem(vars(SETTINGS), "block_gangs", 1)


def solved(instance, method="decomposition", **options):
    result = optsched.solve(instance, method, **options)
    if result.plan is not None:
        optsched.check(instance, result.plan)
    optsched.verify(instance, result)
    return result


def cluster(nodes, classes, jobs, **fields):
    """Nodes of 4 GPUs of some classes below one domain, and one-class jobs."""
    names = [[f"n{n}/{g}" for g in range(4)] for n in range(nodes)]
    values = [1 + 0.1 * ((n % classes) * 4 + g) for n in range(nodes) for g in range(4)]
    domains = [{"id": "all", "level": "cluster"}]
    domains += [
        {"id": f"n{n}", "level": "node", "parent": "all", "gpus": inside}
        for n, inside in enumerate(names)
    ]
    return PalInstance.from_document(
        {
            "schema": "optsched/pal/1",
            "topology": {"levels": ["node", "cluster"], "domains": domains},
            "profile": {
                "gpus": [gpu for inside in names for gpu in inside],
                "slowdown": {"A": values},
                "kind": "persistent",
            },
            "locality": {"m": [1, 1.5]},
            "jobs": [
                {"id": f"j{n}", "gpus": k, "application_class": "A", "model": "m"}
                for n, k in enumerate(jobs)
            ],
            **fields,
        }
    )


@pytest.mark.parametrize("name", ["pal/racks-256", "pal/overfull"])
def test_bounds_of_parts_are_near(name, small_blocks):
    instance = optsched.read(name)
    result = solved(instance, gap=0.02)
    known = optsched.known_values()[name]
    best = known.get("optimal", known.get("best"))
    assert result.bound <= best * (1 + 1e-9)
    assert result.gap < 0.05


def test_running_jobs_keep_their_block(small_blocks):
    result = solved(optsched.read("pal/sticky"), gap=0.02)
    assert result.bound <= optsched.known_values()["pal/sticky"]["optimal"] * (1 + 1e-9)


def test_alike_blocks_are_solved_once(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "block_gpus", 32)
    monkeypatch.setitem(vars(SETTINGS), "few_options", 0)
    instance = cluster(32, 4, [4, 2, 2, 1, 1, 1, 1] * 8)
    parts = partition.partitioned(instance, 32)
    assert [len(block.gpus) for block in parts] == [32] * 4
    assert len({block.likeness for block in parts}) == 1
    assert len({block.demand for block in parts}) == 1
    tried = []
    place = subproblems.PlacementTask.run
    monkeypatch.setattr(
        subproblems.PlacementTask, "run", lambda *args: tried.append(1) or place(*args)
    )
    result = solved(instance, gap=0.02)
    assert len(tried) == 1
    assert result.gap <= 0.02


def test_every_gpu_and_job_is_in_one_block():
    instance = cluster(13, 3, [3, 2, 8, 1, 1, 4, 4, 2])
    parts = partition.partitioned(instance, 16)
    assert sorted(np.concatenate([block.gpus for block in parts]).tolist()) == list(range(52))
    names = [job.id for block in parts for job in block.jobs]
    assert sorted(names) == sorted(job.id for job in instance.jobs)
    assert sum(block.share for block in parts) == pytest.approx(1)


def test_large_clusters_are_divided_by_exact(monkeypatch):
    monkeypatch.setitem(vars(SETTINGS), "large_gpus", 100)
    monkeypatch.setitem(vars(SETTINGS), "block_gpus", 32)
    monkeypatch.setitem(vars(SETTINGS), "few_options", 0)
    asked = []
    partitioned = blocks.partitioned
    monkeypatch.setattr(blocks, "partitioned", lambda *args: asked.append(1) or partitioned(*args))
    solved(cluster(32, 32, [4, 2, 1] * 8), "exact", gap=0.05)
    assert asked
    solved(cluster(8, 4, [4, 2, 1]), "exact", gap=0.05)
    assert len(asked) == 1


def test_no_time_is_a_plan_with_a_true_bound(small_blocks):
    instance = cluster(32, 4, [4, 2, 1, 1] * 8)
    result = solved(instance, time_limit_s=0)
    assert result.status == "feasible"
    assert 0 <= result.bound <= solved(instance, gap=0.01).objective


def test_too_many_gpus_asked_for_is_infeasible(small_blocks):
    result = solved(cluster(32, 4, [8] * 17))
    assert result.status == "infeasible"


# --- executors ----------------------------------------------------------------------------------


def mixed():
    """A cluster whose blocks are all unlike, so that each has work of its own."""
    return cluster(34, 34, [4, 2, 1, 1] * 8)


@functools.cache
def alone():
    """What this process makes of that cluster alone; in small blocks."""
    return solved(mixed(), gap=0.02)


def alike(first, second):
    """Whether two results are equal but for the clock."""
    clocks = {"seconds": 0.0, "verification_s": 0.0}
    return first.model_copy(update=clocks) == second.model_copy(update=clocks)


class Slow(Executor):
    """Never begins: its futures wait until they are cancelled."""

    def __init__(self):
        self.futures = []

    def submit(self, function, /, *arguments, **options):
        self.futures.append(Future())
        return self.futures[-1]


class Failing(Executor):
    """Fails in every task."""

    def __init__(self, error):
        self.error = error
        self.futures = []

    def submit(self, function, /, *arguments, **options):
        self.futures.append(Future())
        if len(self.futures) == 1:
            self.futures[-1].set_exception(self.error)
        return self.futures[-1]


def test_processes_give_the_same(small_blocks):
    instance = mixed()
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        result = solved(instance, gap=0.02, executor=pool)
    assert alike(result, alone())


def test_the_command_takes_a_number_of_processes():
    runner = CliRunner()
    bad = runner.invoke(cli.app, ["solve", "pal/tiny", "--processes", "0"])
    assert (bad.exit_code, bad.stderr) == (2, "error: --processes: must be at least 1, found 0\n")
    good = runner.invoke(cli.app, ["solve", "pal/tiny", "--processes", "2", "--json"])
    assert (good.exit_code, json.loads(good.stdout)["status"]) == (0, "optimal")


def test_no_time_cancels_what_is_not_begun(small_blocks):
    executor, started = Slow(), time.process_time()
    result = solved(mixed(), time_limit_s=0.3, executor=executor)
    assert time.process_time() - started < 60  # of this process, whatever others do
    assert (result.status, result.deterministic) == ("feasible", False)
    assert len(executor.futures) > 1
    assert all(future.cancelled() for future in executor.futures)


def test_an_interrupt_cancels_what_is_not_begun(small_blocks):
    executor = Failing(KeyboardInterrupt())
    result = solved(mixed(), executor=executor)
    assert result.message == "stopped early: interrupted"
    assert all(future.cancelled() for future in executor.futures[1:])


def test_an_error_is_not_hidden(small_blocks):
    with pytest.raises(ZeroDivisionError):
        solved(mixed(), executor=Failing(ZeroDivisionError()))


class KilledWorker(Exception):
    """As Dask has it, which is no error of executors."""

    __module__ = "distributed.scheduler"


def test_what_a_dead_worker_leaves_is_done_here(small_blocks, monkeypatch):
    class Dying(Executor):
        count = 0

        def submit(self, function, /, *arguments, **options):
            self.count += 1
            if self.count == 3:
                raise BrokenProcessPool
            future = Future()
            future.set_exception(KilledWorker() if self.count == 2 else BrokenProcessPool())
            return future

    instance = mixed()
    with pytest.warns(RuntimeWarning, match="a worker died; its part of the work is done in this"):
        result = solved(instance, gap=0.02, executor=Dying())
    assert alike(result, alone())


DASK_DRIVER = """
import json, sys, warnings
from distributed import Client, LocalCluster
import optsched
from optsched.pal.settings import SETTINGS

def main():
    vars(SETTINGS).update(block_gpus=64, block_gangs=1, few_options=0)
    instance = optsched.read(sys.argv[1])
    with LocalCluster(2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as local:
        with Client(local) as client:
            with client.get_executor() as executor:
                result = optsched.solve(instance, "decomposition", gap=0.02, executor=executor)
    print(result.to_json())

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
"""


@pytest.mark.skipif(not find_spec("distributed"), reason="the extra 'distributed' is absent")
def test_dask_gives_the_same(small_blocks, tmp_path):
    instance = mixed()
    optsched.write(instance, tmp_path / "mixed.json")
    (tmp_path / "driver.py").write_text(DASK_DRIVER)
    command = [sys.executable, str(tmp_path / "driver.py"), str(tmp_path / "mixed.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    expected = json.loads(alone().to_json())
    clocks = {"seconds": 0, "verification_s": 0}
    assert json.loads(done.stdout) | clocks == expected | clocks


# --- laws ---------------------------------------------------------------------------------------


@law(30)
@given(pal_instances(max_gpus=7), st.integers(1, 2**31 - 1))
def test_a_seed_gives_one_plan(instance, seed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(vars(SETTINGS), "block_gpus", 2)
        patch.setitem(vars(SETTINGS), "few_options", 0)
        patch.setitem(vars(SETTINGS), "block_gangs", 1)
        first, second = (solved(instance, seed=seed) for _ in range(2))
    assert alike(first, second)
