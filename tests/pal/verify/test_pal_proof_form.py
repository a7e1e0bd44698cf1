"""The verifier of PAL on documents that nobody validated: always a verdict, never a false one."""

from math import inf, nan

import pytest

from optsched.eaco.plan import EacoCertificate
from optsched.pal import PalCertificate
from optsched.pal.plan import Cut, Leaf, Split, Within
from optsched.pal.verify.certificate import prove, terms
from tests.support.strategies.pal import small_instance

TWO = {"a": 2, "b": 2}


def instance(**fields):
    """Two jobs of two GPUs; the optimum is 2."""
    return small_instance(TWO, jobs=[2, 2], **fields)


def flat(prices=(0.0,) * 4, bound=2.0, **fields):
    leaf = Leaf.model_construct(gpu_prices=prices, split_prices=(), cuts=())
    parts = {"kind": "prices", "left_out": None, "rules": (), "exclusions": (), "nodes": (leaf,)}
    return PalCertificate.model_construct(bound=bound, **(parts | fields))


def split(at_most, split_prices=(0.0, 0.0)):
    """One rule that counts both jobs in node a, and two leaves."""
    nodes = [Split.model_construct(rule=0, at_most=at_most, cases=(1, 2))]
    for price in split_prices:
        nodes.append(Leaf.model_construct(gpu_prices=(0.0,) * 4, split_prices=(price,), cuts=()))
    return flat(rules=(Within(types=("j0",), domain="a"),), nodes=tuple(nodes))


def test_what_was_copied_unchanged_is_proven():
    assert prove(instance(), flat()) == []
    assert prove(instance(), split(0)) == []


@pytest.mark.parametrize("price", [-1.0, -5e-324, nan, inf, -inf, 10**400, "1", None, (), True])
def test_a_price_that_is_none_is_refused(price):
    """A negative one would prove any bound: GPUs that nobody takes would be paid for."""
    assert prove(instance(), flat((price, 0.0, 0.0, 0.0), bound=2.0))
    assert prove(instance(), split(0, (price, 0.0)))
    cut = Cut.model_construct(rule=0, price=price)
    leaf = Leaf.model_construct(gpu_prices=(0.0,) * 4, split_prices=(), cuts=(cut,))
    assert prove(instance(), flat(rules=split(0).rules, nodes=(leaf,)))


def test_negative_prices_proved_a_false_bound():
    one = small_instance({"a": 2}, jobs=[1])
    assert {rule for rule, _ in prove(one, flat((0.0, -5.0), bound=1.5))} == {"certificate"}


@pytest.mark.parametrize("at_most", [0.5, -1, nan, "0", None])
def test_a_split_between_whole_numbers_is_refused(at_most):
    """A count is at most 0.5 or at least 1.5 in no plan that has one."""
    assert [rule for rule, _ in prove(instance(), split(at_most))] == ["certificate"]


@pytest.mark.parametrize(
    "fields",
    [
        {"nodes": ()},
        {"nodes": ({"gpu_prices": ()},)},
        {"nodes": None},
        {"nodes": 7},
        {"rules": (7,)},
        {"kind": "word"},
        {"kind": None},
        {"bound": nan},
        {"bound": inf},
        {"bound": "2"},
        {"bound": None},
        {"nodes": (Split.model_construct(rule=0, at_most=0, cases=(-(10**5000), 10**5000)),)},
    ],
)
def test_a_certificate_of_another_form_gets_a_verdict(fields):
    assert prove(instance(), flat(**fields))


@pytest.mark.parametrize("certificate", [None, 7, "proof", EacoCertificate.model_construct()])
def test_what_is_no_certificate_of_pal_gets_a_verdict(certificate):
    assert [rule for rule, _ in prove(instance(), certificate)] == ["certificate"]


def test_a_split_far_above_every_count_is_proven():
    assert prove(instance(), split(10**3000)) == []


