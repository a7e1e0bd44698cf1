"""What EaCO's cuts are tuned by: a part of `optsched.eaco.settings`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CutSettings:
    """Limits and tolerances of the cuts; bounds stay true under any values.

    Attributes
    ----------
    root_cut_rounds, cut_rounds_below, cuts_per_round, cut_patience, cut_columns
        Rounds of cuts at the root and below, cuts in each, and rounds without a rise to bear; the
        root is cut over so many columns of least reduced cost if there are more than twice as many.
    odd_set_rounds, settled, settled_pairs
        Rounds of odd sets at the root of pairs. Rise of the bound below which cutting ends; for odd
        sets, which close the gap, it is less.
    most_triples, most_in_cut_tree
        Sets of three jobs, and jobs of a cut tree (Gomory and Hu), that are looked at.
    enough_pooled, pooled_cuts, rank1_few
        Known cuts that are violated and new ones of exchange, from which on no others are sought;
        cuts that are remembered.
    rank1_seeds, rank1_rounds, rank1_violation, rank1_gain, rank1_enough, product_size
        Exchange for rank-one cuts: sets to begin with, rounds over every job, least violation, and
        gain; cuts after which no more patterns are tried; products below which BLAS has one thread.
    mod_k, mod_k_orders, mod_k_noise, mod_k_share, mod_k_violation
        Mod-k cuts: primes k; orders of elimination for each, and how much they differ; share of a
        group that is eliminated; least violation.
    odd_set_units, odd_set_tight, near_pairs, more_pairs
        Matching in whole numbers: units in the greatest reduced cost, units that are nothing; pairs
        for each job, of least reduced cost at first and of those that are too cheap in the end.
    """

    root_cut_rounds: int = 400
    cut_rounds_below: int = 2
    cuts_per_round: int = 100
    cut_columns: int = 15_000
    cut_patience: int = 5
    odd_set_rounds: int = 10
    settled: float = 1e-5
    settled_pairs: float = 1e-7
    most_triples: int = 400_000
    most_in_cut_tree: int = 150
    rank1_seeds: int = 50
    rank1_rounds: int = 3
    rank1_violation: float = 5e-3
    rank1_gain: float = 1e-5
    rank1_enough: int = 100
    product_size: int = 200_000
    enough_pooled: int = 30
    pooled_cuts: int = 5_000
    rank1_few: int = 100
    mod_k: tuple[int, ...] = (2, 3, 5)
    mod_k_orders: int = 2
    mod_k_noise: float = 0.2
    mod_k_share: float = 0.02
    mod_k_violation: float = 1e-2
    odd_set_units: int = 2**40
    odd_set_tight: int = 2**8
    near_pairs: int = 30
    more_pairs: int = 5
