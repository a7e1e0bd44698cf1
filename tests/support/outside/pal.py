"""PAL from its mathematics alone: documents go in, fractions come out, nothing of the project."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate, combinations


class Cluster:
    """The tree of an instance: which GPUs are free, and at which level GPUs meet."""

    def __init__(self, document):
        topology = document["topology"]
        domains = {d["id"]: d for d in topology["domains"]}
        self.levels = topology["levels"]
        self.around = {}  # of each GPU: its domains, from the innermost to the root
        closed = set(document.get("unavailable", ()))
        for domain in topology["domains"]:
            path, here = [], domain["id"]
            while here is not None:
                path.append(here)
                here = domains[here].get("parent")
            for gpu in domain.get("gpus", ()):
                self.around[gpu] = path
                if any(domains[d].get("drained") for d in path):
                    closed.add(gpu)
        self.level_of = {name: self.levels.index(d["level"]) for name, d in domains.items()}
        self.free = [gpu for gpu in self.around if gpu not in closed]

    def meets_at(self, gpus):
        """The level of the innermost domain around all of the GPUs."""
        common = set.intersection(*(set(self.around[gpu]) for gpu in gpus))
        return min(self.level_of[name] for name in common)


def own_cost(document, cluster, job, gpus):
    """What a job costs on a set of GPUs; None if its cap forbids them."""
    if not gpus:
        return Fraction(job["reward"]) if document.get("admission") == "optional" else None
    level = cluster.meets_at(gpus)
    cap = job.get("highest_level")
    if cap is not None and level > cluster.levels.index(cap):
        return None
    penalty = list(accumulate(map(Fraction, document["locality"][job["model"]]), max))[level]
    profile = document["profile"]
    by_gpu = dict(zip(profile["gpus"], profile["slowdown"][job["application_class"]], strict=True))
    slowest = max(Fraction(by_gpu[gpu]) for gpu in gpus)
    left = Fraction(1 if job.get("remaining_s") is None else job["remaining_s"])
    current = set(job.get("current", ()))
    restart = Fraction(job.get("restart_s") or 0) if current and current != set(gpus) else 0
    weight = Fraction(1 if job.get("weight") is None else job["weight"])
    return weight * (left * max(Fraction(1), penalty) * slowest + restart)


def optimum(document):
    """The least objective, twice; (None, None) if there is no plan. All sets of GPUs are tried."""
    cluster = Cluster(document)
    best = {0: Fraction(0)}
    for job in document["jobs"]:
        options = [(0, own_cost(document, cluster, job, ()))]
        for chosen in combinations(range(len(cluster.free)), job["gpus"]):
            gpus = [cluster.free[n] for n in chosen]
            options.append((sum(1 << n for n in chosen), own_cost(document, cluster, job, gpus)))
        options = [(mask, cost) for mask, cost in options if cost is not None]
        after = {}
        for taken, so_far in best.items():
            for mask, cost in options:
                if not taken & mask:
                    total, key = so_far + cost, taken | mask
                    if key not in after or total < after[key]:
                        after[key] = total
        best = after
    least = min(best.values(), default=None)
    return least, least


def examine(document, plan):
    """Every rule that a plan breaks, and its objective, twice."""
    cluster, jobs = Cluster(document), {job["id"]: job for job in document["jobs"]}
    if sorted(p["id"] for p in plan["jobs"]) != sorted(jobs):
        return ["every job once"], None
    given = [gpu for p in plan["jobs"] for gpu in p.get("gpus", ())]
    if len(set(given)) < len(given) or not set(given) <= set(cluster.free):
        return ["free GPUs, once"], None
    costs = []
    for placed in plan["jobs"]:
        job, gpus = jobs[placed["id"]], placed.get("gpus", ())
        if gpus and len(gpus) != job["gpus"]:
            return ["gang"], None
        costs.append(own_cost(document, cluster, job, gpus))
    if None in costs:
        return ["cap or left out"], None
    return [], (sum(costs), sum(costs))


def unit(document):
    return "x" if document["jobs"][0].get("remaining_s") is None else "s"


def gap_scale(document, plan):
    return Fraction(0)
