"""Verifier of PAL: whether figures and certificate have the form that a proof rests on.

What `certificate.py` reckons holds for finite figures that are not negative, and for prices that
are not negative. Validated documents have no others; a document can be copied with anything in it,
though, so nothing is taken for granted here.
"""

from __future__ import annotations

from math import isfinite
from sys import float_info
from typing import TYPE_CHECKING

from pydantic import ValidationError

from optsched.certificates.bound_tree import (
    Paths,
    Statement,
    cut_faults,
    split_price_faults,
    tree_faults,
)
from optsched.documents.faults import lines, shown, validation_faults
from optsched.pal.plan import Leaf, PalCertificate, Within
from optsched.verification import BrokenRule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from optsched.pal.instance import PalInstance


def formed(
    instance: PalInstance, certificate: object
) -> tuple[PalCertificate | None, list[BrokenRule]]:
    """Return the certificate with every field looked at, and why nothing can be reckoned from it.

    Returns
    -------
    tuple[PalCertificate | None, list[BrokenRule]]
        None where there are reasons; no reasons otherwise.
    """
    copy, broken = _validated(certificate)
    broken += _instance(instance)
    if copy is None or broken:
        return None, broken
    broken = [*_statement(instance, copy), *_rules(instance, copy)]
    if copy.kind != "sorted":
        tree = list(tree_faults(copy.nodes, len(copy.rules)))
        broken += tree or list(_leaves(instance, copy))
    return None if broken else copy, broken


# --- what a copy may hold -----------------------------------------------------------------------


def _validated(certificate: object) -> tuple[PalCertificate | None, list[BrokenRule]]:
    """Return a copy of which all fields are of their types, and prices finite and not negative."""
    if not isinstance(certificate, PalCertificate):
        text = f"expected one of PAL, found a {type(certificate).__name__}"
        return None, [BrokenRule("certificate", text)]
    try:
        document = certificate.model_dump(warnings=False)
        return PalCertificate.model_validate(document, strict=True), []
    except ValidationError as error:
        faults = lines(dict(validation_faults(error, PalCertificate)).items())
    except (AttributeError, TypeError, ValueError, RecursionError):
        faults = []
    texts = faults or ["is not of the form of a certificate"]
    return None, [BrokenRule("certificate", text) for text in texts]


def _instance(instance: PalInstance) -> list[BrokenRule]:
    """Return what is wrong with an instance that nobody validated."""
    try:
        return list(_tree(instance)) or [*_references(instance), *_figures(instance)]
    except (AttributeError, KeyError, TypeError, ValueError):
        return [BrokenRule("instance", "is not of the form of an instance of PAL")]


def _tree(instance: PalInstance) -> Iterator[BrokenRule]:
    """Yield why the domains are no tree, with levels that rise towards the root.

    So the path from each domain up has an end, and GPUs meet at one level at least.
    """
    topology = instance.topology
    heights = {level: n for n, level in enumerate(topology.levels)}
    level_of = {domain.id: domain.level for domain in topology.domains}
    roots = sum(domain.parent is None for domain in topology.domains)
    gpus = [gpu for domain in topology.domains for gpu in domain.gpus]
    if roots != 1 or len(level_of) < len(topology.domains) or len(heights) < len(topology.levels):
        yield BrokenRule("topology", "ids and levels must differ, and one domain be the root")
    if len(set(gpus)) < len(gpus):
        yield BrokenRule("topology", "a GPU stands in several domains")
    for domain in topology.domains:
        above = domain.parent
        if domain.level not in heights or (domain.gpus and heights[domain.level]):
            yield BrokenRule("topology", f"domain '{domain.id}' is of no level that holds its GPUs")
        elif above is not None and (
            heights.get(level_of.get(above, domain.level), 0) <= heights[domain.level]
        ):
            yield BrokenRule("topology", f"domain '{domain.id}' is not below its parent")


def _references(instance: PalInstance) -> Iterator[BrokenRule]:
    """Yield which parts of an instance name others that are not there."""
    levels = instance.topology.levels
    if len({job.id for job in instance.jobs}) < len(instance.jobs):
        yield BrokenRule("instance", "two jobs have the same id")
    for job in instance.jobs:
        if not (
            job.application_class in instance.profile.slowdown
            and len(instance.locality.get(job.model, ())) == len(levels)
            and (job.highest_level is None or job.highest_level in levels)
        ):
            yield BrokenRule("instance", f"job '{job.id}' names what the instance does not have")


