"""Forged EaCO certificates on instances of extreme figures, each against the exact optimum.

Run `python -m tests.support.forgers.eaco 40000` for so many; `eaco/verify/test_eaco_forged.py`
tries a few. Figures are drawn over all that the schema allows, and, unvalidated, beyond. A forgery
states a bound that is above the optimum by a share of 1e-15 to 1e-3, with the prices that come
nearest to proving it.
"""

from __future__ import annotations

import itertools
import random
import sys
import warnings
from fractions import Fraction as F

import numpy as np
from scipy.optimize import linprog

from optsched.eaco import EacoInstance
from optsched.eaco.plan import EacoCertificate
from optsched.eaco.verify.certificate import prove
from optsched.instance import InstanceError
from tests.support.oracles.eaco_by_hand import Groups, optimum, watts_of

EXCESS = [10.0**-e for e in (15, 14, 13, 12, 10, 8, 6, 4, 3)]
CURVES = [
    {"kind": "affine"},
    {"kind": "power-law", "exponent": 0.48},
    {"kind": "fan", "exponent": 1.4},
]


# --- instances ------------------------------------------------------------------------------------


class Draw:
    """Figures that are usual, extreme, or the very ends of what is allowed."""

    def __init__(self, random_: random.Random):
        self.random = random_
        self.wild = random_.choice((0.0, 0.2, 0.6, 1.0))

    def figure(self, low, high, least=1e-9, most=1e12):
        if self.random.random() >= self.wild:
            return self.random.choice((low, high, self.random.uniform(low, high)))
        if self.random.random() < 0.2:
            return self.random.choice((least, most))
        span = np.log10([least, most])
        return min(most, max(least, 10.0 ** self.random.uniform(*span)))

    def may(self, chance=0.5):
        return self.random.random() < chance

    def one(self, *values):
        return self.random.choice(values)

    def share(self):
        if self.may(self.wild / 2):
            return self.one(0.0, 1.0, 5e-324, 1e-300, 1e-30, 10.0 ** self.random.uniform(-20, 0))
        return self.random.uniform(0.05, 1.0)


def gpu_type(draw, name):
    bare, context, peak = sorted(draw.figure(10.0, 400.0) for _ in range(3))
    curve = draw.one(*CURVES)
    if draw.may(0.3):
        xs = sorted({draw.share() for _ in range(draw.one(1, 2, 3, 4))})
        ys = [draw.one(context, peak, draw.random.uniform(context, peak)) for _ in xs]
        curve = {"kind": "table", "utilisation": xs, "power_w": [min(peak, y) for y in ys]}
    levels = [
        {
            "id": f"{name}{n}",
            "limit_w": max(context, draw.figure(50.0, 300.0)),
            "rate": draw.figure(0.5, 1.0, 0.001, 1.0),
            "power": draw.figure(0.5, 1.0, 0.001, 1.0),
        }
        for n in range(draw.one(0, 0, 1, 2))
    ]
    power = {"bare_w": bare, "context_w": context, "peak_w": peak, "curve": curve}
    return {"id": name, "memory_gb": draw.figure(16.0, 80.0), "power": power, "levels": levels}


def nodes_entry(draw, name, gpu, gang, count):
    base = draw.figure(50.0, 400.0)
    power = {
        "base_w": base,
        "sleep_w": draw.one(0.0, base, base / 3 if base > 1e-8 else 0.0),
        "wake_s": draw.one(0.0, draw.figure(60.0, 600.0)),
    }
    on = draw.one(None, 0, 1, count)
    entry = {"id": name, "gpu": gpu, "gpus": gang * draw.one(1, 1, 2), "count": count}
    return entry | {"power": power} | ({} if on is None else {"on": on})


def measured(draw, types):
    groups, keep = [], draw.one(0.0, 0.5, 1.0)
    for size in (2, 3, 4):
        for key in itertools.combinations_with_replacement(types, size):
            if draw.may(keep if size == 2 else keep / 4):
                by = {t: draw.figure(0.3, 1.0, 0.001, 1.0) for t in types}
                by = by if draw.may(0.95) else dict.fromkeys(types, 0.0)
                groups.append({"types": list(key), "rates": [by[t] for t in key]})
                if draw.may(0.2):
                    groups[-1]["gpu_power_w"] = draw.figure(30.0, 300.0)
                if draw.may(0.2):
                    groups[-1]["utilisation"] = draw.share()
    return groups


