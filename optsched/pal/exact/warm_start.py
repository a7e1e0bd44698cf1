"""Warm start (Gamrath et al., Reoptimization Techniques for MIP Solvers, SEA 2015).

The plan of the previous epoch is repaired for the jobs of now, and its duals still prove: duals of
GPUs prove a bound for any jobs (`lagrangian_bound.py`). With few jobs changed they prove nearly as
much as new ones would, and no linear program is solved for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from optsched.pal.exact.cuts_and_branching import CountRule
from optsched.pal.exact.lagrangian_bound import DualSolution, NodeDuals, PricedDuals
from optsched.pal.plan import Leaf, PalCertificate, Within
from optsched.pal.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from optsched.pal.exact.arrays import PalArrays
    from optsched.pal.exact.lagrangian_bound import Lagrangian
    from optsched.pal.exact.relaxation import GangOptions
    from optsched.pal.instance import PalInstance
    from optsched.results.result import Result

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


class WarmStart(NamedTuple):
    """What stays in memory for the next epoch: whose duals the certificate has, in its order."""

    gpus: tuple[str, ...]

    @classmethod
    def of(cls, problem: PalArrays) -> WarmStart:
        """Return what an epoch leaves."""
        return cls(problem.gpus)

    def resumed(self, duals: Sequence[float], gpus: tuple[str, ...]) -> Floats | None:
        """Return duals of the GPUs of now; None if they are not of these ones.

        GPUs that were not there get the greatest dual: too great costs less than too small.
        """
        if len(self.gpus) != len(duals):
            return None
        known, most = dict(zip(self.gpus, duals, strict=True)), max(duals, default=0.0)
        return np.array([known.get(gpu, most) for gpu in gpus])


def warm_start(problem: PalArrays) -> WarmStart:
    """Return what an epoch leaves of its arrays."""
    return WarmStart.of(problem)


# --- duals ------------------------------------------------------------------------------------


def previous_duals(
    instance: PalInstance, problem: PalArrays, start: Result, objective: float
) -> Iterator[DualSolution]:
    """Yield duals of the previous epoch, in its unit and in that of an objective of now."""
    certificate = start.certificate
    if not isinstance(certificate, PalCertificate) or certificate.kind != "prices":
        return
    last = start.state if isinstance(start.state, WarmStart) else WarmStart(problem.gpus)
    leaves = [node for node in certificate.nodes if isinstance(node, Leaf)]
    for leaf in (*certificate.exclusions, *leaves[:1]):
        duals = last.resumed(leaf.gpu_prices, problem.gpus)
        if duals is not None:
            rules = _rules(instance, problem, certificate, leaf)
            for scale in _scales(start.objective, objective):
                yield _scaled(duals, rules, scale, objective)


def _scales(before: float | None, now: float) -> Iterator[float]:
    """Yield what duals may have to be multiplied by."""
    yield 1.0
    if before is not None and before > 0:
        ratio = now / before
        if 0 < ratio < np.inf and abs(ratio - 1) > SETTINGS.same_scale:
            yield ratio


def best_duals(
    instance: PalInstance, problem: PalArrays, options: GangOptions, lagrangian: Lagrangian,
    start: Result, objective: float,
) -> PricedDuals | None:  # fmt: skip
    """Return the duals of the previous epoch that prove most now; None if there are none."""
    best: PricedDuals | None = None
    for solution in previous_duals(instance, problem, start, objective):
        priced = solution.priced(problem, options, lagrangian)
        if np.isfinite(priced.value) and (best is None or priced.value > best.value):
            best = PricedDuals(solution, priced)
    return best


def _rules(
    instance: PalInstance, problem: PalArrays, certificate: PalCertificate, leaf: Leaf
) -> list[tuple[CountRule, float]]:
    """Return the cuts of now that are like those of a leaf, with their duals."""
    type_of = {instance.jobs[n].id: t for t, jobs in enumerate(problem.types) for n in jobs.jobs}
    domain = {name: d for d, name in enumerate(problem.domains.names)}
    cuts = []
    for cut in leaf.cuts:
        rule = certificate.rules[cut.rule] if cut.rule < len(certificate.rules) else None
        if not isinstance(rule, Within) or rule.domain not in domain:
            continue
        types = [type_of[name] for name in rule.types if name in type_of]
        if types:
            alike = tuple(_types_like(problem, types, rule.slowest is None))
            slowest = np.inf if rule.slowest is None else rule.slowest
            cuts.append((CountRule(alike, domain[rule.domain], slowest), cut.price))
    return cuts


def _types_like(problem: PalArrays, types: list[int], of_any_class: bool) -> Iterator[int]:
    """Yield the types that a cut counts: those of the class, if of one, with gangs as large."""
    row, size = problem.types[types[0]].row, min(problem.types[t].gpus for t in types)
    for t, jobs in enumerate(problem.types):
        if jobs.gpus >= size and (of_any_class or jobs.row == row):
            yield t


def _scaled(
    duals: Floats, rules: list[tuple[CountRule, float]], scale: float, most: float
) -> DualSolution:
    """Return duals in another unit; more than a whole plan costs is no sensible dual."""
    limit = most / scale
    cuts = {n: min(price, limit) * scale for n, (_, price) in enumerate(rules) if price > 0}
    scaled = np.minimum(duals, limit) * scale
    return DualSolution([rule for rule, _ in rules], NodeDuals(scaled, (), cuts))
