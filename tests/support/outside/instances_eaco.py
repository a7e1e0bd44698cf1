"""Small EaCO instances as documents, drawn by a seed; see `outside.instances`."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

from tests.support.outside.eaco_groups import Cluster, due_s


def _power(f):
    bare, context, peak = sorted(f.zero_or(20.0, 400.0) for _ in range(3))
    peak = max(peak, 1e-9)
    power = {"bare_w": bare, "context_w": context, "peak_w": peak}
    kind = f.one_of("affine", "power-law", "fan", "table", "table")
    if kind == "table":
        busy = sorted({f.share() for _ in range(f.rng.randint(1, 4))})
        if f.chance(0.5):  # neighbours, where watts may fall at once
            busy = sorted({*busy, math.nextafter(busy[0], 1.0)})
        watts = [f.one_of(context, peak, _between(context, peak)) for _ in busy]
        watts = watts if f.chance(0.6) else sorted(watts)
        power["curve"] = {"kind": kind, "utilisation": busy, "power_w": watts}
    elif kind == "power-law":
        power["curve"] = {"kind": kind, "exponent": f.one_of(0.01, 0.48, 1.0, 1.5, 4.0)}
    elif kind == "fan":
        power["curve"] = {"kind": kind, "exponent": f.one_of(1.0, 1.4, 2.0)}
    return power


def _between(low, high):
    middle = (low + high) / 2
    return middle if middle >= 1e-9 else low


def _gpu_type(f, name):
    power = _power(f)
    gpu = {"id": name, "memory_gb": f.one_of(16.0, 32.0, 80.0), "power": power}
    if f.chance(0.35):
        limit = max(power["context_w"], 1e-9)
        limit = f.one_of(limit, power["peak_w"], limit * 1.5, 1e12)
        level = {"id": "low", "limit_w": min(limit, 1e12), "rate": _rate(f)}
        gpu["levels"] = [level | {"power": f.one_of(0.001, 0.6, 0.9, 1.0)}]
    return gpu


def _rate(f):
    if f.spread == "usual":
        return round(f.rng.uniform(0.4, 1.0), f.one_of(2, 16))
    return f.one_of(0.001, 0.00107, 1.0, 1 - 2.0**-53, 0.5, 1 / 1.5, f.rng.uniform(0.001, 1))


def _nodes(f, name, gpu):
    sleep, base = sorted(f.zero_or(20.0, 1500.0) for _ in range(2))
    power = {"base_w": base, "sleep_w": sleep, "wake_s": f.zero_or(10.0, 600.0)}
    if f.chance(0.5):
        power["wake_w"] = min(sleep + f.zero_or(20.0, 2000.0), 1e12)
    count = f.rng.randint(1, 3)
    entry = {"id": name, "gpu": gpu, "gpus": f.rng.randint(1, 4), "count": count, "power": power}
    return entry | ({"on": f.rng.randint(0, count)} if f.chance(0.5) else {})


def _interference(f, types, gpus):
    groups, seen = [], set()
    for size in (1, 2, 2, 3, 4):
        for key in combinations_with_replacement(types, size):
            if f.chance({1: 0.15, 2: 0.5, 3: 0.25, 4: 0.1}[size]):
                gpu = f.one_of(None, None, *gpus)
                if (gpu, key) in seen:
                    continue
                seen.add((gpu, key))
                by_kind = {kind: _rate(f) for kind in key}
                fits = size == 1 or f.chance(0.9)
                rates = [1.0 if size == 1 else by_kind[kind] * fits for kind in key]
                group = {"types": list(key), "rates": rates}
                group |= {} if gpu is None else {"gpu": gpu}
                group |= {"gpu_power_w": f.positive(30.0, 400.0)} if f.chance(0.25) else {}
                group |= {"utilisation": f.share()} if f.chance(0.25) else {}
                groups.append(group)
    table = {"groups": groups if f.chance(0.7) else []}
    table["fallback"] = f.one_of("none", "larger", "pairs", "pairs", "utilisation", "utilisation")
    if f.chance(0.4):
        table |= {"saturation_slope": f.zero_or(0.1, 2.0), "partner_slowdown": f.zero_or(0.01, 0.5)}
    return table


def _jobs(f, types, nodes, document):
    jobs = []
    for n in range(f.rng.randint(1, 4 if f.chance(0.8) else 5)):
        job = {"id": f"j{n}", "type": f.one_of(*types), "gpus": f.one_of(1, 1, 1, 2)}
        if not any(_suits(job["gpus"], pool) for pool in nodes):
            job["gpus"] = min(pool["gpus"] for pool in nodes)
        job["work_s"] = f.positive(60.0, 20000.0)
        if f.chance(0.3):
            job["max_slowdown"] = f.one_of(1.0, 1.2, 1 + 2.0**-40, 2.0, 1e6)
        if f.chance(0.3):
            due = f.one_of(job["work_s"], job["work_s"] * 1.5, 1e12, f.positive())
            job["deadline_s"] = min(due, 1e12)
        job["migration_s"] = f.zero_or(1.0, 600.0)
        if document["objective"] == "eaco":
            job["training_epoch_s"] = f.positive(10.0, 500.0)
        elif f.chance(0.3):
            job["waiting_penalty_kwh"] = f.positive(0.001, 2.0)
        if document["objective"] == "epoch" and f.chance(0.5):
            job["work_credit_w"] = f.positive(50.0, 500.0)
        jobs.append(job)
    if len(jobs) > 1 and f.chance(0.3):  # equal jobs, or all but equal ones
        jobs[1] = {**jobs[0], "id": jobs[1]["id"]}
        jobs[1]["work_s"] *= f.one_of(1.0, 1.0, 1 + 2.0**-50, 1 - 2.0**-52)
        jobs[1]["work_s"] = min(max(1e-9, jobs[1]["work_s"]), 1e12)
    return jobs


def _suits(gpus, pool):
    return gpus <= pool["gpus"] * pool["count"] and (
        gpus <= pool["gpus"] or gpus % pool["gpus"] == 0
    )


def _running(f, jobs, nodes):
    """Groups that run now, each on GPUs of nodes that are on and have room."""
    places, loads = [], {}
    for job in jobs:
        pool = f.one_of(*nodes)
        awake = pool.get("on", pool["count"])
        span, each = max(1, job["gpus"] // pool["gpus"]), min(job["gpus"], pool["gpus"])
        if f.chance(0.6) or not _suits(job["gpus"], pool) or awake < span:
            continue
        before = f.one_of(*places) if places and f.chance(0.4) else None
        size = None if before is None else _size(jobs, before["jobs"][0])
        if before is not None and size == job["gpus"]:
            before["jobs"].append(job["id"])
            continue
        node = f.rng.randint(0, awake - span)
        keys = [(pool["id"], node + n) for n in range(span)]
        if all(loads.get(key, 0) + each <= pool["gpus"] for key in keys):
            loads |= {key: loads.get(key, 0) + each for key in keys}
            place = {"id": f"p{len(places)}", "nodes": pool["id"], "node": node}
            places.append(place | {"jobs": [job["id"]]})
    return places


def _size(jobs, name):
    return next(job["gpus"] for job in jobs if job["id"] == name)


def eaco(seed):
    """As `eaco_late`, but with deadlines that every job can keep alone."""
    document = eaco_late(seed)
    cluster = Cluster(document)
    for job in document["jobs"]:
        if job.get("deadline_s") is not None:
            due = float(due_s(cluster, job["id"]))
            job["deadline_s"] = min(max(job["deadline_s"], math.nextafter(due, math.inf)), 1e12)
            if job["deadline_s"] < due:  # later than any deadline that is allowed
                del job["deadline_s"]
    return document


def eaco_late(seed):
    """At most 5 jobs and 6 nodes; all objectives, levels, caps, running jobs, deadlines."""
    from tests.support.outside.instances import Figures

    f = Figures(seed)
    names = ["s", "t", "u"][: f.rng.randint(1, 3)]
    gpus = ["G", "H"][: f.one_of(1, 1, 2)]
    document = {"schema": "optsched/eaco/1", "name": f"outside-{seed}"}
    document["objective"] = f.one_of("run-to-completion", "run-to-completion", "epoch", "eaco")
    document["gpu_types"] = [_gpu_type(f, gpu) for gpu in gpus]
    nodes = [_nodes(f, f"n{gpu}", gpu) for gpu in gpus]
    types = []
    for kind in names:
        entry = {"id": kind, "utilisation": f.share(), "memory_gb": f.one_of(0.0, 2.0, 8.0, 16.0)}
        if f.chance(0.4):
            entry["speeds"] = {gpus[-1]: f.positive(0.3, 3.0)}
        types.append(entry)
    jobs = _jobs(f, names, nodes, document)
    document |= {"nodes": nodes, "types": types, "jobs": jobs}
    document["max_jobs_per_gpu"] = f.one_of(1, 2, 3, 4, 8)
    if f.chance(0.2):
        document["memory_headroom"] = f.one_of(0.1, 0.17, 0.5)
    if f.chance(0.2):
        document["utilisation_limit"] = f.one_of(0.8, 1.0, f.positive(0.5, 1.5))
    if document["objective"] == "eaco":
        document["energy_weight"] = f.share()
    else:
        key = f.one_of(None, "price_usd_per_kwh", "carbon_g_per_kwh")
        document |= {} if key is None else {key: f.positive(0.05, 500.0)}
    if document["objective"] == "epoch":
        document["epoch_s"] = f.positive(60.0, 3600.0)
    if f.chance(0.4):
        document["running"] = _running(f, jobs, nodes)
    document["interference"] = _interference(f, names, gpus)
    if f.chance(0.25):
        floor = sum(pool["count"] * pool["power"]["sleep_w"] for pool in nodes)
        most = sum(
            pool["count"] * (pool["power"]["base_w"] + pool["gpus"] * gpu["power"]["peak_w"])
            for pool in nodes
            for gpu in document["gpu_types"]
            if gpu["id"] == pool["gpu"]
        )
        cap = f.one_of(floor, floor + f.rng.random() * (most - floor), most)
        document["power_cap_w"] = min(max(cap, 1e-9), 1e12)
    return document
