"""Column generation on cutting stock (Gilmore & Gomory 1961), against all patterns at once."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_array, csr_array

from optsched.mip.column_generation import DualBound, Priced, Smoothing, generate
from optsched.mip.highs import Program
from optsched.mip.incremental_lp import LinearProgram
from tests.support.strategies.common import law


def patterns(roll, lengths):
    """All ways to cut a roll, longest cuts or not, but for none at all."""
    ranges = [range(roll // length + 1) for length in lengths]
    cuts = np.array(list(itertools.product(*ranges)))
    return cuts[(cuts @ lengths <= roll) & cuts.any(axis=1)]


class Rolls:
    """The least number of rolls, in shares, over the patterns that were added."""

    def __init__(self, roll, lengths, demand):
        self.roll, self.lengths, self.demand = roll, np.array(lengths), np.array(demand, float)
        many, self.patterns = len(lengths), [tuple(row) for row in np.eye(len(lengths), dtype=int)]
        self.program = LinearProgram(
            Program(
                cost=np.ones(many),
                offset=0.0,
                lower=np.zeros(many),
                upper=np.full(many, np.inf),
                integer=np.zeros(many, dtype=bool),
                matrix=csr_array(np.eye(many)),
                row_lower=self.demand,
                row_upper=np.full(many, np.inf),
            )
        )

    def optimum(self):
        return self.program.solve()

    def duals(self, solved):
        return np.maximum(solved.row_duals, 0.0)

    def add(self, columns):
        new = [row for row in map(tuple, columns) if row not in self.patterns]
        if new:
            self.program.add_columns(np.ones(len(new)), csc_array(np.array(new, float).T))
            self.patterns += new
        return len(new)

    def price(self, duals):
        """The pattern that is worth most; duals lowered until it costs what it is worth."""
        every = patterns(self.roll, self.lengths)
        worth = every @ duals
        best = every[worth > 1 + 1e-9][:1] if worth.max() <= 1 + 1e-9 else every[[worth.argmax()]]
        safe = duals / max(1.0, worth.max())
        return Priced(best, len(best), safe, float(safe @ self.demand))


def mixed(duals, best, share):
    return share * best + (1 - share) * duals


def all_at_once(roll, lengths, demand):
    rolls = Rolls(roll, lengths, demand)
    rolls.add(patterns(roll, rolls.lengths))
    return rolls.optimum().objective


def near(solved, bound):
    return solved.objective - bound <= 1e-9 * solved.objective


cuttings = st.integers(1, 4).flatmap(
    lambda many: st.tuples(
        st.just(12),
        st.lists(st.integers(2, 12), min_size=many, max_size=many, unique=True),
        st.lists(st.integers(1, 30), min_size=many, max_size=many),
    )
)


@law(200, is_costly=True)
@given(cuttings, st.sampled_from([0.0, 0.5, 0.9]))
def test_the_optimum_and_the_bound_are_those_over_all_columns(cutting, share):
    rolls = Rolls(*cutting)
    bound = DualBound(np.zeros(len(rolls.lengths)))
    smoothing = Smoothing(mixed, share) if share else None
    outcome = generate(rolls, rolls.price, near, bound, smoothing=smoothing)
    best = all_at_once(*cutting)
    assert outcome.reason == "converged"
    assert outcome.solved.objective == pytest.approx(best)
    assert bound.value == pytest.approx(best)
    assert (patterns(rolls.roll, rolls.lengths) @ bound.duals <= 1 + 1e-9).all()


@law(100)
@given(cuttings, st.integers(1, 4))
def test_the_bound_holds_whenever_it_ends(cutting, rounds):
    rolls = Rolls(*cutting)
    bound = DualBound(np.zeros(len(rolls.lengths)))
    outcome = generate(rolls, rolls.price, near, bound, rounds=rounds)
    best = all_at_once(*cutting)
    assert outcome.reason in ("converged", "rounds")
    assert bound.value <= best * (1 + 1e-9) <= outcome.solved.objective * (1 + 2e-9)


def test_without_time_for_the_master_the_last_optimum_counts():
    rolls = Rolls(12, [5, 3], [7, 9])
    optima = iter([rolls.optimum(), None])
    rolls.optimum = lambda: next(optima)
    outcome = generate(rolls, rolls.price, near, DualBound(np.zeros(2)), rounds=9)
    assert outcome.solved.objective == pytest.approx(16)
    assert outcome.reason == "unsolved"


def test_a_pricing_problem_that_leaves_columns_out_is_asked_for_more():
    rolls, looks = Rolls(12, [5, 3], [7, 9]), []

    def price(duals):
        return rolls.price(duals) if looks else Priced(np.zeros((0, 2), int), 0, duals)

    outcome = generate(
        rolls, price, near, DualBound(np.zeros(2)), rounds=99, widen=lambda: looks.append(1) is None
    )
    assert outcome.solved.objective == pytest.approx(all_at_once(12, [5, 3], [7, 9]))
    assert looks


@pytest.mark.parametrize("keeps_last", [False, True])
def test_the_columns_of_the_last_round_are_kept_for_heuristics_only(keeps_last):
    rolls = Rolls(12, [5, 3], [7, 9])
    generate(
        rolls,
        rolls.price,
        lambda solved, bound: bound > 0,
        DualBound(np.zeros(2)),
        rounds=9,
        keeps_last=keeps_last,
    )
    assert len(rolls.patterns) == 2 + keeps_last
