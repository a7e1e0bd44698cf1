"""Forges what surrounds a certificate, and the numbers in it: results as documents, changed.

Nothing here knows what a change is worth; the laws in `outside.laws` say what may pass.
"""

from __future__ import annotations

import copy
import json
import math
import random
from fractions import Fraction

SENTINEL = "it is proven optimal by angels"
ODD = [
    None, True, False, "", "text", "1.0", [], {}, [1.0], -1, 0, 1, 0.5, -0.0, 5e-324, 1e-9,
    1e308, -1e308, math.nan, math.inf, -math.inf, 10**400, -(10**400), "NaN", "Infinity",
]  # fmt: skip
STATUSES = ["optimal", "feasible", "infeasible", "error", "unverified", "proven", "Optimal", ""]
OWN = {
    "schema": ["optsched/result/1", "optsched/result/2", "optsched/result/3", "optsched/boa/1"],
    "problem": ["boa", "pal", "eaco", "sia"],
    "instance": ["boa/cbd-85", "pal/tiny", "another", "\x1b[31mred"],
    "method": ["exact", "milp", "fifo", "same-k", "packed-sticky", "exact; touch x", SENTINEL],
    "status": STATUSES,
    "message": [SENTINEL, "proven", "optimal", "stopped early: time limit", "\x1b[2J"],
    "objective_unit": ["h", "s", "kWh", "USD", "x", "GPUs", "s (proven)", "\x1b[31ms"],
    "seconds": [-5.0, 0.0, 1e9],
    "deterministic": [False],
    "seed": [7, 2**31],
    "versions": [{}, {"optsched": "99"}],
    "instance_sha256": ["0" * 64, "f" * 63, "F" * 64],
    "changes": [{"budget_gpus": 1}, {"power_cap_w": 1.0}, {"nowhere": 2}],
    "gap_limit": [0.1, 0.5, 0.999, 1.0, 1e300],
}
FIELDS = [*OWN, "objective", "bound", "gap", "plan", "certificate"]


