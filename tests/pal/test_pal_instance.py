"""Bad input of PAL: one clear message with every fault and its path, never another exception."""

import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optsched.instance import InstanceError
from optsched.pal import PalInstance
from tests.support.strategies.pal import document, pal_instances
from tests.test_bad_input import JUNK, REMOVED, edited, outcome, places

RUNNING = {"remaining_s": 60.0, "current": ["a/0", "b/0"], "restart_s": 5.0, "reward": 3.0}
GOOD = document(
    {"r": {"a": 2, "b": 2}, "c": 1},
    {"A": [1.0, 1.1, 0.9, 1.0, 2.0], "B": [1.0] * 5},
    jobs=[
        {"gpus": 2, "highest_level": "rack", "weight": 2.0, **RUNNING},
        {"gpus": 1, "application_class": "B", "remaining_s": 9.0, "reward": 1.0},
    ],
    admission="optional",
    locality_kind="given",
    unavailable=["c/0"],
)
JOB = ("jobs", 0)
GPUS = ("topology", "domains", 2, "gpus")


def faults(text):
    with pytest.raises(InstanceError) as error:
        PalInstance.from_document(text)
    return error.value.faults


def test_the_document_without_a_fault():
    instance = PalInstance.from_document(GOOD)
    assert instance.free_gpus == ("a/0", "a/1", "b/0", "b/1")
    assert instance.is_timed
    assert PalInstance.from_document(json.loads(instance.to_json())) == instance


def test_slowdowns_are_those_of_the_profile():
    slowdowns = PalInstance.from_document(GOOD).slowdowns
    assert slowdowns["A"] == {"a/0": 1.0, "a/1": 1.1, "b/0": 0.9, "b/1": 1.0, "c/0": 2.0}
    assert set(slowdowns) == {"A", "B"}


def test_measured_penalties_are_raised_to_their_envelope():
    text = edited(GOOD, {("locality_kind",): "measured", ("locality", "m"): [0.5, 2, 1.5]})
    instance = PalInstance.from_document(text)
    assert instance.penalties == {"m": (1.0, 2.0, 2.0)}
    assert instance.raised == {"m": ("node", "cluster")}
    assert PalInstance.from_document(GOOD).raised == {}


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        # keys and types
        (("admision",), "all", "admision: unknown key; did you mean 'admission'?"),
        (("admission",), "some", "admission: expected 'all' or 'optional', found \"some\""),
        (("locality_kind",), "guess", "locality_kind: expected 'given' or 'measured', found"),
        (("jobs",), [], "jobs: must not be empty"),
        (("jobs",), REMOVED, "jobs: missing"),
        (("topology",), REMOVED, "topology: missing"),
        (("profile",), 3, "profile: expected an object, found 3"),
        ((*JOB, "gpu"), 2, "jobs[0].gpu: unknown key; did you mean 'gpus'?"),
        ((*JOB, "model"), REMOVED, "jobs[0].model: missing"),
        ((*JOB, "gpus"), 0, "jobs[0].gpus: must be at least 1, found 0"),
        ((*JOB, "gpus"), 1.5, "jobs[0].gpus: expected a whole number, found 1.5"),
        ((*JOB, "gpus"), True, "jobs[0].gpus: expected a whole number, found true"),
        ((*JOB, "weight"), 0, "jobs[0].weight: must be at least 1e-09, found 0"),
        ((*JOB, "weight"), math.nan, "jobs[0].weight: expected a finite number, found NaN"),
        ((*JOB, "reward"), -1, "jobs[0].reward: must be at least 1e-09, found -1"),
        ((*JOB, "restart_s"), -1, "jobs[0].restart_s: must be at least 0, found -1"),
        # topology and profile
        (("topology", "levels", 1), "node", 'topology.levels[1]: "node" is already the name'),
        (("topology", "domains", 2, "parent"), "s", "topology.domains[2].parent: there is no"),
        (("topology", "domains", 2, "level"), "nod", 'topology.domains[2].level: "nod" is not'),
        (("topology", "domain"), [], "topology.domain: unknown key; did you mean 'domains'?"),
        ((*GPUS, 1), "a/0", 'topology.domains[2].gpus[1]: GPU "a/0" is twice in "a"'),
        (("profile", "slowdown", "A"), [1.0], "profile.slowdown.A: has 1 values for 5 GPUs"),
        (
            ("profile", "slowdown", "A", 1),
            0,
            "profile.slowdown.A[1]: must be at least 1e-09",
        ),
        (("profile", "gpus", 1), "a/0", 'profile.gpus[1]: "a/0" is already gpus[0]'),
        (("profile", "kind"), "often", "profile.kind: expected 'persistent' or 'single-run'"),
        (("profile", "gpus", 4), "d/0", 'profile.gpus: has no slowdowns of GPU "c/0" of the top'),
        (
            ("profile", "gpus"),
            ["a/0", "v", "w", "x", "y"],
            'profile.gpus: has no slowdowns of GPU "a/1" (and 3 more) of the topology',
        ),
        # locality
        (("locality",), {}, "locality: must not be empty"),
        (("locality", "m"), [1, 2], "locality.m: has 2 penalties for 3 levels of the topology"),
        (
            ("locality", "m"),
            [1, 2, 1.5],
            "locality.m[2]: 1.5 after 2: penalties must not decrease to the root; locality_kind",
        ),
        (
            ("locality", "m"),
            [0.5, 2, 3],
            "locality.m[0]: a penalty must be at least 1, found 0.5; locality_kind 'measured'",
        ),
        # references
        (("unavailable", 0), "d/0", 'unavailable[0]: the topology has no GPU "d/0"'),
        (
            (*JOB, "application_class"),
            "C",
            'jobs[0].application_class: the profile has no class "C"; known: A, B',
        ),
        ((*JOB, "model"), "mm", "jobs[0].model: locality has no model \"mm\"; did you mean 'm'?"),
        (
            (*JOB, "highest_level"),
            "racks",
            "jobs[0].highest_level: the topology has no level \"racks\"; did you mean 'rack'?",
        ),
        # jobs
        (("jobs", 1, "id"), "j0", 'jobs[1].id: "j0" is already the id of jobs[0]'),
        (
            ("jobs", 1, "gpus"),
            5,
            'jobs[1].gpus: job "j1" needs 5 GPUs, but the cluster has 4 free',
        ),
        (
            ("topology", "domains", 1, "drained"),
            True,
            'jobs[0].gpus: job "j0" needs 2 GPUs, but the cluster has 0 free',
        ),
        (("jobs", 1, "reward"), REMOVED, "jobs[1].reward: missing: admission 'optional' needs it"),
        (
            ("jobs", 1, "remaining_s"),
            REMOVED,
            "jobs[1].remaining_s: missing: give remaining_s for every job, or for none",
        ),
        # running jobs
        ((*JOB, "current"), ["a/0"], "jobs[0].current: holds 1 GPUs, but the gang has 2"),
        ((*JOB, "current", 0), "d/0", 'jobs[0].current[0]: the topology has no GPU "d/0"'),
        ((*JOB, "current", 1), "a/0", 'jobs[0].current[1]: GPU "a/0" is held twice'),
        (
            ("jobs", 1, "current"),
            ["b/0"],
            'jobs[1].current[0]: GPU "b/0" is held by jobs[0], "j0", too',
        ),
        (
            (*JOB, "restart_s"),
            REMOVED,
            "jobs[0].restart_s: missing: a job with current GPUs needs it (0 for free moves)",
        ),
        (
            (*JOB, "remaining_s"),
            REMOVED,
            "jobs[0].remaining_s: missing: a restart takes seconds, so the work must too",
        ),
    ],
)
def test_one_fault_is_named_with_its_path(path, value, fault):
    assert any(line.startswith(fault) for line in faults(edited(GOOD, {path: value})))


