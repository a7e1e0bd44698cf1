"""Small instances as documents, drawn by a seed: usual figures, and extreme ones that are allowed.

Extreme: the ends of every range, ratios of 1e21, ties, near ties of 2**-50, zeros, curves that
fall, holes, what is drained or full.
"""

from __future__ import annotations

import math
import random

from tests.support.outside import boa as outside_boa
from tests.support.outside.instances_eaco import eaco

SMALLEST, LARGEST = 1e-9, 1e12
NEAR = 2.0**-50


class Figures:
    """Draws figures; `spread` is usual, mixed or extreme."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.spread = self.rng.choice(["usual", "usual", "mixed", "extreme"])
        self.last = 1.0

    def one_of(self, *values):
        return self.rng.choice(values)

    def chance(self, share):
        return self.rng.random() < share

    def positive(self, low=0.05, high=50.0):
        """A figure of the schema's `Positive`, usually between low and high."""
        kind = self.rng.random()
        if self.spread == "usual" or (self.spread == "mixed" and kind < 0.7):
            drawn = self.one_of(
                self.rng.uniform(low, high),
                float(round(self.rng.uniform(low, high)) or 1),
                self.last if low <= self.last <= high else high,
            )
        else:
            drawn = self.one_of(
                SMALLEST,
                LARGEST,
                self.last,
                self.last * (1 + NEAR * self.rng.randint(-3, 3)),
                10.0 ** self.rng.uniform(-9, 12),
                math.nextafter(1.0, 2.0),
                1.0,
            )
        self.last = min(max(drawn, SMALLEST), LARGEST)
        return self.last

    def share(self):
        """A figure in [0, 1]."""
        if self.spread == "usual":
            return round(self.rng.random(), self.one_of(1, 2, 17))
        return self.one_of(0.0, 1.0, 1e-30, NEAR, 1 - 2.0**-53, 0.5, self.rng.random(), 1e-12)

    def zero_or(self, *bounds):
        return 0.0 if self.chance(0.3) else self.positive(*bounds)


# --- BOA ------------------------------------------------------------------------------------------


def _curve(f):
    kind = f.one_of("table", "table", "table", "amdahl", "power")
    if kind == "amdahl":
        return {"kind": kind, "parallel_fraction": f.share(), "max_gpus": f.rng.randint(1, 5)}
    if kind == "power":
        return {"kind": kind, "exponent": f.share(), "max_gpus": f.rng.randint(1, 5)}
    gpus = sorted(f.rng.sample([1, 2, 3, 4, 6, 8, 16, 100_000], f.rng.randint(1, 4)))
    shape, unit = f.one_of("any", "linear", "flat", "concave", "falling"), f.positive()
    speedup = {
        "any": lambda k: f.positive(),
        "linear": lambda k: unit * k,
        "flat": lambda k: unit,
        "concave": lambda k: unit * math.sqrt(k),
        "falling": lambda k: unit / k,
    }[shape]
    values = [min(max(speedup(k), SMALLEST), LARGEST) for k in gpus]
    return {"kind": "table", "gpus": gpus, "speedup": values}


def boa(seed):
    """Limits lie below, at, a hair beside, between and above the uses of plans."""
    f = Figures(seed)
    widths = f.one_of("integer", "integer", "mixed", "continuous")
    curves = [_curve(f) for _ in range(2)]
    classes = []
    for n in range(f.rng.randint(1, 3)):
        phases = [
            {"work_gpu_s": f.positive(), "speedup": f.one_of(_curve(f), *curves)}
            for _ in range(f.rng.randint(1, 3))
        ]
        classes.append(
            {"id": f"c{n}", "arrival_rate_per_h": f.zero_or(), "phases": phases}
            | ({} if widths == "continuous" else {"rescale_s": f.zero_or()})
        )
    if not any(c["arrival_rate_per_h"] for c in classes):
        classes[0]["arrival_rate_per_h"] = 7.5
    document = {"schema": "optsched/boa/1", "name": f"outside-{seed}", "widths": widths}
    document["classes"] = classes
    key = f.one_of("budget_gpus", "budget_gpus", "target_mean_jct_s", "budget_usd_per_h")
    document[key] = 1.0
    if key == "budget_usd_per_h":
        document["price_usd_per_gpu_h"] = f.positive(0.5, 8.0)
    least, most = map(float, outside_boa.extreme_uses(document))
    where = f.one_of(0.0, 0.0, 1.0, -0.1, f.rng.random(), f.rng.random(), f.rng.random())
    limit = least + where * (most - least)
    limit = f.one_of(limit, limit, math.nextafter(limit, 0), math.nextafter(limit, math.inf))
    document[key] = min(max(limit * document.get("price_usd_per_gpu_h", 1.0), SMALLEST), LARGEST)
    return document


# --- PAL ------------------------------------------------------------------------------------------


