"""What policies declare of themselves: complete, true, and shown wherever users choose."""

import json
import shlex

import pytest
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.rollout import registry
from optsched.rollout.declarations.names import became_of, known_as, unmet
from optsched.rollout.policy_options import described
from optsched.rollout.registry import make
from optsched.rollout.run import simulate
from optsched.rollout.scenario_files import read_scenario
from tests.support.builders.rollout_stub import scenario

ENTRIES = {entry.name: entry for entry in registry.ENTRIES}
EQUAL = {"nodes": 8, "gpus_per_node": 8}  # as EaCO's policies need them
PHILLY = read_scenario("philly-small").changed(EQUAL)
SIX = "fifo,fifo-requested,fifo-exclusive,boa,fixed-width,random-pairs,sharing-scores,eaco-greedy"


def run(*words):
    done = CliRunner().invoke(app, list(words), terminal_width=200)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("name", ENTRIES)
def test_every_policy_declares_all_of_itself(name):
    entry = ENTRIES[name]
    assert all((entry.summary, entry.source, entry.faithful, entry.example))
    assert bool(entry.needs) == bool(entry.becomes)
    for text in (entry.faithful, *entry.differs):
        assert text[0].isupper() or text[0].isdigit() or not text[0].isalpha(), text
        assert text.endswith("."), text
    words = shlex.split(entry.example)
    assert words[:2] in (["optsched", "compare"], ["optsched", "rollout"])
    chosen = words[words.index("--policy") + 1]
    assert any(part.partition(":")[0] == name for part in chosen.split(",")), "shows another one"
    assert unmet(read_scenario(words[2]), name) == ""


@pytest.mark.parametrize("name", ENTRIES)
def test_a_policy_refuses_what_it_declares_and_nothing_else(name):
    worlds = {"quotas": {"quotas": {"a": 3}}, "rented": {"rented": {}},
              "downtime": {"downtime": [{"nodes": [0], "from_s": 5}]}}  # fmt: skip
    for kind, fields in worlds.items():
        world = scenario(2, 4, **fields)
        if kind in ENTRIES[name].refuses:
            with pytest.raises(ValueError, match=f"policy '{name}'"):
                registry.make(name, world)
        else:
            registry.make(name, world)


@pytest.mark.parametrize("name", ENTRIES)
def test_what_a_policy_declares_is_shown(name):
    entry, shown = ENTRIES[name], run("policies", name)
    for option, *_ in described(entry.maker().options):
        assert option in shown
    joined = " ".join(shown.split())
    for text in (entry.source, entry.faithful, *entry.differs, entry.example):
        assert " ".join(text.split()) in joined
    told = json.loads(run("policies", name, "--json"))
    assert told["differs"] == list(entry.differs) or not entry.differs
    assert told["options"]


# --- names of what a policy has become --------------------------------------------------------


def test_six_names_were_printed_for_one_number_without_a_word():
    words = ["compare", "philly-small", "--set", "trace.jobs=40", "--policy", SIX]
    words += [word for key, number in EQUAL.items() for word in ("--set", f"{key}={number}")]
    rows = json.loads(run(*words, "--json"))["policies"]
    became = {row["policy"]: row.get("became", "") for row in rows}
    by_number = {}
    for row in rows:
        by_number.setdefault(row["jct_mean_s"], []).append(row["policy"])
    for names in by_number.values():
        own = [name for name in names if not became[name] and name.partition("-")[0] != "fifo"]
        assert len(own) <= 1, names
    shown = " ".join(run(*words).split())
    assert "boa (no speedup curves here: is fifo-requested)" in shown
    assert "random-pairs (no sharing here: is fifo-exclusive)" in shown


def test_a_rollout_says_in_its_first_lines_what_its_policy_has_become(tmp_path):
    words = ("rollout", "philly-small", "--set", "trace.jobs=5", "--policy", "fixed-width:k=8")
    shown = run(*words, "--output", str(tmp_path / "out"))
    told = "fixed-width:k=8 (no speedup curves here: is fifo-requested)"
    assert told in " ".join(shown.split())
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["policy"] == "fixed-width:k=8"
    assert summary["policy_became"] == "no speedup curves here: is fifo-requested"
    page = run("report", str(tmp_path / "out"), "-o", str(tmp_path / "page.html"))
    assert page
    assert told in (tmp_path / "page.html").read_text("utf-8")


def test_comparisons_in_python_and_their_files_say_it_too(tmp_path):
    world = PHILLY.changed({"trace.jobs": 5})
    compared = optsched.compare(world, ["fifo", "boa"])
    assert list(compared.frame().index) == ["fifo", "boa"]
    assert "boa (no speedup curves here: is fifo-requested)" in str(compared)
    assert "is fifo-requested" in compared._repr_html_()
    table = tmp_path / "table.csv"
    run(
        "compare", "philly-small", "--set", "trace.jobs=5", "--policy", "fifo,boa", "-o", str(table)
    )
    assert "no speedup curves here: is fifo-requested" in table.read_text()


def test_a_policy_that_is_itself_is_called_by_its_name():
    assert known_as(PHILLY, "las:one_dimensional=true") == "las:one_dimensional=true"
    assert known_as(PHILLY, "my.py:Fair") == "my.py:Fair"
    assert known_as(read_scenario("boa-cloud"), "boa") == "boa"
    lent = PHILLY.changed({"quotas": {"b436b2": 8}, "lends_quotas": True})
    borrows = "no hard quotas here: idle quota is borrowed, and nobody takes it back"
    assert known_as(lent, "fifo") == f"fifo ({borrows})"
    assert known_as(lent.changed({"lends_quotas": False}), "fifo") == "fifo"


IS = [(name, entry.becomes.removeprefix("is "))
      for name, entry in ENTRIES.items()
      if entry.becomes.removeprefix("is ") in ENTRIES]  # fmt: skip


@pytest.mark.parametrize(("name", "other"), IS)
def test_what_a_policy_has_become_is_true(name, other):
    """Same starts and ends as the policy that it is said to be."""
    for seed in range(2):
        world = PHILLY.changed({"trace.jobs": 60, "trace.seed": seed, "neighbours": {}})
        assert became_of(world, name).endswith(f"is {other}")
        first, second = (simulate(world, policy, seed=seed).record.jobs for policy in (name, other))
        assert (first.first_start_us == second.first_start_us).all()
        assert (first.end_us == second.end_us).all()


# --- what policies foresee --------------------------------------------------------------------


@pytest.mark.parametrize("name", ENTRIES)
def test_who_is_told_of_jobs_to_come_declares_it(name):
    """The engine hands the whole trace to policies that have `prepare`, and to no others."""
    entry = ENTRIES[name]
    world = read_scenario("boa-cloud" if "rented" not in entry.refuses else "eaco-28")
    assert hasattr(make(name, world), "prepare") == bool(entry.clairvoyant)


def test_tables_name_who_knows_the_future(tmp_path):
    words = ("compare", "philly-small", "--set", "trace.jobs=12", "--policy")
    shown = " ".join(run(*words, "fifo,hindsight:evaluations=2", "--no-bound").split())
    assert "hindsight:evaluations=2 (knows the future)" in shown
    assert known_as(PHILLY, "hindsight") == "hindsight (knows the future)"
    assert known_as(PHILLY, "srtf") == "srtf"
    assert "is told all jobs to come" in " ".join(run("policies", "hindsight").split())
    assert json.loads(run("policies", "hindsight", "--json"))["clairvoyant"] == "all"
