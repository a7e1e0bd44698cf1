"""Instances: reading, writing, changing, schema."""

import json
import os
from functools import cache
from pathlib import Path

import jsonschema
import pytest

import optsched
from optsched.boa import BoaInstance
from optsched.documents.json_files import write_text
from optsched.instance import dumps, find
from optsched.registry import PROBLEMS, problem

NAMES = optsched.names()
SCHEMA = Path(optsched.instance.__file__).parent / "instances" / "schema"


# --- bundled instances ------------------------------------------------------------------------


def test_the_bundled_instances():
    assert {"boa/hand", "boa/epew-figure1", "boa/cbd-85", "boa/stress"} <= set(NAMES)
    assert not [name for name in NAMES if "schema" in name or "known" in name]
    assert optsched.names("boa") == [name for name in NAMES if name.startswith("boa/")]


@pytest.mark.parametrize("name", NAMES)
def test_every_instance_is_named_described_and_has_a_source(name):
    instance = optsched.read(name)
    assert instance.name == name
    assert instance.description
    assert instance.source
    assert optsched.read(find(name)) == instance


@pytest.mark.parametrize("name", NAMES)
def test_read_write_read_is_equal_and_stable(name, tmp_path):
    instance = optsched.read(name)
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    optsched.write(instance, first)
    again = optsched.read(first)
    optsched.write(again, second)
    assert again == instance
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_written_instance_says_what_the_bundled_file_says(name):
    original = json.loads(find(name).read_text())
    written = json.loads(optsched.read(name).to_json())

    def only_defaults_added(old, new):
        if isinstance(old, dict):
            assert old.keys() <= new.keys()
            return all(only_defaults_added(old[key], new[key]) for key in old)
        if isinstance(old, list):
            return len(old) == len(new) and all(map(only_defaults_added, old, new))
        return old == new

    assert only_defaults_added(original, written)
    entry = problem(name.split("/")[0])
    assert entry.instance.from_document(written) == entry.instance.from_document(original)


@pytest.mark.parametrize("name", NAMES)
def test_best_known_values_are_the_proven_optima(name):
    known = optsched.known_values()[name]
    is_hard = "optimal" not in known
    result = optsched.solve(optsched.read(name), gap=0.02 if is_hard else 1e-6)
    assert known["unit"] == result.objective_unit
    assert result.status == "optimal"
    if is_hard:
        assert result.bound <= known["best"] <= result.objective
    else:
        assert result.bound <= known["optimal"] <= result.objective


# --- schema -----------------------------------------------------------------------------------


def test_the_committed_schema_is_the_generated_one():
    for name in PROBLEMS:
        assert (SCHEMA / f"{name}.json").read_text() == dumps(optsched.schema(name))


@cache
def validator(problem_name):
    schema = optsched.schema(problem_name)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.validators.validator_for(schema) is jsonschema.Draft202012Validator
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_accepts_the_bundled_instances(name):
    validator(name.split("/")[0]).validate(json.loads(find(name).read_text()))


@pytest.mark.parametrize(
    "change",
    [
        {"budget_gpus": "24"},
        {"budget_gpus": 0},
        {"budget": 24},
        {"classes": []},
        {"widths": "mixd"},
    ],
)
def test_the_schema_refuses_what_the_classes_refuse(change):
    document = json.loads(find("boa/hand").read_text()) | change
    with pytest.raises(jsonschema.ValidationError):
        validator("boa").validate(document)
    with pytest.raises(optsched.InstanceError):
        BoaInstance.from_document(document)


# --- changed ----------------------------------------------------------------------------------


def test_changed_reaches_fields_by_index_id_and_star():
    instance = optsched.read("boa/hand")
    changed = instance.changed(
        {
            "budget_gpus": 3,
            "classes.*.rescale_s": 5,
            "classes.B.arrival_rate_per_h": 7,
            "classes[0].phases[-1].speedup.gpus[2]": 8,
            "classes.0.id": "first",
        }
    )
    first, second = changed.classes
    assert (changed.budget_gpus, first.id, second.id) == (3, "first", "B")
    assert (first.rescale_s, second.rescale_s) == (5, 5)
    assert second.arrival_rate_per_h == 7
    assert first.phases[0].speedup.gpus == (1, 2, 8)
    assert instance == optsched.read("boa/hand")


def test_changed_to_none_removes():
    changed = optsched.read("boa/hand").changed({"budget_gpus": None, "target_mean_jct_s": 1.5})
    assert (changed.budget_gpus, changed.target_mean_jct_s) == (None, 1.5)


def test_changed_takes_what_numpy_gives():
    import numpy as np

    speedup = {"kind": "table", "gpus": np.arange(1, 4), "speedup": np.array([1, 1.5, 2])}
    changed = optsched.read("boa/hand").changed(
        {"budget_gpus": np.int64(3), "classes.*.phases.*.speedup": speedup}
    )
    assert changed.budget_gpus == 3
    assert changed.classes[1].phases[0].speedup.gpus == (1, 2, 3)


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        (
            "budget_gpu",
            3,
            "budget_gpu: there is no field 'budget_gpu'; did you mean 'budget_gpus'?",
        ),
        ("", 3, ": there is no field ''; known: budget_gpus, "),
        ("rescale_s", 3, "rescale_s: there is no field 'rescale_s'; known: budget_gpus, "),
        ("classes.*.rescale", 3, "did you mean 'rescale_s'?"),
        ("classes.C.id", "x", "'C' is neither an id nor an index of a list of 2; known: A, B"),
        ("classes.2.id", "x", "'2' is neither an id nor an index of a list of 2"),
        ("classes.-3.id", "x", "'-3' is neither an id nor an index of a list of 2"),
        ("classes.--1.id", "x", "'--1' is neither"),
        ("classes.².id", "x", "'²' is neither"),
        ("budget_gpus.x", 3, "'x' leads into 2.5, which has no fields"),
        ("target_mean_jct_s.x", 3, "'target_mean_jct_s' is not set, so nothing inside it"),
        ("classes.0.phases.0.speedup.gpu", [1], "did you mean 'gpus'?"),
        ("budget_gpus", "much", 'budget_gpus: expected a number, found "much"'),
        ("classes", None, "classes: missing"),
        ("classes.*.id", "same", 'classes[1].id: "same" is already the id of classes[0]'),
    ],
)
def test_changes_that_lead_nowhere(path, value, fault):
    with pytest.raises(optsched.InstanceError) as error:
        optsched.read("boa/hand").changed({path: value})
    assert fault in str(error.value)
    assert len(error.value.faults) == 1


def test_every_change_that_leads_nowhere_is_named():
    with pytest.raises(optsched.InstanceError) as error:
        optsched.read("boa/hand").changed({"a": 1, "classes.C": 2, "budget_gpus": 3})
    assert [fault.split(":")[0] for fault in error.value.faults] == ["a", "classes.C"]


# --- writing ----------------------------------------------------------------------------------


def test_writing_replaces_the_whole_file_and_follows_links(tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("x" * 10**6)
    link.symlink_to(target)
    optsched.write(optsched.read("boa/hand"), link)
    assert link.is_symlink()
    assert optsched.read(target) == optsched.read("boa/hand")
    assert sorted(tmp_path.iterdir()) == [link, target]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    path = tmp_path / "result.json"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*result\.json'"):
        optsched.write(optsched.read("boa/hand"), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_is_interrupted_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    path = tmp_path / "result.json"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_pipes_and_devices_are_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_written_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "plain").write_text("x")
    write_text(tmp_path / "written", "x")
    assert (tmp_path / "written").stat().st_mode == (tmp_path / "plain").stat().st_mode
