"""Tables: nothing is cut on a narrow screen, a row is a line in a pipe, and what --format gives."""

import csv
import io
import json
import re

import pytest
from rich.console import Console
from typer.testing import CliRunner

from optsched.cli.main import app
from optsched.cli.printing.sheets import Column, csv_text, facts, folded, sheet

LISTS = [
    ["instances"],
    ["methods"],
    ["methods", "boa"],
    ["policies"],
    ["policies", "philly"],
    ["scenarios"],
    ["schema"],
    ["trace", "formats"],
    ["trace", "generators"],
    ["trace", "generators", "philly-atc19"],
]


def run(*arguments, columns=80):
    width = None if columns is None else str(columns)
    return CliRunner(env={"COLUMNS": width}).invoke(app, [str(a) for a in arguments])


def drawn(table, width):
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


# --- what a screen shows ----------------------------------------------------------------------


def test_what_fits_is_one_table_with_two_blanks_between_columns():
    shown = drawn(sheet(["name", Column("s", right=True)], [("a", "1.5"), ("bb", "10")]), 80)
    assert shown == ["name    s", "─────────", "a     1.5", "bb     10"]


def test_the_least_important_columns_go_first():
    table = sheet(
        ["name", Column("b", rank=1), Column("c", rank=2)], [("n" * 10, "b" * 10, "c" * 9)]
    )
    assert table.omitted(80) == []
    assert table.omitted(24) == ["c"]
    assert table.omitted(12) == ["b", "c"]
    assert drawn(table, 24)[-1] == f"{'n' * 10}  {'b' * 10}"


def test_prose_is_folded_between_its_words_and_names_never():
    table = sheet(["name", Column("what", fold=" ")], [("a-name", "many words " * 5)])
    shown = drawn(table, 40)
    assert all(len(line) <= 40 for line in shown)
    assert all(word in ("many", "words") for line in shown[2:] for word in line[8:].split())


def test_numbers_that_do_not_fit_are_stacked_below_with_their_names():
    table = sheet(["name", *"abc"], [("x", "1,234.5678", "2,345.6789", "3,456.7890")])
    shown = "\n".join(drawn(table, 30))
    assert all(number in shown for number in table.rows[0])
    assert shown.count("\nx ") == 2


def test_lists_are_folded_after_a_comma():
    assert folded("ab 1.2, cd 3.4, ef", 10, ", ") == "ab 1.2,\ncd 3.4, ef"


def test_a_name_with_line_breaks_and_escapes_stays_one_plain_line():
    assert facts({"a\nb": "\x1b[31mred"}).rows == (("a b", "\\u001b[31mred"),)


@pytest.mark.parametrize("arguments", LISTS, ids=" ".join)
def test_every_list_fits_80_columns_and_a_pipe_has_a_line_a_row(arguments):
    narrow, piped = run(*arguments), run(*arguments, columns=None)
    assert (narrow.exit_code, piped.exit_code) == (0, 0)
    assert max(map(len, narrow.stdout.splitlines())) <= 80
    assert not set("│─━┃╭╰") & set(piped.stdout)
    rows = json.loads(run(*arguments, "--json").stdout)
    entries = next(value for value in rows.values() if isinstance(value, list | dict))
    for entry in entries:
        name = entry if isinstance(entry, str) else entry.get("name", next(iter(entry.values())))
        assert re.search(rf"^(\w+ +)?{re.escape(name)}(  |$)", piped.stdout, re.M), name


def test_no_name_unit_or_number_of_an_instance_is_cut_at_80_columns():
    records = json.loads(run("instances", "--json").stdout)["instances"]
    for width in (80, 100, 200):
        shown = run("instances", columns=width).stdout
        for record in records:
            assert record["name"] in shown
            assert re.search(rf"{record['name']} .* {record['unit']}( |$)", shown, re.M)


def test_what_a_screen_leaves_out_is_named_and_wide_shows_it():
    assert "not shown for want of width: what it is" in run("instances").stdout
    assert "85 jobs (cifar10 66" in run("instances", "--wide").stdout


def test_instances_of_one_problem():
    told = json.loads(run("instances", "sia", "--json").stdout)["instances"]
    assert [row["name"] for row in told] == ["sia/cluster-64", "sia/hand"]
    assert "there is no problem 'sai'; did you mean 'sia'?" in run("instances", "sai").stderr


