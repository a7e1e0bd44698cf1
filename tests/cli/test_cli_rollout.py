"""The commands rollout, compare, policies and scenarios: what they print, write and return."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import optsched
from optsched.cli import options
from optsched.cli.main import app
from optsched.rollout import registry
from optsched.rollout.results.metrics import METRICS
from optsched.rollout.trace_source import scenario_of
from tests.support.builders.small_rollouts import POLICIES

COMMANDS = ["rollout", "compare", "policies", "scenarios"]
HEAD = "workload,job_id,num_gpus,submit_time,iterations,model,pal_class,iter_time_s\n"
ROWS = (
    "1,a,2,0,100,bert,A,1.0\n1,b,1,5,50,bert,A,1.0\n1,c,4,10,60,bert,A,1.0\n"
    "2,d,1,0,10,bert,A,1.0\n2,e,64,3,10,bert,A,1.0\n"
)


def run(*arguments, columns=80):
    width = None if columns is None else str(columns)
    return CliRunner(env={"COLUMNS": width}).invoke(app, [str(a) for a in arguments])


def refused(*arguments, code=2):
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (code, ""), done.output
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(registry, "ENTRIES", (*registry.ENTRIES, *POLICIES))


@pytest.fixture
def scenario(tmp_path):
    """Return the file of a scenario of 8 GPUs whose trace lies beside it."""
    (tmp_path / "jobs.csv").write_text(HEAD + ROWS)
    path = tmp_path / "mine.json"
    document = {
        "schema": "optsched/scenario/1",
        "name": "mine",
        "policies": ["first", "other"],
        "nodes": 2,
        "gpus_per_node": 4,
        "trace": {"file": "jobs.csv", "format": "pal", "workload": 1},
        "price_usd_per_gpu_h": 2,
    }
    path.write_text(json.dumps(document))
    return path


def row(text, name):
    return re.split(r"  +", next(n for n in text.splitlines() if n.startswith(f"{name} ")).strip())


# --- help and lists ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_that_begins_with_it(name):
    shown = run(name, "--help")
    assert shown.exit_code == 0
    assert f"Example: optsched {name}" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_policies_lists_every_one():
    shown = run("policies")
    assert all(re.search(rf"^{e.name}  ", shown.stdout, re.M) for e in registry.ENTRIES)
    assert max(map(len, shown.stdout.splitlines())) <= 80


def test_scenarios_lists_every_one():
    shown = run("scenarios", columns=None)
    assert shown.exit_code == 0
    folder = Path(optsched.__file__).parent / "instances" / "scenarios"
    for path in folder.glob("*.json"):
        described = json.loads(path.read_text())["description"]
        assert described.partition(". ")[0] in row_text(shown.stdout, path.stem)


def row_text(text, name):
    return next(n for n in text.splitlines() if n.startswith(f"{name} "))


# --- rollout ----------------------------------------------------------------------------------


def test_rollout_shows_every_metric_in_80_columns(scenario):
    shown = run("rollout", scenario, "--policy", "first")
    assert (shown.exit_code, shown.stderr) == (0, "")
    told = optsched.simulate(str(scenario), "first").metrics
    for key in METRICS:
        assert (told[key] is not None) == bool(re.search(rf"^{key} ", shown.stdout, re.M)), key
    assert row(shown.stdout, "jct_mean_s")[1:] == ["70", "mean job completion time (JCT)"]
    assert max(map(len, shown.stdout.splitlines())) <= 80
    heading = 6
    assert shown.stdout.endswith("retried to its end.\n")
    table = run("rollout", scenario, "--policy", "first", "--no-bound").stdout.splitlines()
    assert len(table) == heading + sum(value is not None for value in told.values())
    ends = shown.stdout.splitlines()[len(table) :][:2]
    assert [line.split()[0] for line in ends] == ["jct_mean_s_bound", "makespan_s_bound"]


def test_rollout_as_json_and_in_a_folder(scenario, tmp_path):
    out = tmp_path / "out"
    options = ("--policy", "first", "--seed", 3, "--set", "epoch_s=7", "--json")
    done = run("rollout", scenario, *options, "--output", out, "--intervals")
    told = json.loads(done.stdout)
    bound = told.pop("bound")
    assert told == json.loads((out / "summary.json").read_text())
    where = scenario_of(scenario).changed({"epoch_s": 7})
    jct_s = optsched.bound(where, seed=3).jct_mean_s
    assert bound["jct_mean_s_bound"] == jct_s
    assert bound["jct_mean_s_above"] == pytest.approx(told["metrics"]["jct_mean_s"] / jct_s - 1)
    bare = run("rollout", scenario, *options, "--no-bound")
    assert bare.stdout == (out / "summary.json").read_text()
    assert (told["policy"], told["seed"], told["scenario"]["epoch_s"]) == ("first", 3, 7)
    assert sorted(os.listdir(out)) == [
        "epochs.csv", "intervals.csv", "jobs.csv", "summary.json", "timing.json",
    ]  # fmt: skip
    assert run("rollout", scenario, *options, "--output", out, "--resume").exit_code == 0


def test_another_trace(scenario, tmp_path):
    path = tmp_path / "jobs.csv"
    options = ("rollout", scenario, "--policy", "first", "--trace", path, "--input-format", "pal")
    text = refused(*options, "--workload", 2)
    assert "job 'e' needs 64 GPUs, but scenario 'mine' has 8" in text
    shown = run(*options, "--workload", 2, "--set", "trace.drop_larger=true").stdout
    assert row(shown, "jobs")[1] == "1"
    assert "workload" in refused(*options)
    assert "9" in refused(*options, "--workload", 9)


def test_a_trace_of_the_own_format(scenario, tmp_path):
    from optsched.traces import import_trace, write_trace

    path = tmp_path / "trace.json"
    write_trace(import_trace(tmp_path / "jobs.csv", "pal", 1), path)
    mine = run("rollout", scenario, "--policy", "first", "--trace", path).stdout
    theirs = run("rollout", scenario, "--policy", "first").stdout
    assert row(mine, "jct_mean_s") == row(theirs, "jct_mean_s")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--policy", "frist"], "error: there is no policy 'frist'; did you mean 'first'?"),
        (["--policy", "first:pause=1"], "policy 'first:pause=1': there is no option 'pause'"),
        (["--policy", "first:pause_s"], "option 'pause_s': expected key=value"),
        (["--set", "epoch=3"], "there is no field 'epoch'; did you mean 'epoch_s'?"),
        (["--set", "epoch_s"], "--set epoch_s: expected PATH=VALUE"),
        (["--trace", "nowhere.json"], "nowhere.json"),
        (
            ["--trace", "x", "--input-format", "palm"],
            "no format of traces 'palm'; did you mean 'pal'?",
        ),
        (["--workload", "1"], "--input-format and --workload are of a file: give --trace FILE"),
        (["--resume"], "resume: name the output folder"),
    ],
)
def test_wrong_options_are_one_message(scenario, arguments, text):
    base = ["rollout", scenario, *([] if "--policy" in arguments else ["--policy", "first"])]
    assert text in refused(*base, *arguments)


def test_wrong_scenarios_and_traces_are_one_message(scenario, tmp_path):
    assert "there is no file or bundled scenario 'mein'" in refused("rollout", "mein")
    document = json.loads(scenario.read_text())
    scenario.write_text(json.dumps(document | {"nodse": 3, "nodes": 0}))
    text = refused("rollout", scenario)
    assert "did you mean 'nodes'" in text
    assert "2 faults" in text
    scenario.write_text(json.dumps(document))
    (tmp_path / "jobs.csv").write_text(HEAD + ROWS.replace("1,b,1", "1,b,none"))
    assert "line 3, column num_gpus" in refused("rollout", scenario, "--policy", "first")


def test_an_unfinished_rollout_is_not_overwritten(scenario, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "checkpoint.json").write_text("{}")
    options = ("rollout", scenario, "--policy", "first", "--output", tmp_path / "out")
    assert "holds an unfinished rollout; resume it (--resume)" in refused(*options)
    assert "not a checkpoint" in refused(*options, "--resume")


# --- compare ----------------------------------------------------------------------------------


def test_compare_shows_metrics_and_ratios_to_the_first(scenario, tmp_path):
    out = tmp_path / "all.csv"
    shown = run("compare", scenario, "--output", out)
    assert (shown.exit_code, shown.stderr) == (0, "")
    frame = pd.read_csv(out, index_col="policy")
    assert list(frame.index) == ["first", "other"]
    first, ratios = shown.stdout.split("to first")
    assert row(first, "other")[1] == "70.0"
    assert row(ratios, "other")[1] == "1.000"
    assert "cost USD" in first
    assert "energy" not in first
    assert max(map(len, shown.stdout.splitlines())) <= 120


def test_compare_with_seeds_and_options(scenario):
    policies = ("--policy", "other,first:pause_s=0", "--policy", "first")
    shown = run("compare", scenario, *policies, "--seeds", 2).stdout
    names = [line.split("  ")[0] for line in shown.splitlines()]
    assert [n for n in names if n in ("first", "first:pause_s=0", "other")] == [
        *("other", "first:pause_s=0", "first", "other", "first:pause_s=0", "first"),
        *("first:pause_s=0", "first"),  # differences from the first
        *("other", "first:pause_s=0", "first"),  # above the bound
    ]
    assert "One trace, and seeds change nothing: figures of one rollout each" in shown
    assert "Means over" not in shown
    drawn = run("compare", scenario, *policies, "--seeds", 3, "--resample", 2).stdout
    assert "Means over 3 traces, drawn from one in blocks of 2 jobs" in drawn


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--policy", "first,first"], "expected some, each once, found first, first"),
        (["--policy", "first,othr"], "there is no policy 'othr'; did you mean 'other'?"),
        (["--policy", "first,a=1"], "option 'a=1' follows no policy"),
        (["--seed", "0,0"], "--seed 0,0: expected each seed once"),
        (["--seeds", "0"], "seeds: must be at least 1, found 0"),
        (["--seeds", "2", "--resample", "9"], "resample: blocks must be of 1 to 3 jobs"),
        (["--resample", "2"], "resample: it draws a trace for each seed from one; give several"),
        (["--processes", "0"], "processes: must be at least 1, found 0"),
    ],
)
def test_compare_refuses(scenario, arguments, text):
    assert text in refused("compare", scenario, *arguments)


def test_processes_give_the_same(tmp_path):
    base = ("compare", "philly-small", "--policy", "fifo,las", "--set", "trace.jobs=30")
    for name, processes in (("one", 1), ("two", 2)):
        done = run(*base, "--processes", processes, "--output", tmp_path / f"{name}.csv")
        assert done.exit_code == 0, done.stderr
    assert (tmp_path / "one.csv").read_bytes() == (tmp_path / "two.csv").read_bytes()


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", [3]), ("0,7,1", [0, 7, 1]), ("0-3", [0, 1, 2, 3]), ("5, 7-8", [5, 7, 8])],
)
def test_seeds_are_a_list_or_a_range(text, seeds):
    assert options.seeds(text) == seeds


@pytest.mark.parametrize("text", ["", "x", "-1", "1,1", "3-1", "0-99999999", "1.5", "0-", "٣"])
def test_what_are_no_seeds_is_refused_with_what_to_give(text):
    with pytest.raises(ValueError, match=r"^--seed .*: (expected|more than 10,000 seeds)"):
        options.seeds(text)


def test_rollout_and_compare_take_the_same_seeds(tmp_path):
    base = ("philly-small", "--set", "trace.jobs=20", "--policy", "fifo")
    out = tmp_path / "out"
    shown = run("rollout", *base, "--seed", "0,2", "--output", out)
    assert row(shown.stdout, "seeds")[1:] == ["0, 2"]
    told = [json.loads((out / f"seed-{n}" / "summary.json").read_text()) for n in (0, 2)]
    makespans = [each["metrics"]["makespan_s"] for each in told]
    assert [float(text.replace(",", "")) for text in row(shown.stdout, "makespan_s")[1:]] == (
        pytest.approx([sum(makespans) / 2, *sorted(makespans)], rel=1e-3)
    )
    document = json.loads(run("rollout", *base, "--seed", "0,2", "--no-bound", "--json").stdout)
    assert document == {"policy": "fifo", "seeds": [0, 2], "rollouts": told}
    compared = json.loads(run("compare", *base, "--seed", "0,2", "--json").stdout)
    assert compared["seeds"] == [0, 2]
    assert compared["policies"][0]["makespan_s"] == pytest.approx(sum(makespans) / 2)
    once = run("compare", *base, "--seeds", 2, "--json").stdout
    assert once == run("compare", *base, "--seed", "0-1", "--json").stdout


def test_tables_have_of_paths_only_what_tells_policies_apart(scenario, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / "a rather long name of a folder" / folder).mkdir(parents=True)
        file = tmp_path / "a rather long name of a folder" / folder / "mine.py"
        file.write_text("from tests.support.builders.small_rollouts import FirstFit as Mine\n")
    long = str(tmp_path / "a rather long name of a folder" / "a" / "mine.py") + ":Mine"
    shown = run("compare", scenario, "--policy", f"first,{long}").stdout
    assert [line.split("  ")[0] for line in shown.splitlines()].count("mine.py:Mine") == 4
    other = long.replace("/a/mine", "/b/mine")
    both = run("compare", scenario, "--policy", f"{long},{other}").stdout
    assert "a/mine.py:Mine  " in both
    assert "b/mine.py:Mine  " in both
    data = json.loads(run("compare", scenario, "--policy", f"first,{long}", "--json").stdout)
    assert data["policies"][1]["policy"] == long


# --- lists of policies ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (["fifo,las"], ["fifo", "las"]),
        (["fifo:relax_s=600,backfill=true,las"], ["fifo:relax_s=600,backfill=true", "las"]),
        (["fifo:a=1,las:b=2,c=x:y", "srtf"], ["fifo:a=1", "las:b=2,c=x:y", "srtf"]),
        (["fifo, las ,"], ["fifo", "las"]),
    ],
)
def test_commas_in_options_do_not_split(texts, names):
    assert options.policies(texts) == names


@given(st.lists(
    st.tuples(st.sampled_from(["fifo", "pal-64"]),
              st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "x:y", "true"]))),
    min_size=1, max_size=4,
))  # fmt: skip
def test_what_is_joined_is_split(policies):
    texts = [name + (":" if options else "") + ",".join(f"{k}={v}" for k, v in options.items())
             for name, options in policies]  # fmt: skip
    assert options.policies([",".join(texts)]) == texts


# --- terminals and signals --------------------------------------------------------------------


def command(prelude, *arguments, **options):
    root = str(Path(__file__).parents[2])
    code = f"""
