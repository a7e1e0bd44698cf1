"""Certificates of PAL: values are what they should be, bounds are true, and no tampering passes."""

import copy
import json
from fractions import Fraction
from itertools import combinations
from math import inf, nan, nextafter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import optsched
from optsched.pal import PalCertificate, PalInstance
from optsched.pal.plan import Cut, Keeps, Leaf, Split, Within
from optsched.pal.verify.certificate import leaf_values, prove
from optsched.pal.verify.costs import SCALE
from optsched.pal.verify.feasibility import performance
from optsched.results.result_files import read_result
from tests.support.strategies.common import law
from tests.support.strategies.pal import pal_instances, small_instance

# --- slow and obvious ways to the same values ---------------------------------------------------


def domains_around(instance, gpus):
    """Ids of the domains that hold all the GPUs, from the lowest up."""
    parents = {domain.id: domain.parent for domain in instance.topology.domains}
    chains = []
    for gpu in gpus:
        here, chain = next(d.id for d in instance.topology.domains if gpu in d.gpus), []
        while here is not None:
            chain.append(here)
            here = parents[here]
        chains.append(chain)
    return [name for name in chains[0] if all(name in chain for chain in chains)]


def slowest(instance, job, gpus):
    return max(instance.slowdowns[job.application_class][gpu] for gpu in gpus)


def allowed_sets(instance, job):
    """Every set of free GPUs on which a job may stand."""
    levels = instance.topology.levels
    top = levels.index(job.highest_level) if job.highest_level else len(levels)
    for gpus in combinations(instance.free_gpus, job.gpus):
        if instance.topology.lowest_common_level(gpus) <= top:
            yield gpus


def is_kept(job, gpus):
    return bool(job.current) and set(job.current) == set(gpus)


def same_type(one, other):
    ids = {"id", "current"}
    running = bool(one.current) == bool(other.current)
    if not one.current and not other.current:
        ids.add("restart_s")
    return running and one.model_dump(exclude=ids) == other.model_dump(exclude=ids)


def is_counted(instance, rule, job, gpus):
    """Whether a rule counts a job on its GPUs; none if it is left out."""
    if not gpus:
        return False
    if isinstance(rule, Keeps):
        return rule.job == job.id and is_kept(job, gpus)
    jobs = {j.id: j for j in instance.jobs}
    limit = rule.slowest is None or slowest(instance, job, gpus) <= rule.slowest
    is_inside = rule.domain in domains_around(instance, gpus)
    return limit and is_inside and any(same_type(jobs[name], job) for name in rule.types)


def cost(instance, job, gpus, kind="prices"):
    if kind == "infeasible":
        return Fraction(not gpus)
    if not gpus:
        return Fraction(job.reward)
    return performance(instance, job, gpus).cost


def options(instance, job, kind="prices"):
    """Every set that a job can take; the empty one if it may be left out."""
    if kind == "infeasible" or instance.admission == "optional":
        yield ()
    yield from allowed_sets(instance, job)


def capacity(instance, rule):
    """What a cut allows: the GPUs that a rule speaks of over the smallest gang."""
    jobs = [job for job in instance.jobs if job.id in rule.types]
    gpus = [
        gpu
        for gpu in instance.free_gpus
        if rule.domain in domains_around(instance, [gpu])
        and (rule.slowest is None or slowest(instance, jobs[0], [gpu]) <= rule.slowest)
    ]
    return len(gpus) // min(job.gpus for job in jobs)


def paths(certificate):
    """Every leaf with its path: number -> [(rule, side, at_most), ...]."""
    path_of, open_nodes = {}, [(0, [])]
    while open_nodes:
        n, path = open_nodes.pop()
        node = certificate.nodes[n]
        if isinstance(node, Leaf):
            path_of[n] = path
            continue
        for side, child in enumerate(node.cases):
            open_nodes.append((child, [*path, (node.rule, side, node.at_most)]))
    return path_of


def leaf_terms(instance, certificate, n):
    """Return prices of GPUs by id, charges (rule, amount), and what is paid in all."""
    leaf, path = certificate.nodes[n], paths(certificate)[n]
    prices = dict(zip(instance.free_gpus, map(Fraction, leaf.gpu_prices), strict=True))
    paid, charges = sum(prices.values()), []
    for (rule, case, at_most), value in zip(path, map(Fraction, leaf.split_prices), strict=True):
        charges.append((certificate.rules[rule], -value if case else value))
        paid += -value * (at_most + 1) if case else value * at_most
    for cut in leaf.cuts:
        charges.append((certificate.rules[cut.rule], Fraction(cut.price)))
        paid += Fraction(cut.price) * capacity(instance, certificate.rules[cut.rule])
    return prices, charges, paid


