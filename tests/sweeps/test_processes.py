"""Processes that work for another: when they end, and what reaches them."""

import os
import signal
import subprocess
import sys
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

import pytest

from optsched.executors.processes import Workers

POSIX = pytest.mark.skipif(os.name == "nt", reason="sends signals")
# Each worker names itself, and would then work for an hour; Ctrl-C raises even where a shell has
# started the tests in the background.
PARENT = """
import signal
from optsched.executors.processes import Workers

signal.signal(signal.SIGINT, signal.default_int_handler)
code = "import os, time; os.write(1, b'%d\\\\n' % os.getpid()); " + {work!r}
with Workers(2) as pool:
    futures = [pool.submit(exec, code) for _ in range(2)]
    for future in futures:
        future.result()
"""
SLEEPS = "time.sleep(3600)"
COMPUTES = "sum(range(10**13))"  # one call of C code that keeps Python's lock


@contextmanager
def working(work):
    """Yield a parent in a group of its own, and its workers, which are at work."""
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT.format(work=work)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with parent:
        try:
            yield parent, [int(parent.stdout.readline()) for _ in range(2)]
        finally:
            if parent.poll() is None:
                os.killpg(parent.pid, signal.SIGKILL)


def errors_of(parent):
    """Return what was written when nobody is left who could write: workers inherit the pipes."""
    return parent.communicate(timeout=600)[1]


@POSIX
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_no_worker_outlives_a_parent_that_is_ended(name):
    with working(SLEEPS) as (parent, _):
        parent.send_signal(signal.Signals[name])
        errors_of(parent)
    assert parent.returncode == -signal.Signals[name]


@pytest.mark.skipif(sys.platform != "linux", reason="only the kernel can end it in C code")
def test_no_worker_in_c_code_outlives_its_parent():
    with working(COMPUTES) as (parent, _):
        parent.kill()
        errors_of(parent)


@POSIX
def test_ctrl_c_for_the_whole_group_is_told_by_the_parent_alone():
    with working(SLEEPS) as (parent, _):
        os.killpg(parent.pid, signal.SIGINT)
        errors = errors_of(parent)
    assert errors.count("KeyboardInterrupt") == 1
    assert errors.count("Traceback") == 1


@POSIX
def test_a_killed_worker_ends_the_pool_and_the_others():
    with working(SLEEPS) as (parent, workers):
        os.kill(workers[0], signal.SIGKILL)
        errors = errors_of(parent)
    assert "BrokenProcessPool" in errors
    assert parent.returncode == 1


def test_the_death_of_the_process_started_last_is_noticed_though_nothing_else_happens():
    """Python's pool woke its watcher before that process was there: a wait without end."""
    with Workers(2) as pool:
        futures = [pool.submit(exec, f"import time; {SLEEPS}") for _ in range(2)]
        while not futures[1].running():
            pass
        list(pool._processes.values())[1].kill()
        with pytest.raises(BrokenProcessPool):
            futures[1].result(timeout=600)


def test_an_exception_does_not_wait_for_work_that_goes_on():
    ended = []

    def fail_at_work():
        with Workers(1) as pool:
            ended.append(pool.submit(exec, f"import time; {SLEEPS}"))
            while not ended[0].running():
                pass
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_at_work()
    with pytest.raises(BrokenProcessPool):
        ended[0].result(timeout=600)


def test_each_worker_begins_as_it_is_told():
    with Workers(1, exec, "import os; os.environ['OPTSCHED_TOLD'] = 'yes'") as pool:
        assert pool.submit(os.getenv, "OPTSCHED_TOLD").result(600) == "yes"
