"""Scenarios: readable when simple, and every fault with its path when wrong."""

import contextlib
import copy
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.instance import InstanceError, dumps
from optsched.rollout.scenario import Scenario
from optsched.rollout.scenario_files import (
    find_scenario,
    read_scenario,
    scenario_names,
    scenario_schema,
)
from tests.support.strategies.common import law

COMMITTED = Path(optsched.instance.__file__).parent / "instances" / "schema" / "scenario.json"

SMALL = {
    "schema": "optsched/scenario/1",
    "nodes": 2,
    "gpus_per_node": 4,
    "trace": {"generator": "philly-atc19", "jobs": 100},
}
TABLE = {"kind": "table", "gpus": [1, 2], "speedup": [1, 1.8]}
FULL = {
    **SMALL,
    "name": "full",
    "profile": {
        "gpus": [f"g{n}" for n in range(8)],
        "slowdown": {"A": [1.0] * 8, "B": [1.5] * 8},
        "kind": "persistent",
    },
    "events": {"application_class": "A", "mean_between_s": 1e5, "mean_length_s": 60},
    "locality": [1, 1.7],
    "neighbours": {"shared_server": 0.77},
    "sharing": {
        "max_jobs_per_gpu": 2,
        "memory_gb": 16,
        "interference": {"groups": [{"types": ["m", "n"], "rates": [0.9, 0.8]}]},
    },
    "models": {
        "m": {"application_class": "A", "locality": [1, 1.2], "memory_gb": 8},
        "n": {
            "phases": [{"work_gpu_s": 60, "speedup": TABLE}],
            "batches": {"batch_size": 128, "max_batch_size": 4096, "noise_scale": [900.5]},
        },
    },
    "retries": {"delay_s": 60, "limits": {"CPU out of memory": 1}},
    "rented": {"provision_s": 120, "at_start": 1},
    "budget_gpus": 4,
    "quotas": {"vc": 4},
    "power": {
        "gpu": {"bare_w": 30, "context_w": 36, "peak_w": 300},
        "node": {"base_w": 500, "sleep_w": 10},
    },
    "estimates": {"kind": "noisy"},
}
TREE = {
    "levels": ["node", "rack", "cluster"],
    "domains": [
        {"id": "all", "level": "cluster"},
        {"id": "r", "level": "rack", "parent": "all"},
        {"id": "a", "level": "node", "parent": "r", "gpus": ["g0", "g1"]},
        {"id": "b", "level": "node", "parent": "r", "gpus": ["g2", "g3"]},
        {"id": "c", "level": "node", "parent": "all", "gpus": ["g4"], "drained": True},
    ],
}
REMOVED = object()


def edited(document, changes):
    """Return a copy of a document with values at dotted paths replaced, added or removed."""
    document = copy.deepcopy(document)
    for path, value in changes.items():
        *above, last = [int(p) if p.isdigit() else p for p in path.split(".")]
        place = document
        for part in above:
            place = place[part]
        if value is REMOVED:
            del place[last]
        else:
            place[last] = value
    return document


def faults(document):
    with pytest.raises(optsched.InstanceError) as error:
        Scenario.from_document(document)
    return error.value.faults


def test_a_simple_scenario_needs_little():
    scenario = Scenario.from_document(SMALL)
    assert (scenario.gpus, scenario.epoch_s, scenario.policies) == (8, 60, ("fifo",))
    assert scenario.sharing.max_jobs_per_gpu == 1


def test_a_full_one_reads_writes_and_reads_again():
    scenario = Scenario.from_document(FULL)
    again = Scenario.from_document(json.loads(scenario.to_json()))
    assert again == scenario
    assert again.to_json() == scenario.to_json()
    assert scenario.to_json().startswith('{\n  "schema": "optsched/scenario/1",\n  "name": "full"')


