"""A scheduler of Dask and two workers, processes of their own on loopback."""

import subprocess
import sys
import time

import pytest

WAIT_S = 600  # for other processes, which others may keep from work


def started(folder, name, *arguments):
    code = f"from distributed.cli.{name} import main; main()"
    with (folder / f"{name}.log").open("a") as log:
        return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)],
                                stdout=log, stderr=log, cwd=folder)  # fmt: skip


def wait_for(condition, what):
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"no {what} within {WAIT_S} s"
        time.sleep(0.02)


@pytest.fixture
def cluster(tmp_path):
    """Return the scheduler's file and two workers, all processes of their own on loopback."""
    file = tmp_path / "scheduler.json"
    local = ("--host", "127.0.0.1", "--no-dashboard")
    running = [started(tmp_path, "dask_scheduler", *local, "--port", 0, "--scheduler-file", file)]
    try:
        wait_for(file.exists, "scheduler")
        for _ in range(2):
            options = ("--scheduler-file", file, "--nthreads", 1, "--no-nanny", *local)
            running.append(started(tmp_path, "dask_worker", *options))
        yield file, running[1:]
    finally:
        for process in reversed(running):
            process.kill()
            process.wait()
