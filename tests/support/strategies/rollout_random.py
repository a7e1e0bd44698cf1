"""Random rollouts: scenarios, traces with failures, and policies that do whatever is allowed.

In a module of its own, so that policies and engines can be pickled.
"""

from __future__ import annotations

import hashlib
import io
import pickle
import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st

from optsched.rollout.engine.decision import Decision, InvalidDecision
from optsched.rollout.engine.state import RUNNING, TRIAL
from optsched.rollout.physics.cluster import Cluster
from optsched.rollout.physics.gpu_types import GpuTypes
from optsched.traces.trace import Failure
from tests.support.builders.rollout_parts import scenario, trace

REASONS = ("CPU out of memory", "Semantic error")
TIMES = st.sampled_from([0.0, 1.0, 2.5, 5.0, 10.0, 12.0, 20.0, 33.333333, 47.0])
SPREAD = {"servers": {"counts": [1, 3], "speed": [1.0, 0.6]}}
SMALL = st.sampled_from([0.0, 0.0, 1.0, 2.5, 5.0])


@st.composite
def models(draw, gpus):
    """Model "e" is elastic, "m" is not."""
    models = {"m": {"utilisation": 0.7, "memory_gb": draw(st.sampled_from([0.0, 9.0]))}}
    phases = []
    for _ in range(draw(st.integers(1, 3))):
        work = draw(st.sampled_from([1.0, 7.0]))
        if gpus > 1 and draw(st.booleans()):
            speedup = {"kind": "table", "gpus": [1, 2], "speedup": [1.0, 1.7]}
        else:
            speedup = {"kind": "amdahl", "parallel_fraction": 0.9, "max_gpus": min(4, gpus)}
        phases.append({"work_gpu_s": work, "speedup": speedup})
    models["e"] = {"phases": phases, "utilisation": 0.5}
    noise = draw(st.sampled_from([None, None, [0.0], [40.0], [1e6]]))
    if noise is not None:
        most = draw(st.sampled_from([None, 8, 20]))
        models["e"]["batches"] = {"batch_size": 8, "max_batch_size": most, "noise_scale": noise}
    if draw(st.booleans()):
        models["e"]["rescale_s"] = draw(SMALL)
    return models


@st.composite
def scenarios(draw, plain=False, types=False):
    """All that a scenario can have; plain: what policies that neither share nor rent know.

    Types: whether nodes have GPUs of several; with None some have, if it is not plain.
    """
    nodes, each = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    parts = {"models": draw(models(nodes * each))}
    parts |= draw(calls_and_costs()) | draw(fleets(nodes, each, plain)) | draw(measurements())
    parts |= draw(speeds(nodes * each))
    if "profile" in parts:
        parts["models"]["m"]["application_class"] = "A"
    # Policies that move jobs for ever may never let one end, so those of the registry are cut off.
    parts["end_s"] = draw(st.sampled_from([100.0, 300.0] if plain else [None, None, 30.0, 100.0]))
    if draw(st.integers(0, 4)) == 0 if types is None and not plain else types:
        return draw(typed(parts))
    if draw(st.integers(0, 3)) == 0:
        made = draw(groups(nodes, each))
        if made[0]["domain"] is not None:
            parts |= {"locality": (1.0, 1.2, 1.7)} if "locality" in parts else {}
            apart = {"counts": [1, 2], "speed": [1.0, 0.9]}
            parts |= {"spread": {**parts["spread"], "domains": apart}} if "spread" in parts else {}
        return scenario(made, None, **parts)
    return scenario(nodes, each, **parts)


