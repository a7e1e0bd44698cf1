"""The choice problem: plans against brute force and scipy, bounds against the verifier."""

import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.proving.rounds import Choice, Round, sia_cost, verify_round
from optsched.certificates.bound_tree import Split
from optsched.sia import ChoiceCertificate
from optsched.sia.verify.certificate import Prices, prove, violations
from optsched.sia.verify.reduced_cost_filter import ReducedCostFilter
from optsched.verification import Violation
from tests.support.strategies.common import law

NICE = st.integers(-3, 9).map(float)
UGLY = st.floats(-50, 50).map(lambda x: round(x, 9))
USES = st.one_of(st.just(0.0), st.integers(0, 4).map(float), st.floats(0.001, 5))


@st.composite
def rounds(draw, capacities, numbers):
    """Options of few jobs, numbered as they come and go; with or without one that uses nothing."""
    costs = draw(st.sampled_from([NICE, UGLY, st.just(0.0)]))
    uses = draw(st.sampled_from([USES, st.integers(0, 4).map(float)]))
    options = {}
    for job in draw(st.sets(numbers, min_size=1, max_size=5)):
        many = draw(st.integers(1, 4))
        rows = [(draw(costs), [draw(uses) for _ in range(capacities)]) for _ in range(many)]
        options[job] = rows + [(draw(costs), [0.0] * capacities)] * draw(st.booleans())
    return Round.of(options, [draw(st.integers(0, 8).map(float)) for _ in range(capacities)])


def best(instance):
    """The least cost of all plans, one by one; None if there is none."""
    costs = [
        instance.objective(plan)
        for plan in itertools.product(*(range(count) for count in instance.counts))
        if not violations(instance, plan)
    ]
    return min(costs, default=None)


@law(2000)
@given(st.data())
def test_the_best_of_all_plans_round_after_round(data):
    """Also: bounds are proven, and what is left of other rounds changes no optimum."""
    capacities = data.draw(st.integers(0, 3))
    choice = Choice(gap=1e-6, most_nodes=10_000)
    for _ in range(data.draw(st.integers(1, 2))):
        capacities = data.draw(st.sampled_from([capacities, capacities, capacities, 0, 3]))
        instance = data.draw(rounds(capacities, st.integers(0, 6)))
        choice = pickle.loads(pickle.dumps(choice)) if data.draw(st.booleans()) else choice
        chosen, least = choice.decide(instance), best(instance)
        verify_round(instance, chosen)
        if least is None:
            assert (chosen.status, chosen.plan, chosen.bound) == ("infeasible", None, None)
        else:
            assert chosen.status == "optimal"
            size = max(abs(chosen.objective), instance.gap_scale(chosen.plan))
            assert least <= chosen.objective <= least + 1e-6 * size


