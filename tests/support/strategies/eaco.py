"""EaCO instances for tests: a compact way to write one down, and Hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from optsched.eaco import EacoInstance
from tests.support.strategies.common import among
from tests.support.strategies.eaco_parts import SHARES, WORKS, gpu_types, pools, tables, with_a_plan

# --- instances written by hand ------------------------------------------------------------------

GPU = {"memory_gb": 16.0, "power": {"bare_w": 10.0, "context_w": 20.0, "peak_w": 120.0}}


def document(jobs=("a",), *, types=None, gpus=None, nodes=None, measured=None, **fields):
    """Return the document of an instance from a compact description.

    Parameters
    ----------
    jobs
        Type names, or mappings with `type` ("a" if not given) and whatever else. By default a job
        has the id "j0", "j1", ..., and an hour of work on one GPU.
    types
        By name the utilisation, or a mapping; 0.5 for those that jobs name by default.
    gpus
        By id what differs from a GPU of 16 GB that draws 10, 20 and 120 W; `levels` are triples
        of limit, rate and power, with ids "l0", "l1", .... By default there is "X".
    nodes
        By id the GPUs of each node, or a mapping; by default four of the first GPU type, at 100 W,
        and as many nodes as jobs.
    measured
        By types, "a b", the rates in that order, or a mapping with `rates` and whatever else.
    fields
        Of the document; `fallback` and the like go into `interference`, `running` gets ids "r0".
    """
    jobs = [{"type": job} if isinstance(job, str) else job for job in jobs]
    listed = [{"id": f"j{n}", "type": "a", "work_s": 3600.0, **job} for n, job in enumerate(jobs)]
    types = types or dict.fromkeys(sorted({job["type"] for job in listed}), 0.5)
    gpus = gpus or {"X": {}}
    nodes = nodes or {"x": 4}
    table = {key: fields.pop(key) for key in ("fallback", *_FORMULA) if key in fields}
    running = [{"id": f"r{n}", **place} for n, place in enumerate(fields.pop("running", ()))]
    node = {"gpu": next(iter(gpus)), "gpus": 4, "count": len(jobs), "power": {"base_w": 100.0}}
    return {
        "schema": "optsched/eaco/1",
        "name": "small",
        "gpu_types": [{"id": name, **GPU, **_with_levels(gpu)} for name, gpu in gpus.items()],
        "nodes": [{"id": name, **node, **_mapping("gpus", n)} for name, n in nodes.items()],
        "types": [{"id": name, **_mapping("utilisation", t)} for name, t in types.items()],
        "jobs": listed,
        "running": running,
        "interference": {
            "groups": [
                {"types": key.split(), **_mapping("rates", rates)}
                for key, rates in (measured or {}).items()
            ],
            **table,
        },
        **fields,
    }


def small_instance(jobs=("a",), **description):
    """Return the instance of a compact description: the parameters are those of `document`."""
    return EacoInstance.from_document(document(jobs, **description))


_FORMULA = ("saturation_slope", "partner_slowdown")


def _mapping(key, value):
    return value if isinstance(value, dict) else {key: value}


def _with_levels(gpu):
    triples = gpu.get("levels", ())
    keys = ("limit_w", "rate", "power")
    levels = [
        {"id": f"l{n}", **dict(zip(keys, triple, strict=True))} for n, triple in enumerate(triples)
    ]
    return {**gpu, "levels": levels}


# --- drawn instances ----------------------------------------------------------------------------

OBJECTIVES = ("run-to-completion", "epoch", "eaco")


@st.composite
def eaco_instances(
    draw,
    max_jobs=7,
    gangs=(1, 2, 4),
    max_nodes=4,
    sharing=(1, 2, 3, 4),
    max_pools=2,
    objectives=OBJECTIVES,
    fallbacks=("none", "larger", "pairs", "utilisation"),
    running=True,
    waiting=True,
    levels=True,
    caps=True,
    sleep=True,
    tolerances=True,
    memory=True,
    max_gpu_types=2,
    feasible=True,
):
    """Small instances, every feature of which can be switched off.

    With `feasible` every instance has a plan: in it every job has GPUs of its own, or all wait.
    Otherwise nodes may be too few, and power caps too low, down to below the idle floor.
    """
    gpus = draw(gpu_types(draw(st.integers(1, max_gpu_types)), levels))
    jobs = _jobs(draw, max_jobs, gangs)
    text = {
        "schema": "optsched/eaco/1",
        "name": "drawn",
        "objective": draw(among(*objectives)),
        "max_jobs_per_gpu": draw(among(*sharing)),
        "gpu_types": gpus,
        "nodes": draw(pools(gpus, [job["gpus"] for job in jobs], max_nodes, sleep, max_pools)),
        "jobs": jobs,
    }
    text["types"] = _types(draw, jobs, gpus, memory)
    text["interference"] = draw(tables([t["id"] for t in text["types"]], gpus, fallbacks))
    _value(draw, text, waiting)
    if memory:
        text["memory_headroom"] = draw(among(0.0, 0.0, 0.17))
    if running and draw(st.booleans()):
        text["running"] = _running(draw, text)
    if tolerances:
        _tolerate(draw, text)
    if caps and draw(st.integers(0, 2)) == 0:
        text["power_cap_w"] = _cap(draw, text, feasible)
    return with_a_plan(text) if feasible else EacoInstance.from_document(text)


def _jobs(draw, max_jobs, gangs):
    """Jobs of few types and gang sizes; some are just like the one before."""
    sizes = draw(st.lists(among(*gangs), min_size=1, max_size=2))
    jobs = []
    for n in range(draw(st.integers(1, max_jobs))):
        before = jobs[-1] if jobs and draw(st.booleans()) else {"work_s": draw(WORKS)}
        type_id = before.get("type") or draw(among(*"abc"))
        gang = before.get("gpus") or draw(among(*sizes))
        jobs.append(before | {"id": f"j{n}", "type": type_id, "gpus": gang})
    return jobs


def _types(draw, jobs, gpus, memory):
    types = []
    for name in sorted({job["type"] for job in jobs}):
        kind = {"id": name, "utilisation": draw(SHARES)}
        if memory:
            kind["memory_gb"] = draw(among(0.0, 4.0, 8.0, 16.0))
        speeds = among(0.5, 1.0, 2.0, 1.7)
        kind["speeds"] = {gpu["id"]: draw(speeds) for gpu in gpus if draw(st.booleans())}
        types.append(kind)
    return types


def _value(draw, text, waiting):
    """Give an instance what its objective needs, and some of its jobs leave to wait."""
    if text["objective"] == "eaco":
        text["energy_weight"] = draw(among(0.0, 0.25, 0.9, 1.0))
        for job in text["jobs"]:
            job["training_epoch_s"] = draw(among(60.0, 1400.0, 1440.0))
        return
    key = draw(among(None, None, "price_usd_per_kwh", "carbon_g_per_kwh"))
    if key:
        text[key] = draw(among(0.25, 274.0))
    if text["objective"] == "epoch":
        text["epoch_s"] = draw(among(60.0, 600.0, 3600.0))
    who = draw(among("none", "some", "all")) if waiting else "none"
    for job in text["jobs"]:
        if who == "all" or (who == "some" and draw(st.booleans())):
            job["waiting_penalty_kwh"] = draw(among(0.001, 0.05, 0.5, 10.0))
        if text["objective"] == "epoch" and draw(st.booleans()):
            job["work_credit_w"] = draw(among(50.0, 150.0, 1000.0))


def _running(draw, text):
    """Let some jobs run now, alone or together, on nodes that are on."""
    left = [job for job in text["jobs"] if draw(st.integers(0, 2))]
    free = {
        (pool["id"], number): pool["gpus"]
        for pool in text["nodes"]
        for number in draw(st.permutations(range(pool.get("on", pool["count"]))))
    }
    each = {pool["id"]: pool["gpus"] for pool in text["nodes"]}
    places = []
    while left:
        gang = left[0]["gpus"]
        equal = [job for job in left if job["gpus"] == gang][: draw(st.integers(1, 3))]
        left = [job for job in left if job not in equal]
        for name, node in free:
            size, take = each[name], range(node, node + max(1, gang // each[name]))
            fits = gang <= size or gang % size == 0
            if fits and all(free.get((name, n), 0) >= min(gang, size) for n in take):
                for n in take:
                    free[name, n] -= min(gang, size)
                ids = [job["id"] for job in equal]
                places.append({"id": f"r{len(places)}", "nodes": name, "node": node, "jobs": ids})
                for job in equal:
                    job["migration_s"] = draw(among(0.0, 62.0, 1000.0))
                break
    return places


def _tolerate(draw, text):
    """Bound slowdowns, deadlines and utilisation; some jobs are late already."""
    for job in text["jobs"]:
        if draw(st.booleans()):
            job["max_slowdown"] = draw(among(1.0, 1.05, 1.25, 2.0, 10.0))
        if draw(st.integers(0, 3)) == 0:
            share = draw(among(-0.1, 0.5, 0.9, 1.0, 1.02, 1.25, 3.0))
            job["deadline_s"] = share * job["work_s"]
    if draw(st.integers(0, 2)) == 0:
        text["utilisation_limit"] = draw(among(0.5, 0.9, 1.0, 1.5))


def _cap(draw, text, feasible):
    """Return a power cap: tight, loose, or below the idle floor; by no plan kept exactly."""
    watts = {gpu["id"]: gpu["power"]["peak_w"] for gpu in text["gpu_types"]}
    floor = sum(n["count"] * n["power"].get("sleep_w", 0.0) for n in text["nodes"])
    most = sum(
        n["count"] * (n["power"]["base_w"] + n["gpus"] * watts[n["gpu"]]) for n in text["nodes"]
    )
    shares = [0.0513, 0.2017, 0.3041, 0.5029, 1.01] + ([] if feasible else [-0.1, 0.0])
    return max(floor + draw(among(*shares)) * (most - floor), 1e-3)
