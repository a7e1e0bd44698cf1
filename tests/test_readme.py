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
LINES = 145
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
    compared = "compare philly-small --policies fifo,philly,las,srtf"
    assert [command for command, _ in blocks] == ["solve boa/cbd-85", compared]
    for command, shown in blocks:
        printed = CliRunner(env={"COLUMNS": "80"}).invoke(app, shlex.split(command)).stdout
        told, text = SMALL.sub("", printed).split(), SMALL.sub("", shown).split()
        if text[0] == "...":  # the end of it, but for the last sentence
            begin = len(told) - told[::-1].index("above") - 1
            told, text = told[begin:][: len(text) - 1], text[1:]
        assert text == told


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


def test_a_slurm_log_stands_beside_its_bound(tmp_path, monkeypatch):
    """From sacct's lines to the row `as recorded`, as the page has it, and the bound is proven."""
    page = "own-data.md"
    monkeypatch.chdir(tmp_path)
    for name in ("sacct.txt", "mine.json"):
        Path(name).write_text(file_of(page, name))
    text = (DOCS / page).read_text("utf-8")
    commands = r"^optsched (trace import sacct.txt .*|(?:compare|bound|verify) mine.json.*)$"
    printed = {}
    for command in re.findall(commands, text, re.MULTILINE):
        done = CliRunner().invoke(app, command.split())
        assert done.exit_code == 0, done.output
        printed[command.split()[0]] = done.stdout
    rows = dict(
        re.findall(
            r"^(as recorded|fifo|las|bound) +(\S+)",
            printed["compare"].partition("above the bound")[2],
            re.MULTILINE,
        )
    )
    assert list(rows) == ["fifo", "las", "as recorded", "bound"]
    assert all(float(rows[name].strip("%")) >= 0 for name in ("fifo", "las", "as recorded"))
    bound_s = optsched.bound("mine.json").jct_mean_s
    log = optsched.compare("mine.json", ["fifo"]).frame().loc["as recorded", "jct_mean_s"]
    assert float(rows["as recorded"].strip("%")) == pytest.approx(
        100 * (log / bound_s - 1), abs=0.06
    )
    assert printed["verify"].startswith("proven: no schedule of my cluster")


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
