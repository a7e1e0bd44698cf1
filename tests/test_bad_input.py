"""Bad input: one clear message with every fault and its path, never another exception."""

import copy
import json
import math
import os
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import optsched
from optsched.boa import BoaInstance
from optsched.cli.main import app
from optsched.instance import InstanceError, find
from optsched.results.result_files import read_result

HAND = json.loads(find("boa/hand").read_text())
TABLE = ("classes", 0, "phases", 0, "speedup")
DOCUMENTS = {
    name: json.loads(find(name).read_text())
    for name in ("boa/hand", "boa/epew-figure1", "boa/stress")
}
REMOVED = object()


def edited(document, changes):
    """Return a copy of a document in which the values at some paths are replaced or removed."""
    document = copy.deepcopy(document)
    for path, value in changes.items():
        place = document
        for part in path[:-1]:
            place = place[part]
        if value is REMOVED:
            del place[path[-1]]
        else:
            place[path[-1]] = value
    return document


def faults(document):
    with pytest.raises(InstanceError) as error:
        BoaInstance.from_document(document)
    return error.value.faults


def run(*arguments):
    """Run a command that must fail with one message on stderr and without results on stdout."""
    done = CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(a) for a in arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert "Traceback" not in done.output
    return done


def refused(*arguments, code=2):
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (code, "")
    return done.stderr


# --- one fault in a document ------------------------------------------------------------------

GPUS = (*TABLE, "gpus")
SPEEDUP = (*TABLE, "speedup")


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (("budget_gpus",), "24", 'budget_gpus: expected a number, found "24"'),
        (("budget_gpus",), True, "budget_gpus: expected a number, found true"),
        (("budget_gpus",), [1, 2], "budget_gpus: expected a number, found a list of 2"),
        (("budget_gpus",), {}, "budget_gpus: expected a number, found an object"),
        (("budget_gpus",), None, "budget_gpus: missing: give one of budget_gpus, budget_usd_per_h"),
        (("budget_gpus",), REMOVED, "budget_gpus: missing: give one of budget_gpus"),
        (("budget_gpus",), math.nan, "budget_gpus: expected a finite number, found NaN"),
        (("budget_gpus",), math.inf, "budget_gpus: expected a finite number, found Infinity"),
        (("budget_gpus",), -math.inf, "budget_gpus: expected a finite number, found -Infinity"),
        (("budget_gpus",), 0, "budget_gpus: must be at least 1e-09, found 0"),
        (("budget_gpus",), -3.5, "budget_gpus: must be at least 1e-09, found -3.5"),
        (("budget_gpus",), 1e308, "budget_gpus: must be at most 1e+12, found 1e+308"),
        (("budget_gpus",), 10**400, "budget_gpus: expected a finite number, found a whole number"),
        (("target_mean_jct_s",), 3, "target_mean_jct_s: cannot stand beside budget_gpus: give"),
        (("budget_gpu",), 3, "budget_gpu: unknown key; did you mean 'budget_gpus'?"),
        (("surprise",), 3, "surprise: unknown key; known: budget_gpus, budget_usd_per_h, classes,"),
        (("rescale_s",), 3, "rescale_s: unknown key; known: budget_gpus,"),
        (("a key\n",), 3, '["a key\\n"]: unknown key; known: '),
        (("schema",), "optsched/boa/2", "schema: expected 'optsched/boa/1', found"),
        (("name",), 7, "name: expected a string, found 7"),
        (("name",), "\ud800", "document: holds a lone surrogate: not valid text"),
        (
            ("widths",),
            "mixd",
            "widths: expected 'integer', 'mixed' or 'continuous', found \"mixd\"",
        ),
        (("classes",), [], "classes: must not be empty"),
        (("classes",), {}, "classes: expected a list, found an object"),
        (("classes",), REMOVED, "classes: missing"),
        (("classes", 1), 3, "classes[1]: expected an object, found 3"),
        (("classes", 1, "id"), "A", 'classes[1].id: "A" is already the id of classes[0]'),
        (("classes", 1, "id"), "", "classes[1].id: must not be empty"),
        (("classes", 1, "id"), REMOVED, "classes[1].id: missing"),
        (
            ("classes", 1, "rescale"),
            3,
            "classes[1].rescale: unknown key; did you mean 'rescale_s'?",
        ),
        (("classes", 1, "rescale_s"), -1, "classes[1].rescale_s: must be at least 0, found -1"),
        (("classes", 0, "arrival_rate_per_h"), -3, "arrival_rate_per_h: must be at least 0, found"),
        (("classes", 0, "arrival_rate_per_h"), math.nan, "expected a finite number, found NaN"),
        (("classes", 0, "phases"), [], "classes[0].phases: must not be empty"),
        (
            ("classes", 0, "phases", 0, "work_gpu_s"),
            0,
            "phases[0].work_gpu_s: must be at least 1e-09",
        ),
        (TABLE, "fast", 'classes[0].phases[0].speedup: expected an object, found "fast"'),
        (
            (*TABLE, "kind"),
            "tabel",
            "speedup.kind: expected one of 'amdahl', 'by-type', 'power', 'table', found",
        ),
        (
            (*TABLE, "kind"),
            {},
            "speedup.kind: expected one of 'amdahl', 'by-type', 'power', 'table', found an",
        ),
        (
            (*TABLE, "kind"),
            REMOVED,
            "speedup.kind: missing: give one of 'amdahl', 'by-type', 'power', 'table'",
        ),
        ((*TABLE, "gpu"), 3, "speedup.gpu: unknown key; did you mean 'gpus'?"),
        ((*TABLE, "table"), 3, "speedup.table: unknown key; known: gpus, kind, speedup"),
        (GPUS, [1, 4, 2], "speedup.gpus[2]: 2 after 4: widths must ascend"),
        (GPUS, [1, 2], "classes[0].phases[0].speedup.speedup: has 3 values for 2 widths in gpus"),
        (GPUS, [1, 1, 2], "speedup.gpus[1]: 1 GPUs have two speedups, 1 and 1.6: keep one"),
        (GPUS, "1, 2, 4", 'speedup.gpus: expected a list, found "1, 2, 4"'),
        ((*GPUS, 1), 2.5, "speedup.gpus[1]: expected a whole number, found 2.5"),
        ((*GPUS, 1), "2", 'speedup.gpus[1]: expected a whole number, found "2"'),
        ((*GPUS, 2), 10**6, "speedup.gpus[2]: must be at most 100000, found 1000000"),
        ((*GPUS, 0), 0, "speedup.gpus[0]: must be at least 1, found 0"),
        ((*SPEEDUP, 1), -2, "speedup.speedup[1]: must be at least 1e-09, found -2"),
        ((*SPEEDUP, 1), None, "speedup.speedup[1]: expected a number, found null"),
    ],
)
def test_one_fault_is_one_line_with_its_path(path, value, fault):
    told = faults(edited(HAND, {path: value}))
    assert len(told) == 1
    assert fault in told[0]


