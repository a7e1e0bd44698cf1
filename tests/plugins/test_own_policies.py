"""Policies of others: by file, module and entry point; from the shell and from Python."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import optsched
from optsched.cli.main import app
from optsched.cli.options import policies as split_policies
from optsched.plugins.errors import PluginError
from optsched.registry import UnknownNameError
from optsched.rollout import InvalidDecision, RestorablePolicy
from optsched.rollout.policy_options import OptionError
from optsched.rollout.registry import ENTRIES, label_of, make, named
from optsched.rollout.settings import SETTINGS
from tests.support.builders.small_rollouts import FirstFit, scenario, trace

SOURCE = '''
"""A policy of a user."""
from optsched.rollout import Decision, RestorablePolicy

ORDER = {order}

class Smallest(RestorablePolicy):
    """Start small gangs first.

    More words.
    """

    def __init__(self, scenario, seed, *, patience_s: "float" = 3600.0, is_strict=False):
        self.patience_us, self.is_strict = 1e6 * patience_s, is_strict

    def decide(self, view):
        free = [gpu for node in range(view.cluster.nodes) for gpu in view.free_gpus(node)]
        place = {{}}
        for job in sorted(view.pending.tolist(), key=lambda job: (ORDER * view.demand(job), job)):
            gang = view.demand(job)
            if gang <= len(free):
                place[job], free = free[:gang], free[gang:]
        return Decision(place=place)

class NoName:
    def decide(self, view):
        return Decision()

class Returns:
    def __init__(self, what: int | None = None):
        self.what = what
    def decide(self, view):
        if self.what == 0:
            return {{}}[view.now_us]
        return {{1: Decision(place=[(0, (0,))]), 2: Decision(stop=["0"])}}.get(self.what)

class Grabs:
    def decide(self, view):
        return Decision(place={{int(job): [0] for job in view.pending}})

def make_it(seed: int):
    return Smallest(None, seed)

ready_made = Smallest(None, 0)
not_a_policy = 7
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with a policy in own.py."""
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(SOURCE.format(order=1))
    return tmp_path


def jct(policy, **options):
    return optsched.simulate(scenario(), policy, trace=trace(), **options).metrics["jct_mean_s"]


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_a_policy_in_a_file_is_compared_by_its_name(folder):
    names = ["fifo", "own.py:Smallest", "own.py:Smallest:patience_s=5,is_strict=yes"]
    compared = optsched.compare(scenario(), names, trace=trace())
    assert list(compared.frame().index) == names
    ran = run("compare", "philly-small", "--set", "trace.jobs=20", "--policy", ",".join(names))
    assert ran.exit_code == 0, ran.output
    assert "own.py:Smallest" in ran.stdout
    (record,) = {run.record.origin for run in compared.rollouts["own.py:Smallest"]}
    assert record.startswith("file own.py, SHA-256 ")
    assert compared.rollouts["fifo"][0].record.origin == ""


@pytest.mark.parametrize("policy", ["own.py:make_it", "own.py:ready_made", "own:Smallest"])
def test_functions_objects_and_modules_name_policies_too(folder, monkeypatch, policy):
    monkeypatch.syspath_prepend(folder)
    assert jct(policy) == jct("own.py:Smallest")
    sys.modules.pop("own", None)


def test_classes_and_objects_are_policies_in_python(folder):
    class Mine(FirstFit):
        name = "mine"

        def __init__(self, seed):
            super().__init__(seed)

    compared = optsched.compare(scenario(), [Mine, FirstFit(), "fifo"], trace=trace(), seeds=2)
    assert list(compared.rollouts) == ["mine", "first-fit", "fifo"]
    assert label_of(Mine) == "mine"
    assert make(Mine, scenario(), 3).random.random() == FirstFit(3).random.random()