def together(text):
    """Leave one set of GPUs, on which all jobs have to be, and no tolerance but the GPUs'."""
    nodes = text["nodes"][0]
    text["nodes"] = [nodes | {"gpus": text["jobs"][0]["gpus"], "count": 1, "on": 1}]
    for kind in text["types"]:
        kind["memory_gb"] = 0.0
    for job in text["jobs"]:
        for key in ("max_slowdown", "deadline_s", "waiting_penalty_kwh"):
            job.pop(key, None)
    text["max_jobs_per_gpu"] = 4
    for key in ("utilisation_limit", "running", "power_cap_w"):
        text.pop(key, None)
    return text


def directed(random_):
    """Up to eight jobs on one set of GPUs, with figures at an end of what the schema allows.

    Tiny rates, works, epochs or speeds; or a power curve that falls steeply where the group is.
    """
    which = random_.choice(("rates", "works", "epoch", "falling"))
    text = together(document(random_, random_.choice((1, 2, 5, 8))))
    jobs, near = text["jobs"], random_.uniform(1.0, 1.2)
    text["max_jobs_per_gpu"], gpu = 8, text["gpu_types"][0]
    text["types"] = [text["types"][0] | {"id": f"t{n}"} for n in range(len(jobs))]
    steps = random_.choice((0.0, 0.037, 2.0**-52, 2.0**-45))
    for n, job in enumerate(jobs):
        work = jobs[0]["work_s"] * (1 + steps * n)
        job |= {"type": f"t{n}", "work_s": min(work, 1e12)}
    if which == "rates" or random_.random() < 0.5:
        pairs = itertools.combinations([kind["id"] for kind in text["types"]], 2)
        rates = [0.001 * near, 0.001 * random_.choice((near, 1.0))]
        groups = [{"types": pair, "rates": rates} for pair in pairs]
        text["interference"] = {"fallback": "pairs", "groups": groups}
        gpu["levels"] = random_.choice(
            ([], [{"id": "l", "limit_w": 1e9, "rate": 0.001, "power": 1}])
        )
        gpu["levels"] = [level for level in gpu["levels"] if gpu["power"]["peak_w"] <= 1e9]
    if which == "works":
        for n, job in enumerate(jobs):
            job["work_s"] = 1e-9 * near * (1 + steps * n)
        for kind in text["types"]:
            kind["speeds"] = {gpu["id"]: 1e12}
    if which == "epoch":
        for key in ("energy_weight", "price_usd_per_kwh", "carbon_g_per_kwh"):
            text.pop(key, None)
        text |= {"objective": "epoch", "epoch_s": 1e-9 * near}
        for job in jobs:
            job["work_credit_w"] = random_.choice((1e12, 1e-9, 1e6 * near))
    return falling(random_, text) if which == "falling" else text


def falling(random_, text):
    """Let watts fall between two neighbours, the upper of them the utilisation of all jobs."""
    power = text["gpu_types"][0]["power"]
    power["curve"] = {"kind": "affine"}
    try:
        instance = EacoInstance.from_document(text)
    except InstanceError:
        return text
    table = Groups(instance).table[instance.nodes[0].gpu]
    types = [job.type for job in instance.jobs]
    rates = table.rates(types)
    busy = float(sum(table.busy[t] * rates[t] for t in types)) if rates else 0.0
    busy = random_.choice((busy, float(np.nextafter(busy, 1)), 1e-30, 1e-300))
    if 0 < busy < 1:
        xs = [random_.choice((0.0, float(np.nextafter(busy, 0)))), busy]
        curve = {
            "kind": "table",
            "utilisation": xs,
            "power_w": [power["peak_w"], power["context_w"]],
        }
        power["curve"] = curve
    return text