def test_contradictions_between_fields():
    stopped = {("classes", i, "arrival_rate_per_h"): 0 for i in (0, 1)}
    assert faults(edited(HAND, stopped)) == [
        "classes: no jobs arrive: one arrival_rate_per_h must be positive"
    ]
    unpriced = {("budget_gpus",): REMOVED, ("budget_usd_per_h",): 3}
    assert faults(edited(HAND, unpriced)) == [
        "price_usd_per_gpu_h: missing: budget_usd_per_h needs it"
    ]
    rescaled = edited(HAND, {("widths",): "continuous", ("classes", 1, "rescale_s"): 3})
    assert "classes[1].rescale_s: must be 0 where widths are 'continuous'" in faults(rescaled)[0]


def test_all_faults_at_once_in_the_order_of_the_document():
    changes = {
        ("budget_gpus",): REMOVED,
        ("budget_gpu",): 24,
        ("widths",): "mixd",
        ("classes", 0, "arrival_rate_per_h"): -1,
        (*GPUS, 2): 1,
        (*SPEEDUP, 1): math.nan,
        ("classes", 1, "id"): "A",
        ("classes", 1, "phases", 0, "speedup", "kind"): "tabel",
        ("classes", 1, "phases", 0, "work"): 1,
    }
    paths = [fault.split(": ")[0] for fault in faults(edited(HAND, changes))]
    assert paths == [
        "budget_gpu",
        "budget_gpus",
        "classes[0].arrival_rate_per_h",
        "classes[0].phases[0].speedup.gpus[2]",
        "classes[0].phases[0].speedup.speedup[1]",
        "classes[1].id",
        "classes[1].phases[0].speedup.kind",
        "classes[1].phases[0].work",
        "widths",
    ]


