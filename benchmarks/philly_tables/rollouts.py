"""One rollout per seed, each kept as a small JSON file, so that tables can be printed again."""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from optsched.documents.json_files import dumps
from optsched.reproduction.philly.rollouts import figures_of, rolled

if TYPE_CHECKING:
    from optsched.reproduction.philly.rollouts import Setting

RESULTS = Path(__file__).parents[1] / "results" / "philly_tables"


def file_of(setting: Setting, seed: int) -> Path:
    """Return where the figures of a seed are kept: another file for any other setting."""
    text = json.dumps(asdict(setting)) + setting.scenario.model_dump_json()
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return RESULTS / f"{digest}-seed-{seed}.json"


def figures(setting: Setting, seed: int, again: bool = False) -> dict[str, float]:
    """Return the figures of a seed, from its file if there is one."""
    path = file_of(setting, seed)
    if path.is_file() and not again:
        found: dict[str, float] = json.loads(path.read_text())
        return found
    begun = time.process_time()
    made = figures_of(rolled(setting, seed))
    made["CPU s"] = time.process_time() - begun
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dumps(made))
    return made
