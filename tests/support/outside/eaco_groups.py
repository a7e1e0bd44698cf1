"""EaCO from its mathematics alone: where groups may run, and what they cost and draw."""

from __future__ import annotations

from fractions import Fraction

from tests.support.outside.eaco_rates import Rates, watts_at

KWH = 3_600_000


def by_id(entries):
    return {entry["id"]: entry for entry in entries}


class Cluster:
    """An instance by its parts: where jobs fit, how groups run, what they cost and draw."""

    def __init__(self, document):
        self.document = document
        self.objective = document.get("objective", "run-to-completion")
        self.gpus, self.nodes = by_id(document["gpu_types"]), by_id(document["nodes"])
        self.types, self.jobs = by_id(document["types"]), by_id(document["jobs"])
        self.places = by_id(document.get("running", ()))
        self.place_of = {job: p for p in self.places.values() for job in p["jobs"]}
        self.rates = {gpu: Rates(document, gpu) for gpu in self.gpus}
        self.per_kwh = Fraction(
            document.get("price_usd_per_kwh") or document.get("carbon_g_per_kwh") or 1
        )

    def size(self, job):
        return self.jobs[job].get("gpus", 1)

    def types_of(self, jobs):
        return [self.jobs[job]["type"] for job in jobs]

    def awake(self, pool):
        return pool["count"] if pool.get("on") is None else pool["on"]

    def level(self, pool, name):
        levels = by_id(self.gpus[pool["gpu"]].get("levels", ()))
        return {"rate": 1, "power": 1, "limit_w": None} if name is None else levels[name]

    # --- what may run where -----------------------------------------------------------------------

    def fits(self, jobs, pool):
        """Whether gangs and memory of a group suit the nodes."""
        size, each = self.size(jobs[0]), pool["gpus"]
        if (size > each and size % each) or size > each * pool["count"]:
            return False
        limit = Fraction(self.gpus[pool["gpu"]]["memory_gb"])
        if len(jobs) > 1:
            limit *= 1 - Fraction(self.document.get("memory_headroom", 0))
        need = sum(Fraction(self.types[kind].get("memory_gb", 0)) for kind in self.types_of(jobs))
        return need <= limit

    def hosts(self, job):
        return [pool for pool in self.nodes.values() if self.fits([job], pool)]

    def busy(self, jobs, pool):
        """Utilisation of a GPU that these jobs share."""
        types, rates = self.types_of(jobs), self.rates[pool["gpu"]]
        entry = rates.entries.get(tuple(sorted(types)), {})
        if entry.get("utilisation") is not None:
            return Fraction(entry["utilisation"])
        return sum(rates.busy[kind] * rates.of(types)[kind] for kind in types)

    def may_run(self, jobs, pool, level, place):
        """Whether a group may run so, whatever else runs."""
        if len({self.size(job) for job in jobs}) > 1 or not self.fits(jobs, pool):
            return False
        rates = self.rates[pool["gpu"]].of(self.types_of(jobs))
        if rates is None or 0 in rates.values():
            return False
        if len(jobs) > 1:
            limit = self.document.get("utilisation_limit")
            if len(jobs) > self.document.get("max_jobs_per_gpu", 4):
                return False
            if limit is not None and self.busy(jobs, pool) > Fraction(limit):
                return False
        if place is not None:
            here = self.places[place]
            same = here["nodes"] == pool["id"] and set(jobs) & set(here["jobs"])
            if not same or self.size(here["jobs"][0]) != self.size(jobs[0]):
                return False
        return all(self._bears(job, jobs, pool, level, place) for job in jobs)

    def _bears(self, job, jobs, pool, level, place):
        slowdown, most = self.slowdown(job, jobs, pool, level), self.jobs[job].get("max_slowdown")
        if most is not None and slowdown > Fraction(most):
            return False
        due = due_s(self, job)
        return due is None or self.work_s(job, pool, place) * slowdown <= due

    # --- how it runs ------------------------------------------------------------------------------

    def speed(self, job, pool):
        return Fraction(self.types[self.jobs[job]["type"]].get("speeds", {}).get(pool["gpu"], 1))

    def is_moved(self, job, place):
        return job in self.place_of and self.place_of[job]["id"] != place

    def migration_s(self, job):
        return Fraction(self.jobs[job].get("migration_s", 62.0))

    def work_s(self, job, pool, place):
        seconds = Fraction(self.jobs[job]["work_s"]) / self.speed(job, pool)
        return seconds + (self.migration_s(job) if self.is_moved(job, place) else 0)

    def slowdown(self, job, jobs, pool, level):
        rates = self.rates[pool["gpu"]].of(self.types_of(jobs))
        return 1 / (rates[self.jobs[job]["type"]] * Fraction(self.level(pool, level)["rate"]))

    def gpu_w(self, jobs, pool, level):
        key = tuple(sorted(self.types_of(jobs)))
        watts = self.rates[pool["gpu"]].entries.get(key, {}).get("gpu_power_w")
        if watts is None:
            watts = watts_at(self.gpus[pool["gpu"]]["power"], self.busy(jobs, pool))
        state = self.level(pool, level)
        watts = Fraction(watts) * Fraction(state["power"])
        return watts if state["limit_w"] is None else min(watts, Fraction(state["limit_w"]))

    def phases(self, jobs, pool, level, place):
        """(seconds, watts of a GPU) until all of a group have ended."""
        left = {job: self.work_s(job, pool, place) for job in jobs}
        factor, watts, pace = Fraction(self.level(pool, level)["rate"]), None, {}
        phases = []
        while left:
            rates = self.rates[pool["gpu"]].of(self.types_of(left))
            if rates is not None:
                pace = {job: rates[self.jobs[job]["type"]] * factor for job in left}
                watts = self.gpu_w(list(left), pool, level)
            seconds = min(work / pace[job] for job, work in left.items())
            phases.append((seconds, watts))
            left = {job: work - seconds * pace[job] for job, work in left.items()}
            left = {job: work for job, work in left.items() if work}
        return phases

    # --- what it costs ----------------------------------------------------------------------------

    def share_w(self, pool):
        power = pool["power"]
        return (Fraction(power["base_w"]) - Fraction(power.get("sleep_w", 0))) / pool["gpus"]

    def alone_w(self, job, pool):
        return self.size(job) * (self.gpu_w([job], pool, None) + self.share_w(pool))

    def credit_w(self, job):
        """Joules that a second of a job's work is worth."""
        if self.jobs[job].get("work_credit_w") is not None:
            return Fraction(self.jobs[job]["work_credit_w"])
        return min(self.alone_w(job, pool) / self.speed(job, pool) for pool in self.hosts(job))

    def waiting_cost(self, job):
        """What it costs that a job waits, in the unit of the objective."""
        joules = Fraction(0)
        if self.objective == "run-to-completion":
            joules = min(
                self.alone_w(job, pool) * self.work_s(job, pool, None) for pool in self.hosts(job)
            )
        return (joules / KWH + Fraction(self.jobs[job]["waiting_penalty_kwh"])) * self.per_kwh

    def group(self, jobs, pool, level, place):
        """(cost without its nodes, greatest watts above those of bare GPUs)."""
        phases, gang = self.phases(jobs, pool, level, place), self.size(jobs[0])
        bare = Fraction(self.gpus[pool["gpu"]]["power"]["bare_w"])
        watts = gang * (max(w for _, w in phases) - bare)
        if self.objective == "epoch":
            seconds = Fraction(self.document["epoch_s"])
            joules = seconds * gang * (phases[0][1] - bare)
            for job in jobs:
                done = seconds / self.slowdown(job, jobs, pool, level)
                done -= self.migration_s(job) if self.is_moved(job, place) else 0
                joules -= self.credit_w(job) * self.speed(job, pool) * done
            return joules / KWH * self.per_kwh, watts
        kwh = gang * sum(s * (w + self.share_w(pool)) for s, w in phases) / KWH
        if self.objective == "run-to-completion":
            return kwh * self.per_kwh, watts
        hours = sum(
            Fraction(self.jobs[job]["training_epoch_s"])
            * self.slowdown(job, jobs, pool, level)
            / self.speed(job, pool)
            / 3600
            for job in jobs
        )
        weight = Fraction(self.document["energy_weight"])
        return weight * kwh + (1 - weight) * hours / len(self.jobs), watts

    def node(self, pool, number):
        """(cost of a node in use, its watts above sleep with bare GPUs only)."""
        power = pool["power"]
        asleep, base = Fraction(power.get("sleep_w", 0)), Fraction(power["base_w"])
        bare = Fraction(self.gpus[pool["gpu"]]["power"]["bare_w"])
        watts = base - asleep + pool["gpus"] * bare
        is_epoch = self.objective == "epoch"
        joules = Fraction(self.document["epoch_s"]) * watts if is_epoch else Fraction(0)
        if number >= self.awake(pool):
            waking = power.get("wake_w")
            waking = base if waking is None else Fraction(waking)
            joules += Fraction(power.get("wake_s", 0)) * (waking - asleep)
        factor = self.per_kwh
        if self.objective == "eaco":
            factor = Fraction(self.document["energy_weight"])
        return joules / KWH * factor, watts

    def numbers(self, jobs, pool, first):
        return range(first, first + max(1, self.size(jobs[0]) // pool["gpus"]))

    def floor_w(self):
        pools = self.nodes.values()
        return sum(pool["count"] * Fraction(pool["power"].get("sleep_w", 0)) for pool in pools)


def due_s(cluster, job):
    """When a job must have ended if its group ran on throughout, a hard limit; None for any time.

    Its deadline; but if it cannot keep that even alone, the earliest end that it can have alone.
    """
    due = cluster.jobs[job].get("deadline_s")
    if due is None:
        return None
    place = cluster.place_of.get(job)
    ends = []
    for pool in cluster.hosts(job):
        ends.append(cluster.work_s(job, pool, None))
        if place is not None and place["nodes"] == pool["id"]:
            ends.append(cluster.work_s(job, pool, place["id"]))
    return max(Fraction(due), min(ends))