from optsched.rollout import registry
make = "tests.support.builders.small_rollouts:make_first"
registry.ENTRIES += (registry.Entry("first", "", "", make),)
{prelude}
from optsched.cli.main import main; main()
"""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": root}, text=True, **options,
    )  # fmt: skip


def test_a_terminal_sees_progress_on_stderr_only(scenario):
    ours, theirs = pty.openpty()
    process = command("", "rollout", scenario, "--policy", "first:pause_s=0.1",
                      stdout=subprocess.PIPE, stderr=theirs)  # fmt: skip
    stdout, _ = process.communicate(timeout=600)
    os.close(theirs)
    progress = os.read(ours, 100_000).decode()
    os.close(ours)
    assert process.returncode == 0
    assert "first:pause_s=0.1 on mine" in progress
    assert "%" in progress
    assert "jct_mean_s" in stdout
    assert "on mine" not in stdout


def test_ctrl_c_is_130(scenario, tmp_path):
    prelude = """
import signal, sys, time
from optsched.rollout.engine import engine
signal.signal(signal.SIGINT, signal.default_int_handler)
def slow(self):
    print("ready", file=sys.stderr, flush=True)
    time.sleep(600)
engine.Engine.step = slow
"""
    pipe = subprocess.PIPE
    process = command(prelude, "rollout", scenario, "--policy", "first", "--output",
                      tmp_path / "out", stdout=pipe, stderr=pipe)  # fmt: skip
    assert process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=600)
    assert (process.returncode, stdout, stderr) == (130, "", "interrupted\n")
