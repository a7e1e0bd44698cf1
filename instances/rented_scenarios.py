"""Scenarios of rented nodes, for BOA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.documents.json_files import load
from optsched.instances import parts
from optsched.instances.parts import scenario_document

if TYPE_CHECKING:
    from optsched.instances.parts import Document


def boa_cloud() -> Document:
    """Return rented nodes for the stream of jobs of the BOA authors' 85-job workload."""
    instance = load(parts.FOLDER / "boa" / "cbd-85.json")
    return scenario_document(
        "boa-cloud",
        "170 jobs of cifar10, deepspeech2 and bert that come at the rates of the BOA authors' "
        "85-job workload (11.4 an hour), on up to 40 rented nodes of 4 GPUs that take 2 minutes to "
        "start. Speedups change from training epoch to training epoch; a change of width costs 25 "
        "to 120 s. The budget is 30 GPUs, averaged over time. Each job is as long as its class on "
        "average times an exponential draw, and asks for one GPU.",
        f"{instance['source']} Nodes: g4dn.12xlarge, at most 40, epochs of 60 s, as there; price: "
        "3.912 USD/h. Price, provisioning, exponential sizes and the budget are assumed.",
        policies=[
            *("boa", "boa-budgeted", "one-width-per-class", "fixed-width:k=8", "equi"),
            "pollux-autoscaling:low=0.6,high=0.85",
        ],
        nodes=40,
        gpus_per_node=4,
        models=_phases(instance),
        trace={"generator": "boa", "jobs": 170, "options": {"instance": "boa/cbd-85"}},
        **_rented(30),
    )


def boa_large() -> Document:
    """Return rented nodes for as many jobs as in Sia's longest trace, of all models of Pollux."""
    instance = load(parts.FOLDER / "boa" / "six-models.json")
    jobs, hours = 960, 48
    own = sum(entry["arrival_rate_per_h"] for entry in instance["classes"])
    return scenario_document(
        "boa-large",
        f"{jobs} jobs of six models in {hours} hours, on up to 100 rented nodes of 4 GPUs that "
        "take 2 minutes to start. Of 40 jobs 17 are of ncf, which take less than a minute, and one "
        "is of imagenet, which takes 148 hours on one GPU: these have three quarters of the work. "
        "Phases, changes of width, sizes and gangs are as in boa-cloud.",
        f"{instance['source']} The models come in the proportion of that workload, at 20 an hour, "
        "as the 960 jobs of Sia's newtrace (siasosp23/artifacts). Nodes: g4dn.12xlarge, epochs of "
        "60 s, as in the BOA authors' fork; price: 3.912 USD/h. Price, provisioning, the most "
        "nodes, exponential sizes and the budget are assumed.",
        policies=["boa", "boa-budgeted", "one-width-per-class", "pollux-autoscaling"],
        nodes=100,
        gpus_per_node=4,
        models=_phases(instance),
        trace={
            "generator": "boa",
            "jobs": jobs,
            "options": {"instance": "boa/six-models", "rate": round(jobs / hours / own, 7)},
        },
        **_rented(instance["budget_gpus"]),
    )


def rented_types() -> Document:
    """Return rented nodes of three GPU types, with prices by type."""
    instance, own = load(parts.FOLDER / "boa" / "three-types.json"), "a100"
    prices = {o["gpu_type"]: o for o in instance["offers"] if o["market"] == "on-demand"}
    sizes = {"t4": (60, 4), "rtx-2080ti": (60, 4), own: (60, 2)}
    ranges = ", ".join(
        f"{name} {offer['usd_per_gpu_h']:g} ({offer['note'].partition('range of ')[2][:-5]})"
        for name, offer in prices.items()
    )
    return scenario_document(
        "rented-types",
        "120 jobs of five models that come at the rates of Sia's trace of 960 jobs in 48 h (20 an "
        "hour), on rented nodes of three types that take 2 minutes to start: of 4 T4, of 4 RTX "
        "2080 Ti or of 2 A100, each type at a price. The budget is 40 USD an hour, averaged over "
        "time. Speedups are by type and width, of whole jobs; run times are told of one A100. A "
        "start or a change of width or type costs 25 to 250 s. Each job is as long as its class "
        "on average times an exponential draw, and asks for one GPU.",
        f"{instance['source']} Here all nodes are on demand: prices in USD per GPU-hour and their "
        f"ranges are assumed ({ranges}), and so are node sizes, the most nodes, provisioning, "
        "exponential sizes and the budget.",
        policies=["boa", "boa-budgeted", "pollux-autoscaling:gpu_type=rtx-2080ti", "sia"],
        nodes=[
            {
                "count": count,
                "gpus": gpus,
                "gpu_type": name,
                "usd_per_gpu_h": prices[name]["usd_per_gpu_h"],
            }
            for name, (count, gpus) in sizes.items()
        ],
        reference_gpu_type=own,
        models=_phases(instance),
        trace={
            "generator": "boa",
            "jobs": 120,
            "options": {"instance": "boa/three-types", "gpu_type": own},
        },
        epoch_s=60,
        rented={"provision_s": 120},
        budget_usd_per_h=40,
    )


def spot_types() -> Document:
    """Return the nodes of rented-types, each type on the spot market as well."""
    document, instance = rented_types(), load(parts.FOLDER / "boa" / "three-types.json")
    spot = {o["gpu_type"]: o for o in instance["offers"] if o["market"] == "spot"}
    ranges = "; ".join(f"{n} {o['note'].removeprefix('Assumed: ')[:-1]}" for n, o in spot.items())
    markets = [
        group
        | {
            "market": "spot",
            "usd_per_gpu_h": spot[group["gpu_type"]]["usd_per_gpu_h"],
            "interruptions_per_node_h": spot[group["gpu_type"]]["interruptions_per_node_h"],
        }
        for group in document["nodes"]
    ]
    return document | {
        "name": "spot-types",
        "description": "The jobs and nodes of rented-types, whose types are offered on the spot "
        "market, too: for a third of the price, and a node is taken away 0.05 to 0.2 times an "
        "hour. Its jobs lose what came after the last of their checkpoints, which they write every "
        "600 s of running, and wait for the node that replaces it. The budget is 20 USD an hour, "
        "averaged over time.",
        "source": f"{document['source']} On spot nodes prices, interruptions per node-hour and "
        f"their ranges are assumed, too ({ranges}), and so are 600 s between checkpoints.",
        "nodes": [*document["nodes"], *markets],
        "costs": {"checkpoint_every_s": 600},
        "budget_usd_per_h": 20,
    }


def _rented(budget_gpus: float) -> Document:
    """Return what the authors' nodes have in common."""
    return {
        "epoch_s": 60,
        "rented": {"provision_s": 120},
        "budget_gpus": budget_gpus,
        "price_usd_per_gpu_h": 0.978,
    }


def _phases(instance: Document) -> Document:
    """Return the models of a scenario with the classes of an instance of BOA."""
    return {
        entry["id"]: {"phases": entry["phases"], "rescale_s": entry["rescale_s"]}
        for entry in instance["classes"]
    }
