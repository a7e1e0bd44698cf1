"""Hints for likely slips, options that were given up, completion, and progress of a solve."""

import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from optsched.cli import completion
from optsched.cli.main import app
from optsched.cli.progress import line
from optsched.progress import Progress
from optsched.rollout.declarations.names import unmet
from optsched.rollout.registry import ENTRIES
from optsched.rollout.scenario_files import read_scenario


def run(*arguments):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(a) for a in arguments])


# --- slips ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["frontier", "boa/hand", "--values", "2,3", "--greedy"], "it is called --compare now"),
        (["trace", "generate", "boa", "-o", "x.json", "--option", "a=1"], "it is called --set"),
        (["rollout", "philly-small", "--drop-larger"], "it is --set trace.drop_larger=true"),
        (["rollout", "philly-small", "--seeds", "3"], "it is called --seed; `rollout` and"),
        (["rollout", "philly-small", "--trace", "x", "--format", "pal"], "--input-format pal"),
        (["solve", "mine.yaml"], "mine.yaml: no such file"),
        (["solve", "boa/hand", "--gap", "x"], "'x' is no number such as 0.01, nor 1%"),
        (["solve", "boa/hand", "--memory", "0.0001"], "but 0.1 MiB are given"),
    ],
)
def test_an_option_that_is_no_longer_there_is_told_what_came_for_it(arguments, told):
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert told in re.sub(r"\s+", " ", done.stderr)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("power_cap_w=4", "power_cap_w is in watts: 4 W is less than one GPU takes; for 4 kW give"),
        ("jobs.*.work_s=35", "work_s is in seconds: the longest job takes 35 s"),
        ("jobs.*.deadline_s=5.5", "deadline_s is in seconds from now: job AlexNet has 5.5 s"),
    ],
)
def test_figures_in_another_unit_are_hinted_at(change, told):
    done = run(
        "solve", "eaco/paper-four", "--no-compare", "--set", change, "--method", "fifo-packed"
    )
    assert f"hint: {told}" in done.stderr


def test_bundled_instances_need_no_hint():
    done = run("solve", "eaco/paper-four", "--no-compare", "--method", "fifo-packed")
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_gap_may_be_given_in_per_cent():
    assert (
        "gap             0.90 %" in run("solve", "boa/hand", "--no-compare", "--gap", "1%").stdout
    )


# --- policies that mean nothing where they run ------------------------------------------------


def test_policies_that_lack_what_they_need_are_told_beside_the_table():
    base = ("compare", "philly-small", "--set", "trace.jobs=5", "--policy")
    done = run(*base, "fifo,pal")
    assert "hint: policy 'pal' needs a profile" in done.stderr
    assert "policy 'pal' needs a profile" in done.stdout
    assert run(*base, "fifo,las").stderr == ""


@pytest.mark.parametrize("name", ["pal-64", "pal-64-persistent", "boa-cloud", "eaco-28", "eaco-64"])
def test_the_policies_of_bundled_scenarios_lack_nothing(name):
    scenario = read_scenario(name)
    assert [
        unmet(scenario, policy) for policy in scenario.policies if unmet(scenario, policy)
    ] == []


def test_eaco_without_sharing_and_widths_without_curves_lack_something():
    scenario = read_scenario("philly-small")
    lacking = {entry.name for entry in ENTRIES if unmet(scenario, entry.name)}
    assert {"eaco", "eaco-greedy", "pal", "pm-first", "boa", "sia", "pollux"} <= lacking
    assert not {"fifo", "las", "srtf", "packed-sticky", "fifo-requested"} & lacking
    assert unmet(scenario, "somebody.elses:Policy") == ""


# --- completion -------------------------------------------------------------------------------


class Context:
    def __init__(self, source=None):
        self.params = {"source": source}


def test_names_are_completed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "boat.yaml").touch()
    (tmp_path / "boa.txt").touch()
    assert completion.instances("boa/h") == ["boa/hand"]
    assert completion.instances("boat") == ["boat.yaml"]
    assert completion.scenarios("pal-64-") == ["pal-64-persistent"]
    assert completion.methods(Context("boa/hand"), "same") == ["same-k"]
    assert "eaco-greedy" in completion.methods(Context(), "e")
    assert completion.policies("fifo,tire") == ["fifo,tiresias", "fifo,tiresias-gittins"]


def test_a_shell_that_asks_gets_names():
    asked = {"_OPTSCHED_COMPLETE": "complete_bash", "COMP_WORDS": "optsched solve boa/h",
             "COMP_CWORD": "2"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "optsched"], env=os.environ | asked, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["boa/hand"]


# --- progress ---------------------------------------------------------------------------------