def test_each_fault_alone_is_the_only_one():
    """What follows from a fault elsewhere is not listed too."""
    for path, value in (
        ((*JOB, "model"), "n"),
        (("locality", "m"), [1, 2]),
        (("unavailable", 0), "d/0"),
        (("topology", "levels"), 3),
        (("profile", "slowdown"), []),
        (("jobs", 0, "current"), REMOVED),
    ):
        changed = edited(GOOD, {path: value})
        reported = [] if value is REMOVED else faults(changed)
        assert len(reported) == (value is not REMOVED), reported


def test_all_faults_at_once():
    changes = {
        ("unavailable", 0): "d/0",
        ("locality", "m", 2): 0.5,
        (*JOB, "application_class"): "C",
        (*JOB, "restart_s"): REMOVED,
        ("jobs", 1, "gpus"): 9,
        ("jobs", 1, "reward"): REMOVED,
        ("profile", "slowdown", "B"): [1.0],
        ("topology", "domains", 4, "parent"): "x",
    }
    assert {line.split(": ")[0] for line in faults(edited(GOOD, changes))} == {
        "unavailable[0]",
        "locality.m[2]",
        "jobs[0].application_class",
        "jobs[0].restart_s",
        "jobs[1].gpus",
        "jobs[1].reward",
        "profile.slowdown.B",
        "topology.domains[4].parent",
    }


# --- fuzzing ----------------------------------------------------------------------------------


@st.composite
def mutated(draw):
    text = edited(GOOD, {})
    for _ in range(draw(st.integers(1, 4))):
        spots = list(places(text))
        if not spots:
            break
        *above, last = draw(st.sampled_from(spots))
        place = text
        for part in above:
            place = place[part]
        what = draw(st.sampled_from(["replace", "delete", "rename", "swap"]))
        if what == "replace":
            place[last] = draw(JUNK)
        elif what == "swap":  # a value that is right somewhere else
            other = text
            for part in draw(st.sampled_from(spots)):
                other = other[part]
            place[last] = json.loads(json.dumps(other))
        else:
            value = place.pop(last)
            if what == "rename" and isinstance(place, dict):
                place[draw(st.one_of(st.just(f"{last}s"), st.text(max_size=4)))] = value
    return text


@settings(max_examples=max(100, settings().max_examples))
@given(mutated())
def test_a_mutated_document_is_an_instance_or_has_paths(text):
    read = outcome(PalInstance.from_document, text)
    if isinstance(read, PalInstance):
        assert PalInstance.from_document(json.loads(read.to_json())) == read
        return
    assert read
    assert all(re.fullmatch(r"[^\n]+: \S[^\n]{0,400}", fault) for fault in read)
    assert len(set(read)) == len(read)


@given(pal_instances(feasible=False))
def test_drawn_instances_survive_their_json(instance):
    again = PalInstance.from_document(json.loads(instance.to_json()))
    assert again == instance
    assert again.penalties == instance.penalties
    assert all(list(values) == sorted(values) for values in again.penalties.values())