def priced_by_sets(instance, certificate, n):
    """The Lagrangian value of a leaf, over all sets of GPUs; None if a job has none."""
    prices, charges, paid = leaf_terms(instance, certificate, n)
    total = -paid
    for job in instance.jobs:
        values = [
            cost(instance, job, gpus, certificate.kind)
            + sum(prices[gpu] for gpu in gpus)
            + sum(amount for rule, amount in charges if is_counted(instance, rule, job, gpus))
            for gpus in options(instance, job, certificate.kind)
        ]
        if not values:
            return None
        total += min(values)
    return total


def priced_by_options(instance, certificate, n):
    """The same, but every set of an option pays for the cheapest GPUs that the option allows."""
    prices, charges, paid = leaf_terms(instance, certificate, n)
    total = -paid
    for job in instance.jobs:
        values = []
        for gpus in options(instance, job, certificate.kind):
            value = cost(instance, job, gpus, certificate.kind)
            value += sum(a for rule, a in charges if is_counted(instance, rule, job, gpus))
            if is_kept(job, gpus):
                values.append(value + sum(prices[gpu] for gpu in gpus))
                value = moved_value(instance, job, gpus, charges, certificate.kind)
            values.append(value + sum(cheapest(instance, job, gpus, prices)))
        if not values:
            return None
        total += min(values)
    return total


def cheapest(instance, job, gpus, prices):
    if not gpus:
        return []
    domain, limit = domains_around(instance, gpus)[0], slowest(instance, job, gpus)
    pool = [
        prices[gpu]
        for gpu in instance.free_gpus
        if domain in domains_around(instance, [gpu]) and slowest(instance, job, [gpu]) <= limit
    ]
    return sorted(pool)[: job.gpus]


def moved_value(instance, job, gpus, charges, kind):
    """Cost and charges of a running job on other GPUs with the option of those that it holds."""
    value = cost(instance, job, gpus, kind)
    if kind == "prices":
        value += Fraction(job.weight) * Fraction(job.restart_s)
    rules = ((rule, amount) for rule, amount in charges if isinstance(rule, Within))
    return value + sum(a for rule, a in rules if is_counted(instance, rule, job, gpus))


def least_cost(instance, kind="prices"):
    """The optimum, by dynamic programming over sets of taken GPUs; None if there is no plan."""
    best = {frozenset(): Fraction(0)}
    for job in instance.jobs:
        after = {}
        choices = [(frozenset(g), cost(instance, job, g, kind)) for g in options(instance, job)]
        for taken, so_far in best.items():
            for gpus, value in choices:
                if not taken & gpus:
                    key = taken | gpus
                    after[key] = min(after.get(key, so_far + value), so_far + value)
        best = after
    return min(best.values(), default=None)


# --- drawn certificates -------------------------------------------------------------------------

PRICES = st.one_of(st.just(0.0), st.sampled_from([0.25, 0.5, 1.0, 2.0]), st.floats(1e-3, 1e3))


@st.composite
def rules(draw, instance):
    job = draw(st.sampled_from(instance.jobs))
    if job.current and draw(st.booleans()):
        return Keeps(job=job.id)
    limits = [None, *instance.profile.slowdown[job.application_class], 0.1, 1.05]
    limit = draw(st.sampled_from(limits))
    fitting = [
        j.id for j in instance.jobs if limit is None or j.application_class == job.application_class
    ]
    types = draw(st.lists(st.sampled_from(fitting), min_size=1, max_size=2))
    domain = draw(st.sampled_from(instance.topology.domains)).id
    return Within(types=tuple(types), domain=domain, slowest=limit)


