"""No code from data: files that name code are refused, or what they name is a word and no more."""

import hashlib
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.documents.faults import InstanceError
from optsched.plugins.errors import PluginError
from optsched.rollout import TraceSource
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.settings import SETTINGS
from tests.plugins.test_own_policies import plugin_folder as plugin_folder
from tests.support.builders.small_rollouts import trace

EVIL = """
open("it-ran", "w").close()
def read(text, name, origin): raise SystemExit("read")
class Evil:
    name = "evil"
    def decide(self, view): raise SystemExit("decided")
def solve(instance, search): raise SystemExit("solved")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("evil.py").write_text(EVIL)
    yield tmp_path
    assert not Path("it-ran").exists()


def run(*arguments):
    ran = CliRunner().invoke(app, list(arguments))
    assert ran.exception is None or isinstance(ran.exception, SystemExit)
    return ran


def scenario_file(**changes):
    document = json.loads(optsched.read_scenario("philly-small").to_json())
    document["trace"] = {"generator": "philly-atc19", "jobs": 3, **changes.pop("trace", {})}
    Path("s.json").write_text(json.dumps(document | changes))
    return "s.json"


@pytest.mark.parametrize("name", ["evil:Evil", "evil.py:Evil", "./evil.py:Evil", "evil:Evil:a=1"])
@pytest.mark.parametrize("command", ["rollout", "compare", "frontier"])
def test_a_scenario_that_names_code_is_refused(folder, name, command):
    source = scenario_file(policies=["fifo", name])
    options = ("--parameter", "epoch_s", "--values", "60") if command == "frontier" else ()
    ran = run(command, source, *options)
    assert ran.exit_code == 2
    assert f"policies.1: '{name}' names code, which no file may do" in ran.stderr
    assert "if you trust it, give --policy" in ran.stderr


def test_a_scenario_with_a_reader_of_others_is_refused(folder):
    Path("jobs.txt").write_text("1\n")
    source = scenario_file(trace={"generator": None, "jobs": None, "file": "jobs.txt",
                                  "format": "evil.py:read"})  # fmt: skip
    ran = run("rollout", source)
    assert ran.exit_code == 2
    assert "trace.format: 'evil.py:read' names code, which no file may do" in ran.stderr


def test_nor_may_scenarios_from_python_or_changes_name_it(folder):
    where = optsched.read_scenario("philly-small")
    named = where.model_copy(update={"policies": ("evil:Evil",)})
    with pytest.raises(PluginError, match="names code, which no file may do"):
        optsched.compare(named, trace=trace())
    with pytest.raises(PluginError, match="names code, which no file may do"):
        optsched.frontier(named, "epoch_s", [60.0])
    Path("jobs.txt").write_text("1\n")
    source = TraceSource(file="jobs.txt", format="evil:read")
    with pytest.raises(PluginError, match=r"trace\.format: 'evil:read' names code"):
        optsched.simulate(where.model_copy(update={"trace": source}))


def test_a_scenario_does_not_choose_among_installed_plugins(folder, plugin_folder):
    source = scenario_file(policies=["fifo", "smallest"])
    assert read_scenario(source).policies == ("fifo", "smallest")
    ran = run("compare", source)
    assert ran.exit_code == 2
    assert "policies.1: 'smallest' is of a plug-in; if you trust the file, give" in ran.stderr
    ran = run("compare", source, "--policy", "fifo,smallest")
    assert ran.exit_code == 0


@pytest.mark.parametrize("key", ["method", "policy", "format", "evil.py:solve"])
def test_an_instance_or_a_trace_has_no_place_for_it(folder, key):
    document = json.loads(optsched.read("boa/hand").to_json())
    Path("i.json").write_text(json.dumps(document | {key: "evil.py:solve"}))
    with pytest.raises(InstanceError, match="unknown"):
        optsched.read("i.json")
    optsched.write(trace(2), "t.json") if hasattr(trace(2), "to_json") else _write(trace(2))
    document = json.loads(Path("t.json").read_text())
    Path("t.json").write_text(json.dumps(document | {key: "evil.py:read"}))
    assert run("trace", "show", "t.json").exit_code == 2


def _write(jobs):
    from optsched.traces import write_trace

    write_trace(jobs, "t.json")


def test_the_method_of_a_result_is_a_word_that_is_never_looked_up(folder):
    instance = optsched.read("boa/hand")
    result = optsched.solve(instance).model_copy(update={"method": "evil.py:solve"})
    optsched.write(result, "r.json")
    assert run("verify", "boa/hand", "r.json").exit_code == 0
    assert run("check", "boa/hand", "r.json").exit_code == 0
    assert run("explain", "r.json").exit_code == 0
    assert run("solve", "boa/hand", "--start", "r.json", "--no-compare").exit_code == 0
    assert run("report", "r.json", "-o", "r.html").exit_code == 0
    assert (
        "This command runs the code of evil.py:solve, which is not in" in Path("r.html").read_text()
    )


def test_the_methods_of_a_frontier_are_words_too(folder):
    curve = optsched.frontier("boa/hand", budgets=[2, 3])
    points = [p.model_copy(update={"method": "evil.py:solve"}) for p in curve.points]
    named = {"methods": ("evil.py:solve",), "points": tuple(points),
             "origins": {"evil.py:solve": "file evil.py"}}  # fmt: skip
    optsched.write(curve.model_copy(update=named), "f.json")
    assert run("verify", "boa/hand", "f.json").exit_code == 0
    assert run("report", "f.json", "-o", "f.html").exit_code == 0


def test_a_checkpoint_or_a_summary_of_code_does_not_run_it(folder, monkeypatch):
    told = []

    def stop(share):  # the second time: a checkpoint is there then
        told.append(share)
        if len(told) > 1:
            raise KeyboardInterrupt

    monkeypatch.setitem(vars(SETTINGS), "save_every_s", -1.0)
    monkeypatch.setitem(vars(SETTINGS), "tell_every_s", 0.001)
    with pytest.raises(KeyboardInterrupt):
        optsched.simulate("philly-small", output="out", progress=stop)
    head, body = Path("out/checkpoint.json").read_bytes().split(b"\n", 1)
    assert body.count(b'"fifo"') == 1
    body = body.replace(b'"fifo"', b'"evil.py:Evil"')

    stated = json.loads(head.rstrip(b",") + b"}") | {"sha256": hashlib.sha256(body).hexdigest()}
    Path("out/checkpoint.json").write_bytes(json.dumps(stated)[:-1].encode() + b",\n" + body)
    ran = run("rollout", "philly-small", "--output", "out", "--resume")
    assert ran.exit_code == 2
    assert "of another rollout: its policy is evil.py:Evil, not fifo" in ran.stderr
    optsched.simulate("philly-small", trace=trace(5), output="done")
    summary = json.loads(Path("done/summary.json").read_text())
    Path("done/summary.json").write_text(json.dumps(summary | {"policy": "evil.py:Evil"}))
    assert run("report", "done", "-o", "r.html").exit_code == 0
    ran = run("rollout", "philly-small", "--output", "done")
    assert "holds a rollout of policy 'evil.py:Evil', not 'fifo'" in ran.stderr