def test_paths_are_in_the_order_of_numbers():
    document = edited(HAND, {})
    document["classes"] = [edited(HAND["classes"][0], {("id",): f"c{i}"}) for i in range(12)]
    for i in (10, 2):
        document["classes"][i]["rescale_s"] = -1
    paths = [fault.split(":")[0] for fault in faults(document)]
    assert paths == ["classes[2].rescale_s", "classes[10].rescale_s"]


@pytest.mark.parametrize("document", [[], [1, 2], 3, "text", None, True, 1.5])
def test_what_is_no_object_is_said_to_be_none(document):
    assert faults(document)[0].startswith("document: expected an object, found ")


def nested(depth):
    document = []
    for _ in range(depth):
        document = [document]
    return document


@pytest.mark.parametrize("depth", [300, 5000])
def test_deep_nesting(depth):
    assert faults(edited(HAND, {("name",): nested(depth)})) == ["document: nested too deeply"]


def test_values_that_json_does_not_know():
    assert faults(edited(HAND, {("name",): {1, 2}})) == [
        "document: expected what JSON knows, found set"
    ]
    assert "digits" in faults(edited(HAND, {("budget_gpus",): 10**5000}))[0]


# --- files ------------------------------------------------------------------------------------

DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1, column 1: the file is empty; expected JSON"),
        (b" \n", "the file is empty; expected JSON"),
        (json.dumps(HAND)[:200].encode(), "(the file ends too early: is it truncated?)"),
        (b'{"schema": "optsched/bo', "(the file ends too early: is it truncated?)"),
        (b'{\n  "schema": "optsched/boa/1",\n}', "line 3, column 1: "),
        (b"\xff\xfe{\x00}\x00", "it is UTF-16, as PowerShell's > writes it: save it as UTF-8"),
        (b"# mine\nschema: optsched/boa/1\n", "the name of a YAML file ends in .yaml or .yml"),
        (b"\x89PNG\r\n\x1a\n\0\0", "byte 0 is not UTF-8 text; expected a JSON file"),
        (bytes(range(1, 128)), "line 1, column 1: Expecting value; expected JSON"),
        (b"[1, 2, 3]", "document: expected an object, found a list of 3"),
        (b"17", "document: expected an object, found 17"),
        (b'"boa"', 'document: expected an object, found "boa"'),
        (b"null", "document: expected an object, found null"),
        (b"{}", 'schema: missing: expected for example "schema": "optsched/boa/1"'),
        (b'{"shema": "optsched/boa/1"}', "\"optsched/boa/1\", found 'shema'"),
        (b'{"schema": "optsched/bao/1"}', "is unknown; did you mean 'optsched/boa/1'?"),
        (b'{"schema": "nothing"}', 'schema: "nothing" is unknown; known: optsched/boa/1'),
        (b'{"schema": []}', "schema: a list of 0 is unknown; known: optsched/boa/1"),
        (b'{"schema": "optsched/result/1"}', "schema: this is a result; expected an instance"),
        (DEEP.encode(), "nested too deeply"),
        (b'{"schema": "optsched/boa/1", "name": ' + DEEP[99_500:100_500].encode() + b"}", "nested"),
        (b'{"schema": "optsched/boa/1", "budget_gpus": 1e400}', "budget_gpus: expected a finite"),
        (b'{"schema": "optsched/boa/1", "budget_gpus": NaN}', "budget_gpus: expected a finite"),
        (b'{"budget_gpus": ' + b"1" * 400 + b', "schema": "optsched/boa/1"}', "of 1326 bits"),
        (b'{"budget_gpus": ' + b"1" * 5000 + b"}", "a whole number has thousands of digits"),
        (b'{"a": 1, "b": {"c": [{"d": 1, "d": 2}]}, "a": 3}', "a: stands more than once"),
        (b'{"a": 1, "b": {"c": [{"d": 1, "d": 2}]}, "a": 3}', "b.c[0].d: stands more than once"),
    ],
)
def test_files_that_are_no_instance(content, message, tmp_path):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(InstanceError) as error:
        optsched.read(path)
    assert message in str(error.value)
    for arguments in (["solve", path], ["check", "boa/hand", path]):
        assert refused(*arguments).startswith(f"error: {path}: ")


