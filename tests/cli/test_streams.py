"""Standard output as it is found: closed, or of another encoding."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import optsched
from optsched.cli.printing.streams import plain

ASCII = {chr(n) for n in range(128)}
ENCODINGS = ["latin-1", "cp437", "ascii"]


def ended(*command, encoding="utf-8", **options):
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0", "COLUMNS": "80"}
    done = subprocess.run([*map(str, command)], capture_output=True, env=environment, timeout=600,
                          check=False, **options)  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def instance(tmp_path_factory):
    """Of a name that few encodings have, and that tables cut."""
    document = optsched.read("pal/tiny").changed_document({"name": "Ünïcode … ≤ 5 µs 東"})
    path = tmp_path_factory.mktemp("named") / "named.json"
    path.write_text(json.dumps(document))
    return path


@pytest.fixture(scope="module")
def solved(instance):
    run = (sys.executable, "-m", "optsched", "solve", instance, "--no-compare", "-o")
    assert ended(*run, f"{instance}.r")[::2] == (0, b"")
    return f"{instance}.r"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_has_its_tables(instance, solved, encoding):
    run = (sys.executable, "-m", "optsched", "check", instance, solved)
    code, stdout, stderr = ended(*run, encoding=encoding)
    assert (code, stderr) == (0, b"")
    named = stdout.decode(encoding if encoding != "ascii" else "utf-8")
    assert named.startswith("feasible: the plan keeps every rule of ")
    assert named.rstrip()[-1] in "?東"


def test_json_loses_no_character(instance):
    run = (sys.executable, "-m", "optsched", "solve", instance, "--json", "--no-compare")
    code, stdout, _ = ended(*run, encoding="latin-1")
    assert code == 0
    assert json.loads(stdout.decode("latin-1"))["instance"] == "Ünïcode … ≤ 5 µs 東"


def test_every_character_that_the_program_uses_has_a_plain_form():
    used = set()
    for path in Path(optsched.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if text.isascii() and not re.search(r"\\[uUNx0-7]", text):
            continue  # it has no others, and no names of others
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                used |= {character for character in node.value if character.isprintable()} - ASCII
    assert {character for character in used if "?" in plain(character)} == set()


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_fault_and_no_file_takes_their_place(closed, tmp_path):
    command = f'exec "$0" -m optsched solve boa/hand --method milp --output "$1" {closed}'
    done = ended("sh", "-c", command, sys.executable, tmp_path / "r.json")
    assert done == (0, b"", b"")
    optsched.verify(optsched.read("boa/hand"), optsched.read_result(tmp_path / "r.json"))
