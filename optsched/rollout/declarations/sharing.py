"""Declarations of the policies of EaCO's family, which put several jobs on one GPU."""

from __future__ import annotations

from optsched.eaco.greedy.rules import EACO, RULES
from optsched.rollout.declarations.entry import POLICIES, Entry
from optsched.rollout.policy_needs import SHARING

_REFUSES = ("quotas", "rented")
_EXAMPLE = "optsched compare eaco-28 --policy fifo-exclusive,"
_EXCLUSIVE = "is fifo-exclusive"
_OVERTAKING = "is fifo-exclusive with overtaking"
_KNOWN = (
    "Rates of groups are taken as told (the scenario's interference), so none is tried and undone; "
    "the policy eaco-trials does that."
)
_FAITHFUL = {
    "fifo-exclusive": "Gavel's `fifo`, and EaCO's default: GPUs of its own for every job, in "
    "order; the first that finds no room holds up the others.",
    "fifo-packed": "Gavel's FIFO_packed: if GPUs run out, the pair of the greatest sum of rates, "
    "above 1.5.",
    "random-pairs": "Gavel's Gandiva: random pairs if GPUs run out; pairs that lose are undone.",
    "least-utilised": "Packing by utilisation when GPUs run out, each pair only if its rates sum "
    "to more than taking turns.",
    "eaco-greedy": "Algorithm 1: the busiest GPUs where every deadline and tolerance holds, also "
    "if the cluster is not full.",
    "best-fit-memory": "Best fit by memory.",
    "best-delta-energy": "Each job where the objective of EaCO's instance rises least.",
    "sharing-scores": "Lucid's labels of types, and its rule: the labels of a pair sum to at most "
    "2.",
    "longest-first": "Jobs that end together share, the longest first.",
}
_DIFFERS = {
    "fifo-exclusive": (
        "It differs from fifo: it is decided in the frame of EaCO's family, for comparison "
        "with the policies that share, and keeps no quotas. Without sharing or downtime it starts "
        "the same jobs at the same moments as fifo; which GPUs they get may differ.",
        "The fastest free GPU type is taken, not one drawn at random.",
    ),
    "fifo-packed": (),
    "random-pairs": (
        "Combinations that find no room wait; in Gavel all take turns on the GPUs.",
        "It is not Gandiva's paper: see least-utilised and time-slicing.",
    ),
    "least-utilised": (
        "There is no suspending and resuming, no migration to undo fragmentation, and no "
        "growing and shrinking: the policy time-slicing has these.",
        "Only jobs that wait are packed; in Gandiva running ones are packed further, too.",
        "The rule is as other schedulers' papers quote it: Gandiva's code is not published.",
    ),
    "eaco-greedy": (
        _KNOWN,
        "A job without any place waits, and the queue goes on; the paper does not say.",
        "The two thresholds are options, 1 by default: no value is published.",
    ),
    "best-fit-memory": (),
    "best-delta-energy": (),
    "sharing-scores": (
        "Only Lucid's labels are here: the order is the queue's, there is no profiler, and "
        "sharing does not wait for a full cluster. The policy lucid-ordered has Lucid's order.",
    ),
    "longest-first": ("It is no published rule.",),
}
_BECOMES = {
    "fifo-packed": _EXCLUSIVE,
    "random-pairs": _EXCLUSIVE,
    "least-utilised": _EXCLUSIVE,
    "eaco-greedy": _OVERTAKING,
    "best-fit-memory": _OVERTAKING,
    "best-delta-energy": _OVERTAKING,
    "sharing-scores": _OVERTAKING,
    "longest-first": "is fifo-exclusive with overtaking, the longest first",
}
_GANGS = (
    "A gang that finds neither partners nor a node with room stands across nodes, as under fifo: "
    "its GPUs are not shared, and it is not moved. EaCO leaves open where gangs stand."
)