def test_a_byte_order_mark_is_no_fault(tmp_path):
    path = tmp_path / "mark.json"
    path.write_text(json.dumps(HAND), encoding="utf-8-sig")
    assert optsched.read(path) == optsched.read("boa/hand")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("missing.json", "error: missing.json: no such file\n"),
        ("boa/hnd", "there is no file or bundled instance 'boa/hnd'; did you mean 'boa/hand'?"),
        ("MINE.YAML", "error: MINE.YAML: no such file\n"),
        ("cbd-85", "did you mean 'boa/cbd-85'?"),
        ("nothing", "known: boa/cbd-85, "),
        ("../boa/hand", "there is no file or bundled instance '../boa/hand'"),
        ("x" * 5000, "File name too long"),
        (".", "is a folder, expected a JSON file"),
        ("", "the name of the file or bundled instance is empty"),
    ],
)
def test_sources_that_do_not_exist(source, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("solve", "export"):
        assert message in refused(name, source)
    assert "missing.json: no such file" in refused("check", "boa/hand", "missing.json")


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    def denied(path, *_, **options):
        raise PermissionError(13, "Permission denied", str(path))

    path = tmp_path / "secret.json"
    path.write_text("{}")
    monkeypatch.setattr(os, "open", denied)
    assert refused("solve", path) == f"error: {path}: Permission denied\n"


# --- output that cannot be written ------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("", "Is a directory"),
        ("nowhere/result", "No such file or directory"),
        ("file/result", "Not a directory"),
        ("x" * 300, "File name too long"),
    ],
)
def test_output_that_cannot_be_written_is_told_before_the_work(output, reason, tmp_path):
    (tmp_path / "file").write_text("")
    path = f"{tmp_path}/{output}"
    done = run("solve", "boa/hand", "--output", path)
    assert done.exit_code == 2
    assert (done.stdout, done.stderr) == ("", f"error: {path}: {reason}\n")
    for command in (
        ("solve", "boa/hand", "--json", "--output", path),
        ("export", "boa/hand", "--output", path),
        ("report", "no-result.json", "--output", path),
        ("compare", "philly-small", "--output", path),
        ("trace", "generate", "philly-atc19", "--output", path),
        ("trace", "import", "no-file", "--input-format", "philly", "--output", path),
        ("topology", "import", "no-file", "--input-format", "slurm", "--output", path),
    ):
        told = run(*command)
        assert (told.exit_code, told.stdout) == (2, ""), command
        assert told.stderr.startswith(f"error: {path}"), command
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("option", ["--plot", "--output"])
def test_a_frontier_that_cannot_be_written_is_not_swept(option, tmp_path):
    path = tmp_path / "nowhere" / ("f.png" if option == "--plot" else "f.csv")
    told = run("frontier", "boa/hand", "--values", "2,3", option, path)
    assert (told.exit_code, told.stdout) == (2, "")
    assert told.stderr == f"error: {path}: No such file or directory\n"


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        (("compare", "philly-small", "--output", "x.html"), ".json or .csv"),
        (("solve", "boa/hand", "--output", "x.csv"), ".json"),
        (("solve", "boa/hand", "--output", "x.json.gz"), ".json"),
        (("report", "r.json", "--output", "x.pdf"), ".html"),
        (("trace", "generate", "poisson", "--output", "x.csv"), ".json"),
        (("export", "boa/hand", "--output", "x.mps"), ".lp"),
        (("frontier", "boa/hand", "--values", "2,3", "--output", "x"), ".json or .csv"),
    ],
)
def test_a_name_that_says_another_format_is_refused(command, ending, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*command)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"expected a name that ends in {ending}" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(tmp_path, monkeypatch):
    def full(self, *_, **__):
        raise OSError(28, "No space left on device", str(self))

    path = tmp_path / "result.json"
    monkeypatch.setattr(Path, "write_text", full)
    done = run("solve", "boa/hand", "--output", path)
    assert (done.exit_code, done.stderr) == (2, f"error: {path}: No space left on device\n")
    assert "1.151316" in done.stdout


def test_a_file_that_may_not_be_written_stays(tmp_path, monkeypatch):
    path = tmp_path / "result.json"
    path.write_text("mine")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert (
        run("solve", "boa/hand", "--output", path).stderr == f"error: {path}: Permission denied\n"
    )
    assert path.read_text() == "mine"


