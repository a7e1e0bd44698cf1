"""The README's tour and examples are what the project really prints."""

import doctest
import json
import re
from pathlib import Path

from typer.testing import CliRunner

import optsched
from optsched.boa import BoaInstance
from optsched.cli import app

README = Path(__file__).parent.parent / "README.md"
TIMES = re.compile(r"\b\d+\.\d{3}( s)?$", re.MULTILINE)


def test_python_tour():
    outcome = doctest.testfile(
        str(README), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert outcome.attempted > 8
    assert outcome.failed == 0


def test_shell_tour():
    shown = re.search(r"```text\n(.*?)```", README.read_text(), re.DOTALL)[1]
    printed = CliRunner().invoke(app, ["solve", "boa/cbd-85"]).stdout
    assert TIMES.sub("", shown).split() == TIMES.sub("", printed).split()


def test_example_file_is_valid_and_solved():
    text = re.search(r"```json\n(.*?)```", README.read_text(), re.DOTALL)[1]
    instance = BoaInstance.from_document(json.loads(text))
    result = optsched.solve(instance)
    assert result.status == "optimal"
    optsched.verify(instance, result)


def test_set_up_is_two_commands():
    lines = README.read_text().splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[0].endswith("optsched solve boa/cbd-85")
    assert commands[1].endswith("pytest")
