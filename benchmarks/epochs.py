"""How many epochs need nothing new, and what an epoch costs, warm and cold: PAL and EaCO.

    python benchmarks/epochs.py                 # rollouts of 160 jobs; 250 jobs that share
    python benchmarks/epochs.py --jobs 40

Rollouts, warm: a round begins with the prices of the last one (PAL: of GPUs; EaCO: of jobs, with
its cuts), and if these close the gap, no program is solved ("nothing new"). Cold: every round
begins from the greedy plans. Rounds in which no job came or went are not counted: they place
nothing. EaCO's method `columns`: five per cent of the jobs are replaced by others from epoch to
epoch; "searched" are groups that neither the last epoch nor the rules for the first program had.
"""

from __future__ import annotations

import argparse
import time

from generators import sharing, sharing_next_epoch

import optsched
from optsched.rollout.engine.engine import Engine
from optsched.rollout.registry import make
from optsched.rollout.scenario_files import read_scenario
from optsched.rollout.trace_source import jobs_of

PLACING, PARTING = ("pal-64", "pal-64-persistent"), ("eaco-28",)
GAP = 1e-3
SHARING, SHARED, EPOCHS = 250, 3, 8
SHARING_GAP = 1e-2


class Timed:
    """Counts the CPU seconds of a call, each after `forget`, which is there for cold runs."""

    def __init__(self, call, forget):
        self.call, self.forget, self.seconds = call, forget, []

    def __call__(self, *arguments):
        self.forget()
        started = time.process_time()
        returned = self.call(*arguments)
        self.seconds.append(time.process_time() - started)
        return returned


def place(scenario, is_cold):
    """Return the policy `pal`, and the times of its placements."""
    policy = make(f"pal:gap={GAP}", scenario)
    placement = policy.placement

    def forget():
        if is_cold:
            placement.solver.forget()

    placement.place = timed = Timed(placement.place, forget)
    return policy, timed


def part(scenario, is_cold):
    """Return the policy `eaco`, and the times of its partitions."""
    policy = make(f"eaco:gap={SHARING_GAP}", scenario)

    def forget():
        if is_cold:
            policy.solver.forget()

    policy.plan = timed = Timed(policy.plan, forget)
    return policy, timed


def run(name, jobs, made, gap, is_cold):
    """Print what the rounds of a rollout take."""
    scenario = read_scenario(name).changed({"trace.jobs": jobs})
    policy, timed = made(scenario, is_cold)
    record = Engine(scenario, jobs_of(scenario), policy, seed=0).run()
    solves = [solve for epoch in record.epochs for solve in epoch.solves]
    seconds = sorted(timed.seconds[1:])  # the first one imports
    warm = sum(solve.is_warm for solve in solves)
    closed = sum(solve.gap <= gap for solve in solves)
    gaps = sum(solve.gap for solve in solves) / len(solves)
    print(
        f"{name:<18} {'cold' if is_cold else 'warm':<5} {len(solves):6} {warm:12} {closed:7} "
        f"{gaps:9.1e} {1e3 * sum(seconds) / len(seconds):8.1f} "
        f"{1e3 * seconds[len(seconds) // 2]:8.1f} {1e3 * seconds[-1]:8.1f}",
        flush=True,
    )


def share():
    """Print what each epoch of EaCO takes from the one before, and from nothing."""
    instance = sharing(SHARING, SHARED, 0.25)
    before = optsched.solve(instance, "columns", gap=SHARING_GAP)
    print("EaCO epoch  searched   gap warm   gap cold   CPU s: warm, cold")
    for number in range(1, EPOCHS + 1):
        instance = sharing_next_epoch(instance, seed=number)
        warm, seconds = timed(instance, before)
        cold, seconds_cold = timed(instance, None)
        print(
            f"{number:10} {warm.state.fresh:9} {warm.gap:10.1e} {cold.gap:10.1e} "
            f"{seconds:13.2f} {seconds_cold:5.2f}"
        )
        before = warm


def timed(instance, start):
    """Return a result and its CPU seconds."""
    started = time.process_time()
    result = optsched.solve(instance, "columns", gap=SHARING_GAP, start=start)
    return result, time.process_time() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=160)
    options = parser.parse_args()
    print(f"{'':24} rounds  nothing new  closed  mean gap   CPU ms: mean, median, most")
    for names, made, gap in ((PLACING, place, GAP), (PARTING, part, SHARING_GAP)):
        for name in names:
            for is_cold in (True, False):
                run(name, options.jobs, made, gap, is_cold)
    share()


if __name__ == "__main__":
    main()