def tight_cap(random_, instance):
    """Cap the power so that the group of all jobs just keeps it."""
    groups, jobs = Groups(instance), instance.jobs
    watts = [watts_of(groups, jobs, option) for option in groups.options(jobs)]
    if not watts or random_.random() < 0.5:
        return instance
    nodes = instance.nodes[0]
    drawn = F(nodes.power.base_w) + jobs[0].gpus * random_.choice(watts)
    cap = float(drawn)
    cap = cap if F(cap) >= drawn else float(np.nextafter(cap, np.inf))
    return instance.changed({"power_cap_w": cap}) if 1e-9 <= cap <= 1e12 else instance


def document(random_, jobs=None):
    draw = Draw(random_)
    count, gang = jobs or draw.one(1, 2, 3, 4, 4), draw.one(1, 1, 2)
    types = [f"t{n}" for n in range(draw.one(1, count, count))]
    gpus = [gpu_type(draw, name) for name in "XY"[: draw.one(1, 1, 2)]]
    text = {
        "schema": "optsched/eaco/1",
        "name": "forged",
        "objective": draw.one("run-to-completion", "run-to-completion", "epoch", "eaco"),
        "max_jobs_per_gpu": draw.one(2, 3, 4),
        "gpu_types": gpus,
        "nodes": [
            nodes_entry(draw, f"n{n}", draw.one(*gpus)["id"], gang, draw.one(1, 1, 2, count))
            for n in range(draw.one(1, 1, 2))
        ],
        "types": [
            {
                "id": name,
                "utilisation": draw.share(),
                "memory_gb": draw.one(0.0, 0.0, draw.figure(1.0, 8.0)),
                "speeds": {g["id"]: draw.figure(0.5, 2.0) for g in gpus if draw.may(0.4)},
            }
            for name in types
        ],
        "jobs": [],
        "interference": {
            "groups": measured(draw, types) if draw.may(0.6) else [],
            "fallback": draw.one("larger", "pairs", "utilisation", "utilisation"),
            "saturation_slope": draw.one(0.0, 0.56, draw.figure(0.1, 2.0)),
            "partner_slowdown": draw.one(0.0, 0.02, draw.figure(0.01, 0.5)),
        },
    }
    works = [draw.figure(600.0, 1e5) for _ in range(count)]
    for n in range(count):
        works[n] = draw.one(works[n], works[n], works[0], works[0] * (1 + 2.0**-50))
        job = {"id": f"j{n}", "type": types[n % len(types)], "gpus": gang}
        text["jobs"].append(job | {"work_s": min(1e12, works[n])} | tolerances(draw, works[n]))
    objective(draw, text)
    if draw.may(0.3):
        text["power_cap_w"] = draw.figure(100.0, 3000.0)
    if draw.may(0.2):
        text["utilisation_limit"] = draw.figure(0.3, 2.0)
    if draw.may(0.2) and text["nodes"][0].get("on") != 0:
        some = [job["id"] for job in text["jobs"] if draw.may()]
        text["running"] = [{"id": "r", "nodes": "n0", "node": 0, "jobs": some}] if some else []
    return text


def tolerances(draw, work):
    fields = {"migration_s": draw.one(0.0, 62.0, draw.figure(1.0, 100.0))}
    if draw.may(0.3):
        fields["max_slowdown"] = draw.one(1.0, 1.25, draw.figure(1.0, 3.0, 1.0, 1e6))
    if draw.may(0.2):
        fields["deadline_s"] = min(1e12, work * draw.one(0.5, 1.0, 1.02, 3.0, 1e3))
    return fields


def objective(draw, text):
    if text["objective"] == "eaco":
        text["energy_weight"] = draw.share()
        for job in text["jobs"]:
            job["training_epoch_s"] = draw.figure(60.0, 1440.0)
        return
    text[draw.one("price_usd_per_kwh", "carbon_g_per_kwh")] = draw.figure(0.1, 400.0)
    if text["objective"] == "epoch":
        text["epoch_s"] = draw.figure(60.0, 3600.0)
    for job in text["jobs"]:
        if draw.may(0.3):
            job["waiting_penalty_kwh"] = draw.figure(0.01, 10.0)
        if text["objective"] == "epoch" and draw.may(0.7):
            job["work_credit_w"] = draw.figure(50.0, 1000.0)


