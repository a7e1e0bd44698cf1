"""Write the bundled instances of Sia: ``python build_sia.py DATA_DIR``.

Goodputs are those of Pollux's model, fitted to measured steps (`optsched.traces.STEP_TIMES`); no
other data are read. The same files give the same bytes. Goodputs have six digits. When they change,
``python build_sia.py --known`` solves them and writes their entries of known.json.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optsched.instances import parts
from optsched.sia import SiaInstance
from optsched.traces import STEP_TIMES

if TYPE_CHECKING:
    from pathlib import Path

    from optsched.instances.parts import Document

TYPES = {"t4": (4, 6, 1.0), "rtx": (8, 3, 1.5), "a100": (8, 2, 3.0)}
"""GPUs of a node, nodes, and pace: as in the simulated cluster of Sia's artifact."""
SHARES = {"cifar10": 0.38, "ncf": 0.24, "bert": 0.15, "deepspeech2": 0.12, "yolov3": 0.08}
STEPS = "Step times: petuum/adaptdl, branch osdi21-artifact, simulator/traces, fitted by optsched. "
SIA = "Cluster, costs and restart factors: siasosp23/artifacts, sia-simulator."


def hand(_: Path) -> Document:
    """Return three jobs on two types of GPUs, to be solved by hand."""
    return _document(
        "hand",
        "Three jobs, 2 fast and 4 slow GPUs, to be solved by hand: a on 4 slow ones costs "
        "(4/1)^-0.5 = 0.50, b and c on a fast one each 0.45 and 0.88, together 1.83. If b gets "
        "both fast ones (0.33), c waits (1.10): 1.93. In the order of the list a takes both fast "
        "ones (0.41), b 4 slow ones (0.58), and c waits: 2.09.",
        "optsched",
        gpus={"fast": 2, "slow": 4},
        jobs=[
            _job("a", ("slow", 1, 1.0), ("slow", 2, 2.0), ("slow", 4, 4.0), ("fast", 2, 6.0)),
            _job("b", ("slow", 1, 1.0), ("slow", 4, 3.0), ("fast", 1, 5.0), ("fast", 2, 9.0)),
            _job("c", ("slow", 2, 1.0), ("fast", 1, 1.3)),
        ],
    )


def cluster_64(_: Path) -> Document:
    """Return 38 jobs on 64 GPUs of three types, most of them running."""
    draw = np.random.default_rng(0)
    return _document(
        "cluster-64",
        "38 jobs on 24 T4, 24 RTX and 16 A100: configurations are 1, 2, 4, ... GPUs in a node, and "
        "whole nodes. 30 jobs run; a job that changes its GPUs counts for less the more often it "
        "restarted before.",
        STEPS + SIA,
        gpus={name: size * nodes for name, (size, nodes, _) in TYPES.items()},
        jobs=[_drawn(draw, n, is_running=n < 30) for n in range(38)],
    )


def _drawn(draw: np.random.Generator, number: int, *, is_running: bool) -> Document:
    """Return a job of a model that is drawn, with the goodputs of the model's steps."""
    shares = np.array(list(SHARES.values()))
    name = str(draw.choice(list(SHARES), p=shares / shares.sum()))
    paces = {kind: pace * draw.lognormal(0, 0.25) for kind, (_, _, pace) in TYPES.items()}
    rows = [
        (kind, gpus, float(f"{paces[kind] * STEP_TIMES[name].goodput(gpus, size):.6g}"))
        for kind, (size, nodes, _) in TYPES.items()
        for gpus in _widths(size, nodes)
    ]
    job = _job(f"{name}-{number}", *rows)
    if is_running:
        age, restarts = float(draw.exponential(3600)) + 30, int(draw.integers(0, 4))
        kind, gpus, _ = rows[int(draw.integers(len(rows)))]
        job["current"] = {"type": kind, "gpus": gpus}
        job["restart_factor"] = round(max(age - 30 * restarts, 0) / (age + 30), 4)
    return job


def _widths(size: int, nodes: int) -> list[int]:
    inside = [2**k for k in range(size.bit_length())]
    return [*inside, *range(2 * size, size * nodes + 1, size)]


def _job(name: str, *rows: tuple[str, int, float]) -> Document:
    configurations = [{"type": t, "gpus": n, "goodput": value} for t, n, value in rows]
    return {"id": name, "configurations": configurations}


def _document(name: str, description: str, source: str, **content: object) -> Document:
    head = {"schema": "optsched/sia/1", "name": f"sia/{name}"}
    return {**head, "description": description, "source": source, **content}


def documents(data: Path) -> dict[str, str]:
    """Return the text of each instance by the name of its file, validated."""
    return parts.texts(SiaInstance, (build(data) for build in (hand, cluster_64)))


def main() -> None:
    """Write the files, or with ``--known`` what is known of them into known.json."""
    parts.run("sia", documents)


if __name__ == "__main__":
    main()