def test_verbose_prints_lines_of_progress_on_stderr_and_else_nothing():
    told = run("solve", "eaco/paper-four", "--no-compare", "--verbose")
    assert re.search(r"^ +\d+\.\d s  \w.*plan 93\.66", told.stderr, re.M)
    assert run("solve", "boa/hand", "--no-compare").stderr == ""


def test_a_line_of_progress_has_time_phase_plan_bound_and_gap():
    told = Progress(12.34, "diving", 1234.5, 1200.0, 0.028)
    assert line(told) == "    12.3 s  diving, plan 1,234.50, bound 1,200.00, gap 2.8 %"
    assert Progress(0.1, "beginning").text == "beginning"


# --- start ------------------------------------------------------------------------------------


def test_help_imports_neither_pydantic_nor_numbers():
    code = (
        "import sys\n"
        "from optsched.cli.main import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "print([m for m in ('pydantic', 'numpy', 'pandas', 'scipy') if m in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_imports_take_the_format_of_their_file_by_either_name(tmp_path):
    """Nothing else has a format there, and `--format` is what manuals of other tools say."""
    source, target = tmp_path / "topology.conf", tmp_path / "cluster.json"
    source.write_text("SwitchName=s0 Nodes=a[0-1]\n")
    for name in ("--format", "--input-format"):
        done = run("topology", "import", source, name, "slurm", "--gpus-per-node", 2, "-o", target)
        assert done.exit_code == 0, done.output


def test_a_list_of_policies_may_be_called_policies():
    few = ("compare", "philly-small", "--set", "trace.jobs=5", "--json")
    printed = [run(*few, name, "fifo,las") for name in ("--policy", "--policies", "-p")]
    assert [done.exit_code for done in printed] == [0, 0, 0]


def test_a_verbose_frontier_says_how_far_its_points_are():
    done = run("frontier", "boa/hand", "--values", "2,3", "--method", "milp", "--verbose")
    assert done.exit_code == 0
    assert re.search(r"^ +\d+\.\d s  2: milp", done.stderr, re.M)
    assert run("frontier", "boa/hand", "--values", "2,3", "--method", "milp").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--time-limit", "5s"], "error: --time-limit 5s: expected a number (SECONDS)"),
        (["--memory=4GiB"], "error: --memory 4GiB: expected a number (GIB)"),
        (["--seed", "0,1"], "error: --seed 0,1: expected a whole number"),
    ],
)
def test_what_is_no_number_is_shown_with_its_option(arguments, told):
    """It was said of a "string", in a box, without the text."""
    done = run("solve", "boa/hand", *arguments)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"{told}\n")


def test_help_shows_no_value_for_what_takes_none_and_whole_names_on_narrow_terminals():
    for width in (80, 40):
        shown = CliRunner(env={"COLUMNS": str(width)}).invoke(app, ["solve", "--help"]).stdout
        assert "<bool>" not in shown
        assert "BOOLEAN" not in shown
        for option in ("--time-limit", "--processes", "--no-compare", "--verbose"):
            assert option in shown
    assert "<bool>" not in run("--help").stdout


def test_a_width_of_nothing_is_none():
    """Some editors set COLUMNS to 0: it was an error."""
    done = CliRunner(env={"COLUMNS": "0"}).invoke(app, ["solve", "boa/hand", "--no-compare"])
    assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("source", "changes", "told"),
    [
        ("boa/cbd-85", ["classes.*.arrival_rate_per_h=0.001"], "all jobs together keep"),
        ("eaco/paper-four", ["gpu_types.0.memory_gb=16384"], "memory_gb is in GB: V100 has 16384"),
    ],
)
def test_more_figures_in_another_unit_are_hinted_at(source, changes, told):
    sets = [part for change in changes for part in ("--set", change)]
    method = "same-k" if source.startswith("boa") else "fifo-packed"
    done = run("solve", source, "--no-compare", *sets, "--method", method)
    assert f"hint: {told}" in done.stderr


def test_a_policy_without_options_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("class Idle:\n    def decide(self, view): ...\n")
    shown = run("policies", "mine.py:Idle").stdout
    assert re.search(r"^options +none$", shown, re.M)
    assert "mine.py:Idle: it says nothing of itself" in shown


def test_per_cents_where_a_share_is_expected_are_told_as_one():
    done = run("solve", "eaco/paper-four", "--set", "types.0.utilisation=30")
    assert "must be at most 1, found 30; for 30 % give 0.3" in done.stderr


def test_a_policy_without_its_option_is_told_where_it_goes():
    done = run("compare", "philly-small", "fifo", "las")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == (
        "error: fifo las: what is it? Policies follow their option: --policy fifo,las\n"
    )


def test_a_name_in_capitals_is_the_nearest():
    assert "did you mean 'boa'?" in run("methods", "BOA").stderr
