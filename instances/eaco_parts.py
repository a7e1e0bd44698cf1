"""Parts of the bundled instances of EaCO: measured groups, GPUs, nodes and drawn jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from optsched.cluster.power import gpu_power, node_power
from optsched.eaco import power_levels
from optsched.instances.parts import rows

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

    from optsched.instances.parts import Document, Row

EACO = "Haghshenas and Hashemi, EaCO, arXiv 2412.08294"
GAVEL = "stanford-futuredata/gavel @c4fa4009 (MIT)"
FORMULA = "Rates: the formula of `interference`, fitted to 1,388 pairs of Lucid."
HOUR_S = 3600
MODELS = ("AlexNet", "ResNet-18", "ResNet-50", "VGG-16")
V100_GB = 16

# Share of a GPU's time, assumed: Gavel measured none. Anchors are watts of such models alone on a
# V100 in ml-energy/zeus @75a8b939: ResNet-50 218 to 227, BERT 207 to 228, NCF 36 to 40.
BUSY = {
    "A3C": 0.2,
    "CycleGAN": 0.9,
    "LM": 0.5,
    "Recommendation": 0.1,
    "ResNet-18": 0.6,
    "ResNet-50": 0.8,
    "Transformer": 0.7,
}
SCALES = {1: 70, 2: 10, 4: 15, 8: 5}  # GPUs of a job in Gavel's workloads, in per cent


# --- hardware ---------------------------------------------------------------------------------


def v100(*, levels: bool = False) -> Document:
    """Return the GPU type V100, with the published power levels if asked for."""
    gpu_type: Document = {"id": "V100", "memory_gb": V100_GB, "power": _dump(gpu_power("V100"))}
    if levels:
        gpu_type["levels"] = [_dump(level) for level in power_levels("V100")]
    return gpu_type


def a100() -> Document:
    """Return the GPU type A100 with 80 GB."""
    return {"id": "A100", "memory_gb": 80, "power": _dump(gpu_power("A100-80GB"))}


def nodes_of_8(gpu: str, count: int, on: int | None = None) -> Document:
    """Return nodes of eight GPUs, with the published watts of such with A100s around them."""
    name = gpu.lower()
    nodes: Document = {"id": name, "gpu": gpu, "gpus": 8, "count": count}
    if on is not None:
        nodes["on"] = on
    return nodes | {"power": _dump(node_power("8xA100"))}


def _dump(part: Any) -> Document:
    document: Document = part.model_dump(mode="json", exclude_defaults=True)
    return document


# --- EaCO's tables ----------------------------------------------------------------------------


def paper(data: Path) -> Document:
    """Return what the instances with the paper's rows share: all but the jobs."""
    table = {tuple(_models(row)): row for row in rows(data, "eaco_tables.csv")}
    types = [{"id": name, "utilisation": _share(table[name,]), "memory_gb": 0.0} for name in MODELS]
    return {
        "gpu_types": [v100()],
        "types": types,
        "interference": {
            "groups": [_measured(models, table) for models in table],
            "fallback": "none",
            "source": f"Tables 1 to 4 of {EACO}.",
        },
    }


def paper_nodes(count: int) -> Document:
    """Return nodes whose watts are all in those of the GPUs, as they were measured."""
    source = "the watts of the tables are those of the whole server; here the GPUs have them"
    power = {"base_w": 0.0, "source": source}
    return {"id": "v100", "gpu": "V100", "gpus": 8, "count": count, "power": power}


def paper_work_s(data: Path) -> float:
    """Return the mean JCT of the four jobs alone: the work that each of them gets."""
    alone = [row for row in rows(data, "eaco_tables.csv") if row["n_jobs"] == "1"]
    return sum(float(row["avg_jct_h"]) for row in alone) / len(alone) * HOUR_S


