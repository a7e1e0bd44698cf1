"""What the methods of BOA are tuned by, and what their estimates of memory rest on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BoaSettings:
    """Limits and tolerances of the methods; the verifier reads none of them.

    Attributes
    ----------
    rounding
        Relative: two floats that differ by less are taken for equal in a search, and the use of a
        choice, summed exactly, is off by less. What keeps within a limit is decided exactly.
    limit_tolerance
        Relative: mixed plans closer than this to the limit are taken for beyond it.
    float_tolerance
        Relative: more than what sums of floats are off by. What they see nearer is compared
        exactly.
    label_rounding
        For each phase, relative to the priced value: subtracted from a bound that rests on labels
        in floats, so that exact arithmetic confirms it; a few roundings.
    value_tolerance
        Relative to the value: rounding that is worth avoiding.
    disagreement
        Relative: figures of two solvers that differ by more contradict each other.
    verified_labels, least_verified_labels
        The verifier compares exactly, and so keeps some more labels than floats do: it may follow
        so many times theirs, and these.
    most_labels, most_kept_labels
        Labels made in one enumeration, and kept at a time: fewer than the verifier follows and
        keeps, so that it can confirm what is stated.
    beam_labels
        Labels that are kept once too many were made.
    most_pairs
        Labels that one product of two lists makes.
    first_window, window_growth
        How far above the price's bound the first target is, as a share of the gap to the plan; and
        by what it is multiplied each time that nothing is left below it.
    most_moves
        Moves that spend what a plan leaves of the limit.
    most_refused
        Pairs of labels that the limit may refuse exactly, though not in floats.
    plan_share
        Of `most_labels`, for searches until the plan gets no better.
    least_price, most_price
        Ends of the bisection for a price of continuous widths.
    block_phases, piece_steps, threads
        Of the frontier in one sort: phases whose columns stay in the cache together, steps that
        are sorted together, and threads.
    at_once
        Phases times budgets of a sweep that one process solves in a few seconds.
    efficiency_digits
        Efficiencies that agree to so many digits count as equal.
    drawn_groupings, shrinking, phases_per_grouping
        Of the published procedure, as in its authors' code: random groupings, the factor by which
        the trial limit shrinks, and of how many phases the largest group is one.
    highs_gap_share
        Of the gap, which HiGHS is asked for, so that rounding its bound down cannot miss it.
    highs_tolerance, highs_attempts, highs_growth
        HiGHS' plan may exceed the limit by its tolerance, relatively. Then the limit is drawn in by
        what excludes that plan, so many times, and by ever more.
    loaded_bytes, pyomo_bytes
        Of numpy's parts, and of Pyomo and HiGHS, as they are loaded.
    priced_bytes, labelled_bytes
        Of a node, which is one (phase, width): times, GPUs and what the verifier adds up; and its
        labels on average, of which cannot be told beforehand how many stay open.
    width_bytes, rescaling_bytes
        Of a node in Pyomo and HiGHS: its width, and the rescaling to it.
    """

    rounding: float = 1e-13
    limit_tolerance: float = 1e-12
    float_tolerance: float = 1e-9
    label_rounding: float = 1e-15
    value_tolerance: float = 1e-10
    disagreement: float = 1e-6
    verified_labels: int = 2
    least_verified_labels: int = 10_000
    most_labels: int = 6_000_000
    most_kept_labels: int = 300_000
    beam_labels: int = 1_000
    most_pairs: int = 2_000_000
    first_window: float = 1 / 64
    window_growth: float = 4.0
    most_moves: int = 200
    most_refused: int = 1_000
    plan_share: float = 1 / 20
    least_price: float = 1e-30
    most_price: float = 1e30
    block_phases: int = 8192
    piece_steps: int = 65_536
    threads: int = 2
    at_once: int = 200_000
    efficiency_digits: int = 12
    drawn_groupings: int = 30
    shrinking: float = 0.99
    phases_per_grouping: int = 10
    highs_gap_share: float = 0.9
    highs_tolerance: float = 1e-6
    highs_attempts: int = 6
    highs_growth: float = 8.0
    loaded_bytes: int = 5 * 2**20
    pyomo_bytes: int = 92 * 2**20
    priced_bytes: int = 125
    labelled_bytes: int = 290
    width_bytes: int = 1650
    rescaling_bytes: int = 3500


SETTINGS = BoaSettings()
