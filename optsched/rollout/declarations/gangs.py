"""Declarations of the policies of gangs that keep their GPUs, and of those that preempt."""

from __future__ import annotations

from optsched.rollout.declarations.entry import POLICIES, Entry
from optsched.rollout.policy_needs import HARD_QUOTAS

ROUNDS = (
    "What fits beside a preempted job goes on; the released code of Blox preempts from the end of "
    "the order until a job fits, and stops those, too."
)
"""Of all policies in rounds with sticky placements."""

_TIRESIAS = (
    "Which models are skewed is taken from the scenario: those whose own `locality` slows them "
    "down. Tiresias' profiler looks at the sizes of their tensors. If no model has a locality of "
    "its own, all gangs are consolidated.",
    "A gang of a skewed model that finds no room on few nodes gets more of them; in the paper it "
    "waits.",
    "The lease is by default the scenario's epoch: how often Tiresias looks at its queues.",
    "Only the wait since a job last held GPUs counts for the knob; in its code all waiting since "
    "the last promotion does.",
)

GANGS = (
    Entry(
        "fifo",
        "first in, first out, best fit: a gang that finds no room holds up all behind it, unless "
        "backfill=true; gangs may stand across nodes; called at events it is fast",
        "no paper's: common practice",
        POLICIES + "fifo:fifo",
        faithful="The order of submission, whole gangs, one node if one has room, and no "
        "preemption.",
        differs=(
            "It is a lower baseline than what clusters run: Philly's and Slurm's queues let what "
            "fits overtake. Compare with fifo:backfill=true, too, or a policy seems better only "
            "because it overtakes.",
            "There are three policies called first in, first out. fifo: gangs as asked for, any "
            "scenario, quotas kept. fifo-requested: the same order on a fixed number of GPUs, "
            "rented for good, for comparison with policies that choose widths. fifo-exclusive: "
            "the same order in the frame of EaCO's family, for comparison with policies that "
            "share GPUs.",
            "Where quotas are lent, queues borrow under it, and nothing is taken back before the "
            "jobs end; philly does that.",
        ),
        prefers=HARD_QUOTAS,
        example="optsched compare philly-small --policy fifo,fifo:backfill=true",
    ),
    Entry(
        "philly",
        "gangs with relaxed locality and Philly's guidelines as switches",
        "Jeon et al., USENIX ATC 2019",
        POLICIES + "philly:philly",
        faithful="Gangs that wait for locality and relax it try by try, every three minutes; jobs "
        "that fit may overtake; virtual clusters with quotas, which lend what is idle and take it "
        "back by preemption where the scenario has lends_quotas.",
        differs=(
            "After a try in vain a gang accepts twice as many servers and one level more, or with "
            "relax_by=one one server more. The paper does not say by how much Philly relaxed at a "
            "time.",
            "All tries in vain relax locality, or with relax_for=place those for want of a place "
            "alone; the paper does not say which.",
            "Owners take lent quota back after a hundred tries in vain (reclaim_after), which is "
            "fitted to how rare that was in Philly.",
            "The guidelines of the paper's last section (dedicated, defragment, pre_run, "
            "stop_retrying) are switches, off by default, for Philly did not have them. "
            "docs/guidelines.md says what each is and what it is worth.",
            "Without quotas in the scenario all jobs are of one virtual cluster, and none waits "
            "for its fair share.",
        ),
        example="optsched compare philly-small --policy philly,philly:relax_after=20",
    ),
    Entry(
        "las",
        "least attained service, consolidated, preemptive",
        "Gu et al., Tiresias, NSDI 2019; Blox",
        POLICIES + "round_based:las",
        faithful="The order by GPU-time held so far, as Blox's LAS.",
        differs=(
            "It is applied at every event and epoch, without a lease: `decide_on` and `epoch_s` "
            "of the scenario say when. Tiresias has a lease, and queues.",
            ROUNDS,
        ),
        example="optsched compare philly-small --policy fifo,las,tiresias",
    ),
    Entry(
        "srtf",
        "shortest remaining time first, consolidated, preemptive; asks the oracle",
        "Blox, hal-uw/blox-pal, schedulers/",
        POLICIES + "round_based:srtf",
        faithful="The order by remaining run time, as Blox's SRTF.",
        differs=(
            "Remaining times are those of the scenario's `estimates`, by default the truth: no "
            "real scheduler has it.",
            "It is applied at every event and epoch, without a lease.",
            ROUNDS,
        ),
        example="optsched compare philly-small --policy srtf --set estimates.kind=history",
    ),
    Entry(
        "tiresias",
        "least attained service in a few queues, with a lease, preemptive",
        "Gu et al., Tiresias, NSDI 2019",
        POLICIES + "round_based:tiresias",
        faithful="Two-dimensional attained service (GPUs x time) in discretised queues, the first "
        "started first within a queue, a lease, gangs of skewed models on few nodes, and the knob "
        "that brings starved jobs back to the first queue.",
        differs=(*_TIRESIAS, ROUNDS),
        example="optsched compare philly-small --policy fifo,las,tiresias",
    ),
    Entry(
        "tiresias-gittins",
        "the same with Gittins indices within queues: the distribution of service is known",
        "Gu et al., Tiresias, NSDI 2019",
        POLICIES + "round_based:tiresias_gittins",
        faithful="The Gittins index of attained GPU-time in all queues but the last, its quantum "
        "the first threshold; the rest as tiresias.",
        differs=(
            "The distribution is that of the jobs of the rollout's trace, also of those to come; "
            "the authors' code reads one from a file.",
            *_TIRESIAS,
            ROUNDS,
        ),
        clairvoyant="statistics",
        example="optsched compare philly-small --policy tiresias,tiresias-gittins",
    ),
    Entry(
        "wsrpt",
        "weighted shortest remaining processing time first, preemptive, moved where it pays",
        "Smith, Naval Research Logistics Quarterly 1956; Goemans et al., SIAM J. Discrete Math. "
        "2002",
        POLICIES + "repacking.wsrpt:wsrpt",
        faithful="The least remaining work per weight first, at every event.",
        differs=(
            "The weight of a gang is its width to a power: with width_exponent=1 the order is by "
            "remaining GPU-time (Tiresias' SRSF), with 0 by remaining time.",
            "A running job counts as if less of it remained (stay), for a restart takes time.",
            "Remaining times are those of the scenario's `estimates`, by default the truth: no "
            "real scheduler has it.",
            "Running jobs are moved where that loses fewer GPU-seconds by distance, slow GPUs and "
            "neighbours than the moves take. No paper's rule: what is lost is taken from the "
            "scenario.",
        ),
        example="optsched compare philly-small --policy srtf,wsrpt",
    ),
    Entry(
        "wsrpt-lookahead",
        "wsrpt with the exponent of widths by which the jobs at hand would end soonest",
        "Bertsekas, Tsitsiklis and Wu, Journal of Heuristics 1997 (rollout algorithms)",
        POLICIES + "repacking.lookahead:wsrpt_lookahead",
        faithful="Of some heuristics the one whose simulation is best is followed until the next "
        "decision.",
        differs=(
            "The heuristics are wsrpt with exponents 0.3, 0, 0.6 and 1; the simulation knows the "
            "jobs at hand alone, none to come, and numbers of GPUs, not places.",
            "Where jobs end with rounds, remaining times are counted in whole rounds.",
            "Remaining times are those of the scenario's `estimates`, by default the truth: no "
            "real scheduler has it.",
        ),
        example="optsched compare pal-64 --policy wsrpt,wsrpt-lookahead",
    ),
    Entry(
        "lrpt",
        "longest remaining processing time first, preemptive: for a short makespan",
        "Muntz and Coffman, Journal of the ACM 1970",
        POLICIES + "repacking.lrpt:lrpt",
        faithful="The longest remaining time first, asked again at every epoch.",
        differs=(
            "Jobs are gangs: one that finds no room is overtaken by those that fit.",
            "Remaining times are those of the scenario's `estimates`, by default the truth: no "
            "real scheduler has it. Those of unknown ones are taken to be longest.",
            "Placed and moved as by wsrpt. Mean JCTs are long, for short jobs wait.",
        ),
        example="optsched compare philly-small --policy wsrpt,lrpt",
    ),
    Entry(
        "foresight",
        "at every decision the best list that a search finds in a simulation of the jobs at hand "
        "and of some to come",
        "Bertsekas, Tsitsiklis and Wu, Journal of Heuristics 1997 (rollout algorithms); Chang, "
        "Givan and Chong, AIPS 2000 (simulated arrivals)",
        POLICIES + "foresight.foresight:foresight",
        faithful="What to do now is what begins the best of many simulated futures, and is asked "
        "again at the next decision.",
        differs=(
            "There is one future, not a sample of some: the jobs of the last half hour (expects_s) "
            "come once more in the next one, as long as they were told to be.",
            "Its schedules are those of lists: local search from the last list and from wsrpt's "
            "with exponents 0.3, 0, 0.6 and 1.",
            "The simulation knows how many GPUs are how fast for whom, and that gangs which need "
            "several nodes are slower there; it knows no nodes, neighbours, failures, quotas and "
            "costs of moves. The rules of wsrpt place what the list has first.",
            "Remaining times are those of the scenario's `estimates`, by default the truth: no "
            "real scheduler has it. Where one is unknown, or with too many jobs, it is wsrpt.",
        ),
        example="optsched compare pal-64 --policy wsrpt,foresight",
    ),
    Entry(
        "hindsight",
        "clairvoyant: the best schedule that is found when the whole trace is known",
        "Goemans et al., SIAM J. Discrete Math. 2002 (lists by alpha-points)",
        POLICIES + "clairvoyant.hindsight:hindsight",
        faithful="Lists by alpha-points of the preemptive relaxation with the least work first.",
        differs=(
            "It is no scheduler, but the other end of a bracket: it is given all jobs to come, and "
            "runs as many rollouts as it has evaluations before its first decision.",
            "The orders in which policies end the jobs are lists, too, and jobs are moved in the "
            "best list (local search), in a quick simulation without places and then by the "
            "engine. Some policies take part: none of those is better.",
            "Among them is foresight, told which jobs come: it searches anew at every "
            "decision, and is often the best.",
            "Where nodes are rented, only policies that rent are compared.",
        ),
        clairvoyant="all",
        example="optsched compare pal-64 --policy srtf,wsrpt,hindsight",
    ),
)
