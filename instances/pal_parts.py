"""Parts of the bundled instances of PAL: clusters, measured slowdowns, jobs and penalties."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from optsched.instances.parts import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from optsched.instances.parts import Document, Row

BLOX = "hal-uw/blox-pal, branch artifact, 8a59070 (MIT; Jain et al., PAL, SC'24)"
LONGHORN = "PAL's runs of ResNet-50 (class A), BERT (B and C) and PageRank (D) on TACC Longhorn"
# PAL's values: across nodes 1.7, the released simulator's default, and 1.734 on Frontera; by
# class B 1.0 and D 1.10, by model and GPUs PointNet 1.25 at 16.
ACROSS, ACROSS_FRONTERA = 1.7, 1.734
BY_LEVEL = {"DCGAN": [1.0, 1.0, 1.0], "PointNet": [1.0, 1.1, 1.25], "vgg19": [1.0, 1.0, 1.0]}
MEASURED_AS = {"BERT": "bert", "GPT2": "bert", "resnet50": "imagenet"}  # models that Sia timed


# --- clusters and slowdowns --------------------------------------------------------------------


def gpu_ids(nodes: int, gpus: int = 4) -> list[str]:
    """Name the GPUs of nodes: "n0/0", "n0/1", ..."""
    return [f"n{node}/{gpu}" for node in range(nodes) for gpu in range(gpus)]


def two_levels(nodes: int, gpus: int = 4) -> Document:
    """Return nodes in one cluster."""
    inside = [_node(n, "all", gpus) for n in range(nodes)]
    root = {"id": "all", "level": "cluster"}
    return {"levels": ["node", "cluster"], "domains": [root, *inside]}


def three_levels(racks: int, nodes: int, gpus: int = 4) -> Document:
    """Return racks of nodes."""
    domains: list[Document] = [{"id": "all", "level": "cluster"}]
    for rack in range(racks):
        domains.append({"id": f"r{rack}", "level": "rack", "parent": "all"})
        domains += [_node(n, f"r{rack}", gpus) for n in range(rack * nodes, (rack + 1) * nodes)]
    return {"levels": ["node", "rack", "cluster"], "domains": domains}


def _node(number: int, parent: str, gpus: int) -> Document:
    ids = [f"n{number}/{gpu}" for gpu in range(gpus)]
    return {"id": f"n{number}", "level": "node", "parent": parent, "gpus": ids}


def joint_profile(table: Sequence[Row], kind: str, source: str) -> Document:
    """Return the profile of a file with a line for each GPU."""
    slowdown = {
        name: [round(float(row[f"V_{name}"]), 6) for row in table] for name in ("A", "B", "C", "D")
    }
    return _profile(len(table), slowdown, kind, source)


def frontera_profile(data: Path) -> Document:
    """Return the profile of 8 nodes of Frontera."""
    source = f"32 GPUs of TACC Frontera, all classes on the same GPUs, six decimals: {BLOX}."
    return joint_profile(rows(data, "frontera32_profile.csv"), "persistent", source)


def simulator_profile(data: Path, gpus: int) -> Document:
    """Return what the released simulator draws for a cluster: a single run for each GPU."""
    source = f"As PAL's released simulator draws it, seed 42, from single runs: {LONGHORN}, {BLOX}."
    table = rows(data, f"artifact_sim_profile_{gpus}gpu_seed42.csv")
    return joint_profile(table, "single-run", source)


def bootstrap_profile(data: Path, gpus: int, seed: int) -> Document:
    """Draw a measured GPU for each GPU, for each application: they were not measured on the same.

    B and C are one application, so they are drawn together.
    """
    generator = random.Random(seed)
    table = rows(data, "longhorn_variability_per_gpu.csv")
    drawn = {}
    for application in ("resnet50", "bert", "pagerank"):
        medians = [float(row["norm_median"]) for row in table if row["app"] == application]
        drawn[application] = [generator.choice(medians) for _ in range(gpus)]
    slowdown = {
        "A": drawn["resnet50"],
        "B": drawn["bert"],
        "C": drawn["bert"],
        "D": drawn["pagerank"],
    }
    source = f"Bootstrap, seed {seed}, of the per-GPU medians of {LONGHORN}: {BLOX}."
    return _profile(gpus, slowdown, "persistent", source)


def _profile(
    gpus: int, slowdown: Mapping[str, Sequence[float]], kind: str, source: str
) -> Document:
    ids = gpu_ids(gpus // 4)
    return {"gpus": ids, "slowdown": dict(slowdown), "kind": kind, "source": source}


# --- jobs and penalties ------------------------------------------------------------------------


def workload(data: Path, number: int) -> list[Row]:
    """Return the jobs of a workload in the order of submission."""
    table = rows(data, "sia_philly_pal_traces.csv")
    chosen = [row for row in table if row["workload"] == str(number)]
    return sorted(chosen, key=lambda row: (float(row["submit_time"]), int(row["job_id"])))


def prefix(jobs: Iterable[Row], gpus: float) -> Iterator[Row]:
    """Yield jobs in order, none skipped, as long as they need no more GPUs than that in all."""
    for row in jobs:
        gpus -= int(row["num_gpus"])
        if gpus < 0:
            return
        yield row


def fitting(jobs: Iterable[Row], gpus: float) -> Iterator[Row]:
    """Yield jobs in order, but those for which too few GPUs are left."""
    for row in jobs:
        if int(row["num_gpus"]) <= gpus:
            gpus -= int(row["num_gpus"])
            yield row


def job(row: Row, **fields: object) -> Document:
    """Return a job of the trace; its id has the number that it has there."""
    return {
        "id": f"{row['model']}-{row['job_id']}",
        "gpus": int(row["num_gpus"]),
        "application_class": row["pal_class"],
        "model": row["model"],
        **fields,
    }


def work_s(row: Row) -> float:
    """Return the time that a job takes on median GPUs in one place."""
    return round(float(row["iterations"]) * float(row["iter_time_s"]), 1)


def two_penalties(jobs: Iterable[Document], across: float) -> dict[str, list[float]]:
    """Return the same penalty across nodes for every model."""
    return {model: [1.0, across] for model in sorted({str(job["model"]) for job in jobs})}


def three_penalties(data: Path) -> dict[str, list[float]]:
    """Return penalties within a node, a rack and the cluster.

    Where Sia timed a model, they are the median step time of 4 GPUs on two nodes over the best one
    on one node: in a rack that of its rtx nodes, above that of its aws ones with a slower network.
    """
    ratio = {
        (row["app"], row["gpu"]): float(row["median"])
        for row in rows(data, "sia_locality_ratio_summary.csv")
        if row["k"] == "4" and row["nodes"] == "2"
    }
    measured = {
        model: [1.0, ratio[application, "rtx"], ratio[application, "aws"]]
        for model, application in MEASURED_AS.items()
    }
    return dict(sorted((BY_LEVEL | measured).items()))


def first_fit(
    jobs: Iterable[Row], gpus: Sequence[str], until_s: float
) -> list[tuple[Row, list[str]]]:
    """Return what runs at a time if jobs take the first free GPUs when they come, or go away.

    They run at the pace of median GPUs.
    """
    running: list[tuple[Row, list[str]]] = []
    for row in jobs:
        now = float(row["submit_time"])
        if now > until_s:
            break
        running = [(other, held) for other, held in running if end_s(other) > now]
        taken = {gpu for _, held in running for gpu in held}
        free = [gpu for gpu in gpus if gpu not in taken]
        if int(row["num_gpus"]) <= len(free):
            running.append((row, free[: int(row["num_gpus"])]))
    return running


def end_s(row: Row) -> float:
    """Return when a job ends that runs from its submission on, on median GPUs."""
    return float(row["submit_time"]) + work_s(row)