@st.composite
def certificates(draw, instance, kind="prices", max_splits=3):
    """A branch-and-bound tree over drawn rules, with drawn prices and nothing stated."""
    counting = tuple(draw(st.lists(rules(instance), max_size=3)))
    within = [n for n, rule in enumerate(counting) if isinstance(rule, Within)]
    nodes, depths = [None], [0]
    for _ in range(draw(st.integers(0, max_splits)) if counting else 0):
        leaf = draw(st.sampled_from([n for n, node in enumerate(nodes) if node is None]))
        cases = draw(st.permutations([len(nodes), len(nodes) + 1]))
        rule = draw(st.integers(0, len(counting) - 1))
        nodes[leaf] = Split(rule=rule, at_most=draw(st.integers(0, 2)), cases=tuple(cases))
        nodes += [None, None]
        depths += [depths[leaf] + 1] * 2
    scale = max(job.weight * (job.remaining_s or 1) for job in instance.jobs)
    price = PRICES if kind == "infeasible" else PRICES.map(lambda value: value * scale)
    for n, node in enumerate(nodes):
        if node is None:
            cuts = draw(st.lists(st.sampled_from(within), max_size=2)) if within else []
            nodes[n] = Leaf(
                gpu_prices=tuple(draw(price) for _ in instance.free_gpus),
                split_prices=tuple(draw(price) for _ in range(depths[n])),
                cuts=tuple(Cut(rule=rule, price=draw(price)) for rule in cuts),
            )
    return PalCertificate(kind=kind, rules=counting, nodes=tuple(nodes))


def with_figure(certificate, value):
    name = "bound" if certificate.kind == "prices" else "left_out"
    return certificate.model_copy(update={name: value})


def below(value):
    """The greatest float at or below a multiple of 2**-192, or the one before it."""
    low = float(Fraction(value, SCALE))
    return low - abs(low) * 2e-16 - 5e-324


ROUNDED = 100  # costs and prices are rounded down to 2**-192 each


@law(400)
@given(pal_instances(max_gpus=7, max_jobs=4, feasible=False), st.data())
def test_values_are_those_of_all_options_and_at_most_those_of_all_sets(instance, data):
    stated_kinds = ["prices", "infeasible"] if instance.admission == "all" else ["prices"]
    certificate = data.draw(certificates(instance, data.draw(st.sampled_from(stated_kinds))))
    for n, value in leaf_values(instance, certificate).items():
        expected = priced_by_options(instance, certificate, n)
        if expected is None:
            assert value is None
            continue
        assert 0 <= expected * SCALE - value < ROUNDED
        by_sets = priced_by_sets(instance, certificate, n)
        assert value <= by_sets * SCALE
        if not certificate.rules:  # options know no thresholds of others, nor which set is kept
            assert by_sets == expected


@law(400)
@given(pal_instances(max_gpus=7, max_jobs=4, feasible=False), st.data())
def test_a_certificate_proves_what_is_true(instance, data):
    """No plan costs less than the least value over the leaves; the verifier takes that and less."""
    certificate = data.draw(certificates(instance))
    values = leaf_values(instance, certificate)
    optimum = least_cost(instance)
    if None in values.values():
        assert optimum is None
        assert prove(instance, with_figure(certificate, 1e300)) == []
        return
    least = min(values.values())
    assert optimum is None or least <= optimum * SCALE
    assert prove(instance, with_figure(certificate, below(least))) == []
    above = float(Fraction(least, SCALE)) + abs(float(Fraction(least, SCALE))) * 1e-12 + 1e-12
    assert [r for r, _ in prove(instance, with_figure(certificate, above))] == ["bound"]


@law(400)
@given(pal_instances(max_gpus=7, max_jobs=4, optional=False, feasible=False), st.data())
def test_no_plan_is_proven_only_if_there_is_none(instance, data):
    certificate = data.draw(certificates(instance, "infeasible"))
    values = leaf_values(instance, certificate).values()
    if least_cost(instance) is not None:
        assert min(values) <= 0
        assert prove(instance, with_figure(certificate, 1e-9))
    elif min(values) > 0:
        assert prove(instance, with_figure(certificate, below(min(values)))) == []


@law(400)
@given(pal_instances(max_gpus=8, max_jobs=4), st.data())
def test_a_plan_costs_at_least_the_value_of_its_case(instance, data):
    certificate = data.draw(certificates(instance))
    left, placed = instance.free_gpus, []
    for job in instance.jobs:
        sets = [g for g in options(instance, job) if set(g) <= set(left)]
        if not sets:
            return
        placed.append((job, data.draw(st.sampled_from(sets))))
        left = [gpu for gpu in left if gpu not in placed[-1][1]]
    n = 0
    while isinstance(node := certificate.nodes[n], Split):
        rule = certificate.rules[node.rule]
        count = sum(is_counted(instance, rule, *pair) for pair in placed)
        n = node.cases[0] if count <= node.at_most else node.cases[1]
    value = leaf_values(instance, certificate)[n]
    assert value <= SCALE * sum(cost(instance, *pair) for pair in placed)
    for rule in certificate.rules:
        if isinstance(rule, Within):
            count = sum(is_counted(instance, rule, *pair) for pair in placed)
            assert count <= capacity(instance, rule)