def test_a_topology_instead_of_equal_nodes():
    tree = {"nodes": REMOVED, "gpus_per_node": REMOVED, "topology": TREE}
    scenario = Scenario.from_document(edited(SMALL, tree | {"locality": [1, 2, 3]}))
    assert scenario.gpus == 4


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"nodes": REMOVED}, "nodes: missing: give nodes and gpus_per_node, or topology"),
        ({"gpus_per_node": REMOVED}, "gpus_per_node: missing: give nodes and gpus_per_node, or"),
        (
            {"topology": TREE, "locality": [], "models.m.locality": [], "budget_gpus": 1},
            "nodes: cannot stand beside topology: give one of them",
        ),
        ({"locality": [1]}, "locality: has 1 factors for 2 levels (node, cluster)"),
        ({"locality": [1, 0.9]}, "locality[1]: a factor must be at least 1, found 0.9"),
        ({"locality": [2, 1.5]}, "locality[1]: 1.5 after 2: factors must not fall towards the"),
        ({"models.m.locality": [1, 2, 3]}, "models.m.locality: has 3 factors for 2 levels"),
        ({"nodes": 3}, "profile.gpus: has 8 GPUs, but the cluster has 12"),
        (
            {"models.m.application_class": "C"},
            'models.m.application_class: the profile has no class "C"; known: A, B',
        ),
        (
            {"profile": REMOVED, "events": REMOVED},
            'models.m.application_class: "A" is a class of a profile, but there is none',
        ),
        ({"profile.slowdown.A": [1]}, "profile.slowdown.A: has 1 values for 8 GPUs"),
        (
            {"events.application_class": "X"},
            'events.application_class: the profile has no class "X"; known: A, B',
        ),
        ({"events.factor": [3, 2]}, "events.factor: 2 after 3: must ascend"),
        ({"events.factor": [0.5, 2]}, "events.factor: trouble does not make a node faster: at"),
        (
            {"models.n.phases.0.speedup.gpus": [16, 32]},
            "models.n.phases[0].speedup.gpus: needs 16 GPUs at least, but the cluster has 8",
        ),
        (
            {"models.n.phases.0.speedup.gpus": [2, 1]},
            "models.n.phases[0].speedup.gpus[1]: 1 after 2: widths must ascend",
        ),
        ({"models.m.memory_gb": 17}, "models.m.memory_gb: 17 GB, but each GPU has 16"),
        (
            {"sharing.interference.groups.0.types": ["m", "nn"]},
            "sharing.interference.groups[0].types[1]: models has no \"nn\"; did you mean 'n'?",
        ),
        (
            {"sharing.interference.groups.0.gpu": "V100"},
            "sharing.interference.groups[0].gpu: a scenario has GPUs of one kind: leave it out",
        ),
        (
            {"sharing.interference.groups.0.rates": [0.9]},
            "sharing.interference.groups[0].rates: has 1 values for 2 types",
        ),
        ({"power.gpu.bare_w": 40}, "power.gpu.context_w: 36 W is below bare_w, 40 W"),
        ({"power.node.sleep_w": 600}, "power.node.base_w: 500 W is below sleep_w, 600 W"),
        ({"rented.at_start": 3}, "rented.at_start: 3 nodes are rented, but the cluster has 2"),
        ({"quotas.vc": 9}, "quotas.vc: 9 GPUs, but the cluster has 8"),
        ({"budget_gpus": 9}, "budget_gpus: 9 GPUs, but the cluster has 8"),
        (
            {"retries.limits": {"CPU out of memry": 1}},
            "no job fails for this reason; did you mean 'CPU out of memory'?",
        ),
        ({"trace": {}}, "trace.generator: missing: give generator (with jobs), or file"),
        ({"trace.jobs": REMOVED}, "trace.jobs: missing: a generator needs to know how many"),
        ({"trace.file": "x"}, "trace.file: cannot stand beside generator: give one of them"),
        ({"trace.format": "pal"}, "trace.format: belongs to a file, but the trace is from a gen"),
        ({"trace.workload": 1}, "trace.workload: belongs to a file, but the trace is from a gen"),
        (
            {"trace": {"file": "x", "jobs": 3}},
            "trace.jobs: belongs to a generator, but the trace is from a file",
        ),
        ({"neighbors": {}}, "neighbors: unknown key; did you mean 'neighbours'?"),
        ({"estimates.kind": "oracle"}, "estimates.kind: expected 'exact', 'noisy', 'history' or"),
    ],
)
def test_a_fault_names_its_path_and_the_contradiction(changes, expected):
    told = faults(edited(FULL, changes))
    assert [line for line in told if expected in line], told
    assert len(told) == 1


def test_faults_of_topologies():
    tree = {"nodes": REMOVED, "gpus_per_node": REMOVED, "topology": TREE}
    told = faults(edited(FULL, {**tree, "rented.at_start": 3, "budget_gpus": 5}))
    assert told == [
        "budget_gpus: 5 GPUs, but the cluster has 4",
        "locality: has 2 factors for 3 levels (node, rack, cluster)",
        "models.m.locality: has 2 factors for 3 levels (node, rack, cluster)",
        "rented.at_start: 3 nodes are rented, but the cluster has 2",
    ]
    right = {"locality": [1, 1, 2], "models.m.locality": [1, 1, 1], "quotas.vc": 4}
    wrong = faults(edited(FULL, {**tree, **right, "profile.gpus.2": "h"}))
    assert wrong == ['profile.gpus: has no slowdowns of GPU "g2" of the topology']
    nothing = edited(SMALL, tree)
    nothing["topology"]["domains"][0]["drained"] = True
    assert faults(nothing) == ["topology: has no GPU that is not drained"]


