"""What the methods of Sia's round may be tuned by; the verifier and the data have no part in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SiaSettings:
    """Limits, tolerances and starting sizes of the methods of Sia's round.

    Attributes
    ----------
    most_nodes
        Nodes of branch and bound after which a solve gives up.
    programs_in_rollouts
        Linear programs in a round that is one of many: then what is proven is stated.
    nodes_before_enumeration
        Nodes after which partial plans are enumerated: where a few dozen leave a gap, jobs are
        alike, and many thousands would.
    most_jobs_unpriced
        Jobs of which a round needs no prices to begin with; of more, a part is solved first.
    jobs_per_sample
        One of so many jobs is in that part, which has as large a share of the capacities.
    least_figure, greatest_figure
        Of costs, uses and capacities that a linear program bears.
    columns_at_start, columns_per_job_at_start
        Options that the linear program begins with: so many, or more for more jobs.
    lp_tolerance
        Shares of options, and units of capacity, below which nothing is taken, or missing.
    pricing_share
        Of the gap asked for: how near prices come to the best ones before columns are settled.
    most_pricing_rounds
        Linear programs in one node.
    closed_share
        Of the gap asked for, at which a search ends: what is stated is rounded.
    most_penalty_raises, penalty_factor
        How often what is missing of a capacity is made more expensive in a node, and by what.
    rounding
        Of terms, for each capacity and the cost: more than floats are off by.
    expensive_costs
        Times what plans cost beyond the cheapest options: costs above that spoil a linear program,
        and are cut off.
    most_sums
        Sums that an enumeration may compute: seconds.
    most_direct_sums
        The same where a best plan is known without a linear program.
    sums_at_once
        Sums in one array: MiB.
    first_step, step_growth, slow_step_growth, sums_of_slow_growth
        Targets of enumerations: the first lies so far above the bound, relatively; steps grow by
        the factor, by the lower one once a target took so many sums.
    tightness
        How far a bound stays below the best plan, relatively, so that the verifier can prove it.
    budget_allowance
        Of the terms of a budget of excesses, for what rounding makes of it.
    price_change, random_prices, log_price_spread
        Other prices for enumerations: each changed by a share; and as many drawn, log-normally.
    most_table
        Entries of the table of a round of one capacity: options times units of the capacity.
    most_tangents
        Prices that are tried for the one capacity.
    most_candidates
        Complete plans of an enumeration that are looked at, those of least cost first.
    """

    most_nodes: int = 1_000_000
    programs_in_rollouts: int = 200
    nodes_before_enumeration: int = 40
    most_jobs_unpriced: int = 400
    jobs_per_sample: int = 8
    least_figure: float = 1e-100
    greatest_figure: float = 1e100
    columns_at_start: int = 1000
    columns_per_job_at_start: int = 3
    lp_tolerance: float = 1e-7
    pricing_share: float = 0.02
    most_pricing_rounds: int = 60
    closed_share: float = 0.999
    most_penalty_raises: int = 3
    penalty_factor: float = 1000.0
    rounding: float = 2.0**-51
    expensive_costs: float = 100.0
    most_sums: int = 100_000_000
    most_direct_sums: int = 2_000_000
    sums_at_once: int = 1 << 19
    first_step: float = 1e-5
    step_growth: float = 2.0
    slow_step_growth: float = 1.3
    sums_of_slow_growth: int = 1_000_000
    tightness: float = 5e-10
    budget_allowance: float = 1e-11
    price_change: float = 0.1
    random_prices: int = 12
    log_price_spread: float = 0.2
    most_table: int = 2_000_000
    most_tangents: int = 60
    most_candidates: int = 1000


SETTINGS = SiaSettings()
