"""A long search for false statements: instances, solves, forgeries and lies by the thousand.

Run from the root: `python -m tests.support.outside.search --problem eaco --count 10000 --seed 0`.
It prints a table of counts and, for all that is false, what repeats it; it exits 1 if there is any.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from collections import Counter

import optsched
from benchmarks.proving import rounds
from tests.support.outside.forger import Forger, text_of
from tests.support.outside.instances import DRAWN
from tests.support.outside.instances_eaco import eaco_late
from tests.support.outside.laws import (
    Truth,
    accepted,
    as_document,
    false_in_accepted,
    instance_of,
    is_doubted,
    may_run,
    methods,
    refusals,
    round_of,
    solved,
)  # fmt: skip
from tests.support.outside.lying_highs import LIES, lying

MOST_SHOWN = 12
DRAWS = {**DRAWN, "eaco-late": eaco_late}


class Tally:
    """Counts by name; and of each kind of what should not be, the first few seeds."""

    def __init__(self, name):
        self.name, self.counts, self.shown = name, Counter(), Counter()

    def bad(self, kind, seed, text):
        """Count what should not be, and tell it as long as few of its kind were told."""
        self.counts[kind] += 1
        self.shown[kind, text[:40]] += 1
        is_new = self.shown[kind, text[:40]] == 1
        if self.counts[kind] <= MOST_SHOWN or (is_new and len(self.shown) <= 5 * MOST_SHOWN):
            print(
                f"{kind}: --problem {self.name} --count 1 --seed {seed}: {text[:300]}", flush=True
            )

    def table(self):
        rows = [f"{count:>9,}  {what}" for what, count in sorted(self.counts.items())]
        return "\n".join([f"{self.name}:", *rows])

    @property
    def is_clean(self):
        return not any(what.startswith("FALSE") for what in self.counts)


def solves(tally, truth, seed, rng):
    """Solve by every exact method and a greedy one; return what is true of the first."""
    known = None
    if truth.name == "sia":
        names = ["decide"]
    else:
        names = [*methods(truth.name, "exact"), rng.choice(methods(truth.name, "greedy"))]
    for method in (name for name in names if may_run(truth, name)):
        try:
            result, false = solved(truth, method)
        except Exception as error:
            tally.bad("raised: solve", seed, f"{method}: {type(error).__name__}: {error}")
            continue
        tally.counts["solves"] += 1
        label = "greedy" if len(names) > 1 and method == names[-1] else method
        tally.counts[f"solves: {label}, {result.status.value}"] += 1
        if is_doubted(result):
            tally.bad("doubted: own proof refused", seed, f"{method}: {result.message[-200:]}")
        for text in false:
            kind = "refused: by verify" if text.startswith(("refused", "crash")) else "FALSE: solve"
            tally.bad(kind, seed, f"{method}, {result.status}: {text}")
        known = known or (result if not false else None)
    return known


def forgeries(tally, truth, seed, result, count):
    """Forge a result, and look at what is accepted."""
    instance = instance_of(truth.name, truth.document)
    others = []
    for method in methods(truth.name, "greedy")[:2]:
        try:
            others.append(as_document(optsched.solve(instance, method)))
        except Exception as error:
            tally.bad("raised: solve", seed, f"{method}: {type(error).__name__}: {error}")
    forger = Forger(as_document(result), truth.high, others, seed)
    drawn = [*forger.one_by_one(step=40), *forger.pairs(count), *forger.coherent(2 * count)]
    for what, document in drawn:
        tally.counts["forgeries"] += 1
        try:
            passed = accepted(instance, text_of(document))
        except Exception as error:
            tally.bad("FALSE: no verdict", seed, f"{what}: {type(error).__name__}: {error}")
            continue
        if passed is None:
            continue
        tally.counts["forgeries: accepted, true"] += 1
        for text in false_in_accepted(truth, passed):
            tally.bad("FALSE: accepted", seed, f"{what}: {text}")


def sia_forgeries(tally, truth, seed, chosen):
    """Change the figures of a round's outcome, one by one."""
    instance, forger = round_of(truth.document), Forger(as_document(chosen), truth.high, seed=seed)
    for field in ("status", "objective", "bound", "gap", "gap_limit"):
        for value in forger.values(field)[seed % 3 :: 3]:
            if isinstance(value, bool):  # equals a number
                continue
            forged = chosen._replace(**{field: value})
            tally.counts["forgeries"] += 1
            told = refusals(lambda forged=forged: rounds.verify_round(instance, forged))
            if told and told[0].startswith("crash"):
                tally.bad("FALSE: no verdict", seed, f"{field}={value!r}: {told[0]}"[:200])
            stated = as_document(chosen) | {field: value}
            false = [] if told else truth.false_statements(stated)
            for text in false:
                if not text.startswith("not called optimal"):
                    tally.bad("FALSE: accepted", seed, f"{field}={value!r}: {text}"[:200])


def lies(tally, truth, seed, rng, count):
    """Let HiGHS lie while an exact method solves."""
    names = ["decide"] if truth.name == "sia" else [*methods(truth.name, "exact")[:2], "milp"]
    for _ in range(count):
        method, lie = rng.choice(names), rng.choice(list(LIES))
        if not may_run(truth, method):
            continue
        with lying(lie, rng.choice([1.0, 0.5, 0.1]), seed) as runs:
            try:
                options = {} if truth.name == "sia" else {"time_limit_s": 10}
                _, false = solved(truth, method, **options)
            except Exception as error:
                false = []
                tally.counts[f"lies: raised {type(error).__name__}"] += 1
        tally.counts["lies: solves in which HiGHS lied" if any(runs) else "lies: none told"] += 1
        for text in false:
            tally.bad("FALSE: lie believed", seed, f"{method}, {lie}: {text}")


def search(name, count, seed, forged, lied, seconds):
    """Look at so many instances, from a seed on, or until so many CPU seconds are over."""
    tally, begun = Tally(name), time.process_time()
    for number in range(seed, seed + count):
        if time.process_time() - begun > seconds:
            break
        rng, document = random.Random(number), DRAWS[name](number)
        truth = Truth(name.removesuffix("-late"), document)
        tally.counts["instances"] += 1
        tally.counts["instances without a plan"] += truth.has_plan is False
        result = solves(tally, truth, number, rng)
        if forged and result is not None:
            if name == "sia":
                sia_forgeries(tally, truth, number, result)
            else:
                forgeries(tally, truth, number, result, forged)
        if lied:
            lies(tally, truth, number, rng, lied)
    tally.counts["CPU seconds"] = round(time.process_time() - begun)
    return tally


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", choices=[*DRAWS, "all"], default="all")
    parser.add_argument("--count", type=int, default=100, help="instances of each problem")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--forgeries", type=int, default=5, help="pairs; twice as many that fit")
    parser.add_argument("--lies", type=int, default=1, help="solves with a lying HiGHS")
    parser.add_argument("--seconds", type=float, default=1e9, help="CPU seconds for each problem")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    names = list(DRAWS) if given.problem == "all" else [given.problem]
    tallies = []
    for name in names:
        tallies.append(
            search(name, given.count, given.seed, given.forgeries, given.lies, given.seconds)
        )
        print(tallies[-1].table(), flush=True)
    return 0 if all(tally.is_clean for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
