"""Write the bundled scenarios: ``python build_scenarios.py``.

The same code gives the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.cluster.power import GPU_POWER
from optsched.instances import parts
from optsched.instances.pal_parts import ACROSS, BLOX
from optsched.jsonfile import dumps, load, write_text
from optsched.rollout.scenario import Scenario

if TYPE_CHECKING:
    from optsched.instances.parts import Document

FOLDER = parts.FOLDER / "scenarios"
ATC19 = "Jeon et al., USENIX ATC 2019"
PAL_CLASSES = {
    "resnet50": "A", "BERT": "B", "DCGAN": "B", "GPT2": "B", "vgg19": "C", "PointNet": "D",
}  # fmt: skip


def philly_small() -> Document:
    """Return a small cluster of Philly's kind, to try policies on."""
    return _document(
        "philly-small",
        "400 jobs as in Philly on 8 servers of 8 GPUs, at 90 % load: gangs, failures with retries, "
        "kills by users, interference between neighbours on a server.",
        f"Jobs, failures, neighbours, distance: {ATC19}, tables 2 to 7 (table 4: 98.0 of 114.8 "
        "images/s on two servers, 75.6 with neighbours). Epoch: the step of its queueing delays at "
        "3 minutes. Restart: 30 s as in Pollux, OSDI 2021. GPUs: P100 (optsched.cluster). Price of "
        "energy: RAPS, config/philly. Checkpoints, base watts, PUE, price, load: assumed.",
        policies=["fifo", "philly", "las", "srtf"],
        nodes=8,
        gpus_per_node=8,
        locality=[1.0, round(114.8 / 98.0, 3)],
        neighbours={"shared_server": round(75.6 / 98.0, 3)},
        epoch_s=180,
        costs={"start_s": 30, "restore_s": 30, "checkpoint_every_s": 3600},
        retries={"delay_s": 180},
        price_usd_per_gpu_h=1.0,
        power={
            "gpu": GPU_POWER["P100"].model_dump(mode="json"),
            "node": {"base_w": 400},
            "pue": 1.2,
            "price_usd_per_kwh": 0.094,
        },
        trace={
            "generator": "philly-atc19",
            "jobs": 400,
            "seed": 1,
            "options": {"load": 0.9, "gpus": 64, "max_gpus": 32},
        },
    )


def pal_64() -> Document:
    """Return the cluster of PAL's simulations, with slowdowns of single runs."""
    profile = load(parts.FOLDER / "pal" / "sia-64.json")["profile"]
    return _document(
        "pal-64",
        "160 jobs on 16 nodes of 4 GPUs in rounds of 360 s: first in, first out, moves for free, a "
        "penalty of 1.7 across nodes. One GPU, n8/3, is 2.83 x slow for class A for good, as drawn "
        "from single runs; most of PAL's gain comes from it (see pal-64-persistent).",
        f"Cluster, rounds, penalty and classes: the Sia-Philly simulations of {BLOX}.",
        policies=["packed-sticky", "pm-first", "pal-greedy", "pal"],
        nodes=16,
        gpus_per_node=4,
        profile=profile,
        locality=[1.0, ACROSS],
        models={model: {"application_class": name} for model, name in PAL_CLASSES.items()},
        trace={"generator": "sia-like", "jobs": 160, "seed": 1},
        epoch_s=360,
        decide_on=[],
        finish_at_epochs=True,
    )


def pal_64_persistent() -> Document:
    """Return the same with slowdowns that last."""
    return pal_64() | {
        "name": "pal-64-persistent",
        "description": "As pal-64, but each GPU has the median of the runs of a measured GPU: so "
        "much is left of the gain when passing trouble of single runs is taken out.",
        "profile": load(parts.FOLDER / "pal" / "sia-64-persistent.json")["profile"],
    }


def _document(name: str, description: str, source: str, **content: object) -> Document:
    head = {"schema": "optsched/scenario/1", "name": name}
    return {**head, "description": description, "source": source, **content}


SCENARIOS = (philly_small, pal_64, pal_64_persistent)


def documents() -> dict[str, str]:
    """Return the text of each scenario by the name of its file, validated."""
    found = {}
    for build in SCENARIOS:
        document = build()
        Scenario.from_document(document, document["name"])
        found[f"{document['name']}.json"] = dumps(document)
    return found


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in documents().items():
        write_text(FOLDER / name, text)


if __name__ == "__main__":
    main()
