"""Declarations of the policies that choose how many GPUs a job gets."""

from __future__ import annotations

from optsched.rollout.declarations.entry import POLICIES, Entry
from optsched.rollout.policy_needs import SPEEDUPS

_EPEW = "Li et al., EPEW 2024, arXiv 2406.15560; BOA, arXiv 2602.01404"
_QUOTAS = ("quotas",)
_BUDGET = "optsched compare boa-cloud --policy boa,"
_FIXED = "optsched compare boa-cloud --policy equi,"
_GROWING = (
    "Running jobs grow only when all that they want is free, in one change of width; in the "
    "authors' allocator they take what is free at every round."
)
_REQUESTED = "is fifo-requested"
_OLDEST = "is fifo that overtakes and preempts"
_FOR_GOOD = "The GPUs are rented for good, the scenario's budget rounded down."

BUDGETS = (
    Entry(
        "boa",
        "the stationary widths of least mean JCT within a budget; nodes are rented for them",
        _EPEW,
        POLICIES + "budgets.boa:boa",
        faithful="The stationary widths of the paper's program, solved to a proven gap; widths by "
        "phase; the allocator's order, first come, first served.",
        differs=(
            "Arrival rates and mean works are by default those of the whole trace, also of its "
            "future, as the authors take them; rates=history learns them from the jobs so far.",
            _GROWING,
        ),
        needs=(SPEEDUPS,),
        becomes=_REQUESTED,
        clairvoyant="statistics",
        refuses=_QUOTAS,
        example=_BUDGET + "one-width-per-class",
        rents_types=True,
    ),
    Entry(
        "boa-budgeted",
        "widths at a price, set so that what is billed for whole nodes keeps to the budget",
        _EPEW,
        POLICIES + "budgets.boa_budgeted:boa_budgeted",
        faithful="At a fixed price its widths are BOA's: those of least time + price x GPU time, "
        "which do not depend on arrival rates.",
        differs=(
            "It is no published policy: a ledger sets the price by what is billed, from the order "
            "of a node to its return, where BOA counts GPUs held.",
            "Widths are billed in whole nodes, jobs of less than a node share nodes, and what is "
            "idle beside a job is given to it until others want it.",
            "Nodes of one type are ordered and kept for jobs to come, where waiting costs more.",
            "With `notice_s` it is told of jobs before they come, so that nodes are ready then.",
            "A job is as long as its phases so far showed, not as its class on average.",
        ),
        needs=(SPEEDUPS,),
        becomes=_REQUESTED,
        clairvoyant="statistics",
        refuses=_QUOTAS,
        example=_BUDGET + "boa-budgeted",
        rents_types=True,
    ),
    Entry(
        "one-width-per-class",
        "one width for all jobs of a class, the best within the budget",
        _EPEW,
        POLICIES + "budgets.boa:one_width_per_class",
        faithful="The best single width of each class within the budget, whatever its phases: "
        "the paper's baseline.",
        differs=(_GROWING,),
        needs=(SPEEDUPS,),
        becomes=_REQUESTED,
        clairvoyant="statistics",
        refuses=_QUOTAS,
        example=_BUDGET + "one-width-per-class",
        rents_types=True,
    ),
    Entry(
        "fixed-width",
        "k GPUs for every job; nodes are rented for them",
        "Li-Zhouzi/artifacts, policy dummy",
        POLICIES + "budgets.boa:fixed_width",
        faithful="Every job has k GPUs, whatever it is.",
        differs=("A job whose model has no width k gets the largest one below it.", _GROWING),
        needs=(SPEEDUPS,),
        becomes=_REQUESTED,
        refuses=_QUOTAS,
        example=_BUDGET + "fixed-width:k=8",
        rents_types=True,
    ),
    Entry(
        "efficiency-threshold",
        "the largest width of a given efficiency; nodes are rented for them",
        "common practice",
        POLICIES + "budgets.boa:efficiency_threshold",
        faithful="The largest width at which each GPU does at least theta of what it does at the "
        "best one.",
        differs=(_GROWING,),
        needs=(SPEEDUPS,),
        becomes=_REQUESTED,
        refuses=_QUOTAS,
        example=_BUDGET + "efficiency-threshold:theta=0.7",
    ),
)

CAPACITY = (
    Entry(
        "equi",
        "so many GPUs, an equal share for every job",
        "EQUI; no single source",
        POLICIES + "capacity.equal_shares:equi",
        faithful="Equal shares, capped by what a job can use.",
        differs=(
            "GPUs are whole: what is left over goes to the oldest; if there are fewer than jobs, "
            "the youngest wait.",
            "Of several GPU types it knows but the reference's speedups; a job then gets the "
            "fastest place within one type that has room for its width or less.",
            _FOR_GOOD,
        ),
        needs=(SPEEDUPS,),
        becomes=_OLDEST,
        refuses=_QUOTAS,
        example=_FIXED + "marginal-greedy",
        knows_types=True,
        rents_types=True,
    ),
    Entry(
        "fifo-requested",
        "so many GPUs, what each job asks for, first in, first out: the baseline of the policies "
        "that choose widths",
        "no paper's: common practice",
        POLICIES + "capacity.requested:fifo_requested",
        faithful="Jobs start in the order of submission, with what they ask for, and keep it.",
        differs=(
            "It differs from fifo: it holds a number of GPUs rented for good (`gpus`), takes the "
            "lowest free ones (or as `placement` says) instead of the best fit, and "
            "keeps no quotas. It never lets a job overtake.",
            _FOR_GOOD,
        ),
        refuses=_QUOTAS,
        example="optsched compare boa-cloud --policy fifo-requested,boa",
    ),
    Entry(
        "srpt-k",
        "so many GPUs, all it can use to the job with the least work left",
        "SRPT-k; no single source",
        POLICIES + "capacity.least_work:srpt_k",
        faithful="The job with the least work left gets all that it can use, then the next.",
        differs=("Work left is the oracle's, by default the truth.", _FOR_GOOD),
        needs=(SPEEDUPS,),
        becomes="is srtf that overtakes",
        refuses=_QUOTAS,
        example=_FIXED + "srpt-k",
    ),
    Entry(
        "marginal-greedy",
        "so many GPUs, step by step to the largest drop of a remaining time",
        "Optimus, EuroSys 2018",
        POLICIES + "capacity.marginal:marginal_greedy",
        faithful="Optimus' allocation: one worker each, then step by step where a GPU shortens the "
        "remaining time most.",
        differs=(
            "Optimus fits the convergence of each job online and so estimates its remaining work; "
            "here it is the oracle's, by default the truth.",
            "Optimus places workers evenly on the fewest servers that hold them; here GPUs are "
            "taken as `placement` says.",
            "There are no parameter servers: curves are of all-reduce.",
            _FOR_GOOD,
        ),
        needs=(SPEEDUPS,),
        becomes=_OLDEST,
        refuses=_QUOTAS,
        example=_FIXED + "marginal-greedy",
    ),
)
