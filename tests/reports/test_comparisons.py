"""Comparisons in files and in reports: `report` reads what `compare --output` wrote."""

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.documents.faults import InstanceError
from optsched.reports.report import report
from optsched.rollout.results.comparison_files import ComparisonDocument, read_comparison
from tests.support.builders.report_outcomes import Page


@pytest.fixture(scope="module")
def compared():
    where = optsched.read_scenario("philly-small").changed({"trace.jobs": 150})
    return optsched.compare(where, ["fifo", "srtf"], seeds=[0, 3])


@pytest.fixture
def folder(compared, tmp_path):
    """The files that `compare -o` writes."""
    optsched.write(compared.document(), tmp_path / "all.json")
    compared.frame().reset_index().to_csv(tmp_path / "means.csv", index=False)
    compared.runs().to_csv(tmp_path / "runs.csv", index=False)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_the_file_holds_all_and_is_read_again(compared, folder):
    made = read_comparison(folder / "all.json")
    assert made == compared.document()
    assert made.to_json() == (folder / "all.json").read_text()
    assert [row["policy"] for row in made.policies] == ["fifo", "srtf"]
    assert [(row["policy"], row["seed"]) for row in made.runs] == [
        ("fifo", 0), ("fifo", 3), ("srtf", 0), ("srtf", 3),
    ]  # fmt: skip
    means = pd.DataFrame(made.runs).groupby("policy")["jct_mean_s"].mean()
    assert made.policies[1]["jct_mean_s"] == pytest.approx(means["srtf"])
    assert {row.over for row in made.differences if row.low is not None} == {"2 seeds"}
    assert json.loads(made.to_json())["schema"] == "optsched/comparison/1"
    assert ComparisonDocument.model_json_schema(by_alias=True)["properties"]["runs"]


def test_the_report_reads_what_compare_wrote(folder):
    """Of a table it said: Expecting value; expected JSON."""
    page = report([folder / "all.json", folder / "means.csv", folder / "runs.csv"])
    titles = "".join(Page(page).titles)
    assert "Comparison on philly-small" in titles
    assert "Comparison on means.csv" in titles
    assert "Comparison on runs.csv" in titles
    assert "Intervals (95 %) are over 2 seeds." in page
    assert "Minus fifo: paired differences on the same jobs" in page
    assert "optsched compare philly-small.json --policy fifo --policy srtf --seed 0,3" in page
    assert report([folder / "all.json"]) == report([folder / "all.json"])


def test_a_table_by_seed_gives_the_means_of_the_other_table(folder):
    by_seed, means = (read_comparison(folder / name) for name in ("runs.csv", "means.csv"))
    assert (by_seed.first, by_seed.seeds, means.seeds) == ("fifo", (0, 3), (0, 1))
    for one, other in zip(by_seed.policies, means.policies, strict=True):
        assert one["policy"] == other["policy"]
        assert one["jct_mean_s"] == pytest.approx(other["jct_mean_s"])


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.csv", "a,b\n1,2\n", "with columns policy and seed or seeds"),
        ("a.csv", "policy,seed\n", "the table has no rows"),
        ("a.csv", "policy,seed,jobs\nfifo,x,3\n", "expected numbers in all columns but policy"),
        ("a.csv", "policy,seed,jobs\nfifo,1,many\n", "expected numbers in all columns"),
        ("a.csv", '"', "no table of a comparison"),
        ("a.json", "[1]", "expected a result"),
        ("a.json", '{"schema": "optsched/comparison/1"}', "first: missing"),
        (
            "a.json",
            '{"schema": "optsched/comparison/1", "first": "x", "seeds": [0], "policies": [{}]}',
            "policies: expected rows, each with its policy",
        ),
    ],
)
def test_what_is_no_comparison_is_refused(tmp_path, name, text, fault):
    (tmp_path / name).write_text(text)
    with pytest.raises(InstanceError, match=fault):
        report([tmp_path / name])


def test_the_command_line_writes_and_reads_them(tmp_path):
    base = ("compare", "philly-small", "--policy", "fifo,las", "--set", "trace.jobs=30")
    base += ("--seed", "1,4", "--per-seed")
    for name in ("c.json", "c.csv"):
        done = run(*base, "-o", tmp_path / name)
        assert done.exit_code == 0, done.output
    rows = pd.read_csv(tmp_path / "c.csv")
    assert rows[["policy", "seed"]].to_numpy().tolist() == [
        ["fifo", 1], ["fifo", 4], ["las", 1], ["las", 4],
    ]  # fmt: skip
    page = tmp_path / "page.html"
    done = run("report", tmp_path / "c.json", tmp_path / "c.csv", "-o", page)
    assert done.exit_code == 0, done.output
    assert "Comparison on philly-small" in page.read_text()
    assert run("schema", "comparison").exit_code == 0
    shown = run("trace", "show", tmp_path / "c.json")
    assert "it is a comparison: `optsched report` takes it" in shown.output