def near(value):
    """Figures beside one: a float further, a little, twice, none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return [0.0, 1.0, 1e-3]
    up, down = math.nextafter(value, math.inf), math.nextafter(value, -math.inf)
    return [up, down, value * (1 + 1e-9), value * (1 + 1e-3), value * 0.5, value * 2, value + 1]


class Forger:
    """Draws forgeries of one result by a seed.

    Parameters
    ----------
    stated
        The result as a document; with a plan or without.
    optimum
        Of the instance; None if there is no plan.
    others
        Results of other methods, as documents: their plans and certificates are put in.
    """

    def __init__(self, stated, optimum, others=(), seed=0):
        self.stated, self.others = stated, [*others, stated]
        self.truth = None if optimum is None else float(optimum)
        self.rng = random.Random(seed)

    def one_by_one(self, step=1):
        """Every field, with every value of its list, or every n-th: (what, document)."""
        for field in FIELDS:
            for value in self.values(field)[self.rng.randrange(step) :: step]:
                yield f"{field}={value!r:.60}", self.changed({field: value})
            yield f"{field} is missing", self.changed({}, drop=field)

    def pairs(self, count):
        """As many random pairs of changes."""
        for _ in range(count):
            one, two = self.rng.sample(FIELDS, 2)
            change = {one: self.any_of(one), two: self.any_of(two)}
            yield f"{one}, {two}: {str(change)[:80]}", self.changed(change)

    def coherent(self, count):
        """Changes that fit together: bounds with their certificates, figures with plans."""
        for _ in range(count):
            name = self.rng.choice(["bound", "no plan", "swap", "certificate", "certificate"])
            yield name, getattr(self, f"_{name.replace(' ', '_')}")()

    def values(self, field):
        own = list(OWN.get(field, ()))
        if field in ("objective", "bound", "gap"):
            own += near(self.stated.get(field)) + near(self.truth)
            own += [self.stated.get("objective"), self.stated.get("bound"), self.truth]
        elif field in ("plan", "certificate"):
            own += [other.get(field) for other in self.others]
            own += [self._holed(field) for _ in range(4)]
        return [value for value in [*own, *ODD] if not self._same(value, field)]

    def any_of(self, field):
        return self.rng.choice(self.values(field))

    def changed(self, change, drop=None):
        document = copy.deepcopy(self.stated) | copy.deepcopy(change)
        document.pop(drop, None)
        return document

    def _same(self, value, field):
        stated = self.stated.get(field)
        return type(value) is type(stated) and repr(value) == repr(stated)

    def _holed(self, field):
        """A plan or certificate with one entry, at any depth, dropped or replaced."""
        document = copy.deepcopy(self.stated.get(field))
        spots = list(_spots(document))
        if spots:
            parent, key = self.rng.choice(spots)
            if self.rng.random() < 0.3:
                del parent[key]
            else:
                parent[key] = self.rng.choice([*ODD, *near(parent[key])])
        return document

    # --- forgeries that fit together ------------------------------------------------------------

    def _bound(self):
        """A bound that is stated alike in result and certificate, most often too high."""
        bound = self.rng.choice([*near(self.truth), *near(self.stated.get("bound")), *ODD])
        return self._with_bound(self.stated, bound)

    def _with_bound(self, stated, bound):
        document = copy.deepcopy(stated)
        document["bound"] = bound
        if isinstance(document.get("certificate"), dict):
            document["certificate"]["bound"] = bound
        return self._figured(document)

    def _no_plan(self):
        change = {"plan": None, "status": self.rng.choice(["error", "infeasible", "unverified"])}
        change |= {key: self.any_of(key) for key in ("objective", "gap") if self.rng.random() < 0.5}
        document = self.changed(change)
        if change["status"] == "infeasible" and self.rng.random() < 0.7:
            document["bound"] = None
            if isinstance(document.get("certificate"), dict):
                document["certificate"]["bound"] = None
                names = ["infeasible", "least", "below_idle_power"]
                document["certificate"]["kind"] = self.rng.choice(names)
                document["certificate"]["left_out"] = self.rng.choice([None, 1.0, 0.5, 1e-300])
        return document

    def _swap(self):
        """Plan and figures of one result with the certificate of another, called optimal."""
        other = self.rng.choice(self.others)
        document = self.changed({key: other.get(key) for key in ("plan", "objective")})
        document["status"] = self.rng.choice(["optimal", "feasible"])
        if self.rng.random() < 0.5:
            return self._with_bound(document, document["objective"])
        return self._figured(document)

    def _certificate(self):
        """Numbers of the certificate changed by chance, with a bound just above the optimum."""
        document = copy.deepcopy(self.stated)
        if not isinstance(document.get("certificate"), dict):
            return document
        _shake(document["certificate"], self.rng)
        if self.truth is None:
            return document
        excess = self.rng.choice([math.nextafter(self.truth, math.inf), self.truth * (1 + 1e-12)])
        excess = self.rng.choice([excess, self.truth + abs(self.truth) * 1e-9])
        if document["certificate"].get("bound") is None and self.rng.random() < 0.5:
            document["certificate"]["kind"] = "prices"
        return self._with_bound(document, max(excess, math.nextafter(self.truth, math.inf)))

    def _figured(self, document):
        """Make the gap fit objective and bound, and the status the gap, where they are numbers."""
        objective, bound = document.get("objective"), document.get("bound")
        numbers = [v for v in (objective, bound) if isinstance(v, int | float)]
        if len(numbers) < 2 or not all(map(_is_finite, numbers)) or not objective:
            return document
        gap = (Fraction(objective) - Fraction(bound)) / abs(Fraction(objective))
        document["gap"] = float(gap) if abs(gap) < 10**300 else 1e308
        document["status"] = "optimal" if document["gap"] <= 1e-6 else "feasible"
        return document


def _is_finite(value):
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _spots(document):
    """Every (parent, key) of a document."""
    if isinstance(document, dict | list):
        keys = document if isinstance(document, dict) else range(len(document))
        for key in list(keys):
            yield document, key
            yield from _spots(document[key])


def _shake(certificate, rng):
    """Change numbers of a certificate in place: one, some or all, a little or beyond measure."""
    spots = [(p, k) for p, k in _spots(certificate) if _is_price(p, k)]
    share = rng.choice([0.1, 0.5, 1.0])
    factor = rng.choice([1.0, 1 + 1e-12, 1 + 1e-6, 1.001, 2.0, 1e3, 1e9, 2.0**40, 0.5, 0.0])
    for parent, key in spots:
        if rng.random() < share:
            own = rng.choice([factor, factor, rng.uniform(0.5, 2.0), 1 + rng.gauss(0, 1e-6)])
            parent[key] = _within(parent[key] * own + rng.choice([0.0, 0.0, 1e-9, 1.0]))
        if isinstance(parent, list) and rng.random() < 0.02:
            rng.shuffle(parent)


def _is_price(parent, key):
    value = parent[key]
    return isinstance(value, float) and key != "bound" and math.isfinite(value)


def _within(value):
    return value if math.isfinite(value) else 1e308


def text_of(document):
    """JSON with NaN, Infinity and whole numbers of any length, as a forger writes it."""
    return json.dumps(document, allow_nan=True)