# --- results ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    return json.loads(optsched.solve(optsched.read("boa/hand")).to_json())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({("schema",): "optsched/boa/1"}, 'expected "optsched/result/2", found "optsched/boa/1"'),
        ({("schema",): REMOVED}, 'schema: not a result; expected "optsched/result/2", found none'),
        ({("problem",): "lap"}, 'problem: expected one of boa, pal, eaco, sia, found "lap"'),
        ({("problem",): []}, "problem: expected one of boa, pal, eaco, sia, found a list of 0"),
        ({("problem",): REMOVED}, "problem: expected one of boa, pal, eaco, sia, found none"),
        ({("objective_unit",): REMOVED}, "objective_unit: missing"),
        ({("objectiv",): 3}, "objectiv: unknown key; did you mean 'objective'?"),
        ({("objective",): "much"}, 'objective: expected a number, found "much"'),
        (
            {("status",): "fine"},
            "status: expected 'optimal', 'unverified', 'feasible', 'infeasible' or 'error'",
        ),
        ({("plan",): 3}, "plan: expected an object, found 3"),
        ({("plan", "clases"): []}, "plan.clases: unknown key; did you mean 'classes'?"),
        ({("plan", "classes", 0, "id"): REMOVED}, "plan.classes[0].id: missing"),
        (
            {("plan", "classes", 1, "sequences", 0, "gpus", 0): "two"},
            'plan.classes[1].sequences[0].gpus[0]: expected a number, found "two"',
        ),
        ({("certificate", "price"): -1}, "certificate.price: must be at least 0, found -1"),
        ({("certificate", "priced_total"): "12x"}, "certificate.priced_total: expected "),
        ({("certificate", "pric"): 1}, "certificate.pric: unknown key; did you mean 'price'?"),
    ],
)
def test_results_with_a_fault(changes, message, result, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(edited(result, changes)))
    with pytest.raises(InstanceError) as error:
        read_result(path)
    assert [message in fault for fault in error.value.faults] == [True]
    for name in ("check", "verify"):
        assert message in refused(name, "boa/hand", path)


def test_all_faults_of_a_result_at_once(result, tmp_path):
    path = tmp_path / "result.json"
    changes = {
        ("plan", "classes", 0, "id"): 3,
        ("certificate", "kind"): "none",
        ("seconds",): REMOVED,
    }
    path.write_text(json.dumps(edited(result, changes)))
    with pytest.raises(InstanceError) as error:
        read_result(path)
    told = [fault.split(":")[0] for fault in error.value.faults]
    assert told == ["certificate.kind", "plan.classes[0].id", "seconds"]


# --- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "exat"], "there is no boa method 'exat'; did you mean 'exact'?"),
        (["--method", "zzz"], "there is no boa method 'zzz'; known: exact, milp, "),
        (["--time-limit", "-1"], "the time limit must be at least 0 s, not -1.0"),
        (["--time-limit", "nan"], "the time limit must be at least 0 s, not nan"),
        (["--time-limit", "soon"], "--time-limit soon: expected a number (SECONDS)"),
        (["--gap", "2"], "the gap must be in [0, 1), for example 0.01 for one per cent, not 2.0"),
        (["--gap", "nan"], "the gap must be in [0, 1)"),
        (["--gap", "-0.1"], "the gap must be in [0, 1)"),
        (["--seed", "-1"], "the seed must be in [0, 2**31), not -1"),
        (["--seed", "1.5"], "--seed 1.5: expected a whole number"),
        (["--threads", "0"], "the number of threads must be in [1, 1024], not 0"),
        (["--metod", "exact"], "No such option"),
        (["more"], "unexpected extra argument"),
        (["--set", "budget_gpus"], "--set budget_gpus: expected PATH=VALUE, for example"),
        (["--set", "=3"], "there is no field ''; known: budget_gpus"),
        (["--set", "budget=3"], "there is no field 'budget'; did you mean 'budget_gpus'?"),
        (["--set", "classes.C.id=x"], "'C' is neither an id nor an index of a list of 2; known: A"),
        (["--set", "budget_gpus=much"], 'budget_gpus: expected a number, found "much"'),
        (["--set", "classes.A.rescale_s=5 min"], 'found "5 min"; in seconds it is 300'),
        (["--set", "classes.A.rescale_s=2w"], 'found "2w"; it is in seconds, without a unit'),
        (["--set", "budget_gpus=NaN"], "budget_gpus: expected a finite number, found NaN"),
        (["--set", "budget_gpus=" + "9" * 5000], "budget_gpus: expected a number, found"),
        (["--set", "budget_gpus=" + "[" * 5000], "budget_gpus: expected a number, found"),
        (["--set", "classes=[]"], "classes: must not be empty"),
        (["--set", "classes.*.id=x"], 'classes[1].id: "x" is already the id of classes[0]'),
    ],
)
def test_bad_options(arguments, message):
    assert message in refused("solve", "boa/hand", *arguments)