@st.composite
def typed(draw, parts):
    """The same on nodes of two types or three, with what takes all GPUs for alike left out."""
    own = {key: value for key, value in parts.items() if key not in ("sharing", "rented", "power")}
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    kinds = ["a", "b", *draw(st.lists(st.sampled_from("abc"), max_size=2))]
    nodes = [
        {"count": 1, "gpus": size, "gpu_type": kind}
        for size, kind in zip(sizes, kinds, strict=False)
    ]
    known = sorted({node["gpu_type"] for node in nodes})
    own["reference_gpu_type"] = draw(st.sampled_from([None, *known]))
    reference = own["reference_gpu_type"] or "a"
    count = sum(node["gpus"] for node in nodes)
    if "profile" in own:
        own["profile"] |= {"gpus": [f"g{n}" for n in range(count)]}
        own["profile"]["slowdown"] = {"A": [1.0, 1.3, *[0.9] * count][:count]}
    if "quotas" in own:
        own["quotas"] = {"q": draw(st.integers(1, count))}
    if "downtime" in own:
        own["downtime"] = draw(st.lists(downtimes(len(nodes)), max_size=2))
    runs_on = [name for name in known if name == reference or draw(st.booleans())]
    if draw(st.booleans()):
        phases = draw(st.lists(phases_by_type(runs_on), min_size=1, max_size=3))
        own["models"]["e"] |= {"phases": phases}
        own["models"]["e"].pop("batches", None)
    else:
        own["models"]["e"]["gpu_speeds"] = {name: 0.5 + n for n, name in enumerate(runs_on)}
    if draw(st.booleans()):
        rest = [name for name in known if name not in runs_on] or known[-1:]
        own["models"]["m"]["gpu_speeds"] = {reference: 2.0} | dict.fromkeys(rest, draw(SPEEDS))
    return scenario(nodes, None, **own)


SPEEDS = st.sampled_from([0.3, 1.0, 2.0, 3.5])


@st.composite
def phases_by_type(draw, kinds):
    curves = [
        {
            "gpu_type": kind,
            "speedup": {"kind": "table", "gpus": [1, 2], "speedup": [draw(SPEEDS), draw(SPEEDS)]}
            if draw(st.booleans())
            else {"kind": "amdahl", "parallel_fraction": 0.9, "max_gpus": draw(st.integers(1, 4))},
        }
        for kind in kinds
    ]
    curves = [
        curve | {"speedup": curve["speedup"] | {"gpus": [1], "speedup": [1.5]}}
        if curve["speedup"]["kind"] == "table" and draw(st.booleans())
        else curve
        for curve in curves
    ]
    speedup = {"kind": "by-type", "curves": curves}
    return {"work_gpu_s": draw(st.sampled_from([1.0, 7.0])), "speedup": speedup}


@st.composite
def calls_and_costs(draw):
    """When the policy is called, and what its decisions and failures of jobs cost."""
    parts = {}
    parts["decide_on"] = draw(
        st.sampled_from([("arrival", "finish"), (), ("arrival",), ("finish",)])
    )
    parts["finish_at_epochs"] = draw(st.booleans())
    if draw(st.booleans()):
        parts["costs"] = {
            "start_s": draw(SMALL),
            "restore_s": draw(SMALL),
            "checkpoint_s": draw(SMALL),
            "rescale_s": draw(SMALL),
            "checkpoint_every_s": draw(st.sampled_from([None, 3.0, 10.0])),
            "stop_loses_work": draw(st.booleans()),
        }
    if draw(st.booleans()):
        limits = draw(st.dictionaries(st.sampled_from(REASONS), st.integers(0, 2)))
        parts["retries"] = {"delay_s": draw(SMALL), "limits": limits}
    return parts


@st.composite
def fleets(draw, nodes, each, plain):
    """Which GPUs there are when, and who may use them."""
    parts = {}
    if not plain and draw(st.booleans()):
        parts["sharing"] = {
            "max_jobs_per_gpu": draw(st.integers(1, 3)),
            "memory_gb": draw(st.sampled_from([None, 20.0])),
        }
    if not plain and draw(st.booleans()):
        parts["rented"] = {"provision_s": draw(SMALL), "at_start": draw(st.integers(0, nodes))}
    if "rented" not in parts and draw(st.integers(0, 2)) == 0:
        parts["downtime"] = draw(st.lists(downtimes(nodes), min_size=1, max_size=3))
    if draw(st.booleans()):
        parts["quotas"] = {"q": draw(st.integers(1, nodes * each))}
        parts["lends_quotas"] = draw(st.booleans())
    return parts