# --- by hand ------------------------------------------------------------------------------------


def root_only(gpu_prices, cuts=(), **fields):
    leaf = Leaf(gpu_prices=tuple(gpu_prices), cuts=tuple(cuts))
    return PalCertificate(nodes=(leaf,), **fields)


def test_free_gpus_prove_the_best_of_each_job_alone():
    instance = small_instance({"a": 2, "b": 2}, jobs=[2, 2])
    assert prove(instance, root_only([0, 0, 0, 0], bound=2.0)) == []
    broken = prove(instance, root_only([0, 0, 0, 0], bound=nextafter(2.0, inf)))
    assert [str(rule) for rule in broken] == [
        "[bound] nodes[0] proves only 2.0, 2.0000000000000004 is stated"
    ]


def test_prices_prove_that_fast_gpus_are_scarce():
    """Both want the only GPU without slowdown; a price of 1 makes them indifferent."""
    instance = small_instance({"a": 2}, {"A": [1.0, 2.0]}, jobs=[1, 1])
    assert prove(instance, root_only([1, 0], bound=3.0)) == []
    assert prove(instance, root_only([0, 0], bound=3.0))
    assert prove(instance, root_only([3, 0], bound=3.0))


def test_one_gpu_meets_in_its_node_and_a_gang_in_the_lowest_domain():
    """In one node stands all that is fast: a set of the cluster has a slower GPU, or costs more."""
    instance = small_instance(
        {"a": 2, "b": 1}, {"A": [1.0, 1.0, 4.0]}, jobs=[2], unavailable=["a/1"]
    )
    assert prove(instance, root_only([0, 0], bound=6.0)) == []
    instance = small_instance({"a": 1, "b": 1}, jobs=[{"gpus": 1}])
    rule = Within(types=("j0",), domain="a")
    split = Split(rule=0, at_most=0, cases=(1, 2))
    leaf = Leaf(gpu_prices=(0, 9), split_prices=(9,))
    nodes = (split, leaf, Leaf(gpu_prices=(0, 0), split_prices=(0,)))
    certificate = PalCertificate(rules=(rule,), nodes=nodes)
    assert leaf_values(instance, certificate) == {1: SCALE, 2: SCALE}


def capped(*jobs):
    return [{"gpus": size, "highest_level": "node"} for size in jobs]


def infeasible(instance, prices, cuts=(), left_out=1.0, **fields):
    return prove(instance, root_only(prices, cuts, kind="infeasible", left_out=left_out, **fields))


def test_two_gangs_on_one_node_and_fragments():
    instance = small_instance({"a": 2, "b": 1, "c": 1}, jobs=capped(2, 2))
    assert infeasible(instance, [0.5, 0.5, 0, 0]) == []
    assert [r for r, _ in infeasible(instance, [0.5, 0.5, 0, 0], left_out=1.0000000000000002)] == [
        "left-out"
    ]
    assert [r for r, _ in infeasible(instance, [0, 0, 0, 0])] == ["left-out"]
    assert [r for r, _ in infeasible(instance, [0.5, 0.5, 0.5, 0])] == ["left-out"]


@pytest.mark.parametrize("nodes", [{"a": 2, "b": 2}, {"a": 4}])
def test_a_proof_that_no_plan_exists_is_refused_where_one_does(nodes):
    instance = small_instance(nodes, jobs=capped(2, 2) if len(nodes) > 1 else [2, 2])
    for prices in ([0.5] * 4, [0.5, 0.5, 0, 0], [0.0] * 4, [100.0, 0, 0, 100.0]):
        assert [r for r, _ in infeasible(instance, prices, left_out=5e-324)] == ["left-out"]


def test_a_cut_counts_whole_gangs():
    """Three GPUs hold one gang of two: without the cut, prices leave out half a job."""
    instance = small_instance({"a": 3, "b": 1}, jobs=capped(2, 2))
    rule = Within(types=("j0",), domain="a")
    assert infeasible(instance, [0.5, 0.5, 0.5, 0], left_out=0.5) == []
    assert infeasible(instance, [0.5, 0.5, 0.5, 0])
    assert infeasible(instance, [0] * 4, [Cut(rule=0, price=1)], rules=(rule,)) == []
    faster = rule.model_copy(update={"slowest": 0.5})
    assert infeasible(instance, [0] * 4, [Cut(rule=0, price=1)], rules=(faster,))


