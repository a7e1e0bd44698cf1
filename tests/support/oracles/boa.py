"""Slow and obvious ways to the same answers, for tests only."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

from optsched.boa.speedup_curves import curve
from optsched.boa.verify.feasibility import limit, limit_divisor, objective_divisor
from optsched.boa.verify.speedup_bounds import speedup_enclosure


def ways(instance):
    """Every way through each class: (value, use, widths), exact where the speedup is rational.

    Value adds up to the objective times lambda (or to GPUs), use to what is limited.
    """
    flipped = instance.budget is None
    classes = []
    for c in instance.classes:
        rate = Fraction(c.arrival_rate_per_h) / 3600
        rows = []
        for options in product(*(list(options_of(instance, c, phase)) for phase in c.phases)):
            jobs = gpus = Fraction(0)
            before = None
            for name, rent, seconds in options:
                lost, billed = start_of(instance, c, name) if name != before else (0, 0)
                jobs += rate * (seconds + lost)
                gpus += rate * (seconds + billed) * rent
                before = name
            widths = tuple(name for name, _, _ in options)
            rows.append((gpus, jobs, widths) if flipped else (jobs, gpus, widths))
        classes.append(rows)
    return classes


def options_of(instance, job_class, phase):
    """Width or (offer, width), rent, and seconds of every option of a phase."""
    if instance.offers is None:
        for k in phase.speedup.widths:
            yield k, k, seconds_of(phase.work_gpu_s, phase.speedup, k)
        return
    for offer in instance.offers:
        here = (c.speedup for c in phase.speedup.curves if c.gpu_type == offer.gpu_type)
        for speedup, k in ((one, k) for one in here for k in one.widths):
            slowdown = slowdown_of(offer, job_class, k)
            if slowdown is not None:
                paid = math.ceil(k / offer.gpus_per_node) * offer.gpus_per_node
                paid = paid if offer.bills == "nodes" else k
                rent = paid * Fraction(offer.usd_per_gpu_h)
                yield (offer.id, k), rent, seconds_of(phase.work_gpu_s, speedup, k) * slowdown


def start_of(instance, job_class, name):
    """Seconds until a job runs, and seconds that are billed beside its running, from order on."""
    rescale = Fraction(job_class.rescale_s)
    if instance.offers is None:
        return rescale, rescale
    [offer] = [o for o in instance.offers if o.id == name[0]]
    lost = rescale + Fraction(offer.start_s)
    return lost, max(lost + Fraction(offer.stop_s), Fraction(offer.least_billed_s))


def seconds_of(work, curve, k):
    low, high = speedup_enclosure(curve, Fraction(k))
    return Fraction(work) * 2 / (low + high)


def slowdown_of(offer, job_class, k):
    """Seconds for each second of work where nothing is interrupted; None above two.

    In an hour of running there are q m interruptions, of which each loses half a checkpoint of that
    hour, and a restart beside it.
    """
    nodes = math.ceil(k / offer.gpus_per_node)
    interruptions = Fraction(offer.interruptions_per_node_h) * nodes
    lost_s = interruptions * Fraction(job_class.checkpoint_s or 0) / 2
    if lost_s > 1800:
        return None
    waiting = Fraction(offer.restart_s) + Fraction(job_class.rescale_s)
    return (3600 + interruptions * waiting) / (3600 - lost_s)


def extreme_uses(instance):
    """The least and the greatest use of any plan, as floats in the instance's unit."""
    if instance.offers is not None:
        sums = [[float(use) for _, use, _ in rows] for rows in ways(instance)]
        totals = np.array([sum(map(min, sums)), sum(map(max, sums))])
        return tuple((totals / float(limit_divisor(instance))).tolist())
    totals = np.zeros(2)
    for c in instance.classes:
        for column, best in enumerate((min, max)):
            totals[column] += c.arrival_rate_per_h / 3600 * extreme_way(c, instance, best)
    divisor = 1.0 if instance.budget is not None else float(instance.arrival_rate_per_s)
    return tuple((totals / divisor).tolist())


def extreme_way(job_class, instance, best):
    """The least or greatest use of one job on its way, by dynamic programming in floats."""
    ending = {None: 0.0}  # width of the last phase -> use so far
    for phase in job_class.phases:
        ending = {
            k: best(
                so_far
                + (phase.work_gpu_s / speedup + (job_class.rescale_s if k != before else 0))
                * (1 if instance.budget is None else k)
                for before, so_far in ending.items()
            )
            for k, speedup in zip(*map(np.ndarray.tolist, curve(phase.speedup)), strict=True)
        }
    return best(ending.values())


def brute_force(instance):
    """The least objective over all integer plans; None if none keeps within the limit."""
    partial = [(Fraction(0), Fraction(0))]
    for rows in ways(instance):
        partial = pareto((v + value, u + use) for v, u in partial for value, use, _ in rows)
    within = [value for value, use in partial if use <= limit(instance)]
    return min(within) / objective_divisor(instance) if within else None


def pareto(pairs):
    kept = []
    for use, value in sorted({(use, value) for value, use in pairs}):
        if not kept or value < kept[-1][0]:
            kept.append((value, use))
    return kept


def path_lp(instance, share=1.0):
    """The optimum of mixtures: shares of every way through each class; SciPy's own HiGHS.

    The limit is taken times `share`, for bounds from both sides where its price is steep.
    """
    from scipy.optimize import linprog

    classes = ways(instance)
    value = np.array([float(v) for rows in classes for v, _, _ in rows])
    use = np.array([float(u) for rows in classes for _, u, _ in rows])
    owner = np.repeat(np.arange(len(classes)), [len(rows) for rows in classes])
    sums = (owner == np.arange(len(classes))[:, None]).astype(float)
    # HiGHS has absolute tolerances: bring both rows to the size of one.
    v_scale, u_scale = value.max(initial=0) or 1, use.max(initial=0) or 1
    outcome = linprog(
        value / v_scale,
        A_ub=[use / u_scale],
        b_ub=[share * float(limit(instance)) / u_scale],
        A_eq=sums,
        b_eq=np.ones(len(classes)),
        method="highs-ds",
    )
    if not outcome.success:
        return None
    return outcome.fun * v_scale / float(objective_divisor(instance))