@st.composite
def measurements(draw):
    """What is accounted for, and over which time."""
    parts = {}
    if draw(st.booleans()):
        parts["power"] = {
            "gpu": {"bare_w": 30, "context_w": 36, "peak_w": 300},
            "node": {"base_w": 500, "sleep_w": 20},
            "idle_nodes": draw(st.sampled_from(["on", "sleep"])),
        }
    if draw(st.integers(0, 3)) == 0:
        parts["steady_s"] = tuple(sorted(draw(st.tuples(TIMES, TIMES))))
    return parts


@st.composite
def speeds(draw, count):
    """What makes jobs slower than in their traces, on so many GPUs."""
    parts = {}
    if draw(st.booleans()):
        parts["neighbours"] = {"shared_server": 0.77}
        parts["locality"] = (1.0, 1.7)
    if draw(st.integers(0, 3)) == 0:
        slow = st.lists(st.sampled_from([0.9, 1.0, 1.3]), min_size=count, max_size=count)
        parts["profile"] = {
            "gpus": [f"g{n}" for n in range(count)],
            "slowdown": {"A": draw(slow)},
            "kind": "persistent",
        }
    if draw(st.integers(0, 3)) == 0:
        parts["events"] = {"mean_between_s": 20, "mean_length_s": 7}
    if draw(st.booleans()):
        parts["spread"] = draw(st.sampled_from([{}, SPREAD]))
    if draw(st.integers(0, 3)) == 0:
        parts["recorded_speed"] = {"counts": [1, 3], "speed": [1.0, 0.7]}
    parts["reference_place"] = draw(st.sampled_from(["best", "best", "one-node", "recorded"]))
    return parts


@st.composite
def downtimes(draw, nodes):
    start = draw(TIMES)
    return {
        "nodes": sorted(draw(st.sets(st.integers(0, nodes - 1), min_size=1))),
        "from_s": start,
        "to_s": draw(st.sampled_from([None, start + 3.0, start + 12.0])),
        "kind": draw(st.sampled_from(["outage", "drain"])),
    }


@st.composite
def groups(draw, nodes, each):
    """Nodes of unlike sizes that have as many GPUs together, each in one of two domains or none."""
    sizes, left = [], nodes * each
    for n in range(nodes):
        size = left if n == nodes - 1 else draw(st.integers(1, left - (nodes - 1 - n)))
        sizes.append(size)
        left -= size
    domains = st.sampled_from("ab") if draw(st.booleans()) else st.none()
    return [{"count": 1, "gpus": size, "domain": draw(domains)} for size in sizes]


@st.composite
def traces(draw, world):
    count = draw(st.integers(0, 7))
    types = GpuTypes(world)
    sizes = st.integers(1, min(4, *(types.most_gpus(model) for model in ("", *world.models))))
    rows = [(draw(TIMES), draw(sizes), draw(TIMES)) for _ in range(count)]
    word = st.sampled_from(["passed", "killed", "failed"])
    after = st.sampled_from([0, 2_000_000, 7_000_001])
    failure = st.builds(Failure, st.sampled_from(REASONS), after)
    return trace(
        *rows,
        status=[draw(word) for _ in range(count)],
        model=[draw(st.sampled_from(["m", "e", "e", ""])) for _ in range(count)],
        queue=[draw(st.sampled_from(["q", "", "r"])) for _ in range(count)],
        failures=[draw(st.lists(failure, max_size=3)) for _ in range(count)],
    )


@dataclass(frozen=True)
class Call:
    now: int
    is_epoch: bool
    arrived: tuple
    ended: tuple
    failed: tuple
    advanced: tuple
    decision: Decision


