"""The command line: what it prints, writes and returns."""

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from itertools import groupby

import pytest
from typer.testing import CliRunner

import optsched
from optsched.boa.exact import solver as exact
from optsched.boa.greedy import methods
from optsched.cli.main import app
from optsched.registry import problem
from optsched.results.result import figure
from optsched.results.result_files import read_result

GREEDY = [method.name for method in problem("boa").methods if method.kind == "greedy"]
COMMANDS = ["instances", "solve", "check", "verify", "export", "methods", "schema"]


def run(*arguments, columns=80):
    """Run a command as on a terminal of so many columns; in a pipe, where that is None."""
    width = None if columns is None else str(columns)
    return CliRunner(env={"COLUMNS": width}).invoke(app, [str(a) for a in arguments])


def command(*arguments, **options):
    """Run the command in a process of its own."""
    code = "from optsched.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], text=True, timeout=600, check=False, **options
    )


def rows(text):
    """Return the first words of the lines: tables begin with a name."""
    return {line.split("  ")[0]: line for line in text.splitlines() if line}


@pytest.fixture
def solved(tmp_path):
    """Return the file of a solved boa/hand."""
    path = tmp_path / "hand.json"
    assert run("solve", "boa/hand", "--no-compare", "--output", path).exit_code == 0
    return path


# --- help -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_that_begins_with_it(name):
    shown = run(name, "--help")
    assert shown.exit_code == 0
    assert f"Example: optsched {name}" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_help_lists_every_command_and_exit_code():
    shown = run("--help").stdout
    assert all(re.search(rf"^│ {name}  ", shown, re.MULTILINE) for name in COMMANDS)
    assert all(code in shown for code in ["0 done", "1 a check", "2 bad", "3 infeasible", "130"])


def test_version():
    assert run("--version").stdout == f"optsched {optsched.results.result.versions()['optsched']}\n"


# --- lists ------------------------------------------------------------------------------------


def test_instances_one_line_each_with_everything_in_a_pipe():
    lines = rows(run("instances", columns=None).stdout)
    for name in optsched.names():
        instance = optsched.read(name)
        assert instance.description in lines[name]
        assert all(
            text in lines[name] for text in problem(instance.problem).headline(instance).values()
        )
        known = optsched.known_values()[name]
        value = known.get("optimal", known.get("best"))
        assert f"{figure(value)} {known['unit']}" in lines[name]
    assert re.search(r"24 GPUs +integer +3 +182 +1,739.40 s", lines["boa/cbd-85"])


def test_methods_in_the_order_of_the_registry():
    shown = run("methods", "boa").stdout
    lines = rows(shown)
    for method in problem("boa").methods:
        assert re.match(rf"{method.name} +{method.kind} ", lines[method.name])
    assert "arXiv 2406.15560" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_schema_is_the_one_of_the_library():
    assert json.loads(run("schema", "boa").stdout) == optsched.schema("boa")


# --- solve ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "changes", "shown"),
    [
        ("boa/hand", [], ["1.151316 s", "0.6875 jobs per GPU", "2.5 GPUs", "2.302632 on average"]),
        ("boa/hand", ["widths=mixed"], ["1.015625 s", "0.6875 jobs per GPU", "70.31 %  4 x 1"]),
        ("boa/epew-figure1", ["budget_gpus=1"], ["0.676471 s", "2.428571 x 1", "1.47449 x 1"]),
        ("boa/epew-figure1", [], ["0.333333 s", "0.111111 jobs per GPU"]),
        ("boa/epew-figure1", ["budget_gpus=3"], ["0.246269 s", "9.571429 x 1", "22.90306 x 1"]),
        ("boa/cbd-85", [], ["1,739.40 s", "24 GPUs", "deviation 11.39", "12 x 37"]),
        ("boa/cbd-85", ["budget_gpus=30", "classes.*.rescale_s=0"], ["805.69 s", "30 GPUs"]),
    ],
)
def test_golden_values_are_visible(source, changes, shown):
    sets = [word for change in changes for word in ("--set", change)]
    done = run("solve", source, "--no-compare", *sets)
    assert done.exit_code == 0
    for text in shown:
        assert text in done.stdout
    for heading in ["budget", "mean JCT", "bound", "gap", "price mu", "GPUs rented", "status"]:
        assert heading in rows(done.stdout)