@pytest.mark.parametrize("name", ["check", "verify", "export"])
def test_bad_changes_for_the_other_commands(name, result, tmp_path):
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result))
    files = ["boa/hand"] if name == "export" else ["boa/hand", path]
    assert "did you mean 'budget_gpus'?" in refused(name, *files, "--set", "budget=3")
    assert "expected PATH=VALUE" in refused(name, *files, "--set", "budget_gpus")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solv", "boa/hand"], "No such command 'solv'. Did you mean 'solve'?"),
        (["solve"], "Missing argument"),
        (["methods", "bao"], "there is no problem 'bao'; did you mean 'boa'?"),
        (["schema", "bao"], "there is no kind of files 'bao'; did you mean 'boa'?"),
        (["schema", "../boa"], "there is no kind of files '../boa'"),
        (["export", "boa/hand", "--format", "xml"], "'xml' is not one of 'lp', 'mps'"),
        (["solve", "boa/epew-figure1", "--method", "milp"], "widths 'integer' or 'mixed'"),
        (["export", "boa/epew-figure1"], "widths 'integer' or 'mixed'"),
    ],
)
def test_bad_commands(arguments, message):
    assert message in refused(*arguments)


def test_a_time_limit_of_zero_is_a_plan_or_a_reason():
    for name in optsched.names():
        done = run("solve", name, "--time-limit", "0", "--no-compare")
        assert done.exit_code in (0, 4)
        assert (
            "time limit" in done.stdout
            or "within the limit" in done.stderr
            or (re.search("status +optimal", done.stdout))
        )


# --- fuzzing ----------------------------------------------------------------------------------

JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.sampled_from([0, -1, 10**400, 2**63, 10**30]),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["table", "amdahl", "mixed", "continuous", "\ud800", "NaN"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.text(max_size=3), st.sampled_from(["kind", "gpus", "id"])),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)


def places(document, path=()):
    """Yield the path of every value in a document."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for part, inner in entries:
        yield (*path, part)
        if isinstance(inner, dict | list):
            yield from places(inner, (*path, part))


@st.composite
def mutated(draw):
    document = copy.deepcopy(DOCUMENTS[draw(st.sampled_from(sorted(DOCUMENTS)))])
    for _ in range(draw(st.integers(1, 4))):
        every = list(places(document))
        if not every:
            break
        *above, last = draw(st.sampled_from(every))
        place = document
        for part in above:
            place = place[part]
        what = draw(st.sampled_from(["replace", "delete", "rename"]))
        if what == "replace":
            place[last] = draw(JUNK)
        else:
            value = place.pop(last)
            if what == "rename" and isinstance(place, dict):
                place[draw(st.one_of(st.just(f"{last}s"), st.text(max_size=4)))] = value
    return document


def outcome(read, document):
    """Return an instance or the lines of an `InstanceError`; anything else is a failure."""
    try:
        return read(document)
    except InstanceError as error:
        return error.faults


@settings(max_examples=max(100, settings().max_examples))
@given(mutated())
def test_a_mutated_document_is_an_instance_or_has_paths(document):
    told = outcome(BoaInstance.from_document, document)
    if isinstance(told, BoaInstance):
        assert BoaInstance.from_document(json.loads(told.to_json())) == told
        return
    assert told
    assert all(re.fullmatch(r"[^\n]+: \S[^\n]{0,400}", fault) for fault in told)
    assert len(set(told)) == len(told)


@settings(max_examples=max(100, settings().max_examples))
@given(mutated())
def test_a_mutated_file_is_an_instance_or_has_faults(tmp_path_factory, document):
    path = tmp_path_factory.getbasetemp() / "mutated.json"
    path.write_text(json.dumps(document))
    assert outcome(optsched.read, path)


def value_at(document, path):
    for part in path:
        document = document[part]
    return document


def leaves(document):
    """Return the paths of the scalars whose faults do not hide other faults."""
    scalars = (p for p in places(document) if not isinstance(value_at(document, p), dict | list))
    return [path for path in scalars if path[-1] not in ("schema", "kind")]


def written(path):
    steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(steps).removeprefix(".")


@given(st.data())
def test_every_independent_fault_is_listed(data):
    document = DOCUMENTS[data.draw(st.sampled_from(sorted(DOCUMENTS)))]
    wrong = st.sampled_from([{}, [], [{}], True])
    spoilt = data.draw(
        st.dictionaries(st.sampled_from(leaves(document)), wrong, min_size=1, max_size=6)
    )
    told = {fault.split(": ")[0] for fault in faults(edited(document, spoilt))}
    assert {written(path) for path in spoilt} <= told