class Watched:
    """Notes every call of a policy, checks the view, and tries what is not allowed."""

    name = "watched"

    def __init__(self, policy, every_epoch=False):
        self.policy, self.every_epoch = policy, every_epoch
        self.calls, self.given_up, self.world, self.tried = [], set(), None, 0

    def decide(self, view):
        check_view(view, self.world.state)
        decision = self.policy.decide(view)
        if self.world is not None:
            self.try_broken(view)
        news = (tuple(view.arrived), tuple(view.ended), tuple(view.failed), tuple(view.advanced))
        self.calls.append(Call(view.now_us, view.is_epoch, *news, decision))
        return decision

    def state(self):
        return {"draws": self.policy.random, "wild": self.policy.wild_calls, "up": self.given_up}

    def restore(self, state):
        self.policy.random, self.policy.wild_calls = state["draws"], state["wild"]
        self.given_up = state["up"]

    def retries(self, view, job, reason):
        assert view.failures(job)[-1] == reason
        if self.policy.random.random() < 0.2:
            self.given_up.add((job, len(view.failures(job))))
            return False
        return True

    def try_broken(self, view):
        before = digest(self.world)
        for rule, decision in broken_decisions(view, self.world.state):
            with pytest.raises(InvalidDecision, match=f"^{rule}: "):
                self.world.apply(decision)
            self.tried += 1
        assert digest(self.world) == before


class Observed(Watched):
    """Notes the calls of a policy of the registry."""

    def __init__(self, policy):
        super().__init__(policy, getattr(policy, "every_epoch", False))

    def try_broken(self, view):
        pass

    def retries(self, view, job, reason):
        asks = getattr(self.policy, "retries", None)
        if asks is None or asks(view, job, reason):
            return True
        self.given_up.add((job, len(view.failures(job))))
        return False


def digest(world):
    """A fingerprint of everything that a decision could change."""
    parts = (world.state, world.accounts, world.waiting, world.events, world.fleet)
    told = io.BytesIO()
    _Changing(told).dump([vars(part) for part in parts])
    return hashlib.sha256(told.getvalue()).hexdigest()


class _Changing(pickle.Pickler):
    """Leaves out the cluster: it never changes, but remembers what it was asked."""

    def persistent_id(self, part):
        return type(part).__name__ if isinstance(part, Cluster | GpuTypes) else None


def broken_decisions(view, state):
    """One decision for each rule that can be broken now; each is right but for that rule."""
    count, submitted = len(state.status), state.submitted
    yield "unknown-job", Decision(place={count: (0,)})
    yield "unknown-job", Decision(stop=(-1,))
    if submitted < count:
        yield "not-submitted", Decision(place={submitted: (0,)})
    pending, running = view.pending.tolist(), view.running.tolist()
    for job in range(submitted):
        if job not in pending and job not in running:
            yield "not-active", Decision(place={job: tuple(range(view.demand(job)))})
            break
    if pending:
        yield "not-running", Decision(stop=(pending[0],))
        yield "accepts-range", Decision(accepts={pending[0]: (0, 0)})
        yield from _broken_places(view, pending[0])
    for job in [job for job in running if state.status[job] == RUNNING][:1]:
        yield "repeated-job", Decision(stop=(job, job))
        yield "repeated-job", Decision(stop=(job,), place={job: view.gpus_of(job)})
        yield "not-waiting", Decision(pre_run={job: (0,)}, pre_run_us=1)
        yield "not-waiting", Decision(accepts={job: (1, 0)})
    most = view.cluster.nodes
    wrong = most + 1 if view.scenario.rented is not None else most
    yield "rent-range", Decision(rent=wrong)
    yield "rent-range", Decision(rent=-1)


def _broken_places(view, job):
    total, demand = view.cluster.gpus, view.demand(job)
    node_of = view.cluster.node_of
    kind = runs_on(view, job)[0]
    own = [gpu for gpu in range(total) if kind_at(view, gpu) == kind]
    usable = [gpu for gpu in own if view.ready[node_of[gpu]]]
    yield "unknown-gpu", Decision(place={job: (total,)})
    yield "unknown-gpu", Decision(place={job: (-1,)})
    yield "gang-size", Decision(place={job: ()})
    yield from _broken_types(view, job)
    for gpu in [gpu for gpu in own if gpu not in usable][:1]:
        yield "node-not-ready", Decision(place={job: (gpu,)})
    if usable:
        yield "repeated-gpu", Decision(place={job: (usable[0],) * 2})
        yield "pre-run-range", Decision(pre_run={job: usable[:1]})
    if len(usable) > 5 and demand != 6:
        yield "gang-size", Decision(place={job: usable[:6]})
    held = [gpu for gpu in usable if view.jobs_on(gpu)]
    chosen = (held + [gpu for gpu in usable if gpu not in held])[:demand]
    quota = view.scenario.quotas.get(view.queue(job), 1_000)
    quota = 1_000 if view.scenario.lends_quotas else quota
    fits_quota = demand + sum(
        len(view.gpus_of(other))
        for other in view.running.tolist()
        if view.queue(other) == view.queue(job)
    )
    if held and len(chosen) == demand and fits_quota <= quota:
        if view.scenario.sharing.max_jobs_per_gpu == 1:
            yield "overcommit", Decision(place={job: chosen})
        elif len(view.jobs_on(held[0])) == view.scenario.sharing.max_jobs_per_gpu:
            yield "sharing-limit", Decision(place={job: chosen})
    free = [gpu for gpu in usable if not view.jobs_on(gpu)]
    if fits_quota > quota and len(free) >= demand:
        yield "quota", Decision(place={job: free[:demand]})


