"""Clusters as they are bought: racks of equal nodes, of a few kinds, drawn from seeds.

Two sorts. In `two_kinds` a node is one of two kinds, and jobs ask for 1, 2 or 4 of its 4 GPUs. In
`usual_kinds` nodes of 8 GPUs in racks of 8 are of 3 or 4 kinds, slowdowns within a node are normal,
and some gangs of 16 GPUs do not fit into a node.
"""

from __future__ import annotations

import random

from optsched.pal import PalInstance

NODES_PER_RACK = 32
LOAD = 0.85
SPREAD = 0.08  # of the slowdowns of a node's GPUs


def two_kinds(gpus, seed=0):
    """Return racks of 32 nodes x 4 GPUs of two kinds, with 7 jobs of 1, 2 or 4 for 16 GPUs."""
    rng = random.Random(seed)
    kinds = [[rng.uniform(0.8, 1.2) * mean for _ in range(4)] for mean in (1.0, 1.1)]
    picked = [rng.choice(kinds) for _ in range(gpus // 4)]
    sizes = rng.choices([1, 2, 4], [0.4, 0.35, 0.25], k=7 * gpus // 16)
    while sum(sizes) > gpus:
        sizes.pop()
    return _instance(f"{gpus:,} GPUs, 2 kinds of nodes", picked, NODES_PER_RACK, sizes, rng)


def usual_kinds(gpus, largest=16, kinds=3, seed=0):
    """Return racks of 8 nodes x 8 GPUs of a few kinds; jobs ask for 85 % of the GPUs.

    Parameters
    ----------
    largest
        Gang, 8 or 16.
    """
    rng = random.Random(seed)
    shares = dict(zip((1, 2, 4, 8, 16), (0.4, 0.2, 0.2, 0.15, 0.05), strict=True))
    known = [[max(0.8, rng.gauss(1 + 0.08 * k, SPREAD)) for _ in range(8)] for k in range(kinds)]
    picked = [rng.choice(known) for _ in range(gpus // 8)]
    allowed = {size: share for size, share in shares.items() if size <= largest}
    sizes: list[int] = []
    while sum(sizes) < LOAD * gpus:
        sizes += rng.choices(list(allowed), list(allowed.values()))
    if sum(sizes) > gpus:
        sizes.pop()
    name = f"{gpus:,} GPUs, {kinds} kinds of nodes, gangs to {largest}"
    return _instance(name, picked, 8, sizes, rng)


def _instance(name, picked, nodes_per_rack, sizes, rng):
    """Return an instance of nodes with these slowdowns, and gangs of these sizes."""
    racks = -(-len(picked) // nodes_per_rack)
    domains = [{"id": "all", "level": "cluster"}]
    domains += [{"id": f"r{r}", "level": "rack", "parent": "all"} for r in range(racks)]
    for n, node in enumerate(picked):
        inside = [f"n{n}/{i}" for i in range(len(node))]
        parent = f"r{n // nodes_per_rack}"
        domains.append({"id": f"n{n}", "level": "node", "parent": parent, "gpus": inside})
    jobs = [
        {"id": f"j{n}", "gpus": size, "application_class": rng.choice("AB"), "model": "m"}
        for n, size in enumerate(sizes)
    ]
    slow = [value for node in picked for value in node]
    slowdown = {"A": slow, "B": [1 + (value - 1) / 3 for value in slow]}
    gpus = [gpu for domain in domains for gpu in domain.get("gpus", ())]
    return PalInstance.from_document(
        {
            "schema": "optsched/pal/1",
            "name": name,
            "topology": {"levels": ["node", "rack", "cluster"], "domains": domains},
            "profile": {"gpus": gpus, "slowdown": slowdown, "kind": "persistent"},
            "locality": {"m": [1.0, 1.2, 1.7]},
            "jobs": jobs,
        }
    )
