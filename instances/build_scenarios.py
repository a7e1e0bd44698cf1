"""Write the bundled scenarios: ``python build_scenarios.py``.

The same code gives the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.cluster.power import GPU_POWER
from optsched.documents.json_files import dumps, load, write_text
from optsched.instances import parts, philly_parts
from optsched.instances.eaco_parts import EACO
from optsched.instances.pal_parts import ACROSS, BLOX
from optsched.instances.parts import scenario_document
from optsched.instances.rented_scenarios import boa_cloud, boa_large, rented_types, spot_types
from optsched.rollout.scenario import Scenario

if TYPE_CHECKING:
    from optsched.instances.parts import Document

FOLDER = parts.FOLDER / "scenarios"
ATC19 = "Jeon et al., USENIX ATC 2019"
ATC19_SPREAD = [round(98.0 / 114.8 * used / 43.66, 3) for used in (43.66, 40.94, 28.56)]
SPREAD = {"servers": {"counts": [1, 2, 4, 8], "speed": [1.0, *ATC19_SPREAD]}}
NEIGHBOURS = {"shared_server": round(75.6 / 98.0, 3)}
PAL_CLASSES = {
    "resnet50": "A", "BERT": "B", "DCGAN": "B", "GPT2": "B", "vgg19": "C", "PointNet": "D",
}  # fmt: skip


def philly_small() -> Document:
    """Return a small cluster of Philly's kind, to try policies on."""
    return scenario_document(
        "philly-small",
        "400 jobs as in Philly on 64 GPUs in three RDMA domains, 6 servers of 8 and 8 of 2, at "
        "90 % load: gangs, failures with retries, kills by users, interference between neighbours "
        "on a server.",
        f"Jobs, failures, neighbours, distance: {ATC19}, tables 2 to 7 (table 4: 98.0 of 114.8 "
        "images/s on two servers, 75.6 with neighbours; table 5: 43.66, 40.94 and 28.56 % of 16 "
        "GPUs on 2, 4 and 8 servers). Epoch: the step of its queueing delays at 3 minutes. "
        "Restart: 30 s as in Pollux, OSDI 2021. GPUs: P100 (optsched.cluster). Price of energy: "
        "RAPS, config/philly. Servers of 8 and of 2 GPUs: in the ratio of Philly's public list. "
        "Their domains, checkpoints, base watts, PUE, price, load: assumed.",
        policies=["fifo", "philly", "las", "srtf"],
        nodes=[
            {"count": 3, "gpus": 8, "domain": "8-0"},
            {"count": 3, "gpus": 8, "domain": "8-1"},
            {"count": 8, "gpus": 2, "domain": "2-0"},
        ],
        spread=SPREAD,
        neighbours=NEIGHBOURS,
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


def philly_atc19() -> Document:
    """Return Philly's virtual clusters and servers, with as many jobs as in the paper."""
    nodes = philly_parts.groups(philly_parts.GPUS)
    return scenario_document(
        "philly-atc19",
        "The paper's 96,260 jobs in 75 days, on servers of 8 and of 2 GPUs in RDMA domains, in 11 "
        "virtual clusters that lend what they do not use: one rollout takes minutes, "
        "trace.jobs=5000 the first days of as many jobs in seconds. `python -m "
        "benchmarks.philly_tables` sets what comes out beside the paper's tables.",
        f"Jobs, failures, distance: {ATC19}, tables 2 to 7, as in philly-small. Neighbours: gangs "
        "of 16 on 4 servers of 8 have some as a rule, those on 2 none, and use 40.94 and 43.66 % "
        "of their GPUs (table 5): all of that difference is taken for neighbours, none for "
        "distance. Table 4's neighbours (0.771) are an experiment with ResNet-50 beside itself. "
        "Quotas, which nobody published, and the options of philly are fitted to table 2 on seed "
        "0. Servers of 8 and of 2 GPUs are in the ratio 469 to 83 of ExaDigiT/RAPS (Philly's own "
        "list is wrong: philly-traces, issue 8); there are as many as the trace's jobs fill by "
        "three quarters. Run times are as recorded. Busy shares are table 3's, of jobs that had "
        "neighbours and distance: recorded_speed is what rollouts of this scenario give. Domains "
        "of 24 servers, start, checkpoints: assumed.",
        policies=["fifo", "philly:spread=true,relax_by=one,relax_for=place"],
        nodes=nodes,
        quotas=philly_parts.quotas(philly_parts.total(nodes)),
        lends_quotas=True,
        **philly_parts.PRODUCTION,
        reference_place="recorded",
        recorded_speed=philly_parts.RECORDED_SPEED,
        epoch_s=60,
        decide_on=[],
        costs={
            "start_s": 30,
            "restore_s": 30,
            "checkpoint_every_s": 3600,
            "stop_loses_work": True,
        },
        retries={"delay_s": 180},
        trace={
            "generator": "philly-atc19",
            "jobs": 96_260,
            "options": {"max_gpus": 128, "queues_by": "size"},
        },
    )


def pal_64() -> Document:
    """Return the cluster of PAL's simulations, with slowdowns of single runs."""
    profile = load(parts.FOLDER / "pal" / "sia-64.json")["profile"]
    return scenario_document(
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
        reference_place="one-node",
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


def eaco_28() -> Document:
    """Return EaCO's smaller cluster."""
    return _eaco(28, "The load is 1.07 of what exclusive use can bear, so that a queue builds up.")


def eaco_64() -> Document:
    """Return EaCO's larger cluster."""
    return _eaco(64, "Exclusive use needs less than half of the nodes.")


def _eaco(nodes: int, load_text: str) -> Document:
    """Return a cluster with the figures of EaCO's tables, and jobs of its four models.

    The watts of a GPU alone are an eighth of 360 + 1610 u ** 0.48 W, the fit to the ten rows.
    """
    paper = load(parts.FOLDER / "eaco" / "paper-four.json")
    models = {
        kind["id"]: {"utilisation": kind["utilisation"], "max_slowdown": 1.1}
        for kind in paper["types"]
    }
    interference = {
        "groups": paper["interference"]["groups"],
        "partner_slowdown": 0.035,
        "source": "Tables 1 to 4 of EaCO; other groups by the formula, 3.5 % for each partner as "
        "its pairs have.",
    }
    curve = {"kind": "power-law", "exponent": 0.48}
    return scenario_document(
        f"eaco-{nodes}",
        f"{nodes} nodes of 8 V100s and 240 jobs of EaCO's four models, 8 GPUs each, that come at "
        f"0.845 an hour and take 35.5 h on average, the mean of the paper's tables. {load_text} "
        "Nodes without jobs sleep. The paper does not state its trace, arrival rate, deadlines or "
        "thresholds, nor what waking takes: here arrivals are Poisson, run times exponential, the "
        "models equally frequent, and users bear a slowdown of 1.1; waking and sleep take nothing.",
        "Rates, utilisations and watts of the ten measured sets (whole servers, in the GPUs): "
        f"{EACO}, tables 1 to 4. Other watts: 360 + 1610 u ** 0.48 W of a node, fitted to these. A "
        "move: 62 s, the mean that Tiresias measured.",
        policies=["fifo-exclusive", "fifo-packed", "random-pairs", "eaco-greedy", "eaco"],
        nodes=nodes,
        gpus_per_node=8,
        models=models,
        sharing={"max_jobs_per_gpu": 4, "interference": interference},
        power={
            "gpu": {"bare_w": 0, "context_w": 45, "peak_w": 246.25, "curve": curve},
            "node": {"base_w": 0},
            "idle_nodes": "sleep",
        },
        trace={
            "generator": "poisson",
            "jobs": 240,
            "options": {
                "rate_per_h": 0.845,
                "mean_run_s": 127827,
                "gpus": 8,
                "models": ",".join(f"{name}:1" for name in models),
            },
        },
        epoch_s=360,
        costs={"restore_s": 62},
    )


SCENARIOS = (
    philly_small,
    philly_atc19,
    pal_64,
    pal_64_persistent,
    boa_cloud,
    boa_large,
    rented_types,
    spot_types,
    eaco_28,
    eaco_64,
)


def documents() -> dict[str, str]:
    """Return the text of each scenario by the name of its file, validated."""
    texts = {}
    for build in SCENARIOS:
        document = build()
        Scenario.from_document(document, document["name"])
        texts[f"{document['name']}.json"] = dumps(document)
    return texts


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name, text in documents().items():
        write_text(FOLDER / name, text)


if __name__ == "__main__":
    main()