def instance_of(random_, *, validated=True, jobs=None):
    """Draw until the schema takes an instance; unvalidated, then push figures beyond it."""
    while True:
        way = "apart" if jobs else random_.choice(("apart", "together", "directed"))
        text = directed(random_) if way == "directed" else document(random_, jobs)
        try:
            instance = EacoInstance.from_document(together(text) if way == "together" else text)
        except InstanceError:
            continue
        instance = tight_cap(random_, instance) if way != "apart" else instance
        return instance if validated else beyond(random_, instance)


def beyond(random_, instance):
    """Scale figures by powers of 10 that the schema would refuse."""

    def scaled(value, *powers):
        return value * 10.0 ** random_.choice((0, *powers))

    jobs = [
        job.model_copy(update={"work_s": scaled(job.work_s, -120, 90)}) for job in instance.jobs
    ]
    credit = [job.work_credit_w for job in jobs]
    jobs = [
        job.model_copy(update={"work_credit_w": worth and scaled(worth, -60, 60)})
        for job, worth in zip(jobs, credit, strict=True)
    ]
    types = [
        kind.model_copy(update={"speeds": {g: scaled(s, -40, 40) for g, s in kind.speeds.items()}})
        for kind in instance.types
    ]
    table = instance.interference
    groups = []
    for group in table.groups:
        factor = scaled(1.0, -30, -70)
        groups.append(group.model_copy(update={"rates": tuple(r * factor for r in group.rates)}))
    gpus = []
    for gpu in instance.gpu_types:
        factor = scaled(1.0, -25, -60)
        levels = [level.model_copy(update={"rate": level.rate * factor}) for level in gpu.levels]
        gpus.append(gpu.model_copy(update={"levels": tuple(levels)}))
    changes = {
        "jobs": tuple(jobs),
        "types": tuple(types),
        "gpu_types": tuple(gpus),
        "interference": table.model_copy(update={"groups": tuple(groups)}),
        "epoch_s": instance.epoch_s and scaled(instance.epoch_s, -60, 60),
    }
    copied = instance.model_copy(update=changes)
    return EacoInstance.model_construct(
        **{n: getattr(copied, n) for n in type(copied).model_fields}
    )


# --- forgeries ------------------------------------------------------------------------------------


class Forger:
    """The options of an instance, priced by hand, and prices that come near to its optimum."""

    def __init__(self, instance):
        self.instance, self.groups = instance, Groups(instance)
        self.equal = classes(instance)
        number = {job.id: n for n, jobs in enumerate(self.equal) for job in jobs}
        self.options, most = [], len(instance.jobs)
        for size in range(1 if most < 5 else most, min(most, instance.max_jobs_per_gpu) + 1):
            for jobs in itertools.combinations(instance.jobs, size):
                for option in self.groups.options(jobs):
                    members = tuple(number[job.id] for job in jobs)
                    cost = self.groups.cost(jobs, *option)
                    drawn = watts_of(self.groups, jobs, option)
                    self.options.append((members, jobs[0].gpus, option[0], cost, drawn))
        self.waits = [self.groups.waits(jobs[0]) for jobs in self.equal]

    def price_sets(self):
        """Prices of jobs and of GPUs, exact, at which no group costs less than it pays."""
        size = max((abs(cost) for *_, cost, _ in self.options), default=F(0))
        whole = [o for o in self.options if len(o[0]) == len(self.instance.jobs)]
        for gpus in (F(0), size, 100 * size, F(2) ** 40):
            if whole:
                each = min(cost + gang * gpus for _, gang, _, cost, _ in whole)
                yield [each / len(self.instance.jobs)] * len(self.equal), gpus
            if len(self.instance.jobs) < 5:
                yield self.raised([-2 * size] * len(self.equal), gpus), gpus
        optimal = self.by_program(size or F(1)) if len(self.instance.jobs) < 5 else None
        if optimal is not None:
            yield self.raised(optimal, F(0)), F(0)

    def raised(self, jobs, gpus):
        """Lower prices until no group costs less than it pays, then raise one after the other."""
        jobs = list(jobs)
        for members, gang, _, cost, _ in self.options:
            short = sum(jobs[n] for n in members) - cost - gang * gpus
            for n in members if short > 0 else ():
                jobs[n] -= short / len(members)
        for n in range(len(jobs)):
            slacks = [
                (cost + gang * gpus - sum(jobs[m] for m in members)) / members.count(n)
                for members, gang, _, cost, _ in self.options
                if n in members
            ]
            if self.waits[n] is not None:
                slacks.append(self.waits[n] - jobs[n])
            jobs[n] += min(slacks, default=F(0))
        return jobs

    def by_program(self, size):
        """Prices of jobs of the linear program over groups, GPUs free."""
        if not self.options:
            return None
        rows = np.zeros((len(self.options), len(self.equal)))
        for row, (members, *_) in zip(rows, self.options, strict=True):
            for n in members:
                row[n] += 1
        outcome = linprog(
            -np.array([len(jobs) for jobs in self.equal]),
            A_ub=rows,
            b_ub=[float(cost / size) for *_, cost, _ in self.options],
            bounds=[(None, None if w is None else float(w / size)) for w in self.waits],
        )
        return [F(float(price)) * size for price in outcome.x] if outcome.status == 0 else None


