"""Write the bundled instances of PAL from the measured figures: ``python build_pal.py DATA_DIR``.

DATA_DIR holds the CSV files of slowdowns, traces and locality ratios; the instances quote where
these come from. The same files give the same bytes. Slowdowns have six decimals. When they
change, ``python build_pal.py --known`` solves them and writes their entries of known.json.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from optsched.instances import pal_parts, parts
from optsched.instances.pal_parts import ACROSS, ACROSS_FRONTERA, BLOX, job
from optsched.pal import PalInstance

if TYPE_CHECKING:
    from pathlib import Path

    from optsched.instances.parts import Document

TRACE = f"Jobs: its Sia-Philly trace, workload {{}} (after Sia, SOSP'23), of {BLOX}."
FILL = 0.9
EPOCH_S, ROUND_S = 14400, 360
RESTART_S = {"resnet50": 60, "BERT": 120, "GPT2": 120}  # checkpoint and start; others 30


def tiny(data: Path) -> Document:
    """Return three jobs on two nodes, to be solved by hand."""
    slowdown = {"A": [1.2, 1.1, 0.95, 1.0], "D": [1.0, 1.0, 1.0, 1.0]}
    ids = pal_parts.gpu_ids(2, 2)
    jobs = [
        {"id": "solo", "gpus": 1, "application_class": "A", "model": "resnet50"},
        {"id": "pair", "gpus": 2, "application_class": "A", "model": "resnet50"},
        {"id": "calm", "gpus": 1, "application_class": "D", "model": "PointNet"},
    ]
    return _document(
        "tiny",
        "Three jobs on two nodes of two GPUs, to be solved by hand: the pair on n1, solo on n0/1 "
        "and calm on n0/0 cost 1.0 + 1.1 + 1.0. Packing gives solo n0/0 (3.2); PAL gives it the "
        "fastest GPU, n1/0, and the pair what is left of one node (3.15).",
        "optsched",
        topology=pal_parts.two_levels(2, 2),
        profile={"gpus": ids, "slowdown": slowdown, "kind": "persistent"},
        locality={"PointNet": [1.0, 1.5], "resnet50": [1.0, 1.5]},
        jobs=jobs,
    )


def frontera_32(data: Path) -> Document:
    """Return a batch on the one profile that was measured jointly for all classes."""
    chosen = list(pal_parts.fitting(pal_parts.workload(data, 6), FILL * 32))
    jobs = [job(row) for row in chosen]
    return _document(
        "frontera-32",
        "10 jobs on 8 nodes of 4 GPUs: those of workload 6, as they come, that fit into 90 % of "
        "the GPUs. Nodes n4 and n7 are slow for class A, n0 for B and C.",
        f"{TRACE.format(6)} Penalty: 1.734 as in its Frontera runs.",
        topology=pal_parts.two_levels(8),
        profile=pal_parts.frontera_profile(data),
        locality=pal_parts.two_penalties(jobs, ACROSS_FRONTERA),
        jobs=jobs,
    )


def sia_64(data: Path) -> Document:
    """Return the first jobs of a trace on the cluster of PAL's simulations."""
    jobs = [job(row) for row in pal_parts.prefix(pal_parts.workload(data, 5), FILL * 64)]
    return _document(
        "sia-64",
        "The first 7 jobs of workload 5 on 16 nodes of 4 GPUs (none skipped, up to 90 % of the "
        "GPUs). One GPU, n8/3, is 2.83 x slow for class A, and packing puts 32 GPUs of ResNet-50 "
        "on its node; no GPU's own median was above 1.12 (see sia-64-persistent).",
        f"{TRACE.format(5)} Penalty: 1.7, the default of its simulator.",
        topology=pal_parts.two_levels(16),
        profile=pal_parts.simulator_profile(data, 64),
        locality=pal_parts.two_penalties(jobs, ACROSS),
        jobs=jobs,
    )


def sia_64_persistent(data: Path) -> Document:
    """Return the same jobs with slowdowns that last."""
    return sia_64(data) | {
        "name": "pal/sia-64-persistent",
        "description": "The jobs of sia-64 with slowdowns that last: each GPU has the median of "
        "the runs of a GPU that was measured. So much is left of the gain when passing trouble of "
        "single runs is taken out.",
        "profile": pal_parts.bootstrap_profile(data, 64, seed=0),
    }


