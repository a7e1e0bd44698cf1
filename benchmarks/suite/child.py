"""The process of one row: options come as JSON on standard input, the outcome leaves as JSON.

    echo '{"function": "pal:solve", "options": {}}' | python -m benchmarks.suite.child

What solvers print goes to standard error.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from dataclasses import asdict
from typing import Any

LINES = 3  # of an error


def main() -> int:
    """Call the function of a row, and write what came of it."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    order = json.loads(sys.stdin.read())
    try:
        outcome = called(order["function"], order["options"])
    except Exception as error:  # whatever happens to a row, the others are to be measured
        outcome = {"status": "skipped", "reason": reason_of(error)}
    answer.write(json.dumps(outcome))
    answer.close()
    return 0


def called(function: str, options: dict[str, Any]) -> dict[str, Any]:
    """Call "module:function" and return its outcome as a dictionary.

    The module is one of this folder, or with a dot before it one of the folder above.
    """
    module, name = function.split(":")
    found = importlib.import_module(f".{module}", __package__ or "benchmarks.suite")
    outcome = getattr(found, name)(**options)
    return asdict(outcome)


def reason_of(error: Exception) -> str:
    """Return an error in one line, without what comes after its first lines."""
    text = "; ".join(line.strip() for line in str(error).strip().splitlines()[:LINES])
    return f"{type(error).__name__}: {without_folders(text)}".rstrip(": ")


def without_folders(text: str) -> str:
    """Leave out folders, which may hold names of users."""
    return re.sub(r"(?:[A-Za-z]:)?(?:[/\\][^\s/\\'\":]+)+[/\\]", "", text)


if __name__ == "__main__":
    sys.exit(main())
