"""Rollouts that survive being killed: the engine is saved as it goes, and goes on from there."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optsched.results.result import versions
from optsched.rollout.results.outputs import trace_sha256, write_outputs
from optsched.rollout.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from optsched.rollout.engine.engine import Engine
    from optsched.rollout.results.record import Record
    from optsched.rollout.scenario import Scenario
    from optsched.traces.trace import Trace

    Key = dict[str, Any]
    Progress = Callable[[float], None] | None

NAME, DRAFT = "checkpoint.pickle", ".checkpoint.draft"


def key_of(scenario: Scenario, trace: Trace, policy: str, seed: int, intervals: bool) -> Key:
    """Return what must be equal for a rollout to go on."""
    return {
        "scenario": hashlib.sha256(scenario.to_json().encode()).hexdigest(),
        "trace": trace_sha256(trace),
        "policy": policy,
        "seed": seed,
        "intervals": intervals,
        "versions": versions(),
    }


def run_in_folder(
    start: Callable[[], Engine], folder: Path, key: Key, resume: bool, progress: Progress
) -> tuple[Record, float]:
    """Run an engine, or one that was saved, to its end, and write its files.

    Parameters
    ----------
    start
        Makes the engine, if none was saved.
    folder
        Made if it is not there. A checkpoint in it is unpickled only if its key is this rollout's;
        pickles of others can run any code, so go on only in folders of your own.

    Returns
    -------
    tuple
        The record, and the seconds that it took, those of earlier runs included.

    Raises
    ------
    ValueError
        If there is a checkpoint and `resume` is False, or it is of another rollout.
    """
    folder.mkdir(parents=True, exist_ok=True)
    engine, seconds = _load(folder, key) if resume else (None, 0.0)
    if not resume and (folder / NAME).exists():
        raise ValueError(
            f"{folder}: holds an unfinished rollout; resume it (--resume), or remove {NAME}"
        )
    begun = time.monotonic() - seconds
    engine = start() if engine is None else engine
    _drive(engine, lambda: _save(folder, key, engine, time.monotonic() - begun), progress)
    record, wall = replace(engine.record(), policy=key["policy"]), time.monotonic() - begun
    write_outputs(record, folder, wall)
    for name in (NAME, DRAFT):
        (folder / name).unlink(missing_ok=True)
    return record, wall


def _drive(engine: Engine, save: Callable[[], None], progress: Progress) -> None:
    """Take an engine to its end, saving it and telling how far it is between its steps."""
    saved = told = time.monotonic()
    pause = SETTINGS.save_every_s
    while engine.step():
        now = time.monotonic()
        if progress is not None and now - told > SETTINGS.tell_every_s:
            progress(engine.share)
            told = now
        if now - saved > pause:
            save()
            saved = time.monotonic()
            pause = max(SETTINGS.save_every_s, (saved - now) / SETTINGS.save_share)


def _save(folder: Path, key: Key, engine: Engine, seconds: float) -> None:
    head = json.dumps({"key": key, "seconds": seconds}).encode()
    draft = folder / DRAFT
    draft.write_bytes(head + b"\n" + pickle.dumps(engine, pickle.HIGHEST_PROTOCOL))
    os.replace(draft, folder / NAME)


def _load(folder: Path, key: Key) -> tuple[Engine | None, float]:
    """Return the engine that was saved, if any, and the seconds that it had taken."""
    path = folder / NAME
    if not path.exists():
        return None, 0.0
    head, _, body = path.read_bytes().partition(b"\n")
    try:
        told = json.loads(head)
        saved, seconds = told["key"], float(told["seconds"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path}: not a checkpoint of a rollout") from None
    other = [part for part in key if saved.get(part) != key[part]]
    if other:
        raise ValueError(f"{path}: of another rollout: {_difference(other, saved, key)}")
    engine: Engine = pickle.loads(body)
    return engine, seconds


def _difference(parts: list[str], saved: Key, key: Key) -> str:
    texts = []
    for part in parts:
        plain = part in ("policy", "seed")
        texts.append(f"its {part} is {saved.get(part)}, not {key[part]}" if plain
                     else f"its {part} differs")  # fmt: skip
    return ", ".join(texts)
