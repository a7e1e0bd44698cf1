"""Rollouts that survive being killed: the engine is saved as it goes, and goes on from there.

A checkpoint is plain data (`plain_data`), so a folder of somebody else can be resumed: no code is
in it. Its checksum tells what was cut or changed by accident, not who wrote it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optsched.documents.faults import InstanceError
from optsched.documents.files import read_bytes
from optsched.documents.json_files import try_to_write
from optsched.documents.limits import LIMITS
from optsched.results.result import versions
from optsched.rollout.checkpoints.folder_lock import locked
from optsched.rollout.checkpoints.plain_data import Damaged, NotPlain, of_json, to_json
from optsched.rollout.results.outputs import trace_sha256, write_outputs
from optsched.rollout.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from optsched.rollout.engine.decision import Policy
    from optsched.rollout.engine.engine import Engine
    from optsched.rollout.results.record import Record
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

    Key = dict[str, Any]
    Progress = Callable[[float], None] | None

SCHEMA_ID = "optsched/checkpoint/1"
BYTES_PER_JOB = 4096
"""A checkpoint may be larger than other files by so much for each job; it takes some 400."""
NAME, DRAFT, OLD = "checkpoint.json", ".checkpoint.draft", "checkpoint.pickle"
MISLED = (LookupError, TypeError, AttributeError, ArithmeticError, AssertionError)
"""What a rollout that went on from figures that do not fit may end in."""


def key_of(
    scenario: Scenario, trace: Trace, policy: str, seed: int, intervals: bool, origin: str
) -> Key:
    """Return what must be equal for a rollout to go on."""
    return {
        "scenario": hashlib.sha256(scenario.to_json().encode()).hexdigest(),
        "trace": trace_sha256(trace),
        "policy": policy,
        "seed": seed,
        "intervals": intervals,
        "versions": versions(),
        **({"origin": origin} if origin else {}),
    }


def why_not_saved(policy: Policy) -> str:
    """Return why rollouts of a policy cannot be saved; empty if they can."""
    state = getattr(policy, "state", None)
    if state is not None and hasattr(policy, "restore"):
        try:
            to_json(state())
        except NotPlain as error:
            return f"its state() holds {error}, which is no plain data"
        return ""
    kept = policy.__getstate__()
    own = kept if isinstance(kept, dict) else {} if kept is None else {"slots": kept}
    if own.keys() <= {"name"}:
        return ""
    return "it keeps something from call to call, but has no state() and restore(state)"


def check_folder(folder: Path, policy: str, resume: bool) -> None:
    """Find out whether a rollout can be written into a folder; nothing is made.

    Raises
    ------
    ValueError, OSError
        If it cannot, as `run_in_folder` says.
    """
    if folder.is_dir():
        with locked(folder):
            _refuse_others(folder, policy, resume)
        return
    while not folder.parent.exists():
        folder = folder.parent
    if folder.exists():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    try_to_write(folder)


def run_in_folder(
    start: Callable[[], Engine],
    policy: Policy,
    folder: Path,
    key: Key,
    resume: bool,
    progress: Progress,
) -> tuple[Record, float]:
    """Run an engine, or one that was saved, to its end, and write its files.

    Parameters
    ----------
    start
        Makes the engine as it is before the first moment.
    policy
        Its policy. A `RuntimeWarning` tells if it cannot be saved; then there are no checkpoints.
    folder
        Made if it is not there; no other rollout may run in it meanwhile.

    Returns
    -------
    tuple
        The record, and the seconds that it took, those of earlier runs included.

    Raises
    ------
    ValueError
        If there is a checkpoint and `resume` is False, if it cannot be read or is of another
        rollout, or if the policy cannot be saved and `resume` is True.
    """
    reason = why_not_saved(policy)
    if reason and resume:
        raise ValueError(f"resume: policy '{policy.name}' cannot go on: {reason}")
    if reason:
        text = f"no checkpoints are kept of policy '{policy.name}': {reason}"
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder):
        _refuse_others(folder, key["policy"], resume)
        engine = start()
        seconds = _load(folder, key, engine) if resume else None
        begun = time.monotonic() - (seconds or 0.0)

        def save() -> None:
            _save(folder, key, engine, time.monotonic() - begun)

        try:
            _drive(engine, None if reason else save, progress)
            whose = key.get("origin", "")
            record = replace(engine.record(), policy=key["policy"], origin=whose)
            wall = time.monotonic() - begun
            write_outputs(record, folder, wall)
        except (ValueError, *MISLED) as error:
            if seconds is None:
                raise
            text = f"the rollout cannot go on from it ({type(error).__name__}: {error})"
            raise ValueError(f"{folder / NAME}: {text}; remove it to begin again") from error
        for name in (NAME, DRAFT):
            (folder / name).unlink(missing_ok=True)
        return record, wall


def _refuse_others(folder: Path, policy: str, resume: bool) -> None:
    """Raise if a folder holds what must not be overwritten, or not be read."""
    if not resume and (folder / NAME).exists():
        raise ValueError(
            f"{folder}: holds an unfinished rollout; resume it (--resume), or remove {NAME}"
        )
    if (folder / OLD).exists():
        raise ValueError(
            f"{folder}: holds the checkpoint of an older version, {OLD}, which is not read, for "
            "such files can run code; remove it to begin again"
        )
    other = _policy_in(folder)
    if other not in (None, policy):
        raise ValueError(
            f"{folder}: holds a rollout of policy '{other}', not '{policy}'; "
            "name another folder, or remove its summary.json"
        )


def _policy_in(folder: Path) -> object:
    """Return the policy whose finished rollout a folder holds; None if it holds none."""
    path = folder / "summary.json"
    try:
        document = json.loads(read_bytes(path)) if path.exists() else None
    except (ValueError, RecursionError):
        return None
    return document.get("policy") if isinstance(document, dict) else None


def _drive(engine: Engine, save: Callable[[], None] | None, progress: Progress) -> None:
    """Take an engine to its end, saving it and telling how far it is between its steps."""
    saved = told = time.monotonic()
    pause = SETTINGS.save_every_s
    while engine.step():
        now = time.monotonic()
        if progress is not None and now - told > SETTINGS.tell_every_s:
            progress(engine.share)
            told = now
        if save is not None and now - saved > pause:
            save()
            saved = time.monotonic()
            pause = max(SETTINGS.save_every_s, (saved - now) / SETTINGS.save_share)


# --- the file ---------------------------------------------------------------------------------


def _save(folder: Path, key: Key, engine: Engine, seconds: float) -> None:
    told = to_json({"key": key, "seconds": seconds, "engine": engine.saved()})
    body = b'"rollout": ' + told + b"}\n"
    head = {"schema": SCHEMA_ID, "sha256": hashlib.sha256(body).hexdigest()}
    draft = folder / DRAFT
    draft.write_bytes(json.dumps(head)[:-1].encode() + b",\n" + body)
    os.replace(draft, folder / NAME)


def _load(folder: Path, key: Key, engine: Engine) -> float | None:
    """Take an engine to where it was saved; return the seconds of that, None if it was not."""
    path = folder / NAME
    if not path.exists():
        return None
    told = _told(path, LIMITS.file_bytes + BYTES_PER_JOB * len(engine.trace))
    saved = told.get("key")
    if not isinstance(saved, dict):
        raise ValueError(f"{path}: not a checkpoint of a rollout")
    other = [part for part in key if saved.get(part) != key[part]]
    if other:
        raise ValueError(f"{path}: of another rollout: {_difference(other, saved, key)}")
    try:
        engine.go_on_from(told["engine"])
        return float(told["seconds"])
    except (ValueError, *MISLED) as error:
        text = f"its state is not of this rollout ({type(error).__name__}: {error})"
        raise ValueError(f"{path}: {text}; remove it to begin again") from error


def _told(path: Path, most: int) -> dict[str, Any]:
    """Return what a checkpoint holds, if it is as it was written and not larger than that."""
    try:
        head, _, body = read_bytes(path, "a checkpoint", most).partition(b"\n")
    except InstanceError as error:
        raise ValueError(f"{path}: {error.faults[0]}") from None
    try:
        stated = json.loads(head.rstrip(b",") + b"}")
        schema, digest = stated["schema"], stated["sha256"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ValueError(f"{path}: not a checkpoint of a rollout") from None
    if schema != SCHEMA_ID:
        raise ValueError(f"{path}: not a checkpoint of this version of optsched: {SCHEMA_ID}")
    if digest != hashlib.sha256(body).hexdigest():
        raise ValueError(f"{path}: cut or changed since it was written; remove it to begin again")
    try:
        told = of_json(b"{" + body)["rollout"]
    except (Damaged, LookupError):
        told = None
    if not isinstance(told, dict):
        raise ValueError(f"{path}: not a checkpoint of a rollout")
    return told


def _difference(parts: list[str], saved: Key, key: Key) -> str:
    texts = []
    for part in parts:
        plain = part in ("policy", "seed")
        named = "policy's source" if part == "origin" else part
        texts.append(f"its {part} is {saved.get(part)}, not {key[part]}" if plain
                     else f"its {named} differs")  # fmt: skip
    return ", ".join(texts)
