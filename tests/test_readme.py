"""The README's tour and examples are what the project really prints; so are those of docs/."""

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

ROOT = Path(__file__).parent.parent
README, DOCS = ROOT / "README.md", ROOT / "docs"
LINES = 135
# Seconds, and gaps that are only rounding.
SMALL = re.compile(r"\b(\d+\.\d{3}( s)?|\d\.\d\de-1\d)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)\)")


def file_of(page, name):
    """What a page of docs/ shows as a file of this name."""
    text = (DOCS / page).read_text("utf-8")
    return re.search(rf"^```{{file}} {re.escape(name)}\n(.*?)^```", text, re.M | re.S)[1]


def test_python_tour():
    outcome = doctest.testfile(
        str(README), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert outcome.attempted > 7
    assert outcome.failed == 0


def test_shell_tour():
    blocks = re.findall(r"\$ optsched (.*?)\n```\n```text\n(.*?)```", README.read_text(), re.DOTALL)
    assert [command for command, _ in blocks] == ["solve boa/cbd-85"]
    for command, shown in blocks:
        printed = CliRunner(env={"COLUMNS": "80"}).invoke(app, shlex.split(command)).stdout
        assert SMALL.sub("", shown).split() == SMALL.sub("", printed).split()


def shell_lines():
    """Every other command of optsched that the README shows."""
    for block in re.findall(r"^```sh\n(.*?)^```", README.read_text(), re.M | re.S):
        for line in block.splitlines():
            for part in line.split("&&"):
                words = shlex.split(part, comments=True)
                if words[:1] == ["optsched"]:
                    yield pytest.param(words[1:], id=" ".join(words[1:]))


@pytest.mark.parametrize("words", list(shell_lines()))
def test_commands_exist_with_their_options(words):
    outcome = CliRunner().invoke(app, [*words, "--help"])
    assert outcome.exit_code == 0, outcome.output


def test_short_and_its_links_lead_somewhere():
    text = README.read_text("utf-8")
    assert text.count("\n") <= LINES
    targets = [target for target in LINK.findall(text) if not target.startswith("https:")]
    assert len(targets) > 20
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_own_cluster(tmp_path, monkeypatch, capsys):
    """The commands for a cluster of one's own, from a topology.conf to a proven placement."""
    page = "own-data.md"
    monkeypatch.chdir(tmp_path)
    for name in ("topology.conf", "profile.csv"):
        Path(name).write_text(file_of(page, name))
    text = (DOCS / page).read_text("utf-8")
    command = re.search(r"^optsched (topology import topology.conf .*)$", text, re.MULTILINE)[1]
    assert CliRunner().invoke(app, command.split()).exit_code == 0
    names = {}
    exec(file_of(page, "place.py"), names)
    assert "optimal" in capsys.readouterr().out
    optsched.verify(names["instance"], names["result"])


def test_a_policy_of_ones_own():
    names = {}
    exec(file_of("policies-own.md", "mine.py"), names)
    scenario = optsched.read_scenario("philly-small").changed({"trace.jobs": 60, "end_s": 400_000})
    metrics = optsched.simulate(scenario, names["SmallestFirst"]()).metrics
    assert metrics["jct_mean_s"] > 0
    assert 0 < metrics["utilization"] < 1


def test_example_file_is_valid_and_solved():
    instance = BoaInstance.from_document(json.loads(file_of("quickstart.md", "mine.json")))
    result = optsched.solve(instance)
    assert result.status == "optimal"
    optsched.verify(instance, result)
