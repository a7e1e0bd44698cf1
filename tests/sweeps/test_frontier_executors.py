"""Where points are computed and kept: processes, Dask, the cache, and what goes wrong there."""

import json
import os
import signal
import subprocess
import sys
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import pytest

import optsched
from optsched.documents.json_files import write_text
from optsched.executors import tasks as frontier_sweep
from optsched.executors.tasks import compute
from optsched.executors.under_way import WIDTH, Board
from optsched.sweeps import sweep_task
from optsched.sweeps.cache import PointCache
from optsched.sweeps.points import Point
from optsched.sweeps.sweep_task import SweepTask, content_of
from tests.support.builders.dask_cluster import WAIT_S, cluster, wait_for  # noqa: F401
from tests.support.builders.small_rollouts import scenario, trace

BUDGETS = [1, 2, 2.5, 3, 4, 5]


def sweep(**options):
    return optsched.frontier("boa/hand", budgets=BUDGETS, methods=["exact", "same-k"], **options)


def figures(frontier):
    """All that does not depend on a clock."""
    return [point.model_copy(update={"seconds": 0.0}) for point in frontier.points]


@pytest.fixture(scope="module")
def expected():
    return figures(sweep(executor=1))


class Counting(Executor):
    """Runs at once in this process, and counts; fails at a task, if it is told to."""

    def __init__(self, fails_at=None, error=None):
        self.count, self.fails_at, self.error = 0, fails_at, error

    def submit(self, function, /, *arguments, **options):
        future = Future()
        if self.count == self.fails_at:
            future.set_exception(self.error)
        else:
            future.set_result(function(*arguments, **options))
        self.count += 1
        return future


# --- executors -----------------------------------------------------------------------------------


def test_processes_give_the_same_points(expected):
    context = get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert figures(sweep(executor=pool)) == expected


def test_threads_and_a_number_of_processes_give_the_same_points(expected):
    with ThreadPoolExecutor(2) as pool:
        assert figures(sweep(executor=pool)) == expected