def placements(seed, jobs=60, capacities=3, wait=True):
    """Jobs of up to 4 widths on some kinds of GPUs, of which there are too few."""
    rng = np.random.default_rng(seed)
    options = {}
    for job in range(jobs):
        pace = rng.uniform(1, 4, capacities)
        rows = [(1.1 if wait else 9.0, [0.0] * capacities)]
        for kind, width in itertools.product(range(capacities), (1, 2, 4, 8)[: rng.integers(1, 5)]):
            use = [0.0] * capacities
            use[kind] = float(width)
            rows.append((float((pace[kind] * width ** rng.uniform(0.5, 1)) ** -0.5), use))
        options[job] = rows
    return Round.of(options, [float(jobs // 2), jobs // 4, jobs // 4])


def by_scipy(instance):
    """The optimum, by the HiGHS in scipy on all options at once."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    own = (instance.job == np.arange(len(instance.jobs))[:, None]).astype(float)
    rows = [
        LinearConstraint(own, 1, 1),
        LinearConstraint(instance.use.T, -np.inf, instance.capacity),
    ]
    whole, options = np.ones(len(instance.cost)), {"mip_rel_gap": 1e-9}
    return milp(instance.cost, integrality=whole, bounds=Bounds(0, 1), constraints=rows,
                options=options).fun  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_as_good_as_scipy(seed):
    instance = placements(seed)
    least = by_scipy(instance)
    exact = Choice(gap=1e-6, most_nodes=5_000).decide(instance)
    verify_round(instance, exact)
    assert exact.status == "optimal"
    assert exact.objective == pytest.approx(least, rel=2e-6)
    quick = Choice(gap=1e-3).decide(instance)
    assert quick.status == "optimal"
    assert quick.bound <= least * (1 + 1e-9) <= quick.objective * (1 + 2e-9)
    assert quick.gap <= 1e-3


def test_a_warm_round_is_as_good_as_a_cold_one_for_less():
    rng, choice = np.random.default_rng(0), Choice(gap=1e-4)
    instance, programs = placements(5, jobs=900), []
    for _ in range(4):
        warm, cold = choice.decide(instance), Choice(gap=1e-4).decide(instance)
        for chosen in (warm, cold):
            verify_round(instance, chosen)
            assert chosen.status == "optimal"
        assert warm.bound <= cold.objective
        assert cold.bound <= warm.objective
        programs.append(warm.programs)
        costs = np.where(
            instance.use.any(axis=1), instance.cost * rng.uniform(0.98, 1.02), instance.cost
        )
        instance = Round(instance.jobs, instance.counts, costs, instance.use, instance.capacity)
    assert max(programs[1:]) <= programs[0] + 5


def test_memory_goes_through_a_pickle_and_changes_no_byte():
    choices = [Choice(gap=1e-5), Choice(gap=1e-5)]
    for seed in range(4):
        instance = placements(seed, jobs=40)
        one, other = (choice.decide(instance) for choice in choices)
        assert one.certificate == other.certificate
        assert (one.plan == other.plan).all()
        choices[1] = pickle.loads(pickle.dumps(choices[1]))


def test_few_nodes_leave_an_honest_gap():
    instance = placements(1, wait=False)
    chosen = Choice(gap=0.0, most_nodes=1).decide(instance)
    verify_round(instance, chosen)
    if chosen.plan is not None:
        assert chosen.status in ("feasible", "optimal")
        assert chosen.bound <= chosen.objective


def test_sizes_of_bytes_and_of_thousandths():
    """Uses of 1e9 and costs of 1e-3: neither the program nor its prices lose them."""
    small = placements(2, jobs=20)
    sizes = small.use * 2**30, small.capacity * 2**30
    large = Round(small.jobs, small.counts, small.cost / 1e3, *sizes)
    one, other = (
        Choice(gap=1e-6, most_nodes=5_000).decide(instance) for instance in (small, large)
    )
    verify_round(large, other)
    assert other.objective == pytest.approx(one.objective / 1e3, rel=3e-6)


def test_no_jobs_and_no_capacities():
    chosen = Choice().decide(Round.of({}, [4.0]))
    verify_round(Round.of({}, [4.0]), chosen)
    assert (chosen.plan.tolist(), chosen.objective, chosen.bound) == ([], 0.0, 0.0)
    free = Round.of({"a": [(3.0, []), (2.0, [])]}, [])
    assert Choice().decide(free).plan.tolist() == [1]


# --- the verifier -----------------------------------------------------------------------------

PAIR = Round.of({"a": [(0.0, [2.0]), (5.0, [0.0])], "b": [(0.0, [2.0]), (7.0, [0.0])]}, [3.0])


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ([0], "1 options are chosen, but there are 2 jobs"),
        ([0, 2], "job 'b' takes option 2, but it has 2"),
        ([-1, 0], "job 'a' takes option -1"),
        ([0, 0], "4.0 is taken of capacity 0, which is 3.0"),
    ],
)
def test_plans_that_break_rules(plan, words):
    assert words in str(violations(PAIR, plan)[0])


def test_capacities_are_kept_without_tolerance():
    instance = Round.of({n: [(0.0, [0.1])] for n in range(3)}, [0.3])  # 3 x 0.1 is more than 0.3
    assert violations(instance, [0, 0, 0])
    assert Choice().decide(instance).plan is None
    options = [(0.0, [0.1]), (1.0, [0.1 - 2**-50])]  # HiGHS sees no difference
    chosen = Choice().decide(Round.of(dict.fromkeys("abc", options), [0.3]))
    assert sorted(chosen.plan.tolist()) == [0, 0, 1]


@pytest.mark.parametrize(
    ("bound", "nodes", "words"),
    [
        (3.6, [Prices(prices=(2.5,))], "nodes[0] proves 2.5 only"),
        (0.0, [Prices(prices=(1.7e308,))], "nodes[0] proves less than every float only"),
        (math.inf, [Prices(prices=(2.5,))], "inf is stated"),
        (math.nan, [Prices(prices=(2.5,))], "nan is stated"),
        (None, [Prices(prices=(2.5,))], "does not prove that there is no plan"),
        (None, [Prices(kind="infeasible", prices=(2.5,))], "does not prove that there is no plan"),
        (1.0, [Prices(kind="infeasible", prices=(2.5,))], "does not prove that there is no plan"),
        (1.0, [Prices(prices=())], "0 prices for 1 capacities"),
        (1.0, [Split(rule=9, at_most=0, cases=(1, 2)), *[Prices(prices=(0,))] * 2], "rules[9]"),
        (0.0, [Split(rule=0, at_most=1, cases=(1, 2)), *[Prices(prices=(0,))] * 2], "splits at 1"),
        (5.0, [Split(rule=0, at_most=0, cases=(1, 2)), *[Prices(prices=(0,))] * 2],
         "nodes[2] proves 0.0 only"),
    ],
)  # fmt: skip
def test_certificates_that_do_not_prove(bound, nodes, words):
    broken = prove(PAIR, ChoiceCertificate(bound=bound, nodes=tuple(nodes)))
    assert words in " ".join(map(str, broken))


def test_a_tree_proves_what_prices_alone_do_not():
    split = Split(rule=0, at_most=0, cases=(1, 2))
    leaves = Prices(prices=(0.0,)), Prices(prices=(3.5,))
    assert not prove(PAIR, ChoiceCertificate(bound=3.5, nodes=(split, *leaves)))
    chosen = Choice(gap=0.0).decide(PAIR)
    verify_round(PAIR, chosen)
    assert (chosen.objective, chosen.status) == (5.0, "optimal")
    assert chosen.bound == pytest.approx(5)


SIZES = st.one_of(
    st.sampled_from([0.0, 1.0, 5e-324, 2.0**-1022, 0.1, 0.3, 1e9 / 3, 1e300, 1.7e308]),
    st.floats(0, allow_infinity=False),
    st.integers(0, 9).map(lambda n: 0.7 + n * 2.0**-50),  # nearly equal
)
SIGNED = st.builds(math.copysign, SIZES, st.sampled_from([-1.0, 1.0]))


@st.composite
def ugly_trees(draw):
    """A round of ugly floats, and a branch-and-bound tree of it."""
    capacities = draw(st.integers(0, 3))
    options = {}
    for job in range(draw(st.integers(1, 4))):
        rows = st.tuples(draw(st.sampled_from([SIGNED, NICE])), st.tuples(*[SIZES] * capacities))
        options[job] = draw(st.lists(rows, min_size=1, max_size=4))
    instance = Round.of(options, [draw(SIZES) for _ in range(capacities)])
    rules = draw(st.lists(st.integers(0, len(instance.cost) - 1), max_size=3))
    kind = draw(st.sampled_from(["cost", "cost", "infeasible"]))
    nodes = []
    for n, rule in enumerate(rules):
        cases = 2 * n + 1, 2 * n + 2
        nodes.append(Split(rule=rule, at_most=0, cases=cases[:: draw(st.sampled_from([1, -1]))]))
        nodes.append(Prices(prices=[draw(SIZES) for _ in range(capacities)]))
    nodes.append(Prices(kind=kind, prices=[draw(SIZES) for _ in range(capacities)]))
    return instance, nodes


def plain_values(instance, nodes, n=0, taken=(), barred=()):
    """Yield kind and Lagrangian value of every leaf, in plain fractions; None if it is empty."""
    node = nodes[n]
    if isinstance(node, Split):
        yield from plain_values(instance, nodes, node.cases[0], taken, (*barred, node.rule))
        yield from plain_values(instance, nodes, node.cases[1], (*taken, node.rule), barred)
        return
    pairs = zip(node.prices, instance.capacity.tolist(), strict=True)
    value = -sum(Fraction(price) * Fraction(capacity) for price, capacity in pairs)
    for job in range(len(instance.jobs)):
        own = range(instance.first[job], instance.first[job] + instance.counts[job])
        kept = set(taken) & set(own)
        own = [n for n in own if n not in barred and kept <= {n}]
        if not own:
            yield node.kind, None
            return
        value += min(priced(instance, node, n) for n in own)
    yield node.kind, value


def priced(instance, node, n):
    uses = zip(node.prices, instance.use[n].tolist(), strict=True)
    paid = sum(Fraction(price) * Fraction(use) for price, use in uses)
    return paid + (Fraction(instance.cost[n].item()) if node.kind == "cost" else 0)


@law(500)
@given(ugly_trees())
def test_the_verifier_is_as_exact_as_plain_fractions(case):
    """The greatest float that is proven is accepted, and the next one is not."""
    instance, nodes = case
    values = list(plain_values(instance, nodes))
    proven = [value for kind, value in values if kind == "cost" and value is not None]
    infeasible = [value for kind, value in values if kind == "infeasible"]
    if not proven:
        proves_none = all(value is None or value > 0 for value in infeasible)
        assert (not prove(instance, ChoiceCertificate(nodes=nodes))) == proves_none
        return
    assert prove(instance, ChoiceCertificate(nodes=nodes))
    top = Fraction(math.nextafter(math.inf, 0.0))
    least = max(min(min(proven), top), -top)
    bound = float(least)
    bound = bound if bound <= least else math.nextafter(bound, -math.inf)
    is_proven = min(proven) >= -top and all(value is None or value > 0 for value in infeasible)
    assert (not prove(instance, ChoiceCertificate(bound=bound, nodes=nodes))) == is_proven
    above = math.nextafter(bound, math.inf)
    assert math.isinf(above) or prove(instance, ChoiceCertificate(bound=above, nodes=nodes))


@law(200)
@given(ugly_trees())
def test_the_filter_loses_no_cheapest_option(case):
    instance, nodes = case
    node = nodes[-1]
    near = ReducedCostFilter(instance).near(
        node.prices, instance.cost if node.kind == "cost" else 0 * instance.cost
    )
    for job in range(len(instance.jobs)):
        own = range(instance.first[job], instance.first[job] + instance.counts[job])
        costs = {n: priced(instance, node, n) for n in own}
        assert all(near[n] for n in own if costs[n] == min(costs.values()))


def test_the_filter_leaves_little_to_be_priced_exactly():
    instance = placements(5, jobs=900)
    prices = Choice().decide(instance).certificate.nodes[-1].prices
    assert ReducedCostFilter(instance).near(prices, instance.cost).sum() <= 1.1 * len(instance.jobs)


def test_a_bound_that_is_one_unit_too_high():
    """Of a round with a thousand jobs, in the last place of the bound that its prices prove."""
    instance = placements(5, jobs=900)
    nodes = Choice(gap=1e-3).decide(instance).certificate.nodes[:1]
    ((_, value),) = plain_values(instance, nodes)
    bound = float(value)
    bound = bound if bound <= value else math.nextafter(bound, -math.inf)
    assert not prove(instance, ChoiceCertificate(bound=bound, nodes=nodes))
    above = math.nextafter(bound, math.inf)
    (broken,) = prove(instance, ChoiceCertificate(bound=above, nodes=nodes))
    assert broken.rule == "bound"


def test_figures_that_are_not_so():
    chosen = Choice().decide(PAIR)
    for wrong in ({"objective": 4.0}, {"bound": -1.0}, {"gap": 0.5}):
        with pytest.raises(Violation, match=next(iter(wrong))):
            verify_round(PAIR, chosen._replace(**wrong))
    with pytest.raises(Violation, match="is taken of capacity"):
        verify_round(PAIR, chosen._replace(plan=np.array([0, 0])))
    forged = ChoiceCertificate(bound=9.0, nodes=(Prices(prices=(1.0,)),))
    with pytest.raises(Violation, match=r"only, 9\.0 is stated"):
        verify_round(PAIR, chosen._replace(bound=9.0, certificate=forged))


# --- bad input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"jobs": ("a", "a")}, "job 'a' is there 2 times"),
        ({"jobs": ("a",)}, r"'counts' has the shape \(2,\), but \(1,\) is expected"),
        ({"counts": [4, 0]}, "job 'b' has no option"),
        ({"cost": [0.0, 1.0, np.nan, 0.0]}, "job 'b', option 0 costs nan, not a finite number"),
        ({"use": np.full((4, 1), -1.0)}, "job 'a', option 0 uses -1.0 of capacity 0"),
        ({"use": np.full((40, 1), 1.0)}, r"'use' has the shape \(40, 1\)"),
        ({"capacity": [-2.0]}, "capacity 0 is -2.0, not a finite number from 0 up"),
        ({"cost": [np.inf] * 4, "use": np.full((4, 1), np.nan)}, "and 3 more"),
    ],
)
def test_rounds_that_are_none(changed, words):
    fields = ("jobs", "counts", "cost", "use", "capacity")
    with pytest.raises(ValueError, match=words):
        Round(**{name: getattr(PAIR, name) for name in fields} | changed)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"gap": 1.0}, r"gap must be in \[0, 1\)"), ({"most_nodes": 0}, "most_nodes must be")],
)
def test_options_are_checked(options, words):
    with pytest.raises(ValueError, match=words):
        Choice(**options)


# --- Sia's costs ------------------------------------------------------------------------------


def test_costs_of_sia_by_hand():
    """Two jobs: the first holds its second option, and half of its time went to restarts."""
    goodput, counts = np.array([2.0, 8.0, 18.0, 1.0, 3.0]), np.array([3, 2])
    restart, held = np.array([0.5, 0.1]), np.array([1, -1])
    cost = sia_cost(goodput, counts, restart=restart, held=held)
    assert cost.tolist() == [1.41, 0.5, 0.47, 1.0, 0.58]
    never = sia_cost(goodput, counts, restart=np.zeros(2), held=held, most=50.0)
    assert never.tolist() == [50.0, 0.5, 50.0, 1.0, 0.58]
