"""What EaCO's search for plans is tuned by: a part of `optsched.eaco.settings`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PrimalSettings:
    """Limits and sizes of heuristics; what they find is checked under any values.

    Attributes
    ----------
    search_steps, step_gain, step_gain_kwh
        Local search: steps that are looked at; what one must gain, of the objective and beside.
    done_share, batch_window
        Of a job's work: what rounding leaves of it once it has ended. Next jobs that the greedy
        grouping looks at for each group.
    dive_sure, dive_surest, dive_steps, dive_rounds
        So much of a group is taken for all of it, and so much with cuts, over listed groups, in one
        dive after the other until there is a plan; steps of a dive, rounds of pricing after each.
    annealing_tries, annealing_sweeps, annealing_ways, annealing_costs, annealing_heat,
    annealing_noise, annealing_warm
        Annealing: times before integer programs; sweeps over pairs of groups, ways to part a pair's
        jobs, and groups costed (by the closed form, by phases), at most; first and last temperature
        in mean costs of a group; by how much lengths of a pair differ, in logarithms, in turn; on
        a warm start, first temperature, share of the gap, and sweeps at most.
    lns_dissolved, lns_alike, lns_least_share
        Groups that are dissolved, and how many of them have jobs of like lengths, in turn; of what
        is to be gained, the least that jobs of a gang size must cost too much to be parted anew.
    lns_tries, lns_patience, lns_gain
        Tries at most, tries without gain, and the relative gain (and gap) that counts.
    lns_full_groups, lns_smaller_groups, lns_nodes
        Groups that are chosen from, of the greatest size and of each other; nodes of each program.
    restricted_groups, restricted_nodes, restricted_share
        Restricted master: groups; nodes (heuristics at the root find nearly all there is); and the
        share of the gap asked for.
    packing_steps, packed_gangs
        Node packing: steps, and gangs, beyond which not all packings are tried.
    """

    search_steps: int = 200_000
    step_gain: float = 1e-9
    step_gain_kwh: float = 1e-12
    done_share: float = 1e-9
    batch_window: int = 200
    dive_sure: float = 0.7
    dive_steps: int = 200
    dive_rounds: int = 2
    dive_surest: tuple[float, ...] = (0.9, 0.7, 1.0)
    annealing_tries: int = 2
    annealing_sweeps: int = 1_000
    annealing_costs: tuple[int, int] = (2_500_000, 200_000)
    annealing_ways: int = 35
    annealing_heat: tuple[float, float] = (0.03, 3e-4)
    annealing_noise: tuple[float, ...] = (100.0, 0.2, 0.5, 0.2)
    annealing_warm: tuple[float, float, int] = (0.003, 0.7, 15)
    lns_dissolved: int = 10
    lns_alike: tuple[int, ...] = (0, 5, 10)
    lns_tries: int = 100
    lns_patience: int = 15
    lns_gain: float = 1e-5
    lns_least_share: float = 0.1
    lns_full_groups: int = 800
    lns_smaller_groups: int = 200
    lns_nodes: int = 5
    restricted_groups: int = 1_000
    restricted_nodes: int = 1
    restricted_share: float = 0.25
    packing_steps: int = 20_000
    packed_gangs: int = 100
