"""EaCO from its mathematics alone: how fast jobs of some types run side by side, and GPU watts."""

from __future__ import annotations

from collections import Counter
from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations, pairwise

DIGITS = Context(prec=90, Emin=-999_999_999, Emax=999_999_999)


def _power(base, exponent):
    """base ** exponent in [0, 1], to 15 decimals: so the watts of a power law are defined."""
    if base in (0, 1) or exponent == 1:
        return base
    quotient = DIGITS.divide(Decimal(base.numerator), Decimal(base.denominator))
    power = DIGITS.exp(DIGITS.multiply(DIGITS.ln(quotient), Decimal(exponent)))
    return Fraction(round(Fraction(power) * 10**15), 10**15)


def watts_at(power, busy):
    """Watts of a GPU that hosts jobs, at a utilisation."""
    busy, curve = min(Fraction(1), busy), power.get("curve") or {"kind": "affine"}
    if curve["kind"] == "table":
        points = [
            (Fraction(u), Fraction(w))
            for u, w in zip(curve["utilisation"], curve["power_w"], strict=True)
        ]
        if busy <= points[0][0]:
            return points[0][1]
        for (u0, w0), (u1, w1) in pairwise(points):
            if u0 < busy <= u1:
                return w0 + (w1 - w0) * (busy - u0) / (u1 - u0)
        return points[-1][1]
    share = busy
    if curve["kind"] == "power-law":
        share = _power(busy, curve.get("exponent", 0.48))
    elif curve["kind"] == "fan":
        share = min(Fraction(1), 2 * busy - _power(busy, curve.get("exponent", 1.4)))
    context = Fraction(power["context_w"])
    return context + (Fraction(power["peak_w"]) - context) * share


class Rates:
    """Rates of groups of types on GPUs of one type, as the schema defines them."""

    def __init__(self, document, gpu):
        self.table = document.get("interference") or {}
        self.busy = {t["id"]: Fraction(t["utilisation"]) for t in document["types"]}
        groups = self.table.get("groups", ())
        self.entries = {}
        for wanted in (None, gpu):  # an entry of its own goes before one for all
            mine = (g for g in groups if g.get("gpu") == wanted)
            self.entries.update({tuple(sorted(g["types"])): g for g in mine})
        self.known = {}
        for key in sorted(self.entries, key=len):
            entry = self.entries[key]
            rates = dict(zip(entry["types"], map(Fraction, entry["rates"]), strict=True))
            smaller = (k for k in self.entries if 1 < len(k) < len(key))
            for inner in smaller:
                if not Counter(inner) - Counter(key):
                    rates = self._at_most(rates, self.known[inner])
            self.known[key] = rates

    @staticmethod
    def _at_most(rates, within):
        if 0 in within.values():
            return dict.fromkeys(rates, Fraction(0))
        return {name: min(rate, within.get(name, rate)) for name, rate in rates.items()}

    def of(self, types):
        """Rates by type; 0 if they do not fit together, None if nobody knows."""
        key = tuple(sorted(types))
        if key not in self.known:
            self.known[key] = self._derived(key)
        return self.known[key]

    def _derived(self, key):
        if len(key) == 1:
            return {key[0]: Fraction(1)}
        steps = ["none", "larger", "pairs", "utilisation"]
        reach = steps.index(self.table.get("fallback", "utilisation"))
        around = [self.known[k] for k in self.entries if not Counter(key) - Counter(k)]
        around = [rates for rates in around if 0 not in rates.values()]
        if reach >= 1 and around:
            return {name: max(rates[name] for rates in around) for name in key}
        rates = self._by_pairs(key) if reach >= 2 else None
        if rates is None and reach == 3:
            slope = Fraction(self.table.get("saturation_slope", 0.56))
            partner = Fraction(self.table.get("partner_slowdown", 0.02))
            beyond = max(Fraction(0), sum(self.busy[name] for name in key) - 1)
            rates = dict.fromkeys(key, 1 / (1 + slope * beyond + partner * (len(key) - 1)))
        if rates is None or len(key) == 2:
            return rates
        for inner in set(combinations(key, len(key) - 1)):
            smaller = self.of(inner)
            rates = rates if smaller is None else self._at_most(rates, smaller)
        return rates

    def _by_pairs(self, key):
        if len(key) < 3 or any(pair not in self.entries for pair in combinations(key, 2)):
            return None
        rates = {}
        for n, name in enumerate(key):
            rates[name] = Fraction(1)
            for other in key[:n] + key[n + 1 :]:
                rates[name] *= self.known[tuple(sorted((name, other)))][name]
        return rates