def classes(instance):
    """Sets of equal jobs, in the order of the first ones."""
    place, sets = {name: p.id for p in instance.running for name in p.jobs}, {}
    for job in instance.jobs:
        fields = job.model_dump(exclude={"id"} if job.id in place else {"id", "migration_s"})
        sets.setdefault((place.get(job.id), *fields.values()), []).append(job)
    return list(sets.values())


def certificate(instance, kind, stated, jobs, gpus=0, watt=0.0):
    gpus = [float(gpus)] * len(instance.nodes)
    places = [0.0] * len(instance.running)
    prices = {"jobs": list(map(float, jobs)), "gpus": gpus, "locations": places, "watt": watt}
    stated = {"left_out": stated} if kind == "infeasible" else {"bound": stated}
    return EacoCertificate.model_validate({"kind": kind, **stated, "nodes": [{"prices": prices}]})


def forgeries(forger, best, random_):
    """Yield certificates that are false, with what they state."""
    instance = forger.instance
    for jobs, gpus in forger.price_sets():
        for excess in random_.sample(EXCESS, 4):
            stated = float(best + (abs(best) or F(1)) * F(excess))
            if F(stated) <= best:
                continue
            missing = (F(stated) - best) / len(instance.jobs)
            for more in (F(0), missing, 2 * missing):
                lifted = [price + more for price in jobs]
                yield stated, certificate(instance, "prices", stated, lifted, gpus)
    watts = [
        F(len(members), gang) / drawn for members, gang, _, _, drawn in forger.options if drawn
    ]
    for share in watts[-3:] if instance.power_cap_w is not None else [F(0)]:
        stated = random_.choice((5e-324, 1e-15, 1e-3, 0.3))
        ones = [1.0] * len(forger.equal)
        watt = float(min(share, 2**99))
        yield stated, certificate(instance, "infeasible", stated, ones, watt=watt)


def search(count, seed, *, validated=True, say=None):
    """Try so many forgeries; return how many, the accepted ones, and near bounds proven."""
    random_, tried, accepted, near = random.Random(seed), 0, [], 0
    while tried < count:
        instance = instance_of(random_, validated=validated)
        best = optimum(instance)
        if best is None or abs(best) > F(10) ** 250:
            continue
        forger = Forger(instance)
        for stated, forged in forgeries(forger, best, random_):
            tried += 1
            if not prove(instance, forged):
                accepted.append((instance, stated, best, forged))
        near += is_near(forger, best)
        if say is not None:
            say(tried, len(accepted))
    return tried, accepted, near


def is_near(forger, best):
    """Tell whether a bound within 1e-9 of the optimum is proven by some of the prices."""
    stated = float(best - abs(best) / 10**9)
    for jobs, gpus in forger.price_sets():
        forged = certificate(forger.instance, "prices", stated, jobs, gpus)
        if not prove(forger.instance, forged):
            return True
    return False


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 40_000
    for way in (True, False):
        what = "allowed" if way else "beyond what is allowed"
        total, wrong, close = search(most // 2, len(sys.argv), validated=way)
        print(
            f"figures {what}: {total} forgeries, {len(wrong)} accepted; {close} near bounds proven"
        )
        for _, stated, best, _ in wrong[:5]:
            print(f"  {stated!r} accepted, a plan costs {float(best)!r}")