def test_a_job_without_any_place_proves_everything():
    instance = small_instance({"a": 1, "b": 1}, jobs=[*capped(2), {"gpus": 1}])
    assert prove(instance, root_only([0, 0], bound=1e308)) == []
    assert infeasible(instance, [0, 0]) == []
    optional = instance.changed({"jobs.*.reward": 3, "admission": "optional"})
    assert prove(optional, root_only([0, 0], bound=4.0)) == []
    assert prove(optional, root_only([0, 0], bound=4.1))


def test_a_running_job_stays_moves_or_is_left_out():
    job = {"gpus": 1, "remaining_s": 10.0, "current": ["a/1"], "restart_s": 3.0}
    instance = small_instance({"a": 2}, {"A": [1.0, 1.5]}, jobs=[job])
    assert prove(instance, root_only([0, 0], bound=13.0)) == []
    assert prove(instance, root_only([0, 0], bound=13.1))
    expensive = instance.changed({"jobs.0.restart_s": 30})
    assert prove(expensive, root_only([0, 0], bound=15.0)) == []
    gone = expensive.changed({"unavailable": ["a/1"]})
    assert prove(gone, root_only([0], bound=40.0)) == []
    optional = expensive.changed({"admission": "optional", "jobs.0.reward": 12})
    assert prove(optional, root_only([0, 0], bound=12.0)) == []
    assert prove(optional, root_only([0, 0], bound=12.1))


def test_a_job_that_stays_is_counted_where_it_stands():
    """Staying costs 15, moving 1010; a charge of 9 is for those on GPUs up to 1.5 in node a."""
    job = {"gpus": 1, "remaining_s": 10.0, "current": ["a/0"], "restart_s": 1000.0}
    instance = small_instance({"a": 1, "b": 1}, {"A": [1.5, 1.0]}, jobs=[job])
    leaves = [Leaf(gpu_prices=(0, 0), split_prices=(price,)) for price in (9, 0)]
    nodes = (Split(rule=0, at_most=0, cases=(1, 2)), *leaves)
    for domain, limit, value in (("a", 1.5, 24), ("all", None, 24), ("a", 1.4, 15), ("b", 2, 15)):
        rule = Within(types=("j0",), domain=domain, slowest=limit)
        certificate = PalCertificate(rules=(rule,), nodes=nodes)
        assert leaf_values(instance, certificate) == {1: value * SCALE, 2: 15 * SCALE}


def test_a_charge_of_fast_gpus_is_not_for_slow_ones():
    instance = small_instance({"a": 3}, {"A": [1.0, 2.0, 3.0]}, jobs=[1])
    leaves = [Leaf(gpu_prices=(0, 0, 0), split_prices=(price,)) for price in (100, 0)]
    nodes = (Split(rule=0, at_most=0, cases=(1, 2)), *leaves)
    for limit, value in ((0.9, 1), (1.0, 2), (1.5, 2), (2.0, 3), (3.0, 101), (None, 101)):
        rule = Within(types=("j0",), domain="a", slowest=limit)
        certificate = PalCertificate(rules=(rule,), nodes=nodes)
        assert leaf_values(instance, certificate) == {1: value * SCALE, 2: SCALE}


def test_a_job_cannot_stay_beyond_its_cap():
    job = {"gpus": 2, "remaining_s": 10.0, "current": ["a/0", "b/0"], "restart_s": 30.0}
    instance = small_instance({"a": 2, "b": 2}, jobs=[job | {"highest_level": "node"}])
    assert prove(instance, root_only([0] * 4, bound=40.0)) == []
    loose = small_instance({"a": 2, "b": 2}, jobs=[job])
    assert prove(loose, root_only([0] * 4, bound=15.0)) == []
    assert prove(loose, root_only([0] * 4, bound=15.1))


