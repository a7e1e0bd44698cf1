"""EaCO instances: readable when simple, and every fault with its path when wrong."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco import EacoInstance
from optsched.instance import InstanceError

FOUR = {
    "schema": "optsched/eaco/1",
    "gpu_types": [
        {"id": "V100", "memory_gb": 16, "power": {"bare_w": 30, "context_w": 36, "peak_w": 300}}
    ],
    "nodes": [{"id": "v100", "gpu": "V100", "gpus": 8, "count": 2, "power": {"base_w": 1000}}],
    "types": [{"id": "small", "utilisation": 0.3}, {"id": "big", "utilisation": 0.8}],
    "jobs": [
        {"id": "a", "type": "small", "work_s": 3600},
        {"id": "b", "type": "small", "work_s": 7200},
        {"id": "c", "type": "big", "work_s": 3600, "max_slowdown": 1.2},
        {"id": "d", "type": "big", "work_s": 7200, "gpus": 8, "deadline_s": 9000},
    ],
}
FULL = {
    **FOUR,
    "gpu_types": [
        FOUR["gpu_types"][0]
        | {"levels": [{"id": "150 W", "limit_w": 150, "rate": 0.9, "power": 0.68}]},
        {
            "id": "A100",
            "memory_gb": 80,
            "power": {
                "bare_w": 54,
                "context_w": 80,
                "peak_w": 400,
                "curve": {"kind": "table", "utilisation": [0, 1], "power_w": [80, 400]},
            },
        },
    ],
    "nodes": [
        FOUR["nodes"][0] | {"on": 1},
        {"id": "a100", "gpu": "A100", "gpus": 4, "count": 2, "power": {"base_w": 900}},
    ],
    "jobs": [
        *FOUR["jobs"],
        {"id": "e", "type": "big", "work_s": 50, "gpus": 2, "waiting_penalty_kwh": 0.1},
    ],
    "running": [
        {"id": "r0", "nodes": "v100", "jobs": ["a", "b"]},
        {"id": "r1", "nodes": "a100", "node": 1, "jobs": ["e"]},
    ],
    "interference": {
        "groups": [
            {"types": ["big", "small"], "rates": [0.9, 0.8], "gpu_power_w": 250},
            {"types": ["big", "big"], "rates": [0.5, 0.5], "gpu": "A100"},
            {"types": ["small", "small", "big"], "rates": [0, 0, 0]},
        ],
    },
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
        EacoInstance.from_document(document)
    return error.value.faults


def test_simple_instances_need_little():
    instance = EacoInstance.from_document(FOUR)
    assert instance.jobs[0].gpus == 1
    assert instance.max_jobs_per_gpu == 4
    assert instance.objective == "run-to-completion"
    assert instance.nodes[0].awake == 2
    assert instance.rates["V100"].of(["small", "big"]).origin == "utilisation"


@pytest.mark.parametrize("document", [FOUR, FULL])
def test_round_trip(document):
    instance = EacoInstance.from_document(document)
    assert EacoInstance.from_document(json.loads(instance.to_json())) == instance
    assert instance.changed({}) == instance


def test_changes_by_path():
    instance = EacoInstance.from_document(FULL)
    changed = instance.changed({"jobs.*.max_slowdown": 1.1, "power_cap_w": 40000})
    assert {job.max_slowdown for job in changed.jobs} == {1.1}
    assert instance.changed({"nodes.v100.power.base_w": 0}).nodes[0].power.base_w == 0
    assert instance.location_of["b"].id == "r0"


GPU = ("gpu_types", 0)
NODES = ("nodes", 0)
GROUP = ("interference", "groups", 0)


@pytest.mark.parametrize(
    ("path", "value", "fault"),
    [
        # the list
        (
            ("types", 1, "memory_gb"),
            100,
            'jobs[2]: job "c" fits no GPU: "v100" has 16 GB on each, it needs 100; "a100" has',
        ),
        (
            ("jobs", 3, "gpus"),
            32,
            'jobs[3]: job "d" fits no GPU: "v100" has 16 GPUs, it needs 32; "a100" has 8 GPUs',
        ),
        (("jobs", 3, "gpus"), 10, '"v100" has nodes of 8 GPUs, a gang of 10 does not fill them'),
        (("jobs", 2, "max_slowdown"), 0.9, "jobs[2].max_slowdown: must be at least 1, found 0.9"),
        ((*GPU, "power", "peak_w"), -5, "gpu_types[0].power.peak_w: must be at least 1e-09, found"),
        ((*GPU, "power", "bare_w"), REMOVED, "gpu_types[0].power.bare_w: missing"),
        ((*NODES, "power", "base_w"), -1, "nodes[0].power.base_w: must be at least 0, found -1"),
        ((*NODES, "power", "base_w"), REMOVED, "nodes[0].power.base_w: missing"),
        ((*NODES, "power"), REMOVED, "nodes[0].power: missing"),
        ((*GROUP, "gpu_power_w"), -1, "interference.groups[0].gpu_power_w: must be at least 1e-09"),
        (
            (*GROUP, "rates", 1),
            1.25,
            "interference.groups[0].rates[1]: must be at most 1, found 1.25",
        ),
        (
            (*GROUP, "rates", 1),
            1e-5,
            "interference.groups[0].rates[1]: a rate is 0 (does not fit) or from 0.001 to 1, found",
        ),
        ((*GROUP, "rates", 1), -0.5, "interference.groups[0].rates[1]: must be at least 0, found"),
        (
            (*GROUP, "types", 1),
            "smal",
            "interference.groups[0].types[1]: there is no job type \"smal\"; did you mean 'small'?",
        ),
        (
            ("running", 0, "jobs"),
            ["a", "d"],
            "running[0].jobs: gangs of 1 and 8 GPUs cannot share: they must be of one size",
        ),
        # powers and levels
        ((*GPU, "power", "context_w"), 20, "power.context_w: 20 W is below bare_w, 30 W"),
        ((*GPU, "power", "peak_w"), 35, "gpu_types[0].power.peak_w: 35 W is below context_w, 36 W"),
        (
            (*GPU, "levels", 0, "limit_w"),
            30,
            "levels[0].limit_w: 30 W is below context_w, 36 W: no",
        ),
        ((*GPU, "levels", 0, "rate"), 1.5, "gpu_types[0].levels[0].rate: must be at most 1, found"),
        ((*GPU, "levels", 0, "rate"), 0, "gpu_types[0].levels[0].rate: must be at least 0.001"),
        (
            ("gpu_types", 1, "power", "curve", "power_w"),
            [80, 410],
            "gpu_types[1].power.curve.power_w[1]: 410 W is above peak_w, 400 W",
        ),
        (
            (*NODES, "power", "sleep_w"),
            1001,
            "nodes[0].power.base_w: 1000 W is below sleep_w, 1001",
        ),
        # references and ids
        (
            (*NODES, "gpu"),
            "V10",
            "nodes[0].gpu: there is no GPU type \"V10\"; did you mean 'V100'?",
        ),
        ((*NODES, "on"), 3, "nodes[0].on: 3 nodes are on, but there are 2"),
        (("nodes", 1, "id"), "v100", 'nodes[1].id: "v100" is already the id of nodes[0]'),
        (("jobs", 1, "id"), "a", 'jobs[1].id: "a" is already the id of jobs[0]'),
        (("jobs", 1, "type"), "bigg", 'jobs[1].type: there is no job type "bigg"; did you mean'),
        (("jobs", 1, "work_s"), 0, "jobs[1].work_s: must be at least 1e-09, found 0"),
        (("jobs", 1, "work_h"), 0, "jobs[1].work_h: unknown key; did you mean 'work_s'?"),
        (("jobs", 1, "waiting_penalty_kwh"), 0, "waiting_penalty_kwh: must be at least 1e-09"),
        (("types", 0, "speeds"), {"K80": 0.3}, 'types[0].speeds.K80: there is no GPU type "K80"'),
        (("types", 0, "utilisation"), 30, "types[0].utilisation: must be at most 1, found 30"),
        (("jobs",), [], "jobs: must not be empty"),
        # running groups
        (("running", 0, "nodes"), "k80", 'running[0].nodes: there is no entry in nodes "k80"'),
        (("running", 0, "jobs", 1), "z", 'running[0].jobs[1]: there is no job "z"; known: a, b, c'),
        (("running", 0, "jobs", 1), "a", 'running[0].jobs[1]: job "a" stands here twice'),
        (("running", 1, "jobs", 0), "a", 'running[1].jobs[0]: job "a" runs in running[0], too'),
        (("running", 0, "node"), 1, "running[0].node: node 1 is not on: 1 are, numbered from 0"),
        (("running", 0, "node"), 10**6 + 1, "running[0].node: node 1000001 is not on: 1 are"),
        (("running", 1, "node"), 2, "running[1].node: node 2 is not on: 2 are, numbered from 0"),
        (
            ("running", 1),
            {"id": "r1", "nodes": "v100", "jobs": ["d"]},
            "running[1].node: node 0 has 8 GPUs, but 9 are in use there",
        ),
        # interference
        ((*GROUP, "rates"), [0.9], "interference.groups[0].rates: has 1 values for 2 types"),
        ((*GROUP, "rates", 0), 0, "rates[0]: 0 means that the group does not fit; then all are 0"),
        ((*GROUP, "gpu"), "K80", 'interference.groups[0].gpu: there is no GPU type "K80"'),
        (
            (*GROUP,),
            {"types": ["big"], "rates": [0.5]},
            "interference.groups[0].rates[0]: a job alone has rate 1, found 0.5",
        ),
        (
            ("interference", "groups", 1, "rates", 1),
            0.25,
            'groups[1].rates[1]: two jobs of type "big" have rates 0.5 and 0.25: keep one',
        ),
        (
            ("interference", "groups", 1),
            {"types": ["small", "big"], "rates": [0.5, 0.5]},
            "interference.groups[1].types: the same types stand in groups[0]",
        ),
        (("interference", "fallback"), "pair", "interference.fallback: expected 'none', 'larger',"),
        # objectives
        (("objective",), "epoch", "epoch_s: missing: objective 'epoch' needs it"),
        (("objective",), "eaco", "energy_weight: missing: objective 'eaco' needs it"),
        (("objective",), "eaco", "jobs[0].training_epoch_s: missing: objective 'eaco' needs it"),
        (("objective",), "eaco", "jobs[4].waiting_penalty_kwh: with objective 'eaco' no job waits"),
        (("objective",), "energy", "objective: expected 'run-to-completion', 'epoch' or 'eaco'"),
        (("max_jobs_per_gpu",), 0, "max_jobs_per_gpu: must be at least 1, found 0"),
        (("memory_headroom",), 1, "memory_headroom: "),
        (("power_cap_w",), -1, "power_cap_w: must be at least 1e-09, found -1"),
    ],
)
def test_one_fault(path, value, fault):
    lines = faults(edited(FULL, {path: value}))
    assert any(fault in line for line in lines), lines


def test_prices_exclude_each_other():
    both = FOUR | {"price_usd_per_kwh": 0.2, "carbon_g_per_kwh": 300}
    assert faults(both) == [
        "carbon_g_per_kwh: cannot stand beside price_usd_per_kwh: give one of them"
    ]
    weighed = both | {"objective": "eaco", "energy_weight": 0.5}
    assert "price_usd_per_kwh: objective 'eaco' weighs kWh against hours" in faults(weighed)[-1]


def test_all_faults_at_once():
    wrong = {
        ("jobs", 0, "type"): "bug",
        ("jobs", 2, "max_slowdown"): 0,
        (*GPU, "power", "peak_w"): 1,
        (*GROUP, "rates", 0): 2,
    }
    assert len(faults(edited(FULL, wrong))) == 4


def test_a_cap_below_the_idle_floor_is_no_fault_of_the_file():
    """It makes the problem infeasible, which a solver has to say, with the floor."""
    instance = EacoInstance.from_document(edited(FULL, {(*NODES, "power", "sleep_w"): 100}))
    assert instance.changed({"power_cap_w": 1}).idle_floor_w == 200


def paths(document, path=()):
    """Yield the path of everything inside a document."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for part, value in entries:
        yield (*path, part)
        if isinstance(value, dict | list):
            yield from paths(value, (*path, part))


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 20),
    st.sampled_from([10**400, -1, 0, 1e308, float("nan"), float("inf"), 1e-12]),
    st.sampled_from(["", "a", "big", "V100", "epoch", "eaco", "table"]),
    st.lists(st.one_of(st.integers(-1, 3), st.sampled_from(["a", "big"]), st.none()), max_size=3),
    st.dictionaries(st.sampled_from(["id", "types", "kind", "power", "V100"]), st.integers(0, 3)),
    st.just(REMOVED),
)


@given(st.data())
def test_mutations_raise_only_instance_errors(data):
    document = FULL
    for _ in range(data.draw(st.integers(1, 4))):
        places = list(paths(document))
        change = {data.draw(st.sampled_from(places)): data.draw(VALUES)}
        document = edited(document, change)
    try:
        instance = EacoInstance.from_document(document)
    except InstanceError:
        return
    assert EacoInstance.from_document(json.loads(instance.to_json())) == instance