def _figures(instance: PalInstance) -> Iterator[BrokenRule]:
    """Yield which figures of the instance are no finite numbers of at least zero.

    A job costs no less on slower GPUs then, so that of two gangs the one that is neither faster
    nor cheaper need not be looked at; and no sum of costs reaches `costs.NEVER`.
    """
    for job in instance.jobs:
        figures = (job.weight, job.remaining_s, job.restart_s, job.reward)
        if not all(value is None or _is_figure(value) for value in figures):
            text = f"job '{job.id}' has a figure that is negative or not finite"
            yield BrokenRule("figures", text)
        if not isinstance(job.gpus, int) or job.gpus < 1:
            yield BrokenRule("figures", f"job '{job.id}' is a gang of {shown(job.gpus)} GPUs")
    for name in dict.fromkeys(job.model for job in instance.jobs):
        if not all(map(_is_figure, instance.penalties.get(name, ()))):
            text = f"model '{name}' has a locality penalty that is negative or not finite"
            yield BrokenRule("figures", text)
    for name in dict.fromkeys(job.application_class for job in instance.jobs):
        row = instance.slowdowns.get(name, {})
        if not all(_is_figure(row.get(gpu)) for gpu in instance.free_gpus):
            text = f"class '{name}' has a slowdown that is missing, negative or not finite"
            yield BrokenRule("figures", text)


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= float_info.max


# --- form ---------------------------------------------------------------------------------------


def stated(certificate: PalCertificate) -> Statement:
    """Return what a certificate states."""
    return Statement(certificate.kind != "infeasible", certificate.bound, certificate.left_out)


def _statement(instance: PalInstance, certificate: PalCertificate) -> Iterator[BrokenRule]:
    """Yield what is wrong with the figures that are stated."""
    yield from stated(certificate).faults()
    if certificate.kind == "sorted":
        yield from _sorted(instance, certificate)
    if certificate.kind != "infeasible":
        return
    if certificate.exclusions:
        yield BrokenRule("exclusions", "only a bound can leave out what costs too much")
    if instance.admission != "all":
        yield BrokenRule("infeasible", f"admission '{instance.admission}' always allows a plan")


def _sorted(instance: PalInstance, certificate: PalCertificate) -> Iterator[BrokenRule]:
    """Yield why slowdowns that are sorted prove nothing here, or what goes unused."""
    if instance.admission != "all":
        text = f"admission '{instance.admission}' allows plans that leave jobs out"
        yield BrokenRule("sorted", text)
    for name in ("rules", "exclusions", "nodes"):
        if getattr(certificate, name):
            yield BrokenRule("sorted", f"{name} are for prices, sorted slowdowns need none")


def _rules(instance: PalInstance, certificate: PalCertificate) -> Iterator[BrokenRule]:
    """Yield what is wrong with the rules that count."""
    jobs = {job.id: job for job in instance.jobs}
    domains = {domain.id for domain in instance.topology.domains}
    for n, rule in enumerate(certificate.rules):
        names = rule.types if isinstance(rule, Within) else (rule.job,)
        for name in dict.fromkeys(names):
            if name not in jobs:
                yield BrokenRule("known-job", f"rules[{n}]: the instance has no job '{name}'")
            elif not isinstance(rule, Within) and not jobs[name].current:
                yield BrokenRule("running-job", f"rules[{n}]: job '{name}' holds no GPUs to keep")
        if not isinstance(rule, Within):
            continue
        if rule.domain not in domains:
            text = f"rules[{n}]: the topology has no domain '{rule.domain}'"
            yield BrokenRule("known-domain", text)
        classes = {jobs[name].application_class for name in names if name in jobs}
        if rule.slowest is not None and not isfinite(rule.slowest):
            yield BrokenRule("slowest", f"rules[{n}]: {rule.slowest!r} is no slowdown")
        rows = (instance.slowdowns[name] for name in classes)
        slowdowns = [[row[gpu] for gpu in instance.free_gpus] for row in rows]
        if rule.slowest is not None and any(each != slowdowns[0] for each in slowdowns):
            listed = ", ".join(f"'{name}'" for name in sorted(classes))
            text = f"rules[{n}]: a slowdown is of one class, its types are of {listed}"
            yield BrokenRule("one-class", text)


def _leaves(instance: PalInstance, certificate: PalCertificate) -> Iterator[BrokenRule]:
    """Yield what is wrong with the prices of exclusions and of the leaves of a tree."""
    gpus = len(instance.free_gpus)
    depths = Paths(certificate.nodes).depths
    named = [(f"exclusions[{n}]", leaf, 0) for n, leaf in enumerate(certificate.exclusions)]
    for n, node in enumerate(certificate.nodes):
        if isinstance(node, Leaf):
            named.append((f"nodes[{n}]", node, depths[n]))
    for name, leaf, splits in named:
        if len(leaf.gpu_prices) != gpus:
            text = f"{name} has {len(leaf.gpu_prices)} prices for {gpus} free GPUs"
            yield BrokenRule("one-price-per-gpu", text)
        yield from split_price_faults(name, leaf.split_prices, splits)
        otherwise = "which counts no jobs in a domain"
        yield from cut_faults(name, leaf.cuts, certificate.rules, Within, otherwise)
