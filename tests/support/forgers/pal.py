"""A forger of PAL's certificates, aimed at what would be false, and an oracle that knows better.

    PYTHONPATH=.:tests python -m tests.support.forgers.pal 30000

Figures are extreme but allowed: 1e-9 and 1e12 for weights, times, rewards and restarts, slowdowns
and penalties with ties and neighbouring floats. The oracle places jobs by brute force in fractions
and shares nothing with methods or verifier. A forgery states a bound above the optimum, by one
float or more, or that there is no plan where there is one; its prices come from the truth, as those
of a real certificate do: what jobs pay above others, what GPUs save, and rules that just bind. To
show that the forger comes near, every certificate is also proven at the greatest bound that holds.
"""

from __future__ import annotations

import random
import sys
from fractions import Fraction
from itertools import combinations
from math import inf, nextafter

from optsched.pal import PalCertificate, PalInstance
from optsched.pal.plan import Cut, Keeps, Leaf, Split, Within
from optsched.pal.verify.certificate import leaf_values, prove

TINY, HUGE = 1e-9, 1e12

# --- instances ------------------------------------------------------------------------------------


def figure(rng, *usual):
    """Return a figure of the schema, at its ends as often as not."""
    ends = [
        TINY,
        nextafter(TINY, 1),
        1e-3,
        1.0,
        nextafter(1.0, 2),
        3.0,
        1e6,
        nextafter(HUGE, 0),
        HUGE,
    ]
    return rng.choice([*usual, rng.choice(ends), rng.uniform(0.5, 2)])


def drawn(rng):
    """Return an instance of at most 6 GPUs and 3 jobs, with two or three levels."""
    levels = rng.choice([["node", "all"], ["node", "rack", "all"], ["all"]])
    domains = [{"id": "top", "level": "all"}]
    if len(levels) == 3:
        domains += [{"id": f"r{n}", "level": "rack", "parent": "top"} for n in range(2)]
    gpus, total = [], rng.randint(2, 6)
    while levels[0] == "node" and len(gpus) < total:
        n = len(domains)
        inside = [f"{n}/{i}" for i in range(min(rng.randint(1, 3), total - len(gpus)))]
        parent = rng.choice([d["id"] for d in domains if d["level"] != "node"])
        domains.append({"id": f"n{n}", "level": "node", "parent": parent, "gpus": inside})
        gpus += inside
    if not gpus:
        gpus = domains[0]["gpus"] = [f"g{i}" for i in range(total)]
    base = figure(rng, 1.0)
    near = [base, base, min(nextafter(base, inf), HUGE), figure(rng, base)]
    slowdown = {name: [rng.choice(near) for _ in gpus] for name in "AB"}
    step = rng.choice([1.0, nextafter(1.0, 2), 1.5, 1e6, HUGE])
    locality = {"m": [1.0, *[step] * (len(levels) - 1)]}
    document = {
        "schema": "optsched/pal/1",
        "topology": {"levels": levels, "domains": domains},
        "profile": {"gpus": gpus, "slowdown": slowdown, "kind": "persistent"},
        "locality": locality,
        "admission": rng.choice(["all", "all", "optional"]),
        "jobs": list(drawn_jobs(rng, gpus, levels)),
    }
    return PalInstance.from_document(document)


def drawn_jobs(rng, gpus, levels):
    left, weight, time = list(gpus), figure(rng, 1.0), figure(rng, 1.0)
    rng.shuffle(left)
    for n in range(rng.randint(1, 3)):
        size = rng.randint(1, min(3, len(gpus)))
        job = {"id": f"j{n}", "gpus": size, "application_class": rng.choice("AAB"), "model": "m"}
        job["weight"] = rng.choice([weight, figure(rng)])
        job["remaining_s"] = rng.choice([time, figure(rng)])
        job["reward"] = figure(rng, job["weight"])
        if len(left) >= size and rng.random() < 0.4:
            job["current"] = [left.pop() for _ in range(size)]
            job["restart_s"] = rng.choice([0.0, figure(rng)])
        if rng.random() < 0.3:
            job["highest_level"] = rng.choice(levels)
        yield job


# --- oracle ---------------------------------------------------------------------------------------


def meeting(instance, gpus):
    """Return the number of the lowest level at which GPUs meet."""
    parent = {d.id: d.parent for d in instance.topology.domains}
    level = {d.id: instance.topology.levels.index(d.level) for d in instance.topology.domains}
    home = {gpu: d.id for d in instance.topology.domains for gpu in d.gpus}
    paths = []
    for gpu in gpus:
        path = [home[gpu]]
        while parent[path[-1]] is not None:
            path.append(parent[path[-1]])
        paths.append(path)
    return min(level[d] for d in paths[0] if all(d in path for path in paths))


def cost(instance, job, gpus):
    """Return what a job adds on some GPUs, none if it is left out; None where it may not be."""
    if not gpus:
        return Fraction(job.reward) if instance.admission == "optional" else None
    at = meeting(instance, gpus)
    levels = instance.topology.levels
    if job.highest_level is not None and at > levels.index(job.highest_level):
        return None
    row = dict(
        zip(instance.profile.gpus, instance.profile.slowdown[job.application_class], strict=True)
    )
    time = Fraction(job.remaining_s) * Fraction(
        max(1.0, *instance.locality[job.model][: at + 1], 1.0)
    )
    time *= max(Fraction(row[gpu]) for gpu in gpus)
    if job.current and set(job.current) != set(gpus):
        time += Fraction(job.restart_s)
    return Fraction(job.weight) * time


