"""The README's tour and examples are what the project really prints."""

import doctest
import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import optsched
from optsched.boa import BoaInstance
from optsched.cli.main import app

README = Path(__file__).parent.parent / "README.md"
# Seconds, and gaps that are only rounding.
SMALL = re.compile(r"\b(\d+\.\d{3}( s)?|\d\.\d\de-1\d)$", re.MULTILINE)


def test_python_tour():
    outcome = doctest.testfile(
        str(README), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert outcome.attempted > 8
    assert outcome.failed == 0


def test_shell_tour():
    blocks = re.findall(r"\$ optsched (.*?)\n```\n```text\n(.*?)```", README.read_text(), re.DOTALL)
    assert [command for command, _ in blocks] == [
        "solve boa/cbd-85",
        "solve pal/sia-64",
        "solve eaco/paper-four --set 'jobs.*.max_slowdown=1.10'",
        "compare pal-64 --policy packed-sticky,pm-first,pal-greedy,pal",
    ]
    for command, shown in blocks:
        printed = CliRunner(env={"COLUMNS": "80"}).invoke(app, shlex.split(command)).stdout
        assert SMALL.sub("", shown).split() == SMALL.sub("", printed).split()


SWITCHES = """# as in Slurm's topology.conf(5)
SwitchName=s0 Nodes=tux[0-2]
SwitchName=s1 Nodes=tux[3-5]
SwitchName=top Switches=s[0-1]
"""


def test_own_cluster(tmp_path, monkeypatch, capsys):
    """The commands for a cluster of one's own, from a topology.conf to a proven placement."""
    text = README.read_text()
    monkeypatch.chdir(tmp_path)
    Path("topology.conf").write_text(SWITCHES)
    command = re.search(r"^optsched (topology import topology.conf .*)$", text, re.MULTILINE)[1]
    assert CliRunner().invoke(app, command.split()).exit_code == 0
    code = re.search(r"```python\n(import optsched\nfrom optsched.cluster.*?)```", text, re.DOTALL)[
        1
    ]
    names = {}
    exec(code, names)
    assert "optimal" in capsys.readouterr().out
    optsched.verify(names["instance"], names["result"])
    assert names["result"].objective == pytest.approx(4 + 1.2)


def test_a_policy_of_ones_own(capsys):
    code = re.search(r"```python\n([^`]*class OneNodeEach.*?)```", README.read_text(), re.DOTALL)[1]
    exec(code, {})
    mean_jct_s, utilization = map(float, capsys.readouterr().out.split())
    assert mean_jct_s > 0
    assert 0 < utilization < 1


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


def test_the_next_epoch_and_rounds_of_choices(capsys):
    text = README.read_text()
    for opening in ("import optsched\n\nepoch", "import optsched\n\nnow"):
        exec(re.search(rf"```python\n({opening}.*?)```", text, re.DOTALL)[1], {})
    assert capsys.readouterr().out == "optimal True\noptimal\n"
