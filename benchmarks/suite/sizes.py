"""How far each work of the benchmark goes: all of it, or what takes two minutes."""

from __future__ import annotations

from typing import NamedTuple

PHILLY_JOBS = 82_247


class Sizes(NamedTuple):
    """How far each work goes; limits in seconds."""

    trees: tuple[int, ...]
    milps: tuple[int, ...]
    pops: tuple[int, ...]
    equal_nodes: tuple[int, ...]
    two_kinds: tuple[int, ...]
    usual_kinds: dict[int, tuple[int, ...]]
    usual: tuple[int, ...]
    later_trees: tuple[int, ...]
    later_equal_nodes: tuple[int, ...]
    later_eaco: tuple[int, ...]
    minutes_later: tuple[int, ...]
    eaco_few: tuple[int, ...]
    eaco: dict[int, tuple[int, ...]]
    eaco_live: tuple[int, ...]
    eaco_typed: tuple[int, ...]
    phases: tuple[int, ...]
    lp_phases: tuple[int, ...]
    proven_phases: tuple[int, ...]
    offer_draws: tuple[int, ...]
    jobs: tuple[int, ...]
    bounded: tuple[int, ...]
    saved: tuple[int, ...]
    sia: tuple[int, ...]
    sia_peers: tuple[int, ...]
    unlike: tuple[int, ...]
    limit_s: float
    peer_limit_s: float


FULL = Sizes(
    trees=(24, 32, 48, 64, 256, 1024, 4096, 16_384),
    milps=(24, 32, 48, 64),
    pops=(256, 1024, 4096),
    equal_nodes=(1000, 10_000, 100_000),
    two_kinds=(256, 512, 1024, 2048, 2080),
    usual_kinds={8: (256,), 16: (256, 512, 1024, 2048)},
    usual=(256, 1024, 4096, 16_384),
    later_trees=(1024, 4096, 16_384),
    later_equal_nodes=(1000, 10_000, 100_000),
    later_eaco=(250, 500, 1000),
    minutes_later=(110,),
    eaco_few=(24, 40, 60),
    eaco={3: (250, 500, 1000), 4: (250, 500, 1000)},
    eaco_live=(100, 130, 300),
    eaco_typed=(2500, 5000, 10_000),
    phases=(10_000, 30_000, 100_000, 1_000_000),
    lp_phases=(10_000, 30_000, 100_000),
    proven_phases=(1000, 10_000, 30_000),
    offer_draws=(1, 2, 3, 4),
    jobs=(PHILLY_JOBS // 10, PHILLY_JOBS // 3, PHILLY_JOBS),
    bounded=(PHILLY_JOBS // 8, PHILLY_JOBS // 4, PHILLY_JOBS // 2, PHILLY_JOBS),
    saved=(20_000,),
    sia=(64, 256, 512, 1024, 2048, 8192),
    sia_peers=(64, 256, 512, 1024, 2048),
    unlike=(20, 60, 200),
    limit_s=120.0,
    peer_limit_s=20.0,
)
QUICK = Sizes(
    trees=(32, 64, 256, 1024),
    milps=(32,),
    pops=(256,),
    equal_nodes=(1000,),
    two_kinds=(256, 2048),
    usual_kinds={8: (256,), 16: (256,)},
    usual=(1024,),
    later_trees=(1024,),
    later_equal_nodes=(1000,),
    later_eaco=(60,),
    minutes_later=(30,),
    eaco_few=(24,),
    eaco={3: (20, 40, 60)},
    eaco_live=(60,),
    eaco_typed=(1000,),
    phases=(10_000, 30_000, 100_000),
    lp_phases=(10_000,),
    proven_phases=(1000, 2000, 4000),
    offer_draws=(),
    jobs=(1000, 2000, 4000),
    bounded=(1000, 2000, 4000),
    saved=(1000,),
    sia=(64, 256, 512),
    sia_peers=(256,),
    unlike=(20,),
    limit_s=15.0,
    peer_limit_s=3.0,
)
