"""Mutated files of every kind: read, or refused in a line; never a traceback, never slow.

They are read in a child with limits of memory and of CPU time; `python -m benchmarks.mutations` is
the same with as many files as one likes.
"""

import random
import subprocess
import sys
from pathlib import Path

from hypothesis import settings

from benchmarks.mutations.kinds import Kind, refused
from benchmarks.mutations.mutator import mutated
from optsched.documents.faults import InstanceError

FILES = 2000 if settings().max_examples > 100 else 120


def test_mutated_files_of_every_kind_give_no_traceback():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.mutations", "--files", str(FILES)],
        cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{FILES:,} files of " in done.stdout


def test_the_mutator_changes_files_and_gives_the_same_again():
    content = b'{"a": [1, 2.5, {"b": "c"}], "d": null}'
    seen = {mutated(content, random.Random(seed)) for seed in range(200)}
    assert len(seen) > 100
    assert mutated(content, random.Random(3)) == mutated(content, random.Random(3))


def test_an_error_of_a_library_counts_as_a_traceback():
    def error_of(code):
        try:
            exec(code, {})
        except Exception as error:
            return error

    assert not refused(error_of("int('x')"))
    assert not refused(error_of("{}['x']"))
    assert not refused(error_of("b'\\xff'.decode()"))
    assert refused(error_of("open('/nowhere')"))
    assert refused(InstanceError("a", ["b"]))
    assert Kind("a", b"", lambda path: None).beside == {}
