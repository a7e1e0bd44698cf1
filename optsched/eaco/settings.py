"""What EaCO's methods are tuned by: one documented field each, read at the time of use."""

from __future__ import annotations

from dataclasses import dataclass

from optsched.eaco.cut_settings import CutSettings
from optsched.eaco.primal_settings import PrimalSettings


@dataclass(frozen=True)
class EacoSettings(CutSettings, PrimalSettings):
    """Limits, tolerances and sizes of the methods; no result is wrong whatever they are.

    Shares and tolerances are relative, numbers are counts, unless a unit is named. Bounds stay
    true under any values, since the verifier has its own; what changes is time, and how much is
    proven in it. Those of cuts and of the search for plans stand in classes of their own.

    Attributes
    ----------
    most_listed_jobs, most_wide_classes, most_bent_classes
        Jobs, and classes of jobs where more than two share, up to which `exact` lists all groups:
        from about there on `columns` has better plans and bounds in the same time.
    tight_gap, most_closed_groups, listing_s
        Relative gap down to which plans of column generation are repaired, as no tree follows; and
        groups that are listed for smaller ones, if there is so much time in seconds.
    most_groups, most_columns
        Groups that are listed, and the same with nodes, power levels and locations: what a few
        gigabytes hold. More are refused.
    most_started_jobs
        Jobs for which the greedy rules look at each job for each group, when `columns` has no plan.
    any_rate, near
        Least rate that a job without a tolerance bears: below all rates, its inverse is finite;
        what is so near to a limit is decided in fractions, as floats err by about 1e-12.
    instant_share
        Of a run time: a phase so short is none, but two jobs that end at once.
    calm_watts, memory_cells, utilisation_cells, few_priced_jobs
        Of the greatest watts of a GPU: above, the fluid bound trusts watts in floats. Of the
        completion bounds' tables; more sieve better, not worth the time for so few jobs.
    most_measured_types, most_multisets, scarce_share, most_sequences
        Measured types that are priced; multisets of them looked at one by one; share of the jobs up
        to which dives do without them; sequences of types priced where watts are not affine.
    listed_at_once
        Groups that are listed whatever the time.
    block_positions, most_blocks
        Positions in the order of work that share one table at least, and tables at most.
    pairs_at_once
        Pairs of a group and a job that are looked at in one go, which bounds the memory.
    first_columns, round_columns, kept_columns
        Sifting: columns in the program at first, added in a round at most, and once the root has
        shown which ones are of use.
    counts_at_once, column_doubt, pricing_tolerance
        Counts of columns by cuts that are added up in one go; relative error of a column's cost and
        of what its jobs pay, about 50 roundings; and how far below zero a reduced cost must be,
        relative to the costliest group.
    term_rounding, penalty_factor
        Relative error of one term of the Lagrangian value; penalty for a job left out and for a
        missed bound, in multiples of the costliest plan.
    missed_count, least_ray, ray_margin
        Misses that are none; of a miss, the least that a Farkas ray must prove; how much longer
        than it should suffice a ray is made.
    most_nodes, near_groups, near_growth
        Nodes of a tree; groups of least reduced cost in the first, and how much more in the next.
    tree_gap, small_tree_share, small_tree_nodes, poor_gap
        Gap up to which a tree comes before the restricted master, and cuts before a dive; multiple
        of larger gaps up to which a tree of so many nodes does; and gap from which on the
        restricted master comes before cuts.
    gap_share, late_gap_share
        Share of the gap that is used, and that in the end will do.
    left_out, stated_slack, named_jobs
        Jobs: a proof that more than so many are left out proves that one is. What a certificate
        states less than floats prove. Jobs that are named in a message.
    probed_splits, probe_steps
        Splits that strong branching tries, and steps of the simplex method for each.
    least_share, ascent_passes
        Warm start: jobs that were there before, else it says little; passes of dual ascent.
    whole, least_violation
        How far from whole a count must be to be branched on; how much a cut must be violated.
    first_width, most_width, seed_width, width_growth
        Groups that grow on in a pricing search: at first, at most, for the first groups; and by
        what this grows once the bound rests on what a search left out.
    most_near, most_near_warm, most_cut_groups
        Groups of a branch and bound, after column generation; on a warm start to a loose gap; and
        of a gang size, up to which they are listed and cut.
    smoothing, scarce_groups
        Share of the duals that proved most in those that are priced next (Wentges); fewer groups
        in a round tell that it may go nearer to the duals of the program.
    generation_rounds, converged
        Rounds of pricing; relative distance of bound and program at which they end.
    caution, cautious_classes
        Share by which the first duals are lowered, and classes of jobs from which on all of it is:
        the more jobs, the more groups seem to pay that do not.
    dual_doubt
        By so much less do jobs pay than floats say that groups cost.
    best_groups, best_layers, seed_layers, seed_shares
        Groups that are added in a round whichever jobs they have; times that each job gets the best
        group at each place, in rounds and at first; what first groups cost more, as shares of what
        their first jobs pay.
    trials, listing_tries, listing_tolerance
        Of rounds and a dive: how much of the gap asked for the bound may fall short of the
        relaxation, and which share of the groups that are left each step of the dive fixes. Times
        that the groups which better plans may have are listed again; slack for rounding.
    kept_per_class, fewest_kept, lowered_share
        Groups for the next epoch. Share of the gap that is left over, by which duals are lowered.
    bytes_loaded, bytes_pyomo
        Memory of scipy and HiGHS, and with Pyomo (`benchmarks/memory.py` fits all of these).
    bytes_listed, bytes_formulated, bytes_priced, most_priced
        Of a group and each job that it may have, while listed; of a group in fractions, in Pyomo
        and in HiGHS; of a pair of classes by `columns`, whose searches drop what is too much.
    few_groups, drawn_groups, nearly_borne
        Groups that need not be looked at to be counted; groups that are drawn; and the share of a
        least rate that is borne but for rounding.
    """

    most_listed_jobs: int = 2_000
    most_wide_classes: int = 75
    most_bent_classes: int = 48
    tight_gap: float = 1e-5
    most_closed_groups: int = 500_000
    listing_s: float = 60.0
    most_groups: int = 5_000_000
    most_columns: int = 6_000_000
    most_started_jobs: int = 400
    any_rate: float = 1e-100
    near: float = 1e-9
    instant_share: float = 1e-12
    calm_watts: float = 1e-6
    memory_cells: int = 24
    utilisation_cells: int = 12
    few_priced_jobs: int = 24
    most_measured_types: int = 200
    most_multisets: int = 3_000
    scarce_share: float = 0.1
    most_sequences: int = 2_000
    listed_at_once: int = 200_000
    block_positions: int = 8
    most_blocks: int = 64
    pairs_at_once: int = 500_000
    first_columns: int = 2_000
    round_columns: int = 600
    kept_columns: int = 800
    counts_at_once: int = 2_000_000
    column_doubt: float = 1e-14
    pricing_tolerance: float = 1e-9
    term_rounding: float = 1e-15
    penalty_factor: float = 2.0
    missed_count: float = 1e-7
    least_ray: float = 1e-9
    ray_margin: float = 1.01
    most_nodes: int = 20_000
    near_groups: int = 4_000
    near_growth: int = 4
    tree_gap: float = 1e-4
    small_tree_share: float = 4.0
    small_tree_nodes: int = 15
    poor_gap: float = 0.03
    gap_share: float = 0.9
    late_gap_share: float = 0.99
    left_out: float = 1e-3
    stated_slack: float = 1e-12
    named_jobs: int = 5
    probed_splits: int = 8
    probe_steps: int = 50
    least_share: float = 0.5
    ascent_passes: int = 2
    whole: float = 1e-6
    least_violation: float = 1e-3
    first_width: int = 6_000
    most_width: int = 3_000_000
    seed_width: int = 30_000
    width_growth: int = 8
    most_near: int = 400_000
    most_near_warm: int = 20_000
    most_cut_groups: int = 16_000
    smoothing: float = 0.8
    scarce_groups: int = 200
    generation_rounds: int = 200
    converged: float = 1e-9
    caution: float = 0.03
    cautious_classes: int = 10_000
    dual_doubt: float = 1e-13
    best_groups: int = 300
    best_layers: int = 2
    seed_layers: int = 4
    seed_shares: tuple[float, ...] = (0.05, 0.2)
    trials: tuple[tuple[float, float], ...] = ((0.4, 0.2), (0.1, 0.05))
    listing_tries: int = 20
    listing_tolerance: float = 1e-9
    kept_per_class: int = 8
    fewest_kept: int = 2_000
    lowered_share: float = 0.9
    bytes_loaded: int = 30 * 2**20
    bytes_pyomo: int = 100 * 2**20
    bytes_listed: int = 165
    bytes_formulated: int = 2_500
    bytes_priced: int = 400
    most_priced: int = 4096 * 2**20
    few_groups: int = 4_000
    drawn_groups: int = 100
    nearly_borne: float = 1 - 1e-9


SETTINGS = EacoSettings()