def test_reasons_of_a_file_are_its_own():
    changes = {"trace": {"file": "x.json"}, "retries.limits": {"cosmic ray": 2}}
    assert Scenario.from_document(edited(FULL, changes)).retries.limits == {"cosmic ray": 2}


def test_all_faults_at_once():
    assert len(faults(edited(FULL, {"locality": [2, 1], "quotas.vc": 99, "nodes": 0}))) == 2
    assert len(faults(edited(FULL, {"locality": [2, 1.5], "quotas.vc": 99, "budget": 0}))) == 3


JUNK = st.sampled_from([None, True, -1, 0, 10**40, 0.5, "", "x", [], [None], {}, {"a": []}])


def paths(document, above=()):
    """Return the paths of everything in a document."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in entries:
        yield (*above, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*above, key))


@law(2000)
@given(st.sampled_from(sorted(paths(FULL), key=str)), JUNK, st.booleans())
def test_wrong_types_anywhere_are_faults_and_never_a_crash(path, junk, has_topology):
    document = copy.deepcopy(FULL)
    place = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = junk
    if has_topology:
        document["topology"] = TREE
    with contextlib.suppress(optsched.InstanceError):
        Scenario.from_document(document)


# --- changes, files, schema -------------------------------------------------------------------


def test_changed_reaches_fields_by_path():
    scenario = Scenario.from_document(FULL)
    changed = scenario.changed({"nodes": 1, "models.m.memory_gb": 4, "rented": None})
    assert (changed.gpus, changed.models["m"].memory_gb, changed.rented) == (4, 4, None)
    with pytest.raises(optsched.InstanceError, match="did you mean 'epoch_s'"):
        scenario.changed({"epochs": 3})
    with pytest.raises(optsched.InstanceError, match="full after the change of fields"):
        scenario.changed({"nodes": 7})


def test_a_file_is_read(tmp_path):
    path = tmp_path / "mine.json"
    optsched.write(Scenario.from_document(FULL), path)
    assert read_scenario(path) == Scenario.from_document(FULL)
    assert find_scenario(path) == path


@pytest.mark.parametrize("name", scenario_names())
def test_bundled_scenarios_are_named_and_described(name):
    scenario = read_scenario(name)
    assert scenario.name == name
    assert scenario.description
    assert scenario.source
    assert read_scenario(find_scenario(name)) == scenario
    jsonschema.validate(json.loads(find_scenario(name).read_text()), scenario_schema())


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ([1], "document: expected an object, found a list of 1"),
        ({"nodes": 2}, 'schema: missing: expected "schema": "optsched/scenario/1"'),
        ({"schema": "optsched/boa/1"}, "schema: expected 'optsched/scenario/1', found"),
    ],
)
def test_files_of_something_else(tmp_path, document, fault):
    path = tmp_path / "other.json"
    path.write_text(json.dumps(document))
    with pytest.raises(optsched.InstanceError) as error:
        read_scenario(path)
    assert error.value.faults[0].startswith(fault)


def test_names_and_files_that_are_not_there(monkeypatch, tmp_path):
    monkeypatch.setattr("optsched.rollout.scenario_files._FOLDER", tmp_path)
    (tmp_path / "philly-small.json").write_text(json.dumps(SMALL))
    assert read_scenario("philly-small").gpus == 8
    with pytest.raises(FileNotFoundError, match="did you mean 'philly-small'"):
        read_scenario("philly-smal")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_scenario("nothing.json")


def test_the_committed_schema_is_the_generated_one():
    assert COMMITTED.read_text() == dumps(scenario_schema())


def test_the_schema_takes_and_refuses_what_the_classes_do():
    schema = scenario_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(FULL, schema)
    for changes in ({"epoch_s": 0}, {"sharing.max_jobs_per_gpu": 9}, {"neighbors": {}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(edited(FULL, changes), schema)
        assert faults(edited(FULL, changes))


def test_a_wrong_kind_inside_of_what_may_be_missing_is_told_with_its_path():
    document = json.loads(find_scenario("philly-small").read_text())
    document["power"]["gpu"]["curve"] = {"kind": {"base_w": 400}}
    with pytest.raises(InstanceError, match=r"power.gpu.curve.kind: expected one of 'affine', "):
        Scenario.from_document(document)
