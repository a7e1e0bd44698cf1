"""EaCO once more, for tests only: written from `EacoInstance`'s words in exact fractions.

It shares nothing with the verifier or the methods but the figures of the instance. All gangs of an
instance are of one size that divides its nodes' GPUs, and what runs now is on the first node.
"""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction as F

# --- rates and watts ------------------------------------------------------------------------------


class Table:
    """Rates of groups of types on one GPU type, with the repair."""

    def __init__(self, instance, gpu):
        self.table, self.busy = (
            instance.interference,
            {t.id: F(t.utilisation) for t in instance.types},
        )
        self.entries = {}
        for wanted in (None, gpu):
            for group in self.table.groups:
                if group.gpu == wanted:
                    self.entries[tuple(sorted(group.types))] = group
        self.repaired, self.seen = {}, {}
        for key in sorted(self.entries, key=lambda key: (len(key), key)):
            entry = self.entries[key]
            rates = {t: F(r) for t, r in zip(entry.types, entry.rates, strict=True)}
            for inner, known in list(self.repaired.items()):
                if 1 < len(inner) < len(key) and not Counter(inner) - Counter(key):
                    rates = below(rates, known)
            self.repaired[key] = rates

    def rates(self, types):
        """By type; None if unknown, zeros if they do not fit."""
        key = tuple(sorted(types))
        if key not in self.seen:
            self.seen[key] = self.worked_out(key)
        return self.seen[key]

    def worked_out(self, key):
        if key in self.repaired:
            return self.repaired[key]
        if len(key) == 1:
            return {key[0]: F(1)}
        steps = ["none", "larger", "pairs", "utilisation"].index(self.table.fallback)
        around = [known for k, known in self.repaired.items() if not Counter(key) - Counter(k)]
        if steps > 0 and around:
            rates = {t: max(known[t] for known in around) for t in key}
            if all(rates.values()):
                return rates
        if steps > 1 and len(key) > 2:
            pairs = [tuple(sorted(pair)) for pair in itertools.combinations(key, 2)]
            if all(pair in self.repaired for pair in pairs):
                return self.lowered(key, {t: self.product(key, t) for t in key})
        if steps < 3:
            return None
        over = max(F(0), sum(self.busy[t] for t in key) - 1)
        slow = 1 + F(self.table.saturation_slope) * over
        slow += F(self.table.partner_slowdown) * (len(key) - 1)
        return self.lowered(key, dict.fromkeys(key, 1 / slow))

    def product(self, key, kind):
        others = list(key)
        others.remove(kind)
        rate = F(1)
        for other in others:
            rate *= self.repaired[tuple(sorted((kind, other)))][kind]
        return rate

    def lowered(self, key, rates):
        if len(key) > 2:
            for n in range(len(key)):
                inner = self.rates(key[:n] + key[n + 1 :])
                if inner is not None:
                    rates = below(rates, inner)
        return rates


def below(rates, inner):
    if not all(inner.values()):
        return dict.fromkeys(rates, F(0))
    return {t: min(rate, inner.get(t, rate)) for t, rate in rates.items()}


def curve(power, busy):
    """Watts at a utilisation; powers with exponents are rounded as `GpuPower` defines."""
    busy, low, high = min(F(1), busy), F(power.context_w), F(power.peak_w)
    if power.curve.kind == "affine":
        return low + (high - low) * busy
    if power.curve.kind != "table":
        return power.watts(busy)
    xs, ys = [F(x) for x in power.curve.utilisation], [F(y) for y in power.curve.power_w]
    if busy <= xs[0] or busy >= xs[-1]:
        return ys[0] if busy <= xs[0] else ys[-1]
    n = next(n for n in range(1, len(xs)) if busy <= xs[n])
    return ys[n - 1] + (ys[n] - ys[n - 1]) * (busy - xs[n - 1]) / (xs[n] - xs[n - 1])


# --- groups ---------------------------------------------------------------------------------------