def test_processes_need_no_guard_in_the_script(tmp_path):
    script = tmp_path / "script.py"
    text = "import optsched\nprint('begun', flush=True)\n"
    text += "print(len(optsched.frontier('boa/hand', budgets=[2, 3], executor=2).points))\n"
    script.write_text(text)
    done = subprocess.run([sys.executable, "-W", "error", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("begun\n2\n", "")


def test_processes_are_started_only_if_it_pays(expected, monkeypatch):
    started = []

    def in_processes(tasks, processes, watch):
        started.append(len(tasks))
        return ((number, compute(task)) for number, task in tasks.items())

    monkeypatch.setattr(frontier_sweep, "_in_processes", in_processes)
    monkeypatch.setattr(frontier_sweep, "_cpus", lambda: 2)
    assert figures(sweep()) == expected
    assert started == []
    monkeypatch.setattr(frontier_sweep, "WORTH_S", 0.0)
    assert figures(sweep()) == expected
    assert started == [2 * len(BUDGETS) - 1]


@pytest.mark.parametrize("executor", [1, 2])
def test_points_under_way_are_told_with_their_phases_wherever_they_are_computed(executor):
    seen, budgets = [], [2, 3, 4]
    told = optsched.frontier(
        "boa/hand", budgets=budgets, methods=["milp"], executor=executor, under_way=seen.append
    )
    assert [point.status for point in told.points] == ["optimal"] * 3
    points = [point for each in seen for point in each]
    assert {point.method for point in points} == {"milp"}
    assert {point.called for point in points} <= {"2", "3", "4"}
    assert len({point.called for point in points}) >= (3 if executor == 1 else 1)
    assert all(point.elapsed_s >= 0 for point in points)
    assert max(len(each) for each in seen) <= executor


def test_rollouts_under_way_tell_the_share_of_jobs():
    seen = []
    where = scenario()
    optsched.frontier(
        where, "epoch_s", [5, 7], methods=["fifo"], trace=trace(), executor=1, under_way=seen.append
    )
    texts = [point.text for each in seen for point in each]
    assert "100% of jobs ended" in texts
    assert {point.called for each in seen for point in each} == {"5", "7"}


def test_a_line_of_another_process_is_read_as_it_was_written():
    board = Board([7, 9])
    assert board.texts() == {}
    board.put(9, "phase, plan 1.5")
    board.put(7, "é" * WIDTH)
    assert board.texts() == {7: "é" * ((WIDTH - 1) // 2), 9: "phase, plan 1.5"}
    board.put(9, "")
    board.clear(7)
    assert board.texts() == {9: ""}


def _die(task):
    """Stand in for `compute` in a worker that dies at one value."""
    if task.value == 2.5 and task.method == "exact":
        os.kill(os.getpid(), signal.SIGKILL)
    return compute(task)


def test_a_worker_that_dies_loses_no_finished_point(expected, monkeypatch, tmp_path):
    class Dying(ProcessPoolExecutor):
        def submit(self, function, /, *arguments, **options):
            return super().submit(_die, *arguments, **options)

    with (
        Dying(1, mp_context=get_context("spawn")) as pool,
        pytest.warns(RuntimeWarning, match="a worker died; .* are computed in this process"),
    ):
        frontier = sweep(executor=pool, cache=tmp_path)
    assert figures(frontier) == expected
    assert len(list(tmp_path.iterdir())) == len(expected)


class KilledWorker(Exception):
    """As Dask has it, which is no error of executors."""

    __module__ = "distributed.scheduler"


def test_a_task_that_dask_gives_up_is_done_here(expected):
    with pytest.warns(RuntimeWarning, match="a worker died; 1 of 12 tasks are computed in this"):
        assert figures(sweep(executor=Counting(3, KilledWorker("gave up")))) == expected


def test_a_pool_that_breaks_while_it_is_given_tasks_loses_nothing(expected):
    class Breaking(Counting):
        def submit(self, function, /, *arguments, **options):
            if self.count == 4:
                raise BrokenProcessPool
            return super().submit(function, *arguments, **options)

    with pytest.warns(RuntimeWarning, match="a worker died; 8 of 12 tasks"):
        assert figures(sweep(executor=Breaking())) == expected


def test_an_error_keeps_what_is_done(tmp_path):
    with pytest.raises(RuntimeError, match="out of luck"):
        sweep(executor=Counting(3, RuntimeError("out of luck")), cache=tmp_path)
    kept = len(list(tmp_path.iterdir()))
    assert kept == 2 * len(BUDGETS) - 1
    again = Counting()
    sweep(executor=again, cache=tmp_path)
    assert again.count == 1


def test_progress_ends_at_one():
    told = []
    sweep(executor=1, progress=told.append)
    assert told == sorted(told)
    assert (len(told), told[-1]) == (12, 1.0)


# --- Dask ----------------------------------------------------------------------------------------

DASK = pytest.mark.skipif(not find_spec("distributed"), reason="the extra 'distributed' is absent")

DRIVER = """
import json, os, sys, time, warnings
warnings.simplefilter("ignore")
from distributed import Client
import optsched
client = Client(scheduler_file=sys.argv[1], timeout=600)
client.wait_for_workers(2, timeout=600)
def tell(share):
    with open(sys.argv[3], "a") as file:
        file.write(f"{share}\\n")
    time.sleep(0.02)
values = [20.4 + n / 4 for n in range(int(sys.argv[4]))]
frontier = optsched.frontier("boa/cbd-85", budgets=values, executor=client.get_executor(),
                          cache=sys.argv[2], progress=tell)
workers = len(client.scheduler_info()["workers"])
print(json.dumps([workers, [[p.value, p.status, p.objective] for p in frontier.points]]))
client.close()
"""


@DASK
@pytest.mark.skipif(os.name == "nt", reason="kills processes by signals")
def test_dask_ends_complete_when_a_worker_is_killed(cluster, tmp_path):  # noqa: F811
    file, workers = cluster
    points, told, count = tmp_path / "points", tmp_path / "told", 30
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, file, points, told, str(count)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_for(lambda: told.exists() and told.read_text().count("\n") >= 3, "three points")
        workers[0].send_signal(signal.SIGKILL)
        finished = {path: path.read_bytes() for path in points.glob("*.json")}
        output, errors = driver.communicate(timeout=WAIT_S)
    finally:
        driver.kill()
        driver.wait()
    assert driver.returncode == 0, errors
    left, swept = json.loads(output)
    assert left == 1
    assert 3 <= len(finished) < count, "the worker was killed in mid-sweep"
    assert all(path.read_bytes() == content for path, content in finished.items())
    here = optsched.frontier("boa/cbd-85", budgets=[20.4 + n / 4 for n in range(count)],
                             executor=Counting(0, AssertionError()), cache=points)  # fmt: skip
    assert swept == [[p.value, str(p.status), p.objective] for p in here.points]
    base = optsched.read("boa/cbd-85")
    for value, _, objective in swept[:: count // 3]:
        assert objective == optsched.solve(base.changed({"budget_gpus": value})).objective


# --- the cache -----------------------------------------------------------------------------------


def test_a_second_call_computes_nothing(expected, tmp_path):
    first, again = Counting(), Counting()
    assert figures(sweep(executor=first, cache=tmp_path)) == expected
    assert sweep(executor=again, cache=tmp_path).points
    assert (first.count, again.count) == (12, 0)


def test_a_key_tells_whatever_changes_a_point(monkeypatch):
    hand = optsched.read("boa/hand")
    contents = [content_of(hand.changed_document({"budget_gpus": b})) for b in (3, 3.5)]
    base = SweepTask("boa", hand, {}, contents[0], 3, "exact", {"seed": 0})
    others = [
        base._replace(content=contents[1]),
        base._replace(value=4),
        base._replace(method="milp"),
        base._replace(options={"seed": 1}),
        base._replace(options={}),
        base._replace(problem="pal"),
    ]
    keys = {task.key() for task in [base, *others]}
    monkeypatch.setattr(sweep_task, "versions", lambda: {"highspy": "0"})
    assert len(keys | {base.key()}) == len(others) + 2


def test_a_key_tells_the_trace_and_its_file(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text("one")
    document = scenario().changed_document({"trace": {"file": str(path)}})
    before = content_of(document)
    path.write_text("two")
    assert content_of(document) != before
    task = SweepTask("rollout", scenario(), {}, before, 1, "fifo", {})
    keys = [task._replace(options={"trace": trace(5, seed)}).key() for seed in (1, 1, 2)]
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"key": 1}', "\xff\x00", "half", "figure"])
def test_a_damaged_file_is_computed_anew_with_a_warning(expected, tmp_path, damage):
    sweep(executor=1, cache=tmp_path)
    victim = sorted(tmp_path.iterdir())[0]
    whole = victim.read_text()
    if damage == "half":
        damage = whole[: len(whole) // 2]
    elif damage == "figure":
        damage = whole.replace('"value": ', '"value": 1')
    victim.write_text(damage, encoding="latin-1")
    executor = Counting()
    with pytest.warns(RuntimeWarning, match=f"{victim.name} is damaged: its point is computed"):
        assert figures(sweep(executor=executor, cache=tmp_path)) == expected
    assert executor.count == 1
    assert json.loads(victim.read_text())["point"] == json.loads(whole)["point"] | {
        "seconds": json.loads(victim.read_text())["point"]["seconds"]
    }


def test_a_folder_that_cannot_be_written_is_told_once(expected, tmp_path, monkeypatch):
    def refuse(path, text):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("optsched.executors.cache.write_text", refuse)
    with pytest.warns(RuntimeWarning) as told:
        assert figures(sweep(executor=1, cache=tmp_path / "points")) == expected
    assert len(told) == 1
    assert "No space left on device; it goes on without" in str(told[0].message)


def test_a_read_only_folder_gives_what_it_has(expected, tmp_path):
    sweep(executor=1, cache=tmp_path)
    sorted(tmp_path.iterdir())[0].unlink()
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert figures(sweep(executor=1, cache=blocked)) == expected
    assert len(told) == 1
    if os.geteuid():  # root may write anywhere
        tmp_path.chmod(0o500)
        executor = Counting()
        with pytest.warns(RuntimeWarning, match="Permission denied"):
            assert figures(sweep(executor=executor, cache=tmp_path)) == expected
        tmp_path.chmod(0o700)
        assert executor.count == 1


def test_points_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    point = Point(value=1, method="exact", status="optimal", objective=0.1 + 0.2)
    cache = PointCache(tmp_path)
    cache.put("a", point)
    assert cache.get("a", None) == point
    assert cache.get("b", None) is None
    monkeypatch.setattr("optsched.executors.cache.write_text", _cut(write_text))
    with pytest.warns(RuntimeWarning, match="cannot write"):
        cache.put("a", point.model_copy(update={"objective": 1.0}))
    assert PointCache(tmp_path).get("a", None) == point


def _cut(write):
    def cut(path, text):
        raise OSError(5, "Input/output error")

    return cut


KILLED = """
import sys, optsched
optsched.frontier("boa/cbd-85", budgets=[24 + n / 10 for n in range(200)], executor=1,
                  cache=sys.argv[1])
"""


@pytest.mark.skipif(os.name == "nt", reason="kills processes by signals")
def test_a_killed_sweep_goes_on_where_it_was(tmp_path):
    folder = Path(tmp_path) / "points"
    sweeping = subprocess.Popen([sys.executable, "-c", KILLED, folder])
    wait_for(lambda: folder.exists() and len(list(folder.glob("*.json"))) >= 3, "three points")
    sweeping.kill()
    sweeping.wait()
    kept = len(list(folder.glob("*.json")))
    assert kept < 200
    executor = Counting()
    budgets = [24 + n / 10 for n in range(kept + 2)]
    optsched.frontier("boa/cbd-85", budgets=budgets, executor=executor, cache=folder)
    assert executor.count == 2