def test_jobs_that_differ_are_of_different_types():
    """A rule counts the jobs that equal the one it names: here a charge of 100 doubles nothing."""
    base = {"gpus": 1, "remaining_s": 10.0, "weight": 1.0, "reward": 1000.0}
    rule = Within(types=("j0",), domain="a")
    leaves = [Leaf(gpu_prices=(0, 0), split_prices=(price,)) for price in (100, 0)]
    nodes = (Split(rule=0, at_most=0, cases=(1, 2)), *leaves)
    certificate = PalCertificate(rules=(rule,), nodes=nodes)
    for other, charged in (
        ({}, 2),
        ({"restart_s": 5.0}, 2),
        ({"weight": 2.0}, 1),
        ({"remaining_s": 5.0}, 1),
        ({"reward": 999.0}, 1),
        ({"highest_level": "node"}, 1),
        ({"current": ["a/0"], "restart_s": 0.0}, 1),
    ):
        instance = small_instance({"a": 2}, jobs=[base, base | other])
        with_charge, without = leaf_values(instance, certificate).values()
        assert with_charge - without == charged * 100 * SCALE


# --- tampering ----------------------------------------------------------------------------------

RUNNING = {"current": ["a/0"], "remaining_s": 10.0, "restart_s": 2.0}
INSTANCE = small_instance(
    {"a": 2, "b": 2},
    {"A": [1.5, 1.0, 1.25, 2.0], "B": [1.0, 1.0, 1.0, 1.0]},
    jobs=[
        {"gpus": 1, **RUNNING},
        {"gpus": 2, "remaining_s": 10.0},
        {"gpus": 1, "remaining_s": 8.0, "application_class": "B"},
    ],
)
PROOF = {
    "kind": "prices",
    "rules": [
        {"types": ["j1"], "domain": "b", "slowest": 2.0},
        {"job": "j0"},
        {"types": ["j1", "j2"], "domain": "a"},
    ],
    "nodes": [
        {"rule": 0, "at_most": 0, "cases": [1, 2]},
        {"rule": 1, "at_most": 0, "cases": [4, 3]},
        {"gpu_prices": [0, 4, 1, 0], "split_prices": [3], "cuts": [{"rule": 2, "price": 0.5}]},
        {"gpu_prices": [1, 3, 0, 0], "split_prices": [8, 2], "cuts": [{"rule": 0, "price": 1}]},
        {"gpu_prices": [0, 5, 2, 0], "split_prices": [6, 3]},
    ],
}


def proof(changes=()):
    """Return the certificate with the values at some paths replaced, as read from a file."""
    document = copy.deepcopy(PROOF)
    for path, value in dict(changes).items():
        place = document
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = value
    return PalCertificate.model_validate_json(json.dumps(document))


VALUES = leaf_values(INSTANCE, proof())
BOUND = min(VALUES.values()) / SCALE


def refused(changes):
    broken = prove(INSTANCE, proof({("bound",): BOUND, **changes}))
    assert all(rule.message for rule in broken)
    return [name for name, _ in broken], " ".join(rule.message for rule in broken)


def test_the_untouched_certificate_is_proven():
    assert refused({}) == ([], "")
    for n, value in VALUES.items():
        assert value == priced_by_options(INSTANCE, proof(), n) * SCALE
    assert Fraction(BOUND) * SCALE == min(VALUES.values())
    assert least_cost(INSTANCE) == BOUND == 37.5


NO_PLAN = {("kind",): "infeasible", ("bound",): None}