class Groups:
    """Groups of an instance: whether they are allowed, what they cost, what they draw."""

    def __init__(self, instance):
        self.instance = instance
        self.kind = {t.id: t for t in instance.types}
        self.gpu = {g.id: g for g in instance.gpu_types}
        self.table = {g.id: Table(instance, g.id) for g in instance.gpu_types}
        self.place = {name: place for place in instance.running for name in place.jobs}
        per = instance.price_usd_per_kwh or instance.carbon_g_per_kwh or 1
        self.per_j = F(per) / 3_600_000

    def work(self, job, nodes, location):
        moved = job.id in self.place and self.place[job.id].id != location
        alone = F(job.work_s) / F(self.kind[job.type].speeds.get(nodes.gpu, 1.0))
        return alone + (F(job.migration_s) if moved else 0)

    def watts(self, types, nodes, level):
        gpu, table = self.gpu[nodes.gpu], self.table[nodes.gpu]
        entry, rates = table.entries.get(tuple(sorted(types))), table.rates(types)
        busy = sum((F(self.kind[t].utilisation) * rates[t] for t in types), F(0))
        if entry is not None and entry.utilisation is not None:
            busy = F(entry.utilisation)
        watts = curve(gpu.power, busy)
        if entry is not None and entry.gpu_power_w is not None:
            watts = F(entry.gpu_power_w)
        return watts if level is None else min(watts * F(level.power), F(level.limit_w))

    def share(self, nodes):
        return (F(nodes.power.base_w) - F(nodes.power.sleep_w)) / nodes.gpus

    def run(self, jobs, nodes, level, location):
        """Phases: seconds, watts of a GPU, rates by type."""
        factor = F(1) if level is None else F(level.rate)
        left = [[self.work(job, nodes, location), job.type] for job in jobs]
        phases, rates, watts = [], None, None
        while left:
            types = [kind for _, kind in left]
            known = self.table[nodes.gpu].rates(types)
            if known is not None:
                rates = {kind: rate * factor for kind, rate in known.items()}
                watts = self.watts(types, nodes, level)
            seconds = min(work / rates[kind] for work, kind in left)
            phases.append((seconds, watts, rates))
            left = [[work - seconds * rates[kind], kind] for work, kind in left]
            left = [each for each in left if each[0] > 0]
        return phases

    def due(self, job):
        """When a job must end; None if at any time."""
        if job.deadline_s is None:
            return None
        place, ends = self.place.get(job.id), []
        for nodes in self.instance.nodes:
            if F(self.kind[job.type].memory_gb) <= F(self.gpu[nodes.gpu].memory_gb):
                stays = place is not None and place.nodes == nodes.id
                ends.append(self.work(job, nodes, place.id if stays else None))
        return max(F(job.deadline_s), min(ends))

    def allows(self, jobs, nodes, level, location):
        instance, gpu = self.instance, self.gpu[nodes.gpu]
        types = [job.type for job in jobs]
        limit, rates = F(gpu.memory_gb), self.table[nodes.gpu].rates(types)
        if len(jobs) > 1:
            limit *= 1 - F(instance.memory_headroom)
        if sum(F(self.kind[t].memory_gb) for t in types) > limit:
            return False
        if len(jobs) > instance.max_jobs_per_gpu or rates is None or not all(rates.values()):
            return False
        if location is not None and not any(
            job.id in self.place and self.place[job.id].id == location for job in jobs
        ):
            return False
        if len(jobs) > 1 and instance.utilisation_limit is not None:
            entry = self.table[nodes.gpu].entries.get(tuple(sorted(types)))
            busy = sum(F(self.kind[t].utilisation) * rates[t] for t in types)
            if entry is not None and entry.utilisation is not None:
                busy = F(entry.utilisation)
            if busy > F(instance.utilisation_limit):
                return False
        for job in jobs:
            slowdown = 1 / (rates[job.type] * (1 if level is None else F(level.rate)))
            if job.max_slowdown is not None and slowdown > F(job.max_slowdown):
                return False
            due = self.due(job)
            if due is not None and self.work(job, nodes, location) * slowdown > due:
                return False
        return True

    def cost(self, jobs, nodes, level, location):
        """What a group costs but for nodes, with its share of them if it runs to completion."""
        instance, gang = self.instance, jobs[0].gpus
        phases = self.run(jobs, nodes, level, location)
        joules = sum(s * (w + self.share(nodes)) for s, w, _ in phases) * gang
        if instance.objective == "run-to-completion":
            return joules * self.per_j
        speed = [F(self.kind[job.type].speeds.get(nodes.gpu, 1.0)) for job in jobs]
        first = phases[0]
        if instance.objective == "eaco":
            weight, hours = F(instance.energy_weight), F(0)
            for job, s in zip(jobs, speed, strict=True):
                hours += F(job.training_epoch_s) / first[2][job.type] / s / 3600
            return weight * joules * self.per_j + (1 - weight) * hours / len(instance.jobs)
        bare = F(self.gpu[nodes.gpu].power.bare_w)
        joules = F(instance.epoch_s) * (first[1] - bare) * gang
        for job, s in zip(jobs, speed, strict=True):
            done = F(instance.epoch_s) * first[2][job.type]
            if job.id in self.place and self.place[job.id].id != location:
                done -= F(job.migration_s)
            joules -= self.credit(job) * done * s
        return joules * self.per_j

    def credit(self, job):
        if job.work_credit_w is not None:
            return F(job.work_credit_w)
        return min(self.alone(job, moved=False)) / F(job.work_s)

    def alone(self, job, *, moved):
        """Joules of a job on GPUs of its own, wherever it fits."""
        for nodes in self.instance.nodes:
            kind = self.kind[job.type]
            if F(kind.memory_gb) <= F(self.gpu[nodes.gpu].memory_gb):
                work = F(job.work_s) / F(kind.speeds.get(nodes.gpu, 1.0))
                work += F(job.migration_s) if moved and job.id in self.place else 0
                watts = self.watts([job.type], nodes, None) + self.share(nodes)
                yield job.gpus * watts * work

    def waits(self, job):
        """What a job costs that waits; None if it must not."""
        if job.waiting_penalty_kwh is None:
            return None
        cost = F(job.waiting_penalty_kwh) * 3_600_000 * self.per_j
        if self.instance.objective == "run-to-completion":
            cost += min(self.alone(job, moved=True)) * self.per_j
        return cost

    def options(self, jobs):
        """Nodes, levels and locations at which a group is allowed."""
        for nodes in self.instance.nodes:
            here = [place.id for place in self.instance.running if place.nodes == nodes.id]
            for level in (None, *self.gpu[nodes.gpu].levels):
                for location in (None, *here):
                    if self.allows(jobs, nodes, level, location):
                        yield nodes, level, location


