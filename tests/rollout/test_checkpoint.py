"""Rollouts that are killed and go on end with the same bytes."""

import contextlib
import fcntl
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.rollout import RestorablePolicy
from optsched.rollout.checkpoints import checkpoint, folder_lock
from optsched.rollout.checkpoints.folder_lock import locked
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
from tests.support.strategies.common import law

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


# --- folders of somebody else -----------------------------------------------------------------


def small(folder, resume=False):
    """A short rollout of a policy with retries, trials and quotas, with all that is saved."""
    policy = "philly:pre_run=yes,pre_run_s=3,dedicated=yes"
    return optsched.simulate(
        scenario(quotas={"x": 6}, neighbours={"shared_server": 0.8}), policy, trace=trace(9),
        output=folder, resume=resume, keep_intervals=True,
    )  # fmt: skip


@cache
def kept():
    """The bytes of a checkpoint in the middle, and what the rollout writes in the end."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        stop_after(patched, 14)
        with pytest.raises(Stopped):
            small(folder)
        patched.undo()
        data = Path(folder, checkpoint.NAME).read_bytes()
        small(folder, resume=True)
        return data, contents(folder)


def gone_on_from(data):
    """What a rollout writes that goes on from a checkpoint; the line in which it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, checkpoint.NAME)
        path.write_bytes(data)
        try:
            small(folder, resume=True)
        except ValueError as error:
            text = str(error)
        else:
            return contents(folder)
        assert path.read_bytes() == data
        assert "\n" not in text
        return text


@law(200)
@given(data=st.data())
def test_a_checkpoint_that_was_cut_or_changed_is_refused(data):
    whole, outcome = kept()
    n = data.draw(st.integers(0, len(whole) - 1))
    odd = data.draw(st.binary(max_size=3))
    changed = data.draw(
        st.sampled_from([whole[:n], whole[:n] + odd + whole[n:], whole[:n] + odd + whole[n + 1 :]])
    )
    told = gone_on_from(changed)
    assert told == outcome if changed == whole else told == outcome or "checkpoint" in told


ODD = [None, True, -1, 0, 2**70, -(2**63), 0.5, float("nan"), "", "é", [], {}, [[]], {"@tuple": []},
       {"@set": [3]}, {"@dict": [[0], [1]]}, {"@int": "ff"}, {"@array": ["|O", [1], "AAAA"]},
       {"@record": ["os:system", ["true"]]}, {"@random": []}, {"@": 1}]  # fmt: skip


def places(node, path=()):
    """All places of a JSON document."""
    yield path
    inner = node.items() if isinstance(node, dict) else ()
    for key, value in enumerate(node) if isinstance(node, list) else inner:
        yield from places(value, (*path, key))


@pytest.mark.filterwarnings("ignore:policy .* waiting for ever")  # as a forged state may say
@law(300)
@given(data=st.data())
def test_forged_checkpoints_with_the_right_checksum_end_in_a_line_not_in_a_traceback(data):
    """What a forger writes cannot be told from figures of a rollout; but nothing breaks by it."""
    head, _, body = kept()[0].partition(b"\n")
    document = json.loads(b"{" + body)
    state = document["rollout"]["engine"]
    for path in data.draw(st.lists(st.sampled_from([*places(state)][1:]), min_size=1, max_size=2)):
        node = state
        with contextlib.suppress(LookupError, TypeError):  # an earlier change took it away
            for key in path[:-1]:
                node = node[key]
            if data.draw(st.booleans()):
                node[path[-1]] = data.draw(st.sampled_from(ODD))
            else:
                del node[path[-1]]
    body = json.dumps(document)[1:].encode()
    head = json.dumps(json.loads(head[:-1] + b"}") | {"sha256": hashlib.sha256(body).hexdigest()})
    gone_on_from(head[:-1].encode() + b",\n" + body)


def test_a_checkpoint_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / checkpoint.NAME)
    with pytest.raises(ValueError, match="is a pipe, expected a checkpoint"):
        roll(output=tmp_path, resume=True)


