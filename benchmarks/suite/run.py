"""Runs rows, one after the other, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.suite.rows import Row

ROOT = Path(__file__).resolve().parents[2]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def run(rows: Iterable[Row]) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Yield each row with its outcome, as soon as it is there."""
    for row in rows:
        missing = row.missing()
        if missing:
            yield row, skipped(f"{', '.join(missing)} not installed")
        else:
            yield row, in_process(row)


def in_process(row: Row) -> dict[str, Any]:
    """Measure a row; whatever goes wrong becomes the reason why it is skipped."""
    order = json.dumps({"function": row.function, "options": row.options})
    command = [sys.executable, "-m", "benchmarks.suite.child"]
    environment = os.environ | dict.fromkeys(THREADS, "1") | row.environment
    try:
        ended = subprocess.run(
            command,
            input=order,
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
            timeout=row.ends_after_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return skipped(f"did not end within {row.ends_after_s:.0f} s")
    try:
        return json.loads(ended.stdout)
    except ValueError:
        return skipped(f"the process ended with code {ended.returncode}")


def skipped(reason: str) -> dict[str, Any]:
    """Return the outcome of a row that was not measured."""
    return {"status": "skipped", "reason": reason}