@pytest.mark.parametrize(
    ("changes", "rules", "message"),
    [
        ({("bound",): None}, ["bound"], "the certificate states none"),
        ({("bound",): nextafter(BOUND, inf)}, ["bound"], "is stated"),
        ({("left_out",): 1.0}, ["left-out"], "prices of costs prove nothing"),
        ({("kind",): "infeasible"}, ["bound", "left-out"], "has no bound"),
        (NO_PLAN | {("left_out",): 0}, ["left-out"], "none, 0.0 is"),
        (NO_PLAN | {("left_out",): -1}, ["left-out"], "more than"),
        (NO_PLAN | {("left_out",): 1}, ["left-out"], "proves only"),
        ({("nodes", 0, "cases"): [1, 1]}, ["tree", "tree"], "nodes[2] is a branch of 0 splits"),
        ({("nodes", 0, "cases"): [1, 3]}, ["tree", "tree"], "nodes[3] is a branch of 2 splits"),
        ({("nodes", 0, "cases"): [1, 9]}, ["tree", "tree"], "nodes[9], but there are 5"),
        ({("nodes", 0, "cases"): [0, 2]}, ["tree", "tree"], "nodes[0], which is not behind it"),
        ({("nodes", 1, "cases"): [4, 0]}, ["tree", "tree"], "nodes[1] has the branch nodes[0]"),
        ({("nodes", 1, "cases"): [4, 1]}, ["tree"] * 3, "nodes[1] is a branch of 2 splits"),
        ({("nodes", 1, "cases"): [4, 10**400]}, ["tree", "tree"], "but there are 5"),
        ({("nodes",): [PROOF["nodes"][2]] * 2}, ["tree"], "nodes[1] is a branch of 0 splits"),
        ({("nodes",): [PROOF["nodes"][2]]}, ["one-price-per-split"], "1 prices for 0 splits"),
        ({("nodes", 0, "rule"): 3}, ["known-rule"], "splits by rules[3], but there are 3"),
        ({("nodes", 2, "cuts", 0, "rule"): 3}, ["known-rule"], "cuts by rules[3], but there"),
        ({("nodes", 2, "cuts", 0, "rule"): 1}, ["cut"], "which counts no jobs in a domain"),
        ({("nodes", 2, "gpu_prices"): [0, 4, 1]}, ["one-price-per-gpu"], "has 3 prices for 4"),
        ({("nodes", 3, "gpu_prices"): [1] * 5}, ["one-price-per-gpu"], "nodes[3] has 5 prices"),
        ({("nodes", 3, "split_prices"): [8]}, ["one-price-per-split"], "1 prices for 2 splits"),
        ({("nodes", 4, "split_prices"): [8] * 3}, ["one-price-per-split"], "3 prices for 2"),
        ({("rules", 0, "types"): ["j1", "j7"]}, ["known-job"], "rules[0]: the instance has no"),
        ({("rules", 1, "job"): "j7"}, ["known-job"], "rules[1]: the instance has no job 'j7'"),
        ({("rules", 1, "job"): "j1"}, ["running-job"], "job 'j1' holds no GPUs to keep"),
        ({("rules", 0, "domain"): "d"}, ["known-domain"], "the topology has no domain 'd'"),
        ({("rules", 2, "slowest"): 2.0}, ["one-class"], "its types are of 'A', 'B'"),
        (
            {("rules", 0, "domain"): "d", ("rules", 1, "job"): "j7", ("nodes", 0, "rule"): 7},
            ["known-domain", "known-job", "known-rule"],
            "",
        ),
    ],
)
def test_what_is_wrong_with_a_certificate_is_named(changes, rules, message):
    named, text = refused(changes)
    assert sorted(named) == rules
    assert message in text


def test_a_file_of_the_kind_misfit_is_told_its_new_name(tmp_path):
    result = json.loads(optsched.solve(INSTANCE).to_json())
    path = tmp_path / "result.json"
    path.write_text(json.dumps(result | {"certificate": PROOF | {"kind": "misfit"}}))
    with pytest.raises(optsched.InstanceError) as error:
        read_result(path)
    line = "certificate.kind: expected 'infeasible' (the new name of 'misfit'), found \"misfit\""
    assert error.value.faults == [line]


@pytest.mark.parametrize(
    "changes",
    [
        {("nodes", 2, "gpu_prices", 1): 0},
        {("nodes", 2, "gpu_prices", 0): 9},
        {("nodes", 3, "gpu_prices", 0): 9},
        {("nodes", 4, "gpu_prices", 1): 0},
        {("nodes", 2, "split_prices", 0): 0},
        {("nodes", 3, "split_prices", 1): 0},
        {("nodes", 4, "split_prices", 1): 0},
        {("nodes", 2, "cuts", 0, "price"): 50},
        {("nodes", 0, "at_most"): 5, ("nodes", 4, "split_prices", 0): 50},
        {("nodes", 1, "at_most"): 9, ("nodes", 4, "split_prices", 1): 50},
        {("rules", 0, "domain"): "a", ("nodes", 2, "split_prices", 0): 50},
    ],
)
def test_prices_that_lower_a_value_prove_less(changes):
    assert refused(changes)[0] == ["bound"]


def test_a_certificate_of_another_instance_is_refused():
    certificate = proof({("bound",): BOUND})
    cheaper = INSTANCE.changed({"jobs.*.remaining_s": 7})
    assert [rule for rule, _ in prove(cheaper, certificate)] == ["bound"]
    smaller = INSTANCE.changed({"unavailable": ["b/1"]})
    assert [rule for rule, _ in prove(smaller, certificate)] == ["one-price-per-gpu"] * 3


def test_no_plan_cannot_be_proven_where_jobs_may_be_left_out():
    optional = INSTANCE.changed({"admission": "optional", "jobs.*.reward": 1})
    assert "infeasible" in [rule for rule, _ in infeasible(optional, [1, 1, 1, 1])]