def test_words_of_an_explanation_are_folded_further_in(tmp_path):
    path = tmp_path / "r.json"
    run("solve", "boa/hand", "--no-compare", "-o", path)
    lines = run("explain", path, columns=60).stdout.splitlines()
    assert max(map(len, lines)) <= 60
    assert any(line.startswith("    ") for line in lines)
    assert json.loads(run("explain", path, "--json").stdout)["binding"]


# --- formats ----------------------------------------------------------------------------------


def test_csv_has_a_column_for_every_key():
    assert csv_text([{"a": 1}, {"a": "x,y", "b": 2}]) == 'a,b\n1,\n"x,y",2\n'


def test_solve_as_csv_is_the_plan_in_full_digits():
    rows = list(csv.DictReader(io.StringIO(run("solve", "boa/hand", "--format", "csv").stdout)))
    assert [row["class"] for row in rows] == ["A", "B"]
    assert float(rows[0]["seconds"]) == 1.25


def test_latex_has_no_character_that_it_reads_as_a_command():
    shown = run("solve", "boa/hand", "--format", "latex").stdout
    assert shown.count(r"\begin{tabular}") == shown.count(r"\end{tabular}") == 3
    assert r"+0.00 \%" in shown
    assert not re.search(r"(?<!\\)[%$#_]", shown)


def test_markdown_has_as_many_cells_in_every_row():
    lines = run("methods", "boa", "--format", "markdown").stdout.splitlines()
    assert len({line.replace(r"\|", "").count("|") for line in lines}) == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["methods", "--format", "xml"], "expected one of table, csv, latex, json, markdown"),
        (["methods", "--format", "philly"], "of a file that is read goes to --input-format"),
        (["methods", "--json", "--format", "csv"], "--format csv asks for something else"),
    ],
)
def test_formats_that_do_not_go(arguments, text):
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert text in done.stderr


# --- JSON -------------------------------------------------------------------------------------


def test_check_and_verify_say_as_json_what_holds(tmp_path):
    path = tmp_path / "r.json"
    assert run("solve", "boa/hand", "--no-compare", "-o", path).exit_code == 0
    assert json.loads(run("check", "boa/hand", path, "--json").stdout)["feasible"] is True
    told = json.loads(run("verify", "boa/hand", path, "--json").stdout)
    assert told["proven"] is True
    assert told["bound"] <= told["objective"]
    path.write_text(path.read_text().replace('"bound": 1.15', '"bound": 9.15'))
    refused = run("verify", "boa/hand", path, "--json")
    assert refused.exit_code in (1, 2)
    if refused.exit_code == 1:
        assert json.loads(refused.stdout)["proven"] is False


def test_compare_as_json_and_csv_has_every_metric():
    base = ("compare", "philly-small", "--policy", "fifo", "-p", "las", "--set", "trace.jobs=10")
    told = json.loads(run(*base, "--json").stdout)
    assert [row["policy"] for row in told["policies"]] == ["fifo", "las"]
    assert told["policies"][0]["jct_mean_s_ratio"] == 1
    rows = list(csv.DictReader(io.StringIO(run(*base, "--format", "csv").stdout)))
    assert float(rows[1]["jct_mean_s"]) == told["policies"][1]["jct_mean_s"]


# --- show and schema --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["boa/hand", "pal/tiny", "eaco/paper-four", "sia/hand", "pal-64"])
def test_show_prints_what_is_bundled_and_writes_a_copy_to_edit(name, tmp_path):
    path = tmp_path / "my.json"
    shown = run("show", name, "-o", path)
    assert shown.exit_code == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert json.loads(path.read_text()) == json.loads(run("show", name, "--json").stdout)
    assert run("show", path).exit_code == 0


def test_show_makes_changes_on_request():
    told = json.loads(run("show", "boa/hand", "--set", "budget_gpus=3", "--json").stdout)
    assert told["budget_gpus"] == 3


def test_every_kind_of_file_has_a_schema():
    for row in json.loads(run("schema", "--json").stdout)["schemas"]:
        made = json.loads(run("schema", row["kind"]).stdout)
        assert made["$id"].startswith(f"optsched/{row['kind']}/")
        assert "schema" in made["properties"]
    assert "there is no kind of files 'bao'; did you mean 'boa'?" in run("schema", "bao").stderr
