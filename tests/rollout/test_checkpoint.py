"""Rollouts that are killed and go on end with the same bytes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import optsched
from optsched.rollout.engine import checkpoint
from optsched.rollout.settings import SETTINGS
from tests.support.builders.small_rollouts import (
    FILES,
    FirstFit,
    Greedy,
    contents,
    roll,
    scenario,
    trace,
)

# After so many decisions it waits to be killed.
KILLED = """
import sys, time
from optsched.rollout.settings import SETTINGS
from tests.support.builders.small_rollouts import FirstFit, roll, trace
vars(SETTINGS).update(save_every_s=0.005, save_share=1e9)
decide, left = FirstFit.decide, iter(range(int(sys.argv[3])))

def decide_or_wait(self, view):
    if next(left, None) is None:
        time.sleep(3600)
    return decide(self, view)

FirstFit.decide = decide_or_wait
print("begun", flush=True)
roll(FirstFit(pause_s=0.004), output=sys.argv[1], resume=sys.argv[2] == "resume", trace=trace(150))
"""


def start(folder, how, decisions):
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, folder, how, str(decisions)],
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "begun\n", process.stderr.read()
    return process


def test_killed_and_resumed_ends_with_the_same_bytes(tmp_path):
    random = np.random.default_rng(7)
    folder = tmp_path / "killed"
    saved = folder / checkpoint.NAME
    for attempt in range(3):
        process = start(folder, "resume" if attempt else "begin", 30)
        before = saved.stat().st_mtime_ns if saved.exists() else 0
        while not saved.exists() or saved.stat().st_mtime_ns == before:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.002)
        time.sleep(random.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert saved.exists()
    process = start(folder, "resume", 10**9)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    roll(FirstFit(), output=tmp_path / "whole", trace=trace(150))
    assert contents(folder) == contents(tmp_path / "whole")
    assert sorted(os.listdir(folder)) == FILES


class Stopped(Exception):
    pass


def stop_after(monkeypatch, saves):
    """Let rollouts save at every step, and stop after some of these."""
    monkeypatch.setitem(vars(SETTINGS), "save_every_s", -1.0)
    monkeypatch.setitem(vars(SETTINGS), "save_share", 1e9)
    save, left = checkpoint._save, [saves]

    def counted(*arguments):
        save(*arguments)
        left[0] -= 1
        if not left[0]:
            raise Stopped

    monkeypatch.setattr(checkpoint, "_save", counted)


def test_an_unfinished_rollout_is_not_overwritten(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        stop_after(patched, 20)
        with pytest.raises(Stopped):
            roll(output=tmp_path)
    with pytest.raises(ValueError, match="holds an unfinished rollout; resume it"):
        roll(output=tmp_path)
    for other, text in (
        ({"seed": 3}, "its seed is 0, not 3"),
        ({"trace": trace(seed=2)}, "its trace differs"),
        ({"keep_intervals": True}, "its intervals differs"),
    ):
        with pytest.raises(ValueError, match=f"of another rollout: {text}"):
            roll(output=tmp_path, resume=True, **other)
    with pytest.raises(ValueError, match="of another rollout: its scenario differs"):
        optsched.simulate(
            scenario(epoch_s=61), FirstFit(), trace=trace(), output=tmp_path, resume=True
        )
    with pytest.raises(ValueError, match="its policy is first-fit, not greedy"):
        roll(Greedy(), output=tmp_path, resume=True)
    roll(output=tmp_path, resume=True)
    assert sorted(os.listdir(tmp_path)) == FILES


def test_resuming_where_nothing_was_begun_begins(tmp_path):
    roll(output=tmp_path / "new", resume=True)
    assert sorted(os.listdir(tmp_path / "new")) == FILES
    with pytest.raises(ValueError, match="resume: name the output folder"):
        roll(resume=True)


def test_what_is_no_checkpoint_is_said_so(tmp_path):
    (tmp_path / checkpoint.NAME).write_bytes(b"\x80junk")
    with pytest.raises(ValueError, match="not a checkpoint"):
        roll(output=tmp_path, resume=True)