@pytest.mark.parametrize("name", ["boa/cbd-85", "boa/stress"])
@pytest.mark.parametrize("widths", ["integer", "mixed"])
def test_runs_of_the_table_spell_out_the_plan(name, widths):
    lines = run("solve", name, "--no-compare", "--set", f"widths={widths}").stdout.splitlines()
    lines = lines[next(n for n, line in enumerate(lines) if line.startswith("──")) + 1 :]
    shown: dict[str, list[list[float]]] = {}
    for line in lines:
        runs = [(float(k), int(count)) for k, count in re.findall(r"([\d.]+) x (\d+)", line)]
        widths_shown = [k for k, count in runs for _ in range(count)]
        shown.setdefault(line.split("  ")[0], []).append(widths_shown)
    plan = optsched.solve(optsched.read(name).changed({"widths": widths})).plan
    for class_plan in plan.classes:
        expected = sorted(list(map(float, s.gpus)) for s in class_plan.sequences)
        assert sorted(shown.pop(class_plan.id)) == expected
    assert not shown


def test_a_target_is_asked_the_other_way_round():
    sets = ["--set", "budget_gpus=null", "--set", "target_mean_jct_s=1.2"]
    done = run("solve", "boa/hand", *sets)
    assert "target          1.2 s mean JCT" in done.stdout
    assert "mean number of GPUs" in done.stdout
    assert "GPUs per job" in done.stdout


def test_json_and_nothing_else():
    done = run("solve", "boa/hand", "--json", "--seed", 3, "--gap", 0.01)
    assert done.stderr == ""
    document = json.loads(done.stdout)
    assert document["schema"] == "optsched/result/2"
    assert document["objective"] == pytest.approx(1.1513157894736843)
    assert document["seed"] == 3


def test_the_comparison_is_data_too_where_it_is_asked_for():
    document = json.loads(run("solve", "boa/hand", "--json", "--compare").stdout)
    assert set(document) == {"result", "compared", "left_out", "refused"}
    assert document["result"]["schema"] == "optsched/result/2"
    first, *others = document["compared"]
    assert (first["method"], first["objective"]) == ("exact", document["result"]["objective"])
    known = [method.name for method in problem("boa").methods if method.kind == "greedy"]
    assert [other["method"] for other in others] + document["left_out"] == known
    rows = list(csv.DictReader(io.StringIO(
        run("solve", "boa/hand", "--format", "csv", "--compare").stdout
    )))  # fmt: skip
    assert list(rows[0]) == ["method", "objective", "above", "status", "seconds"]
    assert rows[0]["method"] == "exact"
    none = json.loads(
        run("solve", "boa/hand", "--set", "budget_gpus=1", "--json", "--compare").stdout
    )
    assert [row["objective"] for row in none["compared"]] == [None]
    assert none["result"]["status"] == "infeasible"


def test_options_reach_the_solve():
    loose = json.loads(run("solve", "boa/cbd-85", "--gap", 0.5, "--json").stdout)
    assert loose["status"] == "optimal"
    assert loose["gap"] > 1e-6
    stopped = json.loads(run("solve", "boa/cbd-85", "--time-limit", 0, "--json").stdout)
    assert stopped["message"] == "stopped early: time limit"
    assert not stopped["deterministic"]
    other = json.loads(run("solve", "boa/hand", "--method", "same-k", "--json").stdout)
    assert other["method"] == "same-k"


