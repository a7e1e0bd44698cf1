"""What a policy must keep to: each check runs it in a world, and says what is wrong and what to do.

A check returns nothing, or raises `NotSo`; `NotTried` says why it cannot be made.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.cluster.profile import Profile
from optsched.rollout.checkpoints.checkpoint import why_not_saved
from optsched.rollout.checkpoints.plain_data import of_json
from optsched.rollout.engine.live_view import NEVER
from optsched.rollout.physics.beliefs import believed
from optsched.rollout.registry import make
from optsched.rollout.scenario import Model
from optsched.rollout.scenario_parts import Beliefs
from optsched.testing.runs import SEED, engine_of, first_difference, reference, run
from optsched.testing.small_worlds import bundled_worlds
from optsched.traces.trace import Failure

if TYPE_CHECKING:
    from optsched.rollout.registry import PolicyLike
    from optsched.rollout.scenario import Scenario
    from optsched.testing.runs import Run
    from optsched.testing.small_worlds import World
    from optsched.traces.trace import Trace

CUTS = (0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
"""Shares of the jobs after whose submission the future is changed."""
SLOW = "slow"
"""A class of applications to which GPUs differ."""
STOPS = 6
"""How often a rollout is interrupted."""


class NotSo(AssertionError):
    """A policy does not keep to what a check asks for."""


class NotTried(Exception):
    """A check cannot be made of a policy; no fault of it."""


def check_same_twice(policy: PolicyLike, world: World, base: Run) -> None:
    """Check that the same seed gives the same decisions."""
    moment = first_difference(base.log, run(engine_of(policy, world)).log)
    if moment is not None:
        raise NotSo(
            f"a second rollout with the same seed decided otherwise at {_s(moment)}: draw only "
            "from numpy.random.default_rng(seed), of the parameter seed; keep nothing in classes "
            "or modules, and ask no clock"
        )


def check_order_of_names(policy: PolicyLike, world: World, base: Run) -> None:
    """Check that nothing depends on how Python orders sets of text, or a scenario its models."""
    scenario = world.scenario
    turned = {key: dict(reversed(getattr(scenario, key).items())) for key in ("models", "quotas")}
    other = run(engine_of(policy, world, scenario=scenario.model_copy(update=turned)))
    moment = first_difference(base.log, other.log)
    if moment is not None:
        raise NotSo(
            f"with the models and quotas of the scenario in another order it decided otherwise at "
            f"{_s(moment)}: sort them"
        )
    named = reference(policy)
    if named is None or world.name not in {known.name for known in bundled_worlds()}:
        return
    logs = _with_hash_seeds(named, world)
    moment = first_difference(*logs)
    if moment is not None:
        raise NotSo(
            f"with another PYTHONHASHSEED it decided otherwise at {_s(moment)}: it goes by the "
            "order of a set, or by hash(); take sorted(...), or dict.fromkeys(...) to keep an order"
        )


def check_no_peeking(policy: PolicyLike, world: World, base: Run) -> None:
    """Check that nothing depends on what nobody can know yet: jobs to come, how long jobs run."""
    for share in CUTS:
        cut = int(world.trace.submit_us[int(share * len(world.trace))])
        changed = _other_future(world, base, cut)
        other = run(engine_of(policy, world, changed), until_us=cut)
        known = [[entry for entry in log if entry[0] <= cut] for log in (base.log, other.log)]
        moment = first_difference(*known)
        if moment is not None:
            raise NotSo(
                f"it decided otherwise at {_s(moment)} when only what comes after {_s(cut)} was "
                "changed (jobs to come, run times of jobs that had not ended): take what you know "
                "from the methods of the view, not from its private parts or from the trace"
            )


def check_told_only(policy: PolicyLike, world: World, base: Run) -> None:
    """Check that nothing depends on how fast jobs are in truth, before any of it can be seen."""
    truth = _another_truth(world)
    until = first_seen_us(base)
    if until is None:
        return
    other = run(engine_of(policy, world, truth=truth), until_us=until)
    until = min(until, first_seen_us(other) or until)
    known = [[entry for entry in log if entry[0] < until] for log in (base.log, other.log)]
    moment = first_difference(*known)
    if moment is not None:
        raise NotSo(
            f"it decided otherwise at {_s(moment)} when only the truth was changed (speedups, "
            "slowdowns, interference), and not what it is told: take the scenario from your "
            "constructor or from the view, and nothing from private parts of the view"
        )


def first_seen_us(base: Run) -> int | None:
    """Return the first moment at which the cluster shows how fast a job was; None if it never does.

    That is an end or a failure, or the policy asks how far jobs are.
    """
    ends = [end for end in base.ends_us if end >= 0]
    failures = [moment for moments in base.failures_us.values() for moment in moments]
    looks = [base.first_look_us] if base.first_look_us != NEVER else []
    return min([*ends, *failures, *looks], default=None)


def check_goes_on(policy: PolicyLike, world: World, base: Run) -> None:
    """Check that a rollout that was interrupted goes on as one without a break."""
    reason = why_not_saved(make(policy, world.scenario, SEED))
    if reason:
        raise NotTried(
            f"rollouts of it cannot be interrupted: {reason}. Derive it from RestorablePolicy and "
            "name in `changing` the attributes that change"
        )
    stops = frozenset(np.linspace(1, max(1, base.steps - 1), STOPS).astype(int).tolist())
    saved = run(engine_of(policy, world), save_at=stops)
    moment = first_difference(base.log, saved.log)
    if moment is not None:
        raise NotSo(f"state() changes what it decides, at {_s(moment)}: it must only tell")
    for step, snapshot in saved.snapshots.items():
        engine = engine_of(policy, world)
        try:
            engine.go_on_from(of_json(snapshot))
        except Exception as error:
            raise NotSo(f"restore(state) failed: {type(error).__name__}: {error}") from error
        rest = run(engine)
        moment = first_difference(saved.log[saved.lengths[step] :], rest.log)
        if moment is not None:
            raise NotSo(
                f"after a break it decided otherwise at {_s(moment)}: state() leaves out what it "
                "keeps from call to call; name all such attributes in `changing`"
            )


#: Name of each check to what runs it.
CHECKS = {
    "same seed, same decisions": check_same_twice,
    "no order of sets or dicts": check_order_of_names,
    "no peeking": check_no_peeking,
    "beliefs, not the truth": check_told_only,
    "goes on after a break": check_goes_on,
}


def _another_truth(world: World) -> Scenario:
    """Return a scenario of the same cluster in which every job runs at another speed."""
    errors = Beliefs(speedups=0.5, slowdowns=0.5, interference=0.5)
    truth = believed(world.scenario.model_copy(update={"beliefs": errors}), SEED + 1)
    if truth.profile is not None:
        return truth
    draws = random.Random(SEED)
    gpus = (
        [str(gpu) for gpu in range(truth.gpus)] if truth.topology is None else truth.topology.gpus
    )
    slowdown = {SLOW: tuple(draws.uniform(1.1, 2.0) for _ in gpus)}
    models = {name: Model() for name in sorted(set(world.trace.model))} | dict(truth.models)
    slow = {name: m.model_copy(update={"application_class": SLOW}) for name, m in models.items()}
    profile = Profile(gpus=tuple(gpus), slowdown=slowdown, kind="persistent")
    changed: Scenario = truth.model_copy(update={"profile": profile, "models": slow})
    return changed


def _other_future(world: World, base: Run, cut: int) -> Trace:
    """Return a trace that is the same up to a moment, as far as it can be known by then."""
    trace, draws = world.trace, random.Random(cut)
    run_us, gpus, submit = trace.run_us.copy(), trace.gpus.copy(), trace.submit_us.copy()
    models, queues = list(trace.model), list(trace.queue)
    failures = dict(trace.failures)
    for job in range(len(trace)):
        start, end = base.starts_us[job], base.ends_us[job]
        if submit[job] > cut:
            submit[job] += 7_000_000
            gpus[job] = draws.choice([1, 2, 4])
            run_us[job] = draws.randrange(1_000_000, 500_000_000)
            models[job], queues[job] = draws.choice(trace.model), draws.choice(trace.queue)
            failures.pop(job, None)
        elif end < 0 or end > cut:
            if start < 0 or start > cut:
                run_us[job] = draws.randrange(1_000_000, 500_000_000)
            else:
                run_us[job] = int(run_us[job] * draws.uniform(1.0, 9.0)) + 1
            past = sum(moment <= cut for moment in base.failures_us.get(job, ()))
            told = failures.get(job, ())
            failures[job] = told[:past] + tuple(
                Failure(f.reason, int(f.run_us * draws.uniform(1.0, 9.0)) + 1) for f in told[past:]
            )
    kept = {job: told for job, told in failures.items() if told}
    return replace(
        trace, run_us=run_us, gpus=gpus, submit_us=submit, model=tuple(models),
        queue=tuple(queues), failures=kept,
    )  # fmt: skip


def _with_hash_seeds(policy: str, world: World) -> list[list[tuple[int, str]]]:
    """Return what a policy decides in two processes that order sets of text differently."""
    path = os.pathsep.join(part for part in sys.path if part)
    begun = [
        subprocess.Popen(
            [sys.executable, "-m", "optsched.testing.child", policy, world.name],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for seed in ("1", "2")
    ]  # fmt: skip
    logs: list[Any] = []
    for child in begun:
        out, err = child.communicate()
        if child.returncode:
            last = (err.strip().splitlines() or ["?"])[-1]
            raise NotSo(f"in a process of its own it fails: {last}")
        logs.append([(now, said) for now, said in json.loads(out)])
    return logs


def _s(moment_us: int) -> str:
    return f"{moment_us / 1e6:g} s"
