"""Instances of any size, drawn from seeds, that several benchmarks share.

Clusters of PAL: slowdowns and jobs are drawn from pal/racks-256. A tree has a slowdown for each GPU
of its own; the other clusters have 16 classes of equal nodes, and jobs of at most a node.
"""

from __future__ import annotations

import math
import random
from itertools import count

import numpy as np

import optsched
from optsched.eaco import EacoInstance
from optsched.pal import PalInstance

ACROSS = 1.7  # PAL's default locality penalty
PER_NODE = 8
NODE_CLASSES = 16


# --- PAL --------------------------------------------------------------------------------------


def base_columns():
    """Return a bundled instance, and the slowdowns of each of its GPUs by class."""
    base = optsched.read("pal/racks-256")
    return base, [dict(zip(base.profile.classes, row, strict=True)) for row in rows(base)]


def rows(instance):
    """Return the slowdowns of each GPU."""
    return zip(*(instance.profile.slowdown[c] for c in instance.profile.classes), strict=True)


def batch(rng, base, limit):
    """Yield jobs as drawn from an instance, until the next one would exceed the limit."""
    total = 0
    while True:
        job = rng.choice(base.jobs)
        total += job.gpus
        if total > limit:
            return
        wanted = {"gpus", "application_class", "model"}
        yield {"id": f"{job.id}-{total}", **job.model_dump(include=wanted)}


def document(name, domains, levels, picked, penalty, jobs, base):
    """Return an instance with a slowdown for each GPU of its lowest domains."""
    names = [gpu for domain in domains for gpu in domain.get("gpus", ())]
    slowdown = {c: [row[c] for row in picked] for c in base.profile.classes}
    return PalInstance.from_document(
        {
            "schema": "optsched/pal/1",
            "name": name,
            "topology": {"levels": levels, "domains": domains},
            "profile": {"gpus": names, "slowdown": slowdown, "kind": base.profile.kind},
            "locality": {job["model"]: penalty for job in jobs},
            "jobs": jobs,
        }
    )


