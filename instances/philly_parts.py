"""Parts of the bundled scenarios of Philly: servers, RDMA domains, quotas of virtual clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optsched.instances.parts import Document

SERVERS = {8: 469, 2: 83}
"""How many servers have so many GPUs: ExaDigiT/RAPS, from the GPUs that jobs of the trace ran on.

Philly's own list has 231 and 321; jobs ran on GPUs that most of its small servers do not have
(philly-traces, issue 8).
"""
DOMAIN = 24
"""Servers of an RDMA domain: assumed."""
GPUS = 1386
"""So many are three quarters full of the trace's jobs; Philly had more than the trace tells of."""
QUOTAS = {
    **{"6214e9": 125, "7f04ca": 190, "11cb48": 56, "b436b2": 220, "ee9e8c": 370, "e13805": 30},
    **{"6c71a0": 108, "2869ce": 100, "ed69ec": 14, "103959": 66, "0e4a51": 118},
}
"""GPUs of each: fitted by hand to table 2 on seed 0. They add up to 1,397.

From shares of the GPU time in the public trace, moved towards the virtual clusters whose gangs the
paper says hardly wait for their fair share.
"""
RECORDED_SPEED: Document = {"counts": [1, 2, 4, 8], "speed": [1.0, 0.945, 0.945, 0.872]}
"""Mean speed of gangs in rollouts of the scenario, relative to alone at their best place."""
PAIR = round(98.0 / 114.8, 3)
"""Speed of two GPUs on two servers: table 4."""
BESIDE = round(40.94 / 43.66, 3)
PRODUCTION: Document = {
    "neighbours": {"shared_server": BESIDE},
    "spread": {
        "servers": {
            "counts": [1, 2, 4, 8],
            "speed": [1.0, PAIR, PAIR, round(PAIR * 28.56 / 40.94, 3)],
        }
    },
}
"""What neighbours and distance cost the jobs of the cluster: table 5 holds both.

Gangs of 16 on 2 servers of 8 have no neighbours, on 4 and 8 they have some as a rule. The step from
2 to 4 servers is the most that such neighbours can take.
"""
SIDE_BY_SIDE = {"neighbours.shared_server": 0.771, "recorded_speed": None}
"""What table 4's experiment has besides: neighbours as hard as ResNet-50, 75.6 of 98.0 images/s.

And the busy share is that of the job alone.
"""


def groups(gpus: int, sizes: tuple[int, ...] = (8, 2)) -> list[Document]:
    """Return groups of nodes with about so many GPUs, in RDMA domains of equal servers.

    Servers of the sizes are in the ratio of the public list.
    """
    ratio = gpus / sum(size * SERVERS[size] for size in sizes)
    found: list[Document] = []
    for size in sizes:
        left, number = round(SERVERS[size] * ratio), 0
        while left:
            count = min(DOMAIN, left)
            found.append({"count": count, "gpus": size, "domain": f"{size}-{number}"})
            left, number = left - count, number + 1
    return found


def total(nodes: list[Document]) -> int:
    """Return the GPUs of groups of nodes."""
    return sum(int(group["count"]) * int(group["gpus"]) for group in nodes)


def quotas(gpus: int) -> dict[str, int]:
    """Return the GPUs of each virtual cluster where there are so many, at least one server."""
    return {name: max(8, round(count * gpus / GPUS)) for name, count in QUOTAS.items()}