def test_output_is_what_the_library_reads(solved):
    instance = optsched.read("boa/hand")
    result = read_result(solved).of(instance)
    again = optsched.solve(instance)
    times = {key: getattr(result, key) for key in ("seconds", "verification_s")}
    assert result == again.model_copy(update=times).of(instance)
    assert solved.read_text() == result.to_json()
    assert list(solved.parent.iterdir()) == [solved]


def test_comparison_shows_the_own_plan_of_every_greedy_method():
    instance = optsched.read("boa/stress")
    best = optsched.solve(instance).objective
    lines = rows(run("solve", "boa/stress").stdout)
    for name in GREEDY:
        objective = optsched.solve(instance, name).objective
        above = f"{100 * (objective / best - 1):+.2f} %"
        assert re.match(rf"{name} +{figure(objective)} s +\{above} +\w+ +[0-9.]+$", lines[name])
    assert not set(GREEDY) & set(rows(run("solve", "boa/stress", "--no-compare").stdout))


def test_comparison_with_a_greedy_method_leaves_it_out_and_may_be_below():
    lines = rows(run("solve", "boa/stress", "--method", "same-k").stdout)
    assert "same-k" not in lines
    assert re.search(r" -\d+\.\d\d % ", lines["class-width"])


def test_comparison_says_which_method_found_no_plan(monkeypatch):
    monkeypatch.setattr(methods, "same_k", lambda instance, search: None)
    done = run("solve", "boa/hand")
    assert done.exit_code == 0
    assert re.match(r"same-k +no plan +error +[0-9.]+$", rows(done.stdout)["same-k"])


def test_no_plan_within_the_limit_is_4(tmp_path):
    tight = ("boa/cbd-85", "--set", "budget_gpus=20.13")
    done = run("solve", *tight, "--method", "same-k", "--output", tmp_path / "none.json")
    assert done.exit_code == 4
    assert done.stdout == ""
    assert done.stderr == "error: method 'same-k' found no plan within the limit\n"
    shown = run("verify", tight[0], tmp_path / "none.json", *tight[1:])
    assert shown.stdout.startswith("proven: no plan has a mean JCT below ")
    assert run("check", tight[0], tmp_path / "none.json", *tight[1:]).exit_code == 1


def test_contradicting_solvers_are_one_message(monkeypatch):
    def wrong(instance, search):
        search.offer(optsched.solve(instance, "same-k").plan)
        return exact.certificate(instance, 0.5).model_copy(update={"bound": 1e6})

    monkeypatch.setattr(exact, "exact", wrong)
    done = run("solve", "boa/hand")
    assert (done.exit_code, done.stdout) == (1, "")
    assert re.fullmatch("error: boa/hand: method 'exact' has a plan of .* above it\n", done.stderr)


# --- infeasible -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["boa/hand", "boa/epew-figure1", "boa/cbd-85", "boa/stress"])
def test_infeasible_names_the_least_cost_and_that_is_enough(name, tmp_path):
    path = tmp_path / "result.json"
    low = ["--set", "budget_gpus=0.5"]
    done = run("solve", name, *low, "--output", path)
    assert (done.exit_code, done.stdout) == (3, "")
    least = re.search(r"least possible cost of (\S+) GPUs", done.stderr)[1]
    assert (
        run("verify", name, *low, path).stdout
        == f"proven: no plan keeps every rule of {name} with budget_gpus=0.5\n"
    )
    assert run("check", name, *low, path).exit_code == 1
    assert run("verify", name, path).stdout == run("verify", name, *low, path).stdout
    assert run("verify", name, "--set", "budget_gpus=0.6", path).exit_code == 1
    enough = run("solve", name, "--set", f"budget_gpus={least}", "--no-compare")
    assert enough.exit_code == 0
    slightly_less = float(least) * (1 - 1e-12)
    assert run("solve", name, "--set", f"budget_gpus={slightly_less!r}").exit_code == 3


