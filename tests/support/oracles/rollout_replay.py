"""A second engine, for tests: slow, eager and plain.

It is given what a policy decided, and when, and computes from the trace and the scenario alone what
must have happened. Every job is advanced at every moment, every rate is asked for again, waiting is
split job by job: nothing is lazy, versioned or incremental. Of the engine it shares only the
physics (rates, works, watts) and the numbering of GPUs; what regimes lose is worked out again.
Work is counted in billionths of a GPU-microsecond as it is done, and taken back as it is undone.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from optsched.rollout.engine.state import DOWN, DRAINING, OFF, READY, STARTING
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.physics.physics import Physics
from optsched.traces.failure_reasons import SHOWN_BY_ONE_GPU
from optsched.traces.trace import STATUSES
from tests.support.oracles.rollout_regimes import CAUSES, PPB, busy_of, kind_of_node, losses

US = 1_000_000
KINDS = ("back_off", "fair_share", "capacity", "fragmentation", "order")
FIELDS = (
    *("first_start_us", "end_us", "outcome", "running_us", "waiting_us"),
    *(f"{kind}_{what}" for kind in KINDS for what in ("us", "delays")),
    *("allocated_gpu_us", "useful_gpu_us", "redone_gpu_us"),
    *("pre_run_gpu_us", "overhead_gpu_us", "effective_gpu_us"),
    *(f"{cause}_loss_gpu_us" for cause in CAUSES),
    *("attempts", "preemptions", "migrations", "rescales", "failures", "outages"),
)
UNDONE = ("useful", *(f"{cause}_loss" for cause in CAUSES))
PARTS = (*UNDONE, "redone", "pre_run", "overhead")
STATES = {"off": OFF, "starting": STARTING, "ready": READY, "drain": DRAINING, "outage": DOWN}


def us(seconds):
    return round(seconds * US)


class Job:
    def __init__(self, number, works):
        self.number, self.works = number, works
        self.left, self.phase = list(works), 0
        self.saved = list(works)
        self.where = "unseen"
        self.gpus = ()
        self.rate = self.ready_at = self.attempt_us = self.since_save = self.unsaved_gpu = 0
        self.exact, self.unsaved = dict.fromkeys(PARTS, 0), dict.fromkeys(UNDONE, 0)
        self.at_work, self.unused, self.losing = 0, 0, {}
        self.trial_end = self.back_at = None
        self.was_stopped = False
        self.accepts, self.wait = None, dict.fromkeys(KINDS, 0)
        self.intervals = []
        for field in FIELDS:
            setattr(self, field, 0)
        self.first_start_us = self.end_us = self.outcome = -1


def usd_per_us_of(scenario):
    """What each node costs in a microsecond, where groups of nodes have prices; else nothing."""
    groups = [] if isinstance(scenario.nodes, int) else scenario.nodes or []
    if not any(group.usd_per_gpu_h for group in groups):
        return []
    prices = [(group.usd_per_gpu_h * group.gpus, group.count) for group in groups]
    return [usd / 3600 / US for usd, count in prices for _ in range(count)]


class Replay:
    """Replays a list of calls; see `Watched` for what a call holds."""

    def __init__(self, scenario, trace, seed, calls, given_up, every_epoch, idle_epochs):
        self.scenario, self.trace = scenario, trace
        self.calls, self.given_up = list(calls), given_up
        self.every_epoch, self.idle_limit = every_epoch, idle_epochs
        self.cluster = Cluster(scenario)
        self.physics = Physics(scenario, self.cluster, trace, seed)
        self.jobs = [Job(n, self.physics.phases(n)) for n in range(len(trace))]
        rented = scenario.rented
        first = self.cluster.nodes if rented is None else rented.at_start
        self.nodes = ["ready" if n < first else "off" for n in range(self.cluster.nodes)]
        self.node_at, self.closed_at = {}, [-1] * self.cluster.nodes
        self.now = self.events = self.idle = 0
        self.busy = self.available = self.spent = 0
        self.joules = self.usd = 0.0
        self.usd_per_us = usd_per_us_of(scenario)
        self.epoch = us(scenario.epoch_s)
        self.last_epoch = -1
        self.changed = self.triggered = self.starved = self.is_begun = False
        submit = trace.submit_us.tolist() or [0]
        given = scenario.steady_s
        self.window = (submit[0], submit[-1]) if given is None else tuple(map(us, given))
        self.counted = {}
        self.quiet = None  # what was so when the last thing happened
        self.news = {"arrived": [], "ended": [], "failed": [], "advanced": []}

    # --- the world as the physics sees it -----------------------------------------------------

    def view(self):
        on = [[] for _ in range(self.cluster.gpus)]
        for job in self.jobs:
            for gpu in job.gpus:
                on[gpu].append(job.number)
        return SimpleNamespace(
            gpus_of=[job.gpus for job in self.jobs],
            jobs_on=[tuple(jobs) for jobs in on],
            phase=[job.phase for job in self.jobs],
            node_state=[STATES[s] for s in self.nodes],
        )

    def active(self):
        return [job for job in self.jobs if job.where not in ("unseen", "ended")]

    def running(self):
        return [job for job in self.jobs if job.where == "running"]

    def free(self):
        used = {gpu for job in self.jobs for gpu in job.gpus}
        node_of = self.cluster.node_of
        return sum(
            gpu not in used and self.nodes[node_of[gpu]] == "ready"
            for gpu in range(self.cluster.gpus)
        )

    # --- time ---------------------------------------------------------------------------------

    def own_event(self, job):
        """When and how a running job's present stretch ends."""
        begin = max(self.now, job.ready_at)
        done = begin + -(-job.left[job.phase] // job.rate)
        failures = self.trace.failures.get(job.number, ())
        if job.failures < len(failures):
            at = begin + failures[job.failures].run_us - job.attempt_us
            if at < done:
                return at, "failure"
        if self.scenario.finish_at_epochs and not sum(job.left[job.phase + 1 :]):
            done = -(-done // self.epoch) * self.epoch
        return done, "finish"

    def pass_time(self, until):
        for moment in self.window:
            if self.now <= moment <= until and moment not in self.counted:
                self.pass_stretch(moment)
                self.counted[moment] = self.so_far()
        self.pass_stretch(until)

    def so_far(self):
        effective = sum(self.computed(job) for job in self.jobs)
        waiting = sum(job.waiting_us for job in self.jobs)
        whole = (self.now, self.busy, self.available, self.spent, effective, waiting)
        joules = pytest.approx(self.joules, rel=1e-9, abs=1e-9)
        return (*whole, joules, pytest.approx(self.usd, rel=1e-6, abs=1e-9))

    def counted_in_window(self):
        """What was counted at the ends of the window, or when the rollout ended before."""
        seen = (self.counted.get(moment) for moment in self.window)
        return tuple(self.so_far() if c is None or c[0] > self.now else c for c in seen)

    def computed(self, job):
        computing = job.at_work - -(-job.unused // PPB)
        return int(max(0, computing) * busy_of(self, job.number))

    def pass_stretch(self, until):
        span = until - self.now
        state, free = self.view(), self.free()
        size = self.cluster.size
        self.busy += span * sum(bool(jobs) for jobs in state.jobs_on)
        self.available += span * sum(size[n] for n, s in enumerate(self.nodes) if s == "ready")
        held = {gpu for job in self.jobs for gpu in job.gpus}
        self.available += span * sum(self.nodes[self.cluster.node_of[g]] == "drain" for g in held)
        self.spent += span * sum(size[n] for n, s in enumerate(self.nodes) if s != "off")
        watts = sum(
            self.physics.node_watts(n, state)
            for n, s in enumerate(self.nodes)
            if s not in ("off", "outage")
        )
        self.joules += watts * span / US
        paid = (n for n, s in enumerate(self.nodes) if s != "off")
        self.usd += span * sum(self.usd_per_us[n] for n in paid) if self.usd_per_us else 0.0
        for job in self.active():
            if job.gpus:
                self.hold(job, until)
            else:
                self.wait(job, span, free, state)
        self.now = until

    def wait(self, job, span, free, state):
        kind = self.why(job, free, state)
        job.waiting_us += span
        job.wait[kind] += span
        setattr(job, f"{kind}_us", getattr(job, f"{kind}_us") + span)

    def why(self, job, free, state):
        """What would let a job start now, by the definitions of docs/rollouts.md."""
        if job.where == "delayed":
            return "back_off"
        size, queue = int(self.trace.gpus[job.number]), self.trace.queue[job.number]
        held = sum(len(j.gpus) for j in self.jobs if self.trace.queue[j.number] == queue)
        may_borrow = self.scenario.lends_quotas and size <= free
        if held + size > self.scenario.quotas.get(queue, held + size) and not may_borrow:
            return "fair_share"
        if size > free:
            return "capacity"
        return (
            "order" if job.accepts is None or self.has_place(job, size, state) else "fragmentation"
        )

    def has_place(self, job, size, state):
        most_nodes, level = job.accepts
        free = [0] * self.cluster.nodes
        for gpu, node in enumerate(self.cluster.node_of):
            free[node] += not state.jobs_on[gpu] and self.nodes[node] == "ready"
        for domain in self.cluster.domains(min(level, len(self.cluster.levels) - 1)):
            if sum(sorted((free[node] for node in domain), reverse=True)[:most_nodes]) >= size:
                return True
        return False

    def note_delay(self, job):
        """Count the wait for a start, if it was a delay, and begin with the next one."""
        if sum(job.wait.values()) > 60 * US:
            longest = max(KINDS, key=lambda kind: (job.wait[kind], -KINDS.index(kind)))
            field = f"{longest}_delays"
            setattr(job, field, getattr(job, field) + 1)
        job.wait = dict.fromkeys(KINDS, 0)

    def hold(self, job, until):
        span, width = until - self.now, len(job.gpus)
        job.running_us += span
        job.allocated_gpu_us += width * span
        rest = 0 if job.where == "trial" else max(0, until - max(self.now, job.ready_at))
        if rest:
            rest = min(rest, -(-job.left[job.phase] // job.rate))
        idle = "pre_run" if job.where == "trial" else "overhead"
        job.exact[idle] += width * (span - rest) * PPB
        job.at_work += width * rest
        every = self.scenario.costs.checkpoint_every_s
        job.attempt_us += rest
        while rest:
            piece = rest if every is None else min(rest, us(every) - job.since_save)
            self.work(job, piece)
            job.since_save += piece
            job.unsaved_gpu += width * piece
            rest -= piece
            if every is not None and job.since_save == us(every):
                self.save(job)

    def work(self, job, piece):
        """Let a job get on for some time, in which nothing changes."""
        before = job.left[job.phase]
        job.left[job.phase] = max(0, before - job.rate * piece)
        demand = int(self.trace.gpus[job.number])
        done = {"useful": demand * (before - job.left[job.phase])}
        done |= {f"{cause}_loss": job.losing[cause] * piece for cause in CAUSES}
        job.unused += job.losing["unused"] * piece
        for part, value in done.items():
            job.exact[part] += value
            job.unsaved[part] += value
        # The work of the last microsecond may be less than what it could have done.
        rest = len(job.gpus) * piece * PPB - sum(done.values())
        assert 0 <= rest < demand * job.rate
        job.exact["overhead"] += rest

    def save(self, job):
        if self.scenario.costs.checkpoint_every_s is None:
            return
        job.saved, job.since_save, job.unsaved_gpu = list(job.left), 0, 0
        job.unsaved = dict.fromkeys(UNDONE, 0)

    def lose(self, job):
        job.exact["redone"] += job.unsaved_gpu * PPB
        job.exact["overhead"] -= job.unsaved_gpu * PPB - sum(job.unsaved.values())
        for part in UNDONE:
            job.exact[part] -= job.unsaved[part]
        job.unsaved = dict.fromkeys(UNDONE, 0)
        job.left, job.since_save, job.unsaved_gpu = list(job.saved), 0, 0
        job.phase = next((p for p in range(job.phase) if job.left[p]), job.phase)

    # --- moments ------------------------------------------------------------------------------

    def wants_epoch(self):
        waits = [job for job in self.active() if job.where != "delayed"]
        return self.changed or (self.every_epoch and bool(waits))

    def next_time(self):
        if all(job.where == "ended" for job in self.jobs):
            return None
        times = [self.own_event(job)[0] for job in self.running()]
        times += [job.trial_end for job in self.jobs if job.where == "trial"]
        times += [job.back_at for job in self.jobs if job.where == "delayed"]
        times += self.node_at.values()
        times += [moment for moment in self.closings() if moment > self.now or not self.is_begun]
        unseen = [job.number for job in self.jobs if job.where == "unseen"]
        times += [int(self.trace.submit_us[n]) for n in unseen]
        if self.wants_epoch() and (times or self.idle < self.idle_limit):
            times.append((max(self.now, self.last_epoch) // self.epoch + 1) * self.epoch)
        if times and self.physics.transients is not None:
            times += self.physics.transients.until_us
        return min(times, default=None)

    def run(self):
        end = None if self.scenario.end_s is None else us(self.scenario.end_s)
        while True:
            time = self.next_time()
            if time is None or (end is not None and time > end):
                break
            assert time >= self.now
            self.is_begun = True
            due = {job.number: self.own_event(job) for job in self.running()}
            self.pass_time(time)
            self.some_news = False
            self.deliver({n: kind for n, (at, kind) in due.items() if at == time})
            if self.some_news:
                self.happens()
            is_epoch = time % self.epoch == 0 and time > self.last_epoch
            if self.triggered or (is_epoch and self.wants_epoch()):
                self.call(is_epoch)
            self.ask_rates()
            self.check()
        if any(job.where != "ended" for job in self.jobs):
            self.starved = time is None
            if end is not None:
                self.pass_time(end)
            elif self.quiet is not None:
                self.go_back()
        assert not self.calls, "more calls than there should be"
        return self

    def happens(self):
        """Remember what is so just after something happened: an event, or a policy's change."""
        whole = ("now", "events", "busy", "available", "spent", "joules", "usd")
        self.quiet = {key: getattr(self, key) for key in whole}
        waits = ("waiting_us", *(f"{kind}_us" for kind in KINDS))
        self.waits = [{key: getattr(job, key) for key in waits} for job in self.jobs]

    def go_back(self):
        vars(self).update(self.quiet)
        for job, waits in zip(self.jobs, self.waits, strict=True):
            assert not job.gpus
            vars(job).update(waits)

    def deliver(self, due):
        decide_on = self.scenario.decide_on
        trials = [j for j in self.jobs if j.where == "trial" and j.trial_end == self.now]
        for number, kind in due.items():
            if kind == "finish":
                self.finish(self.jobs[number])
                self.happened("finish" in decide_on)
        for job in trials:
            if not job.trial_fails:
                job.gpus = self.release(job)
                self.enter(job)
                self.happened("finish" in decide_on or "arrival" in decide_on)
        for job in trials:
            if job.trial_fails:
                job.attempts += 1
                self.fail(job)
                self.happened("finish" in decide_on)
        for number, kind in due.items():
            if kind == "failure":
                self.fail(self.jobs[number])
                self.happened("finish" in decide_on)
        for node in [n for n, at in self.node_at.items() if at == self.now]:
            del self.node_at[node]
            self.nodes[node] = "ready"
            self.happened("arrival" in decide_on)
        self.close_and_open()
        self.trouble()
        for job in self.jobs:
            came = job.where == "unseen" and self.trace.submit_us[job.number] == self.now
            if came or (job.where == "delayed" and job.back_at == self.now):
                self.enter(job)
                self.happened("arrival" in decide_on)

    def trouble(self):
        transients = self.physics.transients
        for node in range(self.cluster.nodes if transients is not None else 0):
            while transients.until_us[node] == self.now:
                transients.change(node)
                self.events += 1

    def closings(self):
        """When some node is closed or opened; a moment for each node."""
        for entry in self.scenario.downtime:
            for _ in entry.nodes:
                yield us(entry.from_s)
                if entry.to_s is not None:
                    yield us(entry.to_s)

    def close_and_open(self):
        for node in range(self.cluster.nodes):
            mine = [entry for entry in self.scenario.downtime if node in entry.nodes]
            ends = {us(e.from_s) for e in mine} | {us(e.to_s) for e in mine if e.to_s is not None}
            if self.now not in ends or self.closed_at[node] == self.now:
                continue  # a moment may come again, when what has just begun takes no time
            self.closed_at[node] = self.now
            begun = [entry for entry in mine if us(entry.from_s) <= self.now]
            kinds = {e.kind for e in begun if e.to_s is None or self.now < us(e.to_s)}
            status = max(kinds, default="ready", key=["drain", "outage"].index)
            is_new = status != self.nodes[node]
            node_of = self.cluster.node_of
            struck = [job for job in self.jobs if node in {node_of[gpu] for gpu in job.gpus}]
            self.nodes[node] = status
            for job in struck if is_new and status == "outage" else ():
                self.release(job)
                self.lose(job)
                job.outages += job.where == "running"
                job.where, job.back_at = "delayed", self.now + us(self.scenario.retries.delay_s)
                self.news["failed"].append(job.number)
            decide_on = self.scenario.decide_on
            is_trigger = is_new and status == "ready" and "arrival" in decide_on
            is_hit = is_new and status == "outage" and struck and "finish" in decide_on
            self.happened(bool(is_trigger or is_hit))

    def happened(self, is_trigger):
        self.events += 1
        self.changed = self.some_news = True
        self.triggered |= is_trigger

    def enter(self, job):
        job.where, job.accepts = "waiting", None
        self.news["arrived"].append(job.number)

    def release(self, job):
        job.intervals.append((job.number, job.held_from, self.now, job.gpus))
        job.gpus = ()
        return ()

    def finish(self, job):
        assert job.left[job.phase] == 0
        if sum(job.left[job.phase + 1 :]):
            job.phase += 1
            self.news["advanced"].append(job.number)
            return
        status = STATUSES[self.trace.status[job.number]]
        if status == "failed" and job.failures < len(self.trace.failures.get(job.number, ())):
            status = "passed"
        self.end(job, status)

    def end(self, job, status):
        if job.gpus:
            self.release(job)
        job.where, job.end_us, job.outcome = "ended", self.now, STATUSES.index(status)
        self.news["ended"].append(job.number)

    def fail(self, job):
        self.release(job)
        self.lose(job)
        job.attempt_us = 0
        job.failures += 1
        self.news["failed"].append(job.number)
        failures = self.trace.failures[job.number]
        reason = failures[job.failures - 1].reason
        same = sum(f.reason == reason for f in failures[: job.failures])
        is_last = job.failures == len(failures)
        if (
            (is_last and STATUSES[self.trace.status[job.number]] == "failed")
            or same > (self.scenario.retries.limits.get(reason, 10**9))
            or (job.number, job.failures) in self.given_up
        ):
            self.end(job, "failed")
        else:
            job.where, job.back_at = "delayed", self.now + us(self.scenario.retries.delay_s)
            if job.back_at == self.now:
                return

    # --- decisions ----------------------------------------------------------------------------

    def call(self, is_epoch):
        call = self.calls.pop(0)
        assert (call.now, call.is_epoch) == (self.now, is_epoch)
        for key, jobs in self.news.items():
            assert sorted(getattr(call, key)) == sorted(jobs), key
        changes = self.apply(call.decision)
        if changes or self.is_told:
            self.happens()
        self.idle = 0 if self.changed or changes or self.is_told else self.idle + 1
        if is_epoch:
            self.last_epoch = self.now
        self.changed = self.triggered = False
        self.news = {key: [] for key in self.news}

    def apply(self, decision):
        changes = 0
        for number in decision.stop:
            job = self.jobs[number]
            self.release(job)
            job.preemptions += 1
            (self.lose if self.scenario.costs.stop_loses_work else self.save)(job)
            job.where, job.was_stopped, job.accepts = "waiting", True, None
            changes += 1
        for number, gpus in decision.place.items():
            changes += self.put(self.jobs[number], tuple(sorted(gpus)))
        for number, gpus in decision.pre_run.items():
            job = self.jobs[number]
            self.occupy(job, tuple(gpus), 0)
            job.where = "trial"
            self.note_delay(job)
            failures = self.trace.failures.get(number, ())
            left = decision.pre_run_us + 1
            if job.failures < len(failures):
                due = failures[job.failures]
                left = due.run_us - job.attempt_us if due.reason in SHOWN_BY_ONE_GPU else left
            job.trial_fails = left <= decision.pre_run_us
            job.trial_end = self.now + min(left, decision.pre_run_us)
            changes += 1
        self.is_told = any([self.accept(self.jobs[n], *p) for n, p in decision.accepts.items()])
        return changes + self.rent(decision.rent)

    def accept(self, job, most_nodes, level):
        size, top = int(self.trace.gpus[job.number]), len(self.cluster.levels) - 1
        is_any = most_nodes >= min(size, self.cluster.nodes) and level >= top
        before, job.accepts = job.accepts, None if is_any else (most_nodes, min(level, top))
        return job.accepts != before

    def put(self, job, gpus):
        if gpus == job.gpus:
            return 0
        costs = self.scenario.costs
        model = self.scenario.models.get(self.trace.model[job.number])
        own = None if model is None or model.rescale_s is None else us(model.rescale_s)
        if job.where == "waiting":
            first = job.attempts == 0
            overhead = us(costs.start_s if first else costs.restore_s) if own is None else own
            overhead += us(costs.checkpoint_s) if job.was_stopped else 0
            job.was_stopped = False
            job.attempts += 1
            self.note_delay(job)
        elif len(gpus) == len(job.gpus):
            job.migrations += 1
            (self.lose if costs.stop_loses_work else self.save)(job)
            overhead = us(costs.restore_s) + us(costs.checkpoint_s)
        else:
            job.rescales += 1
            self.save(job)
            overhead = us(costs.rescale_s) if own is None else own
        if job.gpus:
            self.release(job)
        self.occupy(job, gpus, overhead)
        job.where = "running"
        return 1

    def occupy(self, job, gpus, overhead):
        if job.first_start_us < 0:
            job.first_start_us = self.now
        job.gpus, job.held_from = gpus, self.now
        job.ready_at = self.now + overhead

    def rent(self, wanted):
        if wanted is None:
            return 0
        paid = [n for n, status in enumerate(self.nodes) if status != "off"]
        before = len(paid)
        off = [n for n, status in enumerate(self.nodes) if status == "off"]
        for node in off[: max(0, wanted - len(paid))]:
            self.nodes[node] = "starting"
            self.node_at[node] = self.now + us(self.scenario.rented.provision_s)
        used = {self.cluster.node_of[gpu] for job in self.jobs for gpu in job.gpus}
        spare = [n for n in reversed(paid) if self.nodes[n] == "starting"]
        spare += [n for n in reversed(paid) if self.nodes[n] == "ready" and n not in used]
        for node in spare[: max(0, len(paid) - wanted)]:
            self.nodes[node] = "off"
            self.node_at.pop(node, None)
        return abs(sum(status != "off" for status in self.nodes) - before)

    def ask_rates(self):
        state = self.view()
        for job in self.running():
            job.rate = self.physics.rate(job.number, state)
            job.losing = losses(self, job.number, state, job.rate)

    # --- what must always hold ----------------------------------------------------------------

    def check(self):
        state = self.view()
        most = self.scenario.sharing.max_jobs_per_gpu
        node_of = self.cluster.node_of
        assert all(len(jobs) <= most for jobs in state.jobs_on)
        for job in self.jobs:
            assert bool(job.gpus) == (job.where in ("running", "trial"))
            assert len(set(job.gpus)) == len(job.gpus)
            assert all(self.nodes[node_of[gpu]] in ("ready", "drain") for gpu in job.gpus)
            if job.where == "running" and job.gpus:
                assert len(job.gpus) in self.widths(job)
                self.check_type(job)
                assert self.physics.fits(job.number, job.gpus, state) is None
            if job.where == "trial":
                assert len(job.gpus) == 1
            assert all(0 <= left <= work for left, work in zip(job.left, job.works, strict=True))
        for queue, quota in self.scenario.quotas.items():
            jobs = [job for job in self.jobs if self.trace.queue[job.number] == queue]
            assert self.scenario.lends_quotas or sum(len(job.gpus) for job in jobs) <= quota

    def widths(self, job):
        model = self.scenario.models.get(self.trace.model[job.number])
        phases = () if model is None else model.phases
        curves = [getattr(p.speedup, "curves", [p]) for p in phases]
        kind = kind_of_node(self, self.cluster.node_of[job.gpus[0]])
        own = [c for of_phase in curves for c in of_phase if getattr(c, "gpu_type", kind) == kind]
        assert len(own) == len(phases)  # on a type of which its model has nothing, it cannot run
        return {int(self.trace.gpus[job.number])}.union(*(c.speedup.widths for c in own))

    def check_type(self, job):
        kinds = {kind_of_node(self, self.cluster.node_of[gpu]) for gpu in job.gpus}
        model = self.scenario.models.get(self.trace.model[job.number])
        assert len(kinds) == 1
        assert model is None or not model.gpu_speeds or kinds <= set(model.gpu_speeds)

    def jobs_table(self):
        for job in self.jobs:
            total, told = 0, 0
            for part in PARTS:
                total += job.exact[part]
                setattr(job, f"{part}_gpu_us", total // PPB - told)
                told = total // PPB
            assert total == job.allocated_gpu_us * PPB
            job.effective_gpu_us = self.computed(job)
        return {field: [getattr(job, field) for job in self.jobs] for field in FIELDS}

    def intervals(self):
        done = [interval for job in self.jobs for interval in job.intervals]
        now = [(job.number, job.held_from, self.now, job.gpus) for job in self.jobs if job.gpus]
        return sorted(done + now)