@pytest.mark.parametrize("value", [inf, -inf, nan])
def test_figures_that_are_no_numbers_are_refused(value):
    certificate = proof().model_copy(update={"bound": value})
    assert [rule for rule, _ in prove(INSTANCE, certificate)] == ["bound"]
    assert [r for r, _ in infeasible(INSTANCE, [0] * 4, left_out=value)] == ["left-out"]
    rules = (proof().rules[0].model_copy(update={"slowest": value}), *proof().rules[1:])
    certificate = proof({("bound",): BOUND}).model_copy(update={"rules": rules})
    assert [rule for rule, _ in prove(INSTANCE, certificate)] == ["slowest"]


@pytest.mark.parametrize("price", [1.7e308, 1e300, 5e-324])
def test_extreme_prices_are_priced(price):
    broken = prove(INSTANCE, root_only([price, 0, 0, 0], bound=35.0))
    assert [rule for rule, _ in broken] == (["bound"] if price > 1 else [])
    assert prove(INSTANCE, root_only([price] * 4, bound=35.0)) == []  # all four are taken
    assert prove(INSTANCE, root_only([price] * 4, bound=nextafter(35.0, inf)))


def test_a_deep_tree_is_walked():
    """A chain of 1200 splits, which no recursion would bear."""
    depth = 1200
    nodes = []
    for n in range(depth):
        nodes.append(Split(rule=0, at_most=0, cases=(2 * n + 1, 2 * n + 2)))
        nodes.append(Leaf(gpu_prices=(0,) * 4, split_prices=(0,) * (n + 1)))
    nodes.append(Leaf(gpu_prices=(0,) * 4, split_prices=(0,) * depth))
    certificate = PalCertificate(bound=35.0, rules=(proof().rules[0],), nodes=tuple(nodes))
    assert prove(INSTANCE, certificate) == []


JOB_IDS = st.sampled_from(["j0", "j1", "j2", "", "j9"])
SMALL = st.one_of(st.integers(0, 4), st.just(10**30))
ANY_PRICE = st.floats(0, allow_infinity=False)
NODES = st.one_of(
    st.builds(Split, rule=SMALL, at_most=SMALL, cases=st.tuples(SMALL, SMALL)),
    st.builds(
        Leaf,
        gpu_prices=st.lists(ANY_PRICE, min_size=3, max_size=4),
        split_prices=st.lists(ANY_PRICE, max_size=2),
        cuts=st.lists(st.builds(Cut, rule=SMALL, price=ANY_PRICE), max_size=2),
    ),
)
WITHIN = st.builds(
    Within,
    types=st.lists(JOB_IDS, min_size=1, max_size=2),
    domain=st.sampled_from(["a", "b", "all", "x"]),
    slowest=st.one_of(st.none(), st.floats()),
)


@given(
    st.builds(
        PalCertificate,
        kind=st.sampled_from(["prices", "infeasible"]),
        bound=st.one_of(st.none(), st.floats()),
        left_out=st.one_of(st.none(), st.floats()),
        rules=st.lists(st.one_of(WITHIN, st.builds(Keeps, job=JOB_IDS)), max_size=3),
        nodes=st.lists(NODES, min_size=1, max_size=5),
    )
)
def test_whatever_a_certificate_holds_there_is_a_verdict(certificate):
    broken = prove(INSTANCE, certificate)
    assert all(str(rule) for rule in broken)
    is_true = certificate.kind == "prices" and not broken
    assert not is_true or certificate.bound <= least_cost(INSTANCE)
    assert certificate.kind == "prices" or broken


def test_classes_that_differ_on_unavailable_gpus_alone_count_as_one():
    document = optsched.read("pal/overfull").model_dump(mode="json", by_alias=True)
    gpu, slowdown = document["profile"]["gpus"][-1], document["profile"]["slowdown"]
    document["unavailable"] = [gpu]
    for name in list(slowdown):
        slowdown[f"{name}-also"] = [*slowdown[name][:-1], slowdown[name][-1] + 0.5]
    for job in document["jobs"][::2]:
        job["application_class"] += "-also"
    for job in document["jobs"]:
        assert gpu not in job["current"]
    instance = PalInstance.from_document(document)
    result = optsched.solve(instance, gap=1e-3)
    assert any(len(getattr(rule, "types", ())) > 1 for rule in result.certificate.rules)
    optsched.verify(instance, result)