def tree(gpus, fanouts=(), seed=0, per_node=PER_NODE):
    """Return a cluster with so many domains of each level in one of the next, up to the root."""
    rng = random.Random(seed)
    base, columns = base_columns()
    levels = ["node", *(f"level-{n}" for n in range(len(fanouts))), "cluster"]
    domains, counts = [{"id": "all", "level": "cluster"}], [gpus // per_node]
    for fanout in fanouts:
        counts.append(-(-counts[-1] // fanout))
    for height in range(len(counts) - 1, -1, -1):
        for n in range(counts[height]):
            top = height == len(counts) - 1
            parent = "all" if top else f"{levels[height + 1]}-{n // fanouts[height]}"
            domains.append({"id": f"{levels[height]}-{n}", "level": levels[height]})
            domains[-1]["parent"] = parent
            if not height:
                domains[-1]["gpus"] = [f"n{n}/{i}" for i in range(per_node)]
    picked = [rng.choice(columns) for _ in range(gpus)]
    jobs = list(batch(rng, base, 0.9 * gpus))
    top = len(levels) - 1
    penalty = [1 + (ACROSS - 1) * n / top for n in range(len(levels))]
    name = f"{gpus:,} GPUs, {len(levels)} levels"
    return document(name, domains, levels, picked, penalty, jobs, base)


def classes(gpus, count, seed=0):
    """Return a cluster of nodes of a few classes, and jobs that stay within a node."""
    rng = random.Random(seed)
    base, columns = base_columns()
    node_classes = [[rng.choice(columns) for _ in range(PER_NODE)] for _ in range(NODE_CLASSES)]
    nodes = [rng.randrange(NODE_CLASSES) for _ in range(gpus // PER_NODE)]
    domains = [{"id": "all", "level": "cluster"}]
    for n in range(len(nodes)):
        inside = [f"n{n}/{i}" for i in range(PER_NODE)]
        domains.append({"id": f"n{n}", "level": "node", "parent": "all", "gpus": inside})
    combinations = sorted({(job.model, job.application_class) for job in base.jobs})
    jobs = []
    for n in range(count):
        model, name = rng.choice(combinations)
        size = rng.choices([1, 2, 4, 8], [0.6, 0.2, 0.12, 0.08])[0]
        job = {"id": f"j{n}", "gpus": size, "application_class": name, "model": model}
        jobs.append(job | {"highest_level": "node"})
    picked = [row for kind in nodes for row in node_classes[kind]]
    name = f"{gpus:,} GPUs, {NODE_CLASSES} node classes"
    return document(name, domains, ["node", "cluster"], picked, [1, ACROSS], jobs, base)


USUAL_SIZES = {1: 30, 2: 16, 3: 8, 4: 16, 6: 6, 8: 12, 12: 3, 16: 5, 24: 2, 32: 2}  # weights
USUAL_PENALTIES = {"m": [1, 1.15, 1.4], "n": [1, 1.05, 1.2]}  # node, rack, cluster
USUAL_SIGMA = 0.03
NODES_PER_RACK = 16


def usual(gpus, seed=0):
    """Return a usual placement that is hard: normal slowdowns, three levels, 85 to 100 % load.

    Nodes of 8 GPUs, racks of 16 nodes; each GPU has a slowdown of its own for both classes; gangs
    of 1 to 32 GPUs, of two classes and two models, together exactly as many as the load allows.
    """
    rng = random.Random(seed)
    nodes = gpus // PER_NODE
    racks = -(-nodes // NODES_PER_RACK)
    domains = [{"id": "all", "level": "cluster"}]
    domains += [{"id": f"r{r}", "level": "rack", "parent": "all"} for r in range(racks)]
    for n in range(nodes):
        inside = [f"n{n}/{i}" for i in range(PER_NODE)]
        node = {"id": f"n{n}", "level": "node", "parent": f"r{n // NODES_PER_RACK}"}
        domains.append(node | {"gpus": inside})
    names = [gpu for domain in domains for gpu in domain.get("gpus", ())]
    slowdown = {c: [max(0.8, rng.gauss(1, USUAL_SIGMA)) for _ in names] for c in "AB"}
    left, jobs = int(rng.uniform(0.85, 1) * len(names)), []
    sizes, weights = list(USUAL_SIZES), list(USUAL_SIZES.values())
    while left:
        size = rng.choices(sizes, weights)[0]
        if size <= left:
            left -= size
            job = {"id": f"j{len(jobs)}", "gpus": size, "application_class": rng.choice("AB")}
            jobs.append(job | {"model": rng.choice("mn")})
    return PalInstance.from_document(
        {
            "schema": "optsched/pal/1",
            "name": f"usual, {gpus:,} GPUs, seed {seed}",
            "topology": {"levels": ["node", "rack", "cluster"], "domains": domains},
            "profile": {"gpus": names, "slowdown": slowdown, "kind": "persistent"},
            "locality": USUAL_PENALTIES,
            "jobs": jobs,
        }
    )


def equal_jobs(gpus=64, seed=0):
    """Return nodes of 4 or 8 unlike GPUs, and 19 jobs alike in all but their width."""
    rng = random.Random(seed)
    per_node = (4, 8)[seed % 2]
    names = [f"n{n // per_node}/{n % per_node}" for n in range(gpus)]
    domains = [{"id": "all", "level": "cluster"}]
    for n in range(0, gpus, per_node):
        inside = {"id": f"n{n // per_node}", "gpus": names[n : n + per_node]}
        domains.append({"level": "node", "parent": "all"} | inside)
    slowdown = {"A": [round(rng.lognormvariate(0, 0.08), 4) for _ in range(gpus)]}
    alike = {"application_class": "A", "model": "m"}
    jobs = [{"id": f"j{n}", "gpus": rng.choice([1, 2, 3, 3, 4])} | alike for n in range(19)]
    return PalInstance.from_document(
        {
            "schema": "optsched/pal/1",
            "name": f"equal jobs, {gpus} GPUs in nodes of {per_node}, seed {seed}",
            "topology": {"levels": ["node", "cluster"], "domains": domains},
            "profile": {"gpus": names, "slowdown": slowdown, "kind": "persistent"},
            "locality": {"m": [1, 1]},
            "jobs": jobs,
        }
    )


def next_epoch(instance, share=0.05, seed=1):
    """Return the instance an epoch later: so many jobs have left, and others came for their GPUs.

    A job that comes is like one of the batch, and together they ask for no more than was freed.
    """
    rng = random.Random(seed)
    leaving = set(rng.sample(range(len(instance.jobs)), math.ceil(share * len(instance.jobs))))
    jobs = [job for n, job in enumerate(instance.jobs) if n not in leaving]
    freed = sum(instance.jobs[n].gpus for n in leaving)
    for n in count():
        fitting = [job for job in instance.jobs if job.gpus <= freed]
        if not fitting:
            break
        job = rng.choice(fitting)
        freed -= job.gpus
        jobs.append(job.model_copy(update={"id": f"new-{seed}-{n}"}))
    return instance.model_copy(update={"jobs": tuple(jobs)})


# --- EaCO -------------------------------------------------------------------------------------


def sharing(jobs, most, tolerance, seed=0):
    """Jobs of types of their own: log-uniform work, uniform utilisations and memories."""
    draw = np.random.default_rng(seed)
    types = [
        {
            "id": f"t{n:04d}",
            "utilisation": round(float(draw.uniform(0.05, 0.6)), 3),
            "memory_gb": round(float(draw.uniform(1, 10)), 1),
        }
        for n in range(jobs)
    ]
    work = np.exp(draw.uniform(math.log(1800), math.log(180_000), jobs)).round().tolist()
    listed = [
        {"id": f"j{n}", "type": f"t{n:04d}", "work_s": work[n], "max_slowdown": 1 + tolerance}
        for n in range(jobs)
    ]
    return _eaco(f"{jobs} jobs, {most} share, tolerance {tolerance}", most, types, listed)


def sharing_live(jobs, most, tolerance, besides, seed=0):
    """Return the jobs of `sharing` with what a user's cluster has besides.

    "formula": nothing; "pair": two types measured side by side; "cap": a power cap that never
    binds; "running": a job that runs now; "curve": four types, and watts by a power law.
    """
    document = sharing(jobs, most, tolerance, seed).model_dump(by_alias=True, exclude_none=True)
    if besides == "pair":
        group = {"types": ["t0000", "t0001"], "rates": [0.9, 0.9]}
        document["interference"]["groups"] = [group]
    if besides == "curve":
        document["types"] = document["types"][:4]
        for n, job in enumerate(document["jobs"]):
            job["type"] = document["types"][n % 4]["id"]
        document["gpu_types"][0]["power"]["curve"] = {"kind": "power-law", "exponent": 0.48}
    if besides == "cap":
        document["power_cap_w"] = 1e9
    if besides == "running":
        document["nodes"][0]["on"] = 1
        document["running"] = [{"id": "r0", "jobs": ["j0"], "nodes": "a", "node": 0}]
    return EacoInstance.from_document(document | {"name": f"{document['name']}, {besides}"})


def sharing_in_types(jobs, types, most, tolerance, seed=0):
    """Jobs of few types, those of `sharing`; the jobs of a type have the same work, too."""
    base = sharing(types, most, tolerance, seed).model_dump(by_alias=True, exclude_none=True)
    which = np.random.default_rng(seed + 1).integers(0, types, jobs).tolist()
    listed = [base["jobs"][k] | {"id": f"j{n}"} for n, k in enumerate(which)]
    return _eaco(f"{jobs:,} jobs in {types} types, {most} share", most, base["types"], listed)


def sharing_next_epoch(instance, share=0.05, seed=1):
    """Return the instance an epoch later: so many jobs have left, and others came, of new types."""
    rng = random.Random(seed)
    leaving = rng.sample(range(len(instance.jobs)), math.ceil(share * len(instance.jobs)))
    document = instance.model_dump(by_alias=True, exclude_none=True)
    jobs, types = list(document["jobs"]), list(document["types"])
    tolerance = jobs[0]["max_slowdown"] - 1
    others = sharing(len(leaving), instance.max_jobs_per_gpu, tolerance, seed)
    coming = others.model_dump(by_alias=True, exclude_none=True)
    types += [kind | {"id": f"new-{seed}-{kind['id']}"} for kind in coming["types"]]
    for n, job in zip(leaving, coming["jobs"], strict=True):
        jobs[n] = job | {"id": f"new-{seed}-{job['id']}", "type": f"new-{seed}-{job['type']}"}
    name = f"{len(jobs)} jobs, {round(100 * share)} % of them new"
    return _eaco(name, instance.max_jobs_per_gpu, types, jobs)


def sharing_minutes_later(instance, minutes=10, seed=1):
    """Return the instance some minutes later: all jobs have less to do, and three were replaced."""
    rng, document = random.Random(seed), instance.model_dump(by_alias=True, exclude_none=True)
    for job in document["jobs"]:
        job["work_s"] -= 60 * minutes * rng.uniform(0.8, 1)
    document["jobs"] = [job for job in document["jobs"] if job["work_s"] > 60]
    left = EacoInstance.from_document(document)
    later = sharing_next_epoch(left, 3 / len(left.jobs), seed)
    return later.model_copy(update={"name": f"{len(later.jobs)} jobs, {minutes} minutes later"})


def _eaco(name, most, types, jobs):
    power = {"bare_w": 50, "context_w": 100, "peak_w": 350}
    nodes = -(-len(jobs) // PER_NODE)
    node = {"id": "a", "gpu": "g", "gpus": PER_NODE, "count": nodes, "power": {"base_w": 400}}
    return EacoInstance.from_document(
        {
            "schema": "optsched/eaco/1",
            "name": name,
            "max_jobs_per_gpu": most,
            "gpu_types": [{"id": "g", "memory_gb": 24, "power": power}],
            "nodes": [node],
            "types": types,
            "jobs": jobs,
        }
    )


# --- BOA --------------------------------------------------------------------------------------

WIDTHS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64], float)


def curves(phases, widths, noise, seed=0):
    """Amdahl curves with random parallel fractions and log-normal noise; and random loads."""
    rng = np.random.default_rng(seed)
    fraction = rng.uniform(0.5, 0.999, phases)[:, None]
    speedup = 1 / (1 - fraction + fraction / widths)
    return rng.lognormal(0, 1, phases), speedup * rng.lognormal(0, noise, speedup.shape)