def test_no_code_of_a_checkpoint_is_run(tmp_path):
    class Harmful:
        def __reduce__(self):
            return Path.touch, (tmp_path / "touched",)

    data = pickle.dumps(Harmful())
    assert "not a checkpoint" in gone_on_from(data)
    assert "not a checkpoint" in gone_on_from(b'{"key": {}}\n' + data)
    (tmp_path / "checkpoint.pickle").write_bytes(data)
    with pytest.raises(ValueError, match=r"older version, checkpoint\.pickle, which is not read"):
        roll(output=tmp_path, resume=True)
    assert sorted(os.listdir(tmp_path)) == ["checkpoint.pickle"]
    for module in Path(optsched.__file__).parent.rglob("*.py"):
        words = set(module.read_text().replace(".", " ").split())
        assert not words & {"pickle", "marshal", "shelve", "dill", "joblib"}, module


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"checkpoint/1", b"checkpoint/2", "not a checkpoint of this version"),
        (b'"sha256"', b'"sha512"', "not a checkpoint"),
    ],
)
def test_a_checkpoint_of_another_version_is_refused(old, new, words):
    assert words in gone_on_from(kept()[0].replace(old, new, 1))


# --- policies of one's own --------------------------------------------------------------------


class Untold:
    name = "untold"

    def __init__(self):
        self.calls = 0

    def decide(self, view):
        self.calls += 1
        return FirstFit().decide(view)


class Odd(Untold):
    name = "odd"

    def state(self):
        return {"lock": threading.Lock()}

    def restore(self, state):
        pass


class Nothing:
    """Keeps nothing, so that it needs no state."""

    def __init__(self, name):
        self.name = name

    def decide(self, view):
        return FirstFit(len(view.running)).decide(view)


class Alternating(RestorablePolicy):
    name, changing = "alternating", ("turn",)

    def __init__(self):
        self.turn = 0

    def decide(self, view):
        self.turn += 1
        return FirstFit(self.turn).decide(view)


@pytest.mark.parametrize(
    ("policy", "words"),
    [(Untold(), r"has no state\(\) and restore"), (Odd(), "an object of _thread.lock")],
)
def test_a_policy_that_cannot_be_saved_is_told_before_the_rollout_begins(policy, words, tmp_path):
    with pytest.warns(RuntimeWarning, match=f"no checkpoints are kept of policy.*{words}"):
        roll(policy, output=tmp_path)
    assert sorted(os.listdir(tmp_path)) == FILES
    with pytest.raises(ValueError, match=f"resume: policy '{policy.name}' cannot go on: .*{words}"):
        roll(policy, output=tmp_path, resume=True)


@pytest.mark.parametrize("policy", [Nothing("nothing"), Alternating()])
def test_policies_of_ones_own_go_on(policy, tmp_path, monkeypatch):
    roll(policy, output=tmp_path / "whole")
    with monkeypatch.context() as patched:
        stop_after(patched, 30)
        with pytest.raises(Stopped):
            roll(policy, output=tmp_path / "cut")
    roll(policy, output=tmp_path / "cut", resume=True)
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


# --- one rollout in a folder ------------------------------------------------------------------


def test_a_second_rollout_into_the_folder_of_one_that_runs_is_refused(tmp_path):
    process = start(tmp_path, "begin", 60)
    while not (tmp_path / checkpoint.NAME).exists():
        assert process.poll() is None
        time.sleep(0.01)
    try:
        with pytest.raises(ValueError, match="another rollout runs in this folder"):
            roll(output=tmp_path, resume=True, trace=trace(150))
    finally:
        process.kill()
        process.communicate()
    roll(output=tmp_path, resume=True, trace=trace(150))  # the lock ends with the process
    assert sorted(os.listdir(tmp_path)) == FILES


def test_a_lock_that_was_given_up_is_no_lock(tmp_path):
    with locked(tmp_path):
        first = os.open(tmp_path / folder_lock.NAME, os.O_RDWR)
    fcntl.flock(first, fcntl.LOCK_EX)  # who waited has the file, but it has no name any more
    with locked(tmp_path), pytest.raises(ValueError, match="another rollout"), locked(tmp_path):
        pass
    os.close(first)
    assert os.listdir(tmp_path) == []


def test_the_rollout_of_another_policy_is_not_overwritten(tmp_path):
    roll(output=tmp_path)
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="holds a rollout of policy 'first-fit', not 'nothing'"):
        roll(Nothing("nothing"), output=tmp_path)
    assert contents(tmp_path) == before
    roll(output=tmp_path)
    (tmp_path / "summary.json").write_text("{]")
    roll(Nothing("nothing"), output=tmp_path)
