"""Declarations of heSRPT, SmartFill and WHAM, the theory of malleable jobs on so many GPUs."""

from __future__ import annotations

from optsched.rollout.declarations.entry import POLICIES, Entry
from optsched.rollout.policy_needs import SPEEDUPS

_MODULE = POLICIES + "malleable.policies:"
_EXAMPLE = "optsched compare boa-cloud --policy hesrpt,smartfill,wham"
_BECOMES = "gives jobs what they ask for"
_WHOLE = (
    "GPUs are whole: each job has the largest of its widths within its share, and what is left "
    "goes, width by width, to the job that is furthest below its share."
)
_ONLINE = (
    "Its optimum is proven for jobs that are all there, change width for nothing and may have "
    "parts of GPUs; here jobs come over time, and shares are set anew at every event."
)
_WORK = "Work left is the oracle's, by default the truth, in GPU time at the speed of one GPU."
_PHASE = "The curve of a job is that of its present phase."
_FOR_GOOD = "The GPUs are rented for good, the scenario's budget rounded down."

MALLEABLE = (
    Entry(
        "hesrpt",
        "so many GPUs, shares by rank of the work left, optimal for jobs of speed k ** p",
        "Berg, Vesilo and Harchol-Balter, heSRPT, arXiv 1903.09346",
        _MODULE + "hesrpt",
        faithful="The share of each job in closed form, for the least total flow time.",
        differs=(
            "There is one p for all jobs: the mean over the models of what is fitted to the "
            "logarithms of their curves, or that of the option p.",
            _ONLINE,
            _WORK,
            _WHOLE,
            _FOR_GOOD,
        ),
        needs=(SPEEDUPS,),
        becomes=_BECOMES,
        refuses=("quotas",),
        example=_EXAMPLE,
    ),
    Entry(
        "smartfill",
        "so many GPUs, shares of least total flow time for jobs of any concave speedup",
        "Li, Ju, Eryilmaz and Shroff, Optimal Parallel Scheduling under Concave Speedup "
        "Functions, arXiv 2509.01811",
        _MODULE + "smartfill",
        faithful="The ratios of derivatives of speeds stay the same while jobs share; jobs may get "
        "nothing. Shares are exact for curves that are linear between whole numbers of GPUs.",
        differs=(
            "Jobs are taken to end in the order of their work left. With one curve for all that is "
            "optimal; with several it is a rule.",
            "Curves are replaced by their concave envelopes with 0 at 0 GPUs.",
            _PHASE,
            _ONLINE,
            _WORK,
            _WHOLE,
            _FOR_GOOD,
        ),
        needs=(SPEEDUPS,),
        becomes=_BECOMES,
        refuses=("quotas",),
        example=_EXAMPLE,
    ),
    Entry(
        "wham",
        "so many GPUs, each to the largest of Whittle's indices, whatever work is left",
        "Li, Harchol-Balter and Berg, Mean field optimal Core Allocation across Malleable jobs, "
        "arXiv 2602.01411, abstract",
        _MODULE + "wham",
        faithful="Whittle's index of a further GPU: the price at which a job alone would as soon "
        "do without it. It does not depend on the work left, nor on arrival rates.",
        differs=(
            "Only the abstract could be read: the index was derived anew from the relaxation, "
            "with holding costs of 1; what the paper does besides is unknown.",
            "Where GPUs are fewer than jobs ask for at their most efficient width, the oldest come "
            "first.",
            "Curves are replaced by their concave envelopes with 0 at 0 GPUs.",
            _PHASE,
            _WHOLE,
            _FOR_GOOD,
        ),
        needs=(SPEEDUPS,),
        becomes=_BECOMES,
        refuses=("quotas",),
        example=_EXAMPLE,
    ),
)