def choices(instance, job):
    for gpus in ((), *combinations(instance.topology.gpus, job.gpus)):
        value = cost(instance, job, gpus)
        if value is not None:
            yield frozenset(gpus), value


def optimum(instance):
    """Return the least cost of all plans; None if there is none."""
    best = {frozenset(): Fraction(0)}
    for job in instance.jobs:
        after = {}
        for taken, so_far in best.items():
            for gpus, value in choices(instance, job):
                if not taken & gpus:
                    key, total = taken | gpus, so_far + value
                    after[key] = min(after.get(key, total), total)
        best = after
    return min(best.values(), default=None)


# --- forgeries ------------------------------------------------------------------------------------


def telling(rng, instance):
    """Return prices that may matter: differences of what jobs can pay, and floats around them."""
    values = [value for job in instance.jobs for _, value in choices(instance, job)]
    pairs = [abs(a - b) for a in values for b in values] or [Fraction(1)]
    values = [float(value) for value in rng.sample(pairs, min(6, len(pairs)))]
    values += [nextafter(value, inf) for value in values] + [value / 2 for value in values]
    return [0.0, 0.0, 5e-324, 1e300, *values]


def forged(rng, instance, kind):
    """Return a certificate with nothing stated: drawn prices, rules, cuts, splits, exclusions."""
    rules = tuple(rule(rng, instance) for _ in range(rng.choice([0, 0, 1, 1, 2])))
    prices = telling(rng, instance) if kind == "prices" else [0.0, 0.25, 0.5, 1.0, 1e300, 5e-324]
    within = [n for n, each in enumerate(rules) if isinstance(each, Within)]

    def leaf(splits):
        cuts = [Cut(rule=rng.choice(within), price=rng.choice(prices))] if within else []
        return Leaf(
            gpu_prices=tuple(rng.choice(prices) for _ in instance.free_gpus),
            split_prices=tuple(rng.choice(prices) for _ in range(splits)),
            cuts=tuple(cuts) if rng.random() < 0.5 else (),
        )

    nodes = [leaf(0)]
    if rules and rng.random() < 0.7:
        split = Split(rule=rng.randrange(len(rules)), at_most=rng.randint(0, 2), cases=(1, 2))
        nodes = [split, leaf(1), leaf(1)]
    exclusions = [leaf(0) for _ in range(rng.choice([0, 0, 1]))] if kind == "prices" else []
    parts = {"rules": rules, "exclusions": tuple(exclusions), "nodes": tuple(nodes)}
    return PalCertificate(kind=kind, **parts)


def rule(rng, instance):
    job = rng.choice(instance.jobs)
    if job.current and rng.random() < 0.4:
        return Keeps(job=job.id)
    limits = [None, *instance.profile.slowdown[job.application_class]]
    domain = rng.choice(instance.topology.domains).id
    return Within(types=(job.id,), domain=domain, slowest=rng.choice(limits))


def above(rng, value):
    """Return a float above a value: the next one, or some more."""
    low = float(value)
    low = low if Fraction(low) > value else nextafter(low, inf)
    return rng.choice([low, low * (1 + 1e-12), low * 1.5, low * 1e9])


def forgeries(rng, instance, count):
    """Yield certificates that state what is false."""
    best = optimum(instance)
    for _ in range(count):
        if best is not None:
            yield forged(rng, instance, "prices").model_copy(update={"bound": above(rng, best)})
            yield PalCertificate(kind="sorted", bound=above(rng, best))
            if instance.admission == "all":
                left_out = rng.choice([5e-324, 1e-9, 0.5, 1.0])
                yield forged(rng, instance, "infeasible").model_copy(update={"left_out": left_out})


def honest(rng, instance):
    """Tell whether a drawn certificate proves the most that it can, and more than nothing."""
    best, certificate = optimum(instance), forged(rng, instance, "prices")
    if best is None or certificate.exclusions:
        return None
    values = leaf_values(instance, certificate).values()
    if None in values or min(values) <= 0:
        return None
    most = Fraction(min(values), 1 << 192)
    low = float(most)
    low = low if Fraction(low) <= most else nextafter(low, 0)
    return prove(instance, certificate.model_copy(update={"bound": low})) == []


def run(count, seed=0):
    """Forge so many certificates; return tried, accepted, and honest ones that were proven."""
    rng = random.Random(seed)
    tried, accepted, proven = 0, [], 0
    while tried < count:
        instance = drawn(rng)
        for certificate in forgeries(rng, instance, 6):
            tried += 1
            if not prove(instance, certificate):
                accepted.append((instance, certificate))
        verdict = honest(rng, instance)
        assert verdict is not False
        proven += verdict is True
    return tried, accepted, proven


if __name__ == "__main__":
    forged_ones, accepted_ones, proven_ones = run(int(sys.argv[1]))
    print(
        f"{forged_ones} forgeries, {len(accepted_ones)} accepted; {proven_ones} honest ones proven"
    )
    for pair in accepted_ones[:3]:
        print(*pair, sep="\n")