def test_options_are_parameters_with_their_types_and_defaults(folder):
    with pytest.raises(
        OptionError, match="there is no option 'patience'; did you mean 'patience_s"
    ):
        make("own.py:Smallest:patience=1", scenario())
    with pytest.raises(OptionError, match="option 'is_strict': expected true or false, found"):
        make("own.py:Smallest:is_strict=maybe", scenario())
    made = make("own.py:Smallest:patience_s=2,is_strict=no", scenario())
    assert (made.patience_us, made.is_strict) == (2e6, False)
    shown = run("policies", "own.py:Smallest").stdout
    assert "Start small gangs first." in shown
    assert "patience_s  number         3600.0" in shown
    assert "is_strict   true or false  false" in shown


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ("gone.py:A", "'gone.py:A' (file gone.py): there is no file gone.py"),
        (
            "gone:A",
            "ModuleNotFoundError: No module named 'gone'; of a file, give its path: gone.py",
        ),
        ("own.py:Smalest", "there is no 'Smalest' in it; did you mean 'Smallest'?"),
        ("own.py", "policy 'own.py': name the class in it, too: own.py:Name"),
        ("own.py:not_a_policy", "expected a class with decide(view), an object of one, or a fun"),
        ("own.py:RestorablePolicy", "class RestorablePolicy has no method decide(view)"),
        ("syntax.py:A", "it cannot be imported: SyntaxError: "),
        ("raises.py:A", "it cannot be imported: ZeroDivisionError: division by zero ("),
        ("leaves.py:A", "it cannot be imported: SystemExit: 3"),
        ("needs.py:A", "No module named 'nothing_of_the_kind'"),
        ("own.py:Returns:what=0", "policy 'own.py:Returns:what=0': it failed: KeyError: 0 ("),
        ("own.py:Returns", "decide() of policy 'Returns' returned nothing; expected an optsched.r"),
        ("own.py:Returns:what=1", "types: expected Decision(place={job: [GPU, ...]}, stop=[job, "),
        ("own.py:Returns:what=2", "all of them whole numbers; '<=' not supported between"),
    ],
)
def test_what_is_wrong_with_a_policy_is_told_in_one_line(folder, policy, text):
    Path("syntax.py").write_text("class A\n")
    Path("raises.py").write_text("1 / 0\n")
    Path("leaves.py").write_text("raise SystemExit(3)\n")
    Path("needs.py").write_text("import nothing_of_the_kind\n")
    ran = run("rollout", "philly-small", "--set", "trace.jobs=3", "--policy", policy)
    assert ran.exit_code == 2
    assert text in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_policy_without_a_name_gets_that_of_its_class(folder):
    assert make("own.py:NoName", scenario()).name == "NoName"

    class Base(RestorablePolicy):
        pass

    class Derived(Base):
        pass

    class Named(RestorablePolicy):
        name = "other"

    class Renamed(Named):
        pass

    assert (Base.name, Derived.name, Renamed.name) == ("Base", "Derived", "other")


def test_a_changed_file_is_read_anew_with_its_neighbours(folder):
    first = jct("own.py:Smallest")
    Path("own.py").write_text(SOURCE.format(order=-1))
    second = jct("own.py:Smallest")
    Path("order.py").write_text("ORDER = 1\n")
    source = SOURCE.format(order=-1).replace("ORDER = -1", "import order\nORDER = order.ORDER")
    Path("own.py").write_text(source)
    third = jct("own.py:Smallest")
    Path("order.py").write_text("ORDER = -1  # largest first\n")
    assert first != second
    assert (third, jct("own.py:Smallest")) == (first, second)


def test_a_cache_of_points_does_not_answer_for_a_changed_file(folder):
    options = {"methods": ["own.py:Smallest"], "cache": "points", "executor": 1}
    sweep = (scenario(), "epoch_s", [60.0, 90.0])
    told = []
    for order in (1, 1, -1):
        Path("own.py").write_text(SOURCE.format(order=order))
        curve = optsched.frontier(*sweep, trace=trace(), **options)
        told.append([point.objective for point in curve.points])
        assert curve.origins["own.py:Smallest"].startswith("file own.py, SHA-256 ")
        assert "file own.py" in curve.summary()["own.py:Smallest"]
    assert told[0] == told[1] != told[2]
    assert len(list(Path("points").rglob("*.json"))) == 4


def test_processes_load_the_file_themselves(folder):
    arguments = ("compare", "philly-small", "--set", "trace.jobs=10", "--policy",
                 "fifo,own.py:Smallest")  # fmt: skip
    assert run(*arguments, "--processes", "2").stdout == run(*arguments).stdout


def test_resume_asks_for_the_same_policy_with_the_same_source(folder, monkeypatch):
    told = []

    def stop(share):  # the second time: a checkpoint is there then
        told.append(share)
        if len(told) > 1:
            raise KeyboardInterrupt

    options = {"trace": trace(), "output": "out"}
    whole = optsched.simulate(scenario(), "own.py:Smallest", trace=trace(), output="whole")
    with monkeypatch.context() as patch:
        patch.setitem(vars(SETTINGS), "save_every_s", -1.0)
        patch.setitem(vars(SETTINGS), "tell_every_s", 0.001)
        with pytest.raises(KeyboardInterrupt):
            optsched.simulate(scenario(), "own.py:Smallest", progress=stop, **options)
    text = Path("own.py").read_text()
    Path("own.py").write_text(text + "# another\n")
    with pytest.raises(ValueError, match="its policy's source differs"):
        optsched.simulate(scenario(), "own.py:Smallest", resume=True, **options)
    with pytest.raises(ValueError, match=r"its policy is own.py:Smallest, not fifo"):
        optsched.simulate(scenario(), "fifo", resume=True, **options)
    Path("own.py").write_text(text)
    again = optsched.simulate(scenario(), "own.py:Smallest", resume=True, **options)
    assert again.metrics == whole.metrics
    summary = json.loads(Path("out/summary.json").read_text())
    assert summary["policy_origin"].startswith("file own.py, SHA-256 ")
    assert Path("out/summary.json").read_bytes() == Path("whole/summary.json").read_bytes()
    assert "file own.py, SHA-256 " in report_of("out")