SHARING_POLICIES = (
    Entry(
        "eaco",
        "sharing at least energy, by the exact method, with moves",
        EACO,
        POLICIES + "sharing.learning_groups:eaco",
        faithful="EaCO's problem: groups of jobs on the same GPUs, tolerances, deadlines, memory, "
        "and the watts of GPUs and nodes; equation (1) with objective=eaco.",
        differs=(
            "EaCO's rule is greedy, job after job; here the groups of least cost are found for all "
            "at once, to a gap, and running jobs may be moved.",
            "Rates of groups are taken as told (the scenario's interference); rates=learnt learns "
            "them, as eaco-trials does, and parts all jobs anew when a group is not as expected.",
            _GANGS,
        ),
        needs=(SHARING,),
        becomes="packs nodes, to save their watts",
        refuses=_REFUSES,
        example=_EXAMPLE + "eaco-greedy,eaco",
    ),
    Entry(
        "eaco-trials",
        "sharing the busiest GPUs that should bear it, watched for an epoch, and undone if not",
        EACO,
        POLICIES + "sharing.watched_groups:eaco_trials",
        faithful="Algorithm 1 to its end: a queue by priority, then arrival; candidates by "
        "utilisation, a GPU's threshold each, sets that overlap a gang in part; after an epoch of "
        "all jobs the rates that were seen are written into the history, unseen groups are "
        "predicted from it, and a newcomer that breaks a tolerance or deadline leaves, for the "
        "next candidate.",
        differs=(
            "The history begins with a formula of utilisations, so that the true rates are not "
            "known; begins_with=told gives it the scenario's measured groups, as in the paper.",
            "Which groups do not fit is known: none runs out of memory in a trial.",
            "Memory is looked at GPU by GPU; in the paper the sum over the set counts.",
            "Of all subsets of GPUs those are tried that follow each other in the order of "
            "utilisation, in one node if the gang fits there.",
            "A tolerance is a slowdown at any moment; the paper has deadlines alone.",
            "While jobs are watched nobody else joins their GPUs; the paper does not say.",
            "A job without any place waits, and the queue goes on; the paper does not say.",
        ),
        needs=(SHARING,),
        becomes="is fifo with overtaking, without sharing",
        refuses=_REFUSES,
        example=_EXAMPLE + "eaco-greedy,eaco-trials",
        knows_priorities=True,
    ),
    Entry(
        "lucid-ordered",
        "short jobs first, by learnt estimates; they share if the cluster is full",
        "Lucid, ASPLOS'23, S-Lab-System-Group/Lucid, simulation/",
        POLICIES + "sharing.lucid:lucid",
        faithful="The order of Lucid, estimated duration x GPUs, the least first, without "
        "preemption; the labels of jobs, whose sum is at most 2 for a pair; jobs of one gang size.",
        differs=(
            "The estimator is the mean of the jobs of the same model and queue that have ended; "
            "Lucid's is a boosted model of users, names and times, trained on earlier months.",
            "Jobs share when one finds no GPUs of its own; Lucid shares while it predicts that "
            "many jobs will come.",
            "There is no profiler, a small cluster on which new jobs take turns first: what it "
            "finds out, the labels, is known beforehand.",
            "A partner may be as short as it likes; in Lucid's code a job shares with one that is "
            "thought to take at least half as long.",
            _GANGS,
        ),
        needs=(SHARING,),
        becomes="is shortest job first by estimate, without preemption",
        refuses=_REFUSES,
        example=_EXAMPLE + "sharing-scores,lucid-ordered",
    ),
    *(
        Entry(
            rule.name,
            rule.summary,
            rule.source,
            POLICIES + "eaco:sharing",
            rule.name,
            faithful=_FAITHFUL[rule.name],
            differs=(*_DIFFERS[rule.name], _GANGS),
            needs=() if rule.name == "fifo-exclusive" else (SHARING,),
            becomes=_BECOMES.get(rule.name, ""),
            refuses=_REFUSES,
            knows_priorities=rule.name == "eaco-greedy",
            example=_EXAMPLE + (rule.name if rule.name != "fifo-exclusive" else "eaco-greedy"),
        )
        for rule in RULES
    ),
)