# --- plans ----------------------------------------------------------------------------------------


def optimum(instance):
    """The exact least objective of all plans; None if there is none."""
    groups = Groups(instance)
    priced, best = {}, None
    for parts, waiting in partitions(
        list(instance.jobs), instance.max_jobs_per_gpu, slots(instance)
    ):
        base = [groups.waits(job) for job in waiting]
        if any(cost is None for cost in base):
            continue
        for jobs in map(tuple, parts):
            if jobs not in priced:
                options = groups.options(jobs)
                priced[jobs] = [
                    (groups.cost(jobs, *option), option, watts_of(groups, jobs, option))
                    for option in options
                ]
        for chosen in itertools.product(*(priced[tuple(part)] for part in parts)):
            more = cluster(instance, groups, chosen)
            if more is not None:
                total = sum((cost for cost, _, _ in chosen), sum(base, F(0))) + more
                best = total if best is None else min(best, total)
    return best


def slots(instance):
    """How many groups there may be at most."""
    return sum(nodes.gpus * nodes.count for nodes in instance.nodes) // instance.jobs[0].gpus


def watts_of(groups, jobs, option):
    return max(watts for _, watts, _ in groups.run(jobs, *option))


def cluster(instance, groups, chosen):
    """What nodes cost on which groups are; None if there are too few, or too little power."""
    kept = [location for _, (_, _, location), _ in chosen if location is not None]
    if len(set(kept)) < len(kept):
        return None
    gang, cost = instance.jobs[0].gpus, F(0)
    drawn = sum((n.count * F(n.power.sleep_w) for n in instance.nodes), F(0))
    drawn += sum((gang * watts for _, _, watts in chosen), F(0))
    for nodes in instance.nodes:
        held = sum(1 for _, (on, _, _), _ in chosen if on.id == nodes.id)
        used = -(-held * gang // nodes.gpus)
        if used > nodes.count:
            return None
        woken = max(0, used - (nodes.count if nodes.on is None else nodes.on))
        wake_w = nodes.power.base_w if nodes.power.wake_w is None else nodes.power.wake_w
        cost += woken * F(nodes.power.wake_s) * (F(wake_w) - F(nodes.power.sleep_w))
        bare = F(groups.gpu[nodes.gpu].power.bare_w)
        above = used * (F(nodes.power.base_w) - F(nodes.power.sleep_w))
        idle = (used * nodes.gpus - held * gang) * bare
        drawn += above + idle
        if instance.objective == "epoch":
            cost += F(instance.epoch_s) * (above + used * nodes.gpus * bare)
    if instance.power_cap_w is not None and drawn > F(instance.power_cap_w):
        return None
    weight = F(instance.energy_weight) if instance.objective == "eaco" else 1
    return cost * groups.per_j * weight


def partitions(jobs, most, parts_at_most):
    """Ways to part jobs into so many groups at most, and waiting ones."""
    if not jobs:
        yield [], []
        return
    first, rest = jobs[0], jobs[1:]
    for parts, waiting in partitions(rest, most, parts_at_most):
        if len(parts) < parts_at_most:
            yield [[first], *parts], waiting
        if first.waiting_penalty_kwh is not None:
            yield parts, [first, *waiting]
        for n, part in enumerate(parts):
            if len(part) < most:
                yield [*parts[:n], [first, *part], *parts[n + 1 :]], waiting