def report_of(folder):
    ran = run("report", folder, "-o", "report.html")
    assert ran.exit_code == 0, ran.output
    return Path("report.html").read_text()


def test_names_and_options_are_told_apart():
    assert split_policies(["a.py:B:x=1,y=2,fifo:backfill=no,c:D"]) == [
        "a.py:B:x=1,y=2", "fifo:backfill=no", "c:D",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="option 'x=1' follows no policy:"):
        split_policies(["a.py:B,x=1"])
    assert named(r"C:\mine\a.py:B:x=1")[1] == "x=1"
    assert named(r"C:\mine\a.py:B:x=1")[0].plugin.source == r"C:\mine\a.py"
    assert named("fifo:backfill")[0] in ENTRIES  # ours come first
    with pytest.raises(UnknownNameError, match="did you mean 'fifo'"):
        named("fifa")


def test_nothing_of_others_is_imported_before_it_is_asked_for(plugin_folder):
    code = """if True:
        import sys, optsched.cli.main
        from optsched.rollout.registry import named
        named("fifo"), named("broken")
        print({"broken_one", "clusterlab_own"} & {*sys.modules})
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(plugin_folder), *sys.path])}
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout == "set()\n"


@pytest.fixture
def plugin_folder(tmp_path, monkeypatch):
    """Installed packages: two that work, some that do not."""
    write_distribution(
        tmp_path, "clusterlab", "1.2",
        {"optsched.policies": {
            "smallest": "clusterlab_own:Smallest", "fifo": "clusterlab_own:Smallest",
            "broken": "broken_one:A", "lacks": "clusterlab_own:Gone", "both": "clusterlab_own:A",
            "flat": "clusterlab_own",
        }},
    )  # fmt: skip
    write_distribution(tmp_path, "other", "0.1", {"optsched.policies": {"both": "broken_one:B"}})
    (tmp_path / "clusterlab_own.py").write_text(SOURCE.format(order=1))
    (tmp_path / "broken_one.py").write_text("import nothing_of_the_kind\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("clusterlab_own", None)


def write_distribution(folder, name, version, groups):
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        text
        for group, points in groups.items()
        for text in (f"[{group}]", *(f"{key} = {value}" for key, value in points.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")  # fmt: skip


def test_policies_of_installed_packages_are_listed_and_run_by_name(plugin_folder):
    assert jct("smallest:patience_s=5") == jct("clusterlab_own:Smallest")
    origin = optsched.simulate(scenario(), "smallest", trace=trace()).record.origin
    assert origin.startswith("clusterlab 1.2, entry point 'smallest' of optsched.policies, SHA-256")
    listed = " ".join(run("policies").stdout.split())
    assert "Start small gangs first." in listed
    assert "clusterlab 1.2" in listed
    assert make("fifo", scenario()).__class__.__module__.startswith("optsched.")


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ("broken", "No module named 'nothing_of_the_kind'"),
        ("lacks", "there is no 'Gone' in it"),
        ("both", "other 0.1 has the same name; use clusterlab_own:A"),
        ("flat", "expected 'module:Name', found 'clusterlab_own'"),
    ],
)
def test_a_broken_plugin_is_told_with_its_distribution_and_entry_point(plugin_folder, policy, text):
    with pytest.raises(PluginError) as told:
        make(policy, scenario())
    assert text in str(told.value)
    assert f"'{policy}' (clusterlab 1.2, entry point '{policy}' of optsched.policies)" in str(
        told.value
    )
    assert run("policies").exit_code == 0


def test_a_module_that_was_changed_since_it_was_imported_is_refused(plugin_folder):
    jct("smallest")
    (plugin_folder / "clusterlab_own.py").write_text(SOURCE.format(order=-1))
    with pytest.raises(PluginError, match="its files have changed since it was imported"):
        jct("smallest")


def test_a_rule_that_an_own_policy_breaks_is_named(folder):
    words = (
        r"^policy 'own.py:Returns' breaks a rule at 0 s, no-decision: decide\(\) of policy "
        r"'Returns' .*; `optsched policies own.py:Returns --check` tries all rules$"
    )
    with pytest.raises(InvalidDecision, match=words):
        jct("own.py:Returns")


def test_a_broken_rule_is_told_with_policy_moment_and_advice_by_workers_too(folder):
    """It could not be made again in another process: a worker seemed to have died of it."""
    base = ("compare", "philly-small", "--set", "trace.jobs=40")
    shown = run(*base, "--policy", "fifo,own.py:Grabs", "--processes", "2")
    assert (shown.exit_code, shown.stdout) == (2, "")
    assert re.fullmatch(
        r"error: policy 'own.py:Grabs' breaks a rule at [\d,.]+ s, overcommit: job \d+ \('\d+'\) "
        r"gets GPU 0, which another job holds; begin with view.free_gpus.* tries all rules "
        r"\(own.py:Grabs: seed 0\)\n",
        shown.stderr,
    )