def _topology(f):
    levels = f.one_of(["node", "cluster"], ["node", "rack", "cluster"], ["node"])
    if len(levels) == 1:
        names = [f"g{n}" for n in range(f.rng.randint(1, 5))]
        return {"levels": levels, "domains": [{"id": "all", "level": "node", "gpus": names}]}
    domains, count = [{"id": "all", "level": "cluster"}], 0
    racks = []
    if len(levels) == 3:
        racks = [f"r{n}" for n in range(f.rng.randint(1, 2))]
        domains += [{"id": r, "level": "rack", "parent": "all"} for r in racks]
    for n in range(f.rng.randint(max(1, len(racks)), 4)):
        size = f.rng.randint(1, 3)
        size = max(1, min(size, 7 - count))
        parent = racks[n] if n < len(racks) else f.one_of("all", *racks)  # a level may be skipped
        gpus = [f"g{count + k}" for k in range(size)]
        count += size
        domain = {"id": f"n{n}", "level": "node", "parent": parent, "gpus": gpus}
        domains.append(domain | ({"drained": True} if f.chance(0.1) else {}))
    return {"levels": levels, "domains": domains}


def pal(seed):
    """At most 7 GPUs or a few more, and 4 jobs, some of them running, capped, or left out."""
    f = Figures(seed)
    topology = _topology(f)
    gpus = [g for d in topology["domains"] for g in d.get("gpus", ())]
    shut = {g for d in topology["domains"] if d.get("drained") for g in d.get("gpus", ())}
    unavailable = [g for g in gpus if f.chance(0.08)]
    free = [g for g in gpus if g not in shut and g not in unavailable]
    classes = ["A", "B"][: f.rng.randint(1, 2)]
    kind = f.one_of("given", "measured")
    locality = {}
    for model in ("m", "l"):
        values = [f.positive(0.5, 3.0) for _ in topology["levels"]]
        locality[model] = sorted(max(1.0, v) for v in values) if kind == "given" else values
    timed, optional = f.chance(0.7), f.chance(0.4)
    jobs, held = [], set()
    for n in range(f.rng.randint(1, 4)):
        job = {"id": f"j{n}", "gpus": max(1, min(f.one_of(1, 1, 2, 2, 3, 4), len(free)))}
        job |= {"application_class": f.one_of(*classes), "model": f.one_of("m", "l")}
        job["weight"] = f.positive()
        if timed:
            job["remaining_s"] = f.positive(10.0, 5000.0)
            rest = [g for g in gpus if g not in held]
            if f.chance(0.4) and len(rest) >= job["gpus"]:
                job["current"] = f.rng.sample(rest, job["gpus"])
                job["restart_s"] = f.zero_or(1.0, 500.0)
                held.update(job["current"])
        if optional:
            job["reward"] = f.positive(1.0, 5000.0)
        if f.chance(0.2):
            job["highest_level"] = f.one_of(*topology["levels"])
        jobs.append(job)
    if len(jobs) > 1 and f.chance(0.3):  # equal jobs
        jobs[1] = {k: v for k, v in jobs[0].items() if k not in ("current", "restart_s")}
        jobs[1]["id"] = "twin"
    profile = {"gpus": gpus, "kind": "persistent"}
    profile["slowdown"] = {c: [f.positive(0.8, 1.5) for _ in gpus] for c in classes}
    document = {"schema": "optsched/pal/1", "name": f"outside-{seed}", "topology": topology}
    document |= {"profile": profile, "locality": locality, "locality_kind": kind, "jobs": jobs}
    document["admission"] = "optional" if optional else "all"
    document["unavailable"] = unavailable
    return document if free else pal(seed + 1_000_000_007)


# --- sia ------------------------------------------------------------------------------------------


def sia(seed):
    """At most 5 jobs of 4 options, 3 capacities; floats of any size, ties, costs below zero."""
    f = Figures(seed)
    kinds = f.rng.randint(0, 3)
    odd = [1e-100, 1e100, 2.0**63, 2.0**53 + 2, -1.0, 0.1, 1e-99, -1e100, -1e12]

    def cost():
        return f.one_of(*odd) if f.spread == "extreme" and f.chance(0.4) else f.zero_or()

    def use():
        return [f.one_of(0.0, 1.0, 2.0, f.zero_or()) for _ in range(kinds)]

    options = [
        [[cost(), use()] for _ in range(f.rng.randint(1, 4))] for _ in range(f.rng.randint(1, 5))
    ]
    for own in options:
        if f.chance(0.5):
            own.append([f.one_of(1.1, 1e4, 1e9, cost()), [0.0] * kinds])
    total = [sum(max(use[k] for _, use in own) for own in options) for k in range(kinds)]
    limit = [f.one_of(0.0, 1.0, 2.0, total[k] * f.rng.random(), total[k]) for k in range(kinds)]
    return {"options": options, "capacity": limit}


DRAWN = {"boa": boa, "pal": pal, "eaco": eaco, "sia": sia}