def paper_jobs(data: Path, copies: Sequence[int], **fields: object) -> list[Document]:
    """Return copies of the four jobs."""
    work_s = paper_work_s(data)
    return [
        {"id": f"{name}.{n + 1}" if max(copies) > 1 else name, "type": name, "gpus": 8}
        | {"work_s": work_s, **fields}
        for name, count in zip(MODELS, copies, strict=True)
        for n in range(count)
    ]


def _models(row: Row) -> list[str]:
    return list(MODELS) if row["models"] == "all four" else row["models"].split("+")


def _share(row: Row) -> float:
    return float(row["avg_gpu_util_pct"]) / 100


def _measured(models: tuple[str, ...], table: dict[tuple[str, ...], Row]) -> Document:
    """Return a row: slowdown = mean JCT / mean JCT alone, watts such that its energy is met."""
    row = table[models]
    alone = sum(float(table[name,]["avg_jct_h"]) for name in models) / len(models)
    slowdown = float(row["avg_jct_h"]) / alone
    work_h = sum(float(table[name,]["avg_jct_h"]) for name in MODELS) / len(MODELS)
    watts = float(row["total_energy_kwh"]) * 1000 / (work_h * slowdown) / 8
    return {
        "types": list(models),
        "rates": [1 / slowdown] * len(models),
        "gpu_power_w": watts,
        "utilisation": _share(row),
    }


# --- Gavel's pairs ----------------------------------------------------------------------------


def gavel(data: Path) -> Document:
    """Return types and measured pairs of Gavel's motivation table; 0 where a pair does not fit."""
    table = [
        row for row in rows(data, "gavel_pairs_v100.csv") if row["table"] == "motivation_oracle"
    ]
    names = sorted({row["job_a"] for row in table} | {row["job_b"] for row in table})
    return {
        "types": [{"id": short(name), "utilisation": BUSY[name.split(" ")[0]]} for name in names],
        "interference": {
            "groups": [_pair(row) for row in table],
            "fallback": "none",
            "source": f"V100 pairs of {GAVEL}, scheduler/notebooks/figures/motivation/"
            "oracle_throughputs.json, rates of four decimals; of a type beside itself the mean.",
        },
    }


def short(name: str) -> str:
    """Return a type's name in fewer letters: "ResNet-18 (batch size 16)" is "ResNet-18/16"."""
    return name.replace(" (batch size ", "/").rstrip(")")


def _pair(row: Row) -> Document:
    types, rates = [short(row["job_a"]), short(row["job_b"])], [row["rate_a"], row["rate_b"]]
    measured = [float(rate) for rate in rates]
    if types[0] == types[1]:
        measured = [round(sum(measured) / 2, 6)] * 2
    return {"types": types, "rates": measured}


# --- drawn jobs -------------------------------------------------------------------------------


def drawn_types(generator: random.Random, count: int) -> list[Document]:
    """Draw types by utilisation, evenly from 5 to 95 %; busier ones take more memory, up to 40 GB.

    Their ids say how busy they are: "t35" takes 35 % of a GPU's time.
    """
    shares = sorted(generator.sample(range(5, 96), count))
    return [
        {
            "id": f"t{share:02d}",
            "utilisation": share / 100,
            "memory_gb": round(generator.uniform(2, 8) + 0.3 * share, 1),
        }
        for share in shares
    ]


def log_uniform(generator: random.Random, low: float, high: float) -> float:
    """Draw a whole number of which the logarithm is uniform."""
    return float(round(low * (high / low) ** generator.random()))


def gavel_work_s(generator: random.Random) -> float:
    """Draw a run time as Gavel's generator does: 1/2 to 17 h, of one in five jobs to 167 h."""
    long = generator.random() >= 0.8
    return float(round(60 * 10 ** (generator.uniform(3, 4) if long else generator.uniform(1.5, 3))))


def gavel_gpus(generator: random.Random) -> int:
    """Draw the GPUs of a job as Gavel's generator does."""
    return generator.choices(list(SCALES), list(SCALES.values()))[0]
