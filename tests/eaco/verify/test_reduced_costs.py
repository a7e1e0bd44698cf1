"""Reduced costs in limbs are those of whole numbers of any size."""

from hypothesis import given
from hypothesis import strategies as st

from optsched.eaco.verify.group_enumeration import Option
from optsched.eaco.verify.reduced_costs import OptionTable, ScaledPrices

SETS = 4
NODES, PLACES = {"a": 0, "b": 1}, {"here": 0, "there": 1}
WATT_BITS = 7


def whole(bits):
    return st.integers(-(2**bits), 2**bits)


options = st.builds(
    Option,
    members=st.lists(st.integers(0, SETS - 1), min_size=1, max_size=4).map(sorted).map(tuple),
    nodes=st.sampled_from(sorted(NODES)),
    gpus=st.integers(1, 100_000),
    level=st.none(),
    place=st.sampled_from([None, *PLACES]),
    cost=whole(130),
    watts=whole(100),
)
prices = st.builds(
    ScaledPrices,
    jobs=st.lists(whole(120), min_size=SETS, max_size=SETS),
    gpus=st.lists(st.integers(0, 2**90), min_size=2, max_size=2),
    places=st.lists(st.integers(0, 2**90), min_size=2, max_size=2),
    watt=st.sampled_from([0, 1, 2**80 + 1]),
)
weights = st.dictionaries(st.integers(0, SETS - 1), st.integers(1, 5), min_size=1)
cuts = st.lists(st.tuples(weights, st.integers(1, 5), whole(110)), max_size=3)


def weight(option, need):
    return sum(need.get(n, 0) for n in option.members)


@given(st.lists(options, max_size=6), prices, cuts, whole(140))
def test_sums_in_limbs_are_those_of_whole_numbers(listed, priced, charged, less):
    table = OptionTable(listed, SETS, NODES, PLACES, WATT_BITS)
    exact = [
        option.cost
        - sum(priced.jobs[n] for n in option.members)
        + priced.gpus[NODES[option.nodes]] * option.gpus
        + (0 if option.place is None else priced.places[PLACES[option.place]])
        + (priced.watt * option.watts >> WATT_BITS)
        + sum(price * (weight(option, need) // divisor) for need, divisor, price in charged)
        for option in listed
    ]
    charges = [(price, table.rounded(need, divisor)) for need, divisor, price in charged]
    sums = table.sums(priced, charges, less)
    assert sums.are_negative().tolist() == [each < less for each in exact]
    assert sums.least() == min(0, min(exact, default=less) - less)
    assert table.sums(priced, charges).least() == min(0, min(exact, default=0))


@given(st.lists(options, max_size=6), weights)
def test_who_holds_jobs_of_each_of_some_sets(listed, need):
    table = OptionTable(listed, SETS, NODES, PLACES, WATT_BITS)
    holding = [n for n, option in enumerate(listed) if {*need} <= {*option.members}]
    assert table.holding(need) == holding
    assert table.only(holding).which.tolist() == holding