@pytest.mark.parametrize("name", ["boa/hand", "boa/cbd-85"])
@pytest.mark.parametrize(
    ("key", "pattern"),
    [("budget_usd_per_h", r"\((\S+) USD/h\)"), ("target_mean_jct_s", r"the least is (\S+) s")],
)
def test_infeasible_in_other_units(name, key, pattern):
    sets = ["--set", "budget_gpus=null"]
    if key == "budget_usd_per_h":
        sets += ["--set", "price_usd_per_gpu_h=0.37"]
    done = run("solve", name, *sets, "--set", f"{key}=0.01")
    assert done.exit_code == 3
    least = re.search(pattern, done.stderr)[1]
    assert run("solve", name, *sets, "--set", f"{key}={least}", "--no-compare").exit_code == 0


def test_infeasible_as_json():
    done = run("solve", "boa/hand", "--set", "budget_gpus=1", "--json")
    assert done.exit_code == 3
    assert json.loads(done.stdout)["status"] == "infeasible"


# --- check, verify, export --------------------------------------------------------------------


def test_check_and_verify_say_what_holds(solved):
    checked = run("check", "boa/hand", solved)
    assert (checked.exit_code, checked.stdout) == (
        0,
        "feasible: the plan keeps every rule of boa/hand\n",
    )
    shown = run("verify", "boa/hand", solved)
    result = read_result(solved)
    assert shown.exit_code == 0
    assert f"proven: no plan has a mean JCT below {result.bound!r} s\n" in shown.stdout
    assert f"objective  {result.objective!r} s, recomputed from the plan\n" in shown.stdout
    assert "gap        9.00e-07\n" in shown.stdout


@pytest.mark.parametrize("name", ["check", "verify"])
def test_changes_apply_to_the_instance_that_is_verified(name, solved):
    tight = run(name, "boa/hand", solved, "--set", "budget_gpus=2.2")
    assert tight.exit_code == 1
    assert "[budget] the plan rents 2.3026" in tight.stdout
    assert tight.stderr == ""


@pytest.mark.parametrize("name", ["check", "verify"])
def test_every_broken_rule_is_listed(name, solved):
    done = run(name, "boa/cbd-85", solved)
    assert done.exit_code == 1
    for rule in ["known-class] the instance has no class 'A'", "every-class] class 'bert'"]:
        assert rule in done.stdout


def test_export(tmp_path):
    printed = run("export", "boa/hand")
    assert printed.exit_code == 0
    assert printed.stdout == optsched.export(optsched.read("boa/hand"), "lp")
    path = tmp_path / "hand.mps"
    sets = ["--set", "budget_gpus=3"]
    assert run("export", "boa/hand", *sets, "--format", "mps", "--output", path).exit_code == 0
    changed = optsched.read("boa/hand").changed({"budget_gpus": 3})
    assert path.read_text() == optsched.export(changed, "mps")


# --- terminals, pipes, signals ----------------------------------------------------------------


def test_tables_fit_80_columns_without_colours_in_a_pipe():
    for name in optsched.known_values():
        shown = run("solve", name, "--gap", "0.02", "--no-compare").stdout
        assert max(map(len, shown.splitlines())) <= 80
        assert "\x1b" not in shown
        assert not re.search(r" $", shown, re.MULTILINE)


def test_names_in_files_are_not_markup(tmp_path):
    instance = optsched.read("boa/hand").changed({"classes.A.id": "[red]A[/] :bug:"})
    optsched.write(instance, tmp_path / "markup.json")
    assert "[red]A[/] :bug:  2 x 1" in run("solve", tmp_path / "markup.json").stdout