def _broken_types(view, job):
    node_of, gpus = view.cluster.node_of, range(view.cluster.gpus)
    kinds = {gpu: kind_at(view, gpu) for gpu in gpus if view.ready[node_of[gpu]]}
    first = {kind: gpu for gpu, kind in reversed(kinds.items())}
    if len(first) > 1:
        yield "gpu-type", Decision(place={job: list(first.values())[:2]})
    for kind in [kind for kind in first if kind not in runs_on(view, job)][:1]:
        yield "gpu-type", Decision(place={job: (first[kind],)})
        yield "gpu-type", Decision(pre_run={job: (first[kind],)}, pre_run_us=1)


def check_view(view, state):
    """The view tells what the state holds, in arrays that cannot be written to."""
    free = [len(view.free_gpus(node)) for node in range(view.cluster.nodes)]
    assert view.free.tolist() == free
    pending, running = view.pending, view.running
    assert not pending.flags.writeable
    assert not view.free.flags.writeable
    assert list(pending) == sorted(set(pending.tolist()))
    assert not set(pending.tolist()) & set(running.tolist())
    for job in running.tolist():
        assert view.gpus_of(job)
        assert view.waited_us(job) == 0
        assert all(job in view.jobs_on(gpu) for gpu in view.gpus_of(job))
    active = pending.tolist() + running.tolist()
    assert np.all(view.attained_gpu_us(active) >= view.attained_us(active))
    assert len(view.remaining_us(active)) == len(active)
    if state.submitted < len(state.status):
        with pytest.raises(LookupError):
            view.demand(state.submitted)


class Anything:
    """Starts, moves, resizes, stops, tries and rents at random; calm after so many calls."""

    def __init__(self, seed, wild_calls):
        self.random = random.Random(seed)
        self.wild_calls = wild_calls

    def decide(self, view):
        self.wild_calls -= 1
        wild = self.wild_calls >= 0
        plan = _Plan(view, self.random)
        for job in view.running.tolist():
            if wild and self.random.random() < 0.3:
                plan.change(job)
        for job in view.pending.tolist():
            if not wild or self.random.random() < 0.7:
                plan.start(job, wild)
        return plan.decision(wild)


def runs_on(view, job):
    """The types that a job may have, by the scenario."""
    model = view.scenario.models.get(view.model(job))
    kinds = [kind_at(view, gpu) for gpu in range(view.cluster.gpus)]
    by_type = [] if model is None or not model.phases else [model.phases[0].speedup]
    named = [c.gpu_type for s in by_type if s.kind == "by-type" for c in s.curves]
    allowed = named or list(getattr(model, "gpu_speeds", {})) or kinds
    return [kind for kind in dict.fromkeys(kinds) if kind in allowed]


def kind_at(view, gpu):
    """The type of a GPU."""
    groups = view.scenario.nodes
    if isinstance(groups, int):
        return "gpu"
    kinds = [group.gpu_type or "gpu" for group in groups for _ in range(group.count)]
    return kinds[view.cluster.node_of[gpu]]


def widths_on(view, job, kind):
    """The widths that the phases of a job have on a type."""
    phases = view.scenario.models[view.model(job)].phases
    return {k for phase in phases for k in phase.on(kind).curve.widths}