def racks_256(data: Path) -> Document:
    """Return jobs drawn from all workloads, on three levels, with penalties by model."""
    pool = parts.rows(data, "sia_philly_pal_traces.csv")
    drawn = random.Random(3).sample(pool, len(pool))
    jobs = [
        job(row, id=f"{row['model']}-{row['workload']}.{row['job_id']}")
        for row in pal_parts.prefix(drawn, FILL * 256)
    ]
    return _document(
        "racks-256",
        f"{len(jobs)} jobs drawn from all eight workloads, up to 90 % of 8 racks of 8 nodes of 4 "
        "GPUs. Penalties differ by model and level: BERT and GPT-2 suffer most from distance, "
        "DCGAN not at all. Four GPUs are slower than 1.5 x for class A.",
        f"{TRACE.format('1 to 8, drawn with seed 3')} Penalties: step times over two nodes / one "
        "node, medians of Sia, SOSP'23, siasosp23/artifacts aaf7a0d, on rtx within a rack and on "
        "aws above (ImageNet for resnet50, BERT for GPT2 too); others by class and model from PAL.",
        topology=pal_parts.three_levels(8, 8),
        profile=pal_parts.simulator_profile(data, 256),
        locality=pal_parts.three_penalties(data),
        jobs=jobs,
    )


def sticky(data: Path) -> Document:
    """Return a round in which some jobs run already, in pieces."""
    trace = pal_parts.workload(data, 1)
    before = pal_parts.first_fit(trace, pal_parts.gpu_ids(8), EPOCH_S - ROUND_S)
    jobs = [
        job(
            row,
            remaining_s=round(pal_parts.end_s(row) - EPOCH_S, 1),
            current=held,
            restart_s=RESTART_S.get(row["model"], 30),
        )
        for row, held in before
        if pal_parts.end_s(row) > EPOCH_S
    ]
    left = 32 - sum(entry["gpus"] for entry in jobs)
    new = [row for row in trace if EPOCH_S - ROUND_S < float(row["submit_time"]) <= EPOCH_S]
    jobs += [job(row, remaining_s=pal_parts.work_s(row)) for row in pal_parts.fitting(new, left)]
    return _document(
        "sticky",
        f"{len(jobs)} jobs on 8 nodes of 4 GPUs in a round at {EPOCH_S:,} s of workload 1; 5 of "
        "them run on the first GPUs that were free when they came, 4 in pieces. Moving a "
        "ResNet-50 job onto one node is worth a restart; a job with 12 s left had better stay.",
        f"{TRACE.format(1)} Remaining times: iterations x iteration time there. Penalty: 1.734 as "
        "in its Frontera runs. Restart times: assumed, 30 s as in Pollux, OSDI'21, more for larger "
        "models.",
        topology=pal_parts.two_levels(8),
        profile=pal_parts.frontera_profile(data),
        locality=pal_parts.two_penalties(jobs, ACROSS_FRONTERA),
        jobs=jobs,
    )


def overfull(data: Path) -> Document:
    """Return more jobs than there are GPUs for."""
    chosen = list(pal_parts.prefix(pal_parts.workload(data, 6), 1.5 * 64))
    now = float(chosen[-1]["submit_time"])
    jobs = [
        job(
            row,
            weight=int(row["num_gpus"]),
            reward=round(int(row["num_gpus"]) * (2 + (now - float(row["submit_time"])) / 3600), 3),
        )
        for row in chosen
    ]
    return _document(
        "overfull",
        f"The first {len(jobs)} jobs of workload 6 need 150 % of 16 nodes of 4 GPUs, so some are "
        "left out. Weight: GPUs. Leaving a job out costs as much as a slowdown of 2 plus the hours "
        "that it has waited. One GPU, n8/3, is 2.83 x slow for class A.",
        f"{TRACE.format(6)} Penalty: 1.7, the default of its simulator. Rewards: assumed.",
        topology=pal_parts.two_levels(16),
        profile=pal_parts.simulator_profile(data, 64),
        locality=pal_parts.two_penalties(jobs, ACROSS),
        jobs=jobs,
        admission="optional",
    )


def _document(name: str, description: str, source: str, **content: object) -> Document:
    head = {"schema": "optsched/pal/1", "name": f"pal/{name}"}
    return {**head, "description": description, "source": source, **content}


INSTANCES = (
    tiny, frontera_32, sia_64, sia_64_persistent, racks_256, sticky, overfull,
)  # fmt: skip


def documents(data: Path) -> dict[str, str]:
    """Return the text of each instance by the name of its file, validated."""
    return parts.texts(PalInstance, (build(data) for build in INSTANCES))


def main() -> None:
    """Write the files, or with ``--known`` what is known of them into known.json."""
    parts.run("pal", documents)


if __name__ == "__main__":
    main()