def copy_with(**job):
    first, *rest = instance().jobs
    return instance().model_copy(update={"jobs": (first.model_copy(update=job), *rest)})


@pytest.mark.parametrize("value", [-1.0, nan, inf, -inf, 10**400, "1", ()])
@pytest.mark.parametrize("field", ["weight", "remaining_s", "restart_s", "reward"])
def test_a_figure_that_is_none_is_refused(field, value):
    (fault,) = prove(copy_with(**{field: value}), flat())
    assert fault.rule in ("figures", "instance")


@pytest.mark.parametrize("gpus", [0, -1, 1.5, None, "2"])
def test_a_gang_of_no_size_is_refused(gpus):
    assert prove(copy_with(gpus=gpus), flat())


@pytest.mark.parametrize("value", [-1.0, nan, inf, "1", None])
def test_a_slowdown_that_is_none_is_refused(value):
    plain = instance()
    slowdown = {"A": (value, 1.0, 1.0, 1.0)}
    profile = plain.profile.model_copy(update={"slowdown": slowdown})
    assert prove(plain.model_copy(update={"profile": profile}), flat())


def test_costs_above_all_floats_are_not_taken_for_no_way_to_place_a_job():
    """With 2**4096 for "never", one bound after the other was proven of what costs too much."""
    huge = copy_with(weight=1e308, remaining_s=1e308)
    slow = {"A": (1e308,) * 4}
    profile = huge.profile.model_copy(update={"slowdown": slow})
    locality = {"m": (1e308, 1e308)}
    huge = huge.model_copy(update={"profile": profile, "locality": locality})
    split_prices = (0.0, 0.0)
    assert prove(huge, flat(bound=1.7e308)) == []
    leaf = Leaf(gpu_prices=(0.0,) * 4)
    infeasible = flat(kind="infeasible", bound=None, left_out=0.5, nodes=(leaf,))
    assert prove(huge, infeasible)
    assert prove(huge, split(0, split_prices)) == []


@pytest.mark.parametrize("figure", [5e-324, 1e-300, 1e-100, 1e-60])
def test_tiny_figures_are_rounded_down(figure):
    """Below 2**-192 nothing is left of a cost; a bound above it is never proven."""
    tiny = instance().model_copy(
        update={"jobs": tuple(j.model_copy(update={"weight": figure}) for j in instance().jobs)}
    )
    assert prove(tiny, flat(bound=0.0)) == []
    assert prove(tiny, flat(bound=2 * figure * (1 + 1e-15) + 5e-324))


@pytest.mark.parametrize(
    "domain",
    [
        {"parent": "b"},  # itself
        {"parent": "nowhere"},
        {"parent": None},
        {"level": "rack"},
        {"id": "a"},
        {"gpus": ("a/0", "a/1")},
    ],
)
def test_domains_that_are_no_tree_get_a_verdict(domain):
    plain = instance()
    domains = [d.model_copy(update=domain) if d.id == "b" else d for d in plain.topology.domains]
    topology = plain.topology.model_copy(update={"domains": tuple(domains)})
    assert prove(plain.model_copy(update={"topology": topology}), flat())


@pytest.mark.parametrize(
    "job",
    [
        {"application_class": "Z"},
        {"model": "z"},
        {"highest_level": "z"},
        {"current": ("a/0", "nowhere")},
        {"current": ("a/0",)},
        {"id": "j1"},
    ],
)
def test_jobs_that_name_what_is_not_there_get_a_verdict(job):
    prove(copy_with(**job), flat())


def test_terms_rise_with_what_there_is_to_reckon():
    small, tree = flat(), split(0)
    assert 0 < terms(instance(), small) < terms(instance(), tree)
    wider = small_instance({"a": 4, "b": 4}, jobs=[2, 2])
    assert terms(instance(), small) < terms(wider, small)
    longer = tree.model_copy(update={"exclusions": (Leaf(gpu_prices=(0.0,) * 4),) * 3})
    assert terms(instance(), tree) < terms(instance(), longer)
