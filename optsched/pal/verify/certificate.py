"""The verifier of PAL, second part: whether a certificate proves its bound.

A branch-and-bound tree covers all plans: in each split a count, which is a whole number, is at most
a number or at least one more. In each leaf the Lagrangian value, for any prices, is a lower bound
on every plan: jobs pay for GPUs, and for what splits and cuts limit, and take on their own what is
cheapest for them (`placement_pricing.py`). So the least value over the leaves is a bound. All of it
is done in integers and fractions, and shares no code with the methods. A certificate of kind
"sorted" has no tree: what it states is worked out from the instance (`sorted_bound.py`).
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, inf
from typing import TYPE_CHECKING

from optsched.certificates.bound_tree import at_leaves
from optsched.pal.plan import Leaf, Within
from optsched.pal.verify import gpu_price_bound, sorted_bound
from optsched.pal.verify.certificate_form import formed, stated
from optsched.pal.verify.costs import SCALE, InfeasibilityCosts, ObjectiveCosts, scaled
from optsched.pal.verify.placement_pricing import Counted, JobOptions, jobs_by_type

if TYPE_CHECKING:
    from optsched.certificates.bound_tree import PathStep
    from optsched.pal.instance import PalInstance
    from optsched.pal.plan import Keeps, PalCertificate
    from optsched.verification import BrokenRule


SORTED_JOB_TERMS = 10  # fractions and their order, for each job


def prove(instance: PalInstance, certificate: PalCertificate) -> list[BrokenRule]:
    """Return every reason why the certificate does not prove what it states."""
    formed_one, broken = formed(instance, certificate)
    if formed_one is None:
        return broken
    statement = stated(formed_one)
    if formed_one.kind == "sorted":
        value = sorted_bound.least(instance)
        return list(statement.whole_faults("the sorted slowdowns", value, SCALE))
    values = leaf_values(instance, formed_one)
    return list(statement.value_faults(values, Fraction(statement.figure) * SCALE, SCALE))


def terms(instance: PalInstance, certificate: PalCertificate) -> int:
    """Return about how many prices `prove` has to reckon, from sizes alone.

    Counted before anything is done, and never by a clock: GPUs in domains, for each size of gangs,
    each type of jobs and each leaf, and what rules count. A term takes less than a microsecond
    (`docs/obligations-pal.md`).
    """
    gpus, levels = len(instance.free_gpus), len(instance.topology.levels)
    running = sum(job.gpus for job in instance.jobs if job.current)
    gangs = {(job.application_class, job.gpus) for job in instance.jobs}
    if certificate.kind == "sorted":
        return gpus * len({name for name, _ in gangs}) + SORTED_JOB_TERMS * len(instance.jobs)
    if _is_flat(certificate):
        classes = {name for name, _ in gangs}
        return gpus * levels * (len(classes) + len(gangs)) + running + len(instance.jobs)
    types = len(jobs_by_type(instance))
    leaves = sum(isinstance(node, Leaf) for node in certificate.nodes)
    leaf_terms = gpus * levels * (len(gangs) + types) + gpus + running + len(certificate.nodes)
    rule_terms = types * len(instance.topology.domains) + gpus + len(instance.jobs)
    return leaf_terms * (leaves + len(certificate.exclusions)) + rule_terms * len(certificate.rules)


def _is_flat(certificate: PalCertificate) -> bool:
    """Tell whether nothing is charged for but GPUs, in a single leaf."""
    first = certificate.nodes[:1]
    is_leaf = all(isinstance(node, Leaf) for node in first)
    return is_leaf and not certificate.rules and not certificate.exclusions


# --- values -----------------------------------------------------------------------------------


def leaf_values(instance: PalInstance, certificate: PalCertificate) -> dict[int, int | None]:
    """Return the Lagrangian value of each leaf of a certificate that is well-formed.

    Returns
    -------
    dict[int, int | None]
        By number of the node, in multiples of 2**-192: a lower bound on the objective of every plan
        in that leaf, or on its number of jobs left out for kind "infeasible". None if a job can
        neither stand anywhere nor be left out, so that there is no plan.
    """
    costs = ObjectiveCosts(instance) if certificate.kind == "prices" else InfeasibilityCosts()
    first = certificate.nodes[0]
    if isinstance(first, Leaf) and _is_flat(certificate):
        known = {price: scaled(price) for price in set(first.gpu_prices)}
        prices = [known[price] for price in first.gpu_prices]
        least = gpu_price_bound.least(instance, costs, prices)
        return {0: None if least is None else least - sum(prices)}
    options = JobOptions(instance, costs)
    counted = [_counted(options, rule) for rule in certificate.rules]
    leaves = [node for node in certificate.nodes if isinstance(node, Leaf)]
    cuts = {cut.rule for leaf in (*certificate.exclusions, *leaves) for cut in leaf.cuts}
    capacity = {n: _capacity(instance, options, certificate.rules[n]) for n in cuts}
    for leaf in certificate.exclusions:
        scaled_prices = _scaled_prices(leaf, [], counted, capacity)
        options.exclude(*scaled_prices, limit=ceil(Fraction(certificate.bound or 0.0) * SCALE))

    def value(_: int, leaf: Leaf, path: list[PathStep]) -> int | None:
        prices, charges, constant = _scaled_prices(leaf, path, counted, capacity)
        least = options.least(prices, charges)
        return None if least is None else least - constant

    return at_leaves(certificate.nodes, value)


def _counted(options: JobOptions, rule: Within | Keeps) -> Counted:
    if isinstance(rule, Within):
        types = {options.type_of[name] for name in rule.types}
        return options.within(types, rule.domain, rule.slowest)
    return options.keeps(rule.job)


def _capacity(instance: PalInstance, options: JobOptions, rule: Within | Keeps) -> int:
    """Return how many of the counted jobs the GPUs can hold."""
    assert isinstance(rule, Within)
    jobs = [job for job in instance.jobs if job.id in rule.types]
    slowest = inf if rule.slowest is None else rule.slowest
    gpus = options.cluster.fast(jobs[0].application_class, rule.domain, slowest)
    return gpus // min(job.gpus for job in jobs)


def _scaled_prices(
    leaf: Leaf, path: list[PathStep], counted: list[Counted], capacity: dict[int, int]
) -> tuple[list[int], list[tuple[Counted, int]], int]:
    """Return prices of GPUs, charges for what rules count, and what is paid at most for both."""
    prices = [scaled(price) for price in leaf.gpu_prices]
    charges: dict[int, int] = {}
    constant = sum(prices)
    for (split, side), value in zip(path, leaf.split_prices, strict=True):
        price, limit = scaled(value), split.at_most
        if side:
            price, limit = -price, split.at_most + 1
        charges[split.rule] = charges.get(split.rule, 0) + price
        constant += price * limit
    for cut in leaf.cuts:
        price = scaled(cut.price)
        charges[cut.rule] = charges.get(cut.rule, 0) + price
        constant += price * capacity[cut.rule]
    return prices, [(counted[n], charge) for n, charge in charges.items()], constant
