"""Rounds in which every job gets GPUs that are drawn anew."""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

from optsched.rollout.policies.rounds.admitted_jobs import AdmittedJobs

if TYPE_CHECKING:
    import random

    from optsched.rollout.engine.view import View
    from optsched.rollout.policies.job_orders import Order
    from optsched.rollout.policies.placement_round import ClusterData

    Gpus = tuple[int, ...]


class DrawnRounds(AdmittedJobs):
    """The rule `packing_rules.drawn_by` without caps, on a list of free GPUs.

    Parameters
    ----------
    generator
        Goes on from round to round; its draws are those of the rule.
    """

    def __init__(
        self,
        view: View,
        world: ClusterData,
        generator: random.Random,
        order: Order,
        backfill: bool,
    ) -> None:
        super().__init__(view, world, order, backfill, by_class=False)
        self.generator = generator

    def placed_anew(self, chosen: list[int]) -> dict[int, Gpus]:
        """Place jobs in their order, and return those that get other GPUs than they hold."""
        active, held = self.active, self.held
        moved: dict[int, Gpus] = {}
        free = list(range(len(self.world.node_of)))
        for job in chosen:
            gpus = draw_gpus(self.generator, free, active[job].gpus)
            if gpus != held.get(job):
                moved[job] = gpus
        return moved


def draw_gpus(generator: random.Random, free: list[int], size: int) -> Gpus:
    """Draw GPUs, and take them off those that are free.

    A draw of one out of so many is that of a sample of one.
    """
    draw, among = generator.randrange, len(free)
    draw(comb(among, size))  # the domain, of which there is one: that of all GPUs
    if size == 1:
        return (free.pop(draw(among)),)
    places = sorted(generator.sample(range(among), size))
    gpus = tuple([free[n] for n in places])
    for n in reversed(places):
        del free[n]
    return gpus
