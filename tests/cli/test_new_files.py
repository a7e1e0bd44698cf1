"""Files of one's own: `optsched new` begins them, YAML has comments and is read as strictly."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import optsched
from optsched.cli.documents import TEMPLATES
from optsched.cli.main import app
from optsched.documents.faults import InstanceError
from optsched.documents.json_files import load
from optsched.documents.limits import LIMITS
from optsched.registry import PROBLEMS


def run(*arguments):
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(a) for a in arguments])


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_new_writes_is_solved_to_optimality_and_verified_as_it_stands(problem):
    assert run("new", problem, "-o", "my.yaml").exit_code == 0
    done = run("solve", "my.yaml", "--no-compare", "-o", "r.json")
    assert (done.exit_code, "optimal" in done.stdout, done.stderr) == (0, True, "")
    assert run("verify", "my.yaml", "r.json").exit_code == 0


@pytest.mark.parametrize("kind", [kind for kind in TEMPLATES if kind not in PROBLEMS])
def test_what_new_writes_of_other_kinds_is_taken_by_the_command_that_it_names(kind):
    told = run("new", kind, "-o", "my.yaml").stdout
    command = told.partition("`optsched ")[2].partition("`")[0].split()
    fewer = ["--set", "trace.jobs=5"] if kind == "scenario" else []
    assert run(*command, *fewer).exit_code == 0


@pytest.mark.parametrize("kind", TEMPLATES)
def test_json_has_the_same_data_without_comments(kind):
    printed = run("new", kind, "--json").stdout
    assert run("new", kind, "-o", "my.json").exit_code == 0
    assert run("new", kind, "-o", "my.yaml").exit_code == 0
    assert json.loads(printed) == load(Path("my.json")) == load(Path("my.yaml"))
    assert run("new", kind).stdout.startswith("# ")


def test_new_never_writes_over_a_file():
    Path("my.yaml").write_text("mine")
    done = run("new", "boa", "-o", "my.yaml")
    assert (done.exit_code, "there is such a file already" in done.stderr) == (2, True)
    assert Path("my.yaml").read_text() == "mine"
    assert "did you mean 'boa'?" in run("new", "bao").stderr


# --- YAML -------------------------------------------------------------------------------------


def read(text):
    Path("x.yaml").write_text(text)
    return load(Path("x.yaml"))


def test_yaml_has_the_numbers_words_and_nothing_of_json():
    told = read(
        "a: 1e-6\nb: [1, 2.5, -3]\nc: yes\nd: 2026-01-02\ne: true\nf: null\ng: 010\nh: 1_0\n"
    )
    assert told == {"a": 1e-6, "b": [1, 2.5, -3], "c": "yes", "d": "2026-01-02", "e": True,
                    "f": None, "g": "010", "h": "1_0"}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: &x [1]\nb: *x\n", "line 2, column 4: aliases are not taken"),
        ("a: 1\nb: 2\na: 3\n", "line 3, column 1: key 'a' stands more than once"),
        ("a: !!python/object:os.system x\n", "tags such as tag:yaml.org,2002:python/object"),
        ("a: !!timestamp 2026-01-02\n", "are not taken"),
        ("a: [" * 200, "nested too deeply"),
        ("a: [1\n", "expected YAML"),
        ("--- 1\n--- 2\n", "expected YAML"),
        ("a: \t- 1\n", "expected YAML"),
        ("a:\n\t- 1\n", "line 2, column 1: a tab: YAML is indented by blanks"),
        ("", "the file is empty; expected YAML"),
        (" # to come\n\n", "the file has nothing but comments; expected YAML"),
        (f"a: {'9' * 6000}\n", "expected YAML"),
        (f"a: {'x' * 200_000}\n", "a text of 200,000 characters"),
    ],
)
def test_yaml_that_is_refused(text, told):
    with pytest.raises(InstanceError) as caught:
        read(text)
    assert told in str(caught.value)


def test_yaml_has_a_limit_of_its_own():
    with pytest.raises(InstanceError, match="larger than 4 MiB, the limit of YAML"):
        read("#" * (LIMITS.yaml_bytes + 1))


def test_faults_of_a_yaml_instance_are_told_with_their_paths():
    Path("x.yaml").write_text("schema: optsched/boa/1\nbudget_gpu: 1\nclasses: []\n")
    with pytest.raises(InstanceError, match="budget_gpu: unknown key; did you mean 'budget_gpus'"):
        optsched.read("x.yaml")
