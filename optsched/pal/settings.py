"""What can be tuned in PAL's methods: each threshold, tolerance and limit of work once.

Code reads `SETTINGS.name` when it needs the value. Verifiers read none of it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PalSettings:
    """Thresholds, tolerances and limits of work; times were measured on one core of 2 to 3 GHz.

    Attributes
    ----------
    large_gpus
        GPUs, beyond which "exact" goes by node classes or blocks, whose programs take less time
        than one for the whole; greedy plans get no prices then.
    job_by_job
        Jobs that greedy rules place one after the other in less than a second.
    short_s, classes_short_s, blocks_short_s
        A time limit is too short for large clusters below this many s, or s per GPU if that is
        less: of node classes, and of blocks.
    swept
        GPUs of a domain that are taken before they are swept out of its ranking.
    rounding
        More than what rounding takes from a sum of some thousand terms, relative.
    flat_penalties
        Of a model: the greatest above the least, relative, up to which the smallest gangs are put
        on the fastest GPUs at first.
    integral
        How far from a whole number HiGHS calls whole.
    penalty
        What missing a job or a rule costs in a relaxation, relative to a whole plan.
    priced_at_once
        GPUs of chains that are short enough to be priced many at once.
    gap_share
        Of the gap that is asked for; the rest is kept, so that rounding cannot miss it.
    work, least_nodes
        Options times nodes after which a tree is given up, but not before so many nodes.
    rounded_nodes
        The first nodes are all rounded, of later ones every tenth.
    worth_fixing, fixing_rounds
        Share of the options that fixing must remove (with less the next tree would be much like the
        last one), and how often it is tried.
    cut_rounds, violated
        Rounds of cuts at a root; and by how much a cut must be violated to be worth a row.
    penalty_rise, most_rises
        Factor on what missing the lower bound of a rule costs, and how often it rises.
    feasibility_nodes, left_out
        Nodes of the tree that looks for any plan; a proof that so much of a job is left out is
        enough, as jobs are whole.
    reinsertions, better
        Rounds of reinsertion, far more than it takes to find no better place; by how much a place
        must be better, relative.
    smoothing, ascent_steps, ascent_memory, first_price
        Ascent of the dual: its stages, relative to what a job costs; steps of each and what L-BFGS
        remembers of them; and the prices of all GPUs at first, relative to what all jobs cost.
    ascent_flat, late_smoothing, late_steps
        A stage ends where a step brings less than this share; and stages and steps that follow
        where the first plan leaves the gap open.
    priced_gpus, thresholds, threshold_excess
        Thresholds of the domains of a level: so many that they have so many GPUs together, within
        the least and most for each; spread over those at which some gang pays at most so much above
        the least, in the unit of smoothing.
    part_thresholds
        Thresholds of a domain of which a part alone is priced anew.
    options_per_gpu
        Options from which on prices are found by ascent first: the linear program takes longer.
    least_share
        Of a job that asks for a gang, below which it is not looked at.
    fix_steps, fix_smoothing, fix_share
        Relax and fix: steps of ascent between the jobs that are placed, at this smoothing; and what
        share of the GPUs that jobs still wait for is given out each time.
    fix_gpus, fix_noise, fix_patience
        Parts that are placed anew: about so many GPUs; by what (log-normal) their order varies; and
        parts in a row that bring nothing, after which no more are tried.
    anneal_per_gpu, anneal_hot
        Moves of annealing for each GPU of the first plan; and the temperature that it begins with,
        relative to the mean cost of a job.
    anneal_part, anneal_part_hot
        The same after a part was placed anew: all moves together.
    anneal_cold, anneal_every
        Temperature that it ends with, and so many moves at each.
    anneal_moves, anneal_slowest, anneal_faster
        Shares of its moves, in the order of `GangAnnealing.run`; and how often two GPUs change jobs
        from a job's slowest one on, and for a faster one.
    filling_gpus, filling_shift
        GPUs of the nodes that are filled anew at once; and how far beside thresholds others are
        looked at, in GPUs by slowdown, where those that there are bring nothing.
    filling_missing, filling_slack
        What a missing job costs, relative to the costliest; and by how much a filling may miss the
        goal, relative, as annealing follows.
    filling_rounds, filling_near
        Rounds of column generation, and relative gap at which it ends.
    filling_gap, filling_nodes
        Relative gap and nodes of the integer program over the patterns.
    dive_steps, dive_share, dive_costlier
        Steps of a dive; the share of fractional counts that one rounds up; and the relative cost
        from which on it leads nowhere.
    mip_near, mip_gap, mip_nodes, mip_gap_share
        Restricted MIP: options so much costlier than the cheapest are kept, relative to the gap;
        the least relative gap and the nodes of HiGHS; and its share of the gap that is asked for,
        since rounding takes the rest.
    coarse_gap
        Gaps from which on reoptimised parts are likely to be enough, and quicker.
    many_jobs
        From so many on, parts of them are reoptimised.
    neighbourhood_sizes, neighbourhood_spread
        Jobs of a neighbourhood; and the slowdown by which jobs are mixed that are not quite
        neighbours.
    part_gap, patience, least_patience
        Relative gap of a part; parts in a row that bring nothing, after which no more are tried;
        and the same where the bound must be what keeps a gap open.
    worst_excess, worst_near, worst_jobs, worst_in_the_way
        Worst removal: times the average excess from which on a job is removed; share of its excess
        by which an option may be costlier than the cheapest; jobs at once; and jobs that may stand
        where one would pay least.
    same_scale
        Objectives so near each other, relative, are taken to be in one unit.
    most_classes, most_class_share, most_class_share_before_tree
        Node classes are few up to this number, and up to this share of the nodes but for what is
        around them: of large clusters, and of others, where a tree may follow.
    most_class_types, most_wide_share
        So many types of jobs at most; on large clusters gangs larger than a node ask for
        at most this share of the GPUs.
    most_node_gpus
        GPUs of a node up to which all sets of them are looked at (1,024).
    classes_s, classes_s_per_gpu, class_s
        Seconds that node classes take at most: in all, per GPU and per class.
    most_patterns
        Patterns that are kept for the next epoch.
    master_gap, master_improvement, master_rounds
        Column generation ends so near the optimum, relative, since nearer is not worth a round;
        improvements below this share of the costliest job are none; and rounds at most.
    rest_gap, rest_nodes
        Relative gap and nodes of the program for what rounding patterns down leaves over.
    missing
        What it costs to place a job nowhere, relative to its costliest place.
    small_rest, root_gap
        GPUs up to which what patterns leave over is solved by the exact method, and its gap.
    block_gpus, block_gangs
        GPUs of a block, which holds at least so many of the largest gang.
    block_gap
        Relative gap of a block's plan.
    few_options
        Options that better plans may use: with fewer the whole relaxation is quick.
    most_shared_types
        With more types of jobs a block gets whole jobs, not shares of every type.
    """

    large_gpus: int = 2048
    job_by_job: int = 5000
    short_s: float = 2.0
    classes_short_s: float = 1e-5
    blocks_short_s: float = 1e-4
    swept: int = 256

    rounding: float = 1e-13
    flat_penalties: float = 0.05
    integral: float = 1e-6
    penalty: float = 4.0
    priced_at_once: int = 32

    gap_share: float = 0.999
    work: int = 2_000_000
    least_nodes: int = 15
    rounded_nodes: int = 40
    worth_fixing: float = 0.1
    fixing_rounds: int = 4
    cut_rounds: int = 12
    violated: float = 1e-4
    penalty_rise: float = 16.0
    most_rises: int = 6
    feasibility_nodes: int = 20_000
    left_out: float = 1e-3

    reinsertions: int = 20
    better: float = 1e-9
    smoothing: tuple[float, ...] = (3e-3, 1e-3, 3e-4, 1e-4)
    ascent_steps: int = 40
    ascent_memory: int = 20
    first_price: float = 0.1
    ascent_flat: float = 3e-7
    late_smoothing: tuple[float, ...] = (1e-3, 1e-4)
    late_steps: int = 160
    priced_gpus: int = 262_144
    thresholds: tuple[int, int] = (16, 64)
    threshold_excess: float = 0.03
    part_thresholds: int = 24
    options_per_gpu: int = 30
    least_share: float = 1e-3
    fix_steps: int = 10
    fix_smoothing: float = 1e-3
    fix_share: float = 0.2
    fix_gpus: int = 100
    fix_noise: float = 0.3
    fix_patience: int = 40
    anneal_per_gpu: int = 200
    anneal_hot: float = 2e-3
    anneal_part: int = 15_000
    anneal_part_hot: float = 1e-3
    anneal_cold: float = 1e-4
    anneal_every: int = 256
    anneal_moves: tuple[float, ...] = (0.65, 0.3, 0.03, 0.02)
    anneal_slowest: float = 0.8
    anneal_faster: float = 0.8
    filling_gpus: int = 256
    filling_shift: int = 6
    filling_missing: float = 3.0
    filling_slack: float = 3e-4
    filling_rounds: int = 100
    filling_near: float = 2e-5
    filling_gap: float = 1e-4
    filling_nodes: int = 10
    dive_steps: int = 200
    dive_share: float = 0.6
    dive_costlier: float = 1.2
    mip_near: float = 0.02
    mip_gap: float = 2e-4
    mip_nodes: int = 20
    mip_gap_share: float = 0.5
    coarse_gap: float = 5e-4
    many_jobs: int = 24
    neighbourhood_sizes: tuple[int, ...] = (20, 45)
    neighbourhood_spread: float = 0.02
    part_gap: float = 2e-4
    patience: int = 16
    least_patience: int = 4
    worst_excess: float = 4.0
    worst_near: float = 0.1
    worst_jobs: int = 45
    worst_in_the_way: int = 8
    same_scale: float = 0.05

    most_classes: int = 400
    most_class_share: float = 0.25
    most_class_share_before_tree: float = 0.5
    most_class_types: int = 200
    most_wide_share: float = 0.3
    most_node_gpus: int = 10
    classes_s: float = 0.3
    classes_s_per_gpu: float = 2e-5
    class_s: float = 0.02
    most_patterns: int = 2000
    master_gap: float = 2e-5
    master_improvement: float = 1e-9
    master_rounds: int = 400
    rest_gap: float = 2e-3
    rest_nodes: int = 200
    missing: float = 30.0
    small_rest: int = 256
    root_gap: float = 1e-3

    block_gpus: int = 1024
    block_gangs: int = 4
    block_gap: float = 5e-3
    few_options: int = 20_000
    most_shared_types: int = 200


SETTINGS = PalSettings()
