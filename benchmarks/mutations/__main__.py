"""Mutate files of all kinds and read them: ``python -m benchmarks.mutations --files 20000``.

Each is read within limits of CPU time and memory. It ends with 1 if one ended in a traceback, was
slow, or brought control characters to the terminal.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.mutations.kinds import Kind, forget, kinds, refused, write
from benchmarks.mutations.mutator import mutated

if TYPE_CHECKING:
    from types import FrameType

SLOW_S, STOP_S, MEMORY = 5.0, 35.0, 4 << 30


class TooSlow(BaseException):
    """A reading took longer than anybody waits."""


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first file: slices")
    parser.add_argument("--only", default="", help="kinds whose names hold this")
    parser.add_argument("--keep", type=Path, help="folder for the files that ended badly")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _stop)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    began, ends, bad, slowest = time.process_time(), Counter[str](), 0, (0.0, "")
    each = Counter[str]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        every = [kind for kind in kinds(folder) if given.only in kind.name]
        for number in range(given.first, given.first + given.files):
            kind = every[number % len(every)]
            content = _content(kind, random.Random(number))
            how, seconds, text = _outcome(kind, write(kind, content, folder))
            ends[how] += 1
            each[kind.name] += seconds
            slowest = max(slowest, (seconds, f"{number} {kind.name}"))
            if how in ("read", "refused"):
                continue
            bad += 1
            print(f"--- {number} {kind.name}: {how} after {seconds:.1f} s\n{text}", flush=True)
            if given.keep:
                (given.keep / f"{number}-{kind.name}").write_bytes(content)
    spent = time.process_time() - began
    print(f"{given.files:,} files of {len(every)} kinds in {spent:.0f} CPU s: {dict(ends)}")
    print(f"slowest: {slowest[0]:.2f} CPU s, {slowest[1]}")
    told = ", ".join(f"{kind} {seconds:.1f}" for kind, seconds in each.most_common(8))
    print(f"most CPU s: {told}")
    return 1 if bad else 0


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise TooSlow


def _content(kind: Kind, draw: random.Random) -> bytes:
    """Return a mutated file of a kind; of JSON perhaps a part of it only."""
    if not kind.part:
        return mutated(kind.content, draw)
    document = json.loads(kind.content)
    try:
        changed = json.loads(mutated(json.dumps(document[kind.part]).encode(), draw))
    except (ValueError, RecursionError):
        changed = None
    return kind.signed(json.dumps(document | {kind.part: changed}).encode())


def _outcome(kind: Kind, path: Path) -> tuple[str, float, str]:
    """Read a file; return how that ended, in how many CPU seconds, and a traceback if it did."""
    began, text = time.process_time(), ""
    signal.setitimer(signal.ITIMER_PROF, STOP_S)
    try:
        kind.read(path)
        how = "read"
    except TooSlow as error:
        how, text = "slow", "".join(traceback.format_exception(error))[-3000:]
    except BaseException as error:
        how = "refused" if refused(error) else "traceback"
        text = "" if how == "refused" else "".join(traceback.format_exception(error))[-3000:]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        forget(path)
    seconds = time.process_time() - began
    return ("slow" if how != "traceback" and seconds > SLOW_S else how), seconds, text


if __name__ == "__main__":
    sys.exit(main())