class _Plan:
    """A decision in the making, with the load of every GPU as it would be."""

    def __init__(self, view, draws):
        self.view, self.draws = view, draws
        self.on = {gpu: len(view.jobs_on(gpu)) for gpu in range(view.cluster.gpus)}
        ready, node_of = view.ready, view.cluster.node_of
        self.usable = [gpu for gpu in self.on if ready[node_of[gpu]]]
        self.held = {}
        for job in view.running.tolist():
            self.hold(job, len(view.gpus_of(job)))
        self.place, self.stop, self.trials = {}, [], {}

    def hold(self, job, gpus):
        queue = self.view.queue(job)
        self.held[queue] = self.held.get(queue, 0) + gpus

    def change(self, job):
        gpus = self.view.gpus_of(job)
        if self.view_is_trial(job):
            return
        for gpu in gpus:
            self.on[gpu] -= 1
        self.hold(job, -len(gpus))
        chosen = self.choose(job) if self.draws.random() < 0.7 else None
        if chosen is None:
            self.stop.append(job)
        else:
            self.put(job, chosen)

    def view_is_trial(self, job):
        return self.view._state.status[job] == TRIAL

    def start(self, job, wild):
        if wild and self.draws.random() < 0.15:
            one = [gpu for gpu in self.usable if not self.on[gpu]]
            one = [gpu for gpu in one if kind_at(self.view, gpu) in runs_on(self.view, job)]
            if one and self.within_quota(job, 1) and self.fits(one[:1], job):
                self.trials[job] = (one[0],)
                self.on[one[0]] += 1
                self.hold(job, 1)
            return
        chosen = self.choose(job)
        if chosen is not None:
            self.put(job, chosen)

    def choose(self, job):
        width = self.view.demand(job)
        if self.view.model(job) == "e" and self.draws.random() < 0.5:
            phases = self.view.scenario.models["e"].phases
            width = self.draws.choice([k for p in phases for c in p.curves for k in c.widths])
        most = self.view.scenario.sharing.max_jobs_per_gpu
        open_gpus = [gpu for gpu in self.usable if self.on[gpu] < most]
        if len(self.view.cluster.types.names) > 1:
            kind = self.draws.choice(runs_on(self.view, job))
            open_gpus = [gpu for gpu in open_gpus if kind_at(self.view, gpu) == kind]
            if width != self.view.demand(job) and width not in widths_on(self.view, job, kind):
                return None
        if len(open_gpus) < width or not self.within_quota(job, width):
            return None
        chosen = self.draws.sample(open_gpus, width)
        return chosen if self.fits(chosen, job) else None

    def fits(self, gpus, job):
        """Stay away from the memory limit: two jobs of 9 GB fit into 20 GB, three do not."""
        limit = self.view.scenario.sharing.memory_gb
        return limit is None or all(self.on[gpu] < 2 for gpu in gpus)

    def within_quota(self, job, width):
        queue = self.view.queue(job)
        quota = self.view.scenario.quotas.get(queue)
        lends = self.view.scenario.lends_quotas
        return quota is None or lends or self.held.get(queue, 0) + width <= quota

    def put(self, job, gpus):
        self.place[job] = gpus
        self.hold(job, len(gpus))
        for gpu in gpus:
            self.on[gpu] += 1

    def decision(self, wild):
        rent = None
        if self.view.scenario.rented is not None:
            nodes = self.view.cluster.nodes
            rent = self.draws.randint(0, nodes) if wild else nodes
        return Decision(
            place=self.place,
            stop=self.stop,
            rent=rent,
            pre_run=self.trials,
            pre_run_us=self.draws.choice([1, 2_000_000, 9_000_000]),
            accepts=self.accepts() if wild else {},
        )

    def accepts(self):
        """Say of some of the jobs that are left waiting which places they would take."""
        left = [job for job in self.view.pending.tolist() if job not in (*self.place, *self.trials)]
        chosen = [job for job in (*left, *self.stop) if self.draws.random() < 0.5]
        return {job: (self.draws.randint(1, 4), self.draws.randint(0, 3)) for job in chosen}