def test_a_terminal_sees_progress_on_stderr_only():
    ours, theirs = pty.openpty()
    done = command("solve", "boa/hand", stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    progress = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "solving boa/hand" in progress
    assert "comparing" in progress
    assert "mean JCT" in done.stdout
    assert "solving" not in done.stdout


@pytest.mark.parametrize("arguments", [["schema", "boa"], ["solve", "boa/hand"], ["instances"]])
def test_a_reader_that_goes_away_is_no_traceback(arguments):
    reader, writer = os.pipe()
    os.close(reader)
    done = command(*arguments, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_reader_that_goes_away_does_not_cost_the_result(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    path = tmp_path / "result.json"
    command("solve", "boa/hand", "--output", str(path), stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert read_result(path).objective == pytest.approx(1.1513157894736843)


def interrupted(prelude, *arguments):
    """Run the command in a process where `ready` is called at some point, and interrupt it then."""
    code = f"""
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
def ready():
    print("ready", file=sys.stderr, flush=True)
    time.sleep(600)
{prelude}
from optsched.cli.main import main
main()
"""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stderr.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=600)
    return process.returncode, stdout, stderr


IN_SOLVE = """
from optsched.boa.{folder} import {module}
def slow(instance, search, run={module}.{function}):
    run(instance, search)
    ready()
{module}.{function} = slow
"""


def test_ctrl_c_in_a_solve_gives_the_best_plan_so_far():
    prelude = IN_SOLVE.format(folder="exact", module="solver", function="exact")
    code, stdout, stderr = interrupted(prelude, "solve", "boa/hand")
    assert (code, stderr) == (0, "")
    assert "message         stopped early: interrupted" in stdout
    assert "mean JCT        1.151316 s" in stdout
    assert "same-k" not in stdout


def test_ctrl_c_in_the_comparison_ends_it():
    prelude = IN_SOLVE.format(folder="exact", module="one_width_per_class", function="class_width")
    code, stdout, stderr = interrupted(prelude, "solve", "boa/hand")
    assert (code, stderr) == (0, "")
    lines = list(rows(stdout))
    assert lines[-2:] == ["same-k", "class-width"]


def test_ctrl_c_elsewhere_is_130():
    prelude = "import optsched.instance\noptsched.instance.find = lambda source: ready()"
    assert interrupted(prelude, "solve", "boa/hand") == (130, "", "interrupted\n")


def test_runs_of_equal_widths_are_maximal():
    plan = optsched.solve(optsched.read("boa/cbd-85")).plan
    shown = rows(run("solve", "boa/cbd-85", "--no-compare").stdout)
    for class_plan in plan.classes:
        count = len(list(groupby(class_plan.sequences[0].gpus)))
        assert shown[class_plan.id].count(" x ") == count


HOSTILE = "a\x1b[2J\x9b31m\r\x07\u202e\u2066b"


def test_no_control_characters_of_a_file_reach_the_terminal(tmp_path):
    document = json.loads(optsched.read("boa/hand").to_json())
    document |= {"name": HOSTILE, "description": HOSTILE}
    document["classes"][0]["id"] = HOSTILE
    source, faulty, result = (tmp_path / name for name in ("i.json", "f.json", "r.json"))
    source.write_text(json.dumps(document))
    faulty.write_text(json.dumps(document | {HOSTILE: 1}))
    conf = tmp_path / "topology.conf"
    conf.write_text("SwitchName=\x9b31m Nodes=a\u202e\n")
    told = [
        run("solve", source, "-o", result),
        run("solve", source, "--json"),
        run("solve", faulty),
        run("check", source, result),
        run("verify", source, result),
        run("export", source),
        run("explain", result, "--instance", source),
        run("topology", "import", conf, "--input-format", "slurm", "--gpus-per-node", "1"),
    ]
    text = "".join(done.stdout + done.stderr for done in told)
    assert [done.exit_code for done in told] == [0, 0, 2, 0, 0, 0, 0, 0]
    assert not set(text) & set("\x1b\x9b\r\x07\u202e\u2066")
    assert "\\u001b[2J\\u009b31m\\u000d\\u0007\\u202e" in told[3].stdout
    assert json.loads(told[1].stdout)["instance"] == HOSTILE
