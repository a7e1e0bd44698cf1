"""Linear programs that stay in HiGHS: rows and columns added, bounds changed, solved again."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array

from optsched.mip.highs import Program
from optsched.mip.incremental_lp import LinearProgram, basic

PENALTY = 50.0


@pytest.fixture
def cheapest():
    """min 2a + 3b, a + b >= 4, a <= 3."""
    return LinearProgram(
        Program(
            cost=np.array([2.0, 3.0]),
            offset=0.0,
            lower=np.zeros(2),
            upper=np.array([3.0, np.inf]),
            integer=np.zeros(2, dtype=bool),
            matrix=csr_array(np.ones((1, 2))),
            row_lower=np.array([4.0]),
            row_upper=np.array([np.inf]),
        )
    )


def test_columns_are_added_at_their_cost(cheapest):
    assert cheapest.solve().objective == pytest.approx(9)
    cheapest.add_columns(np.array([1.0, 5.0]), csc_array(np.array([[0.5, 4.0]])))
    assert cheapest.columns == 4
    solved = cheapest.solve()
    assert solved.objective == pytest.approx(5)
    assert solved.x == pytest.approx([0, 0, 0, 1])
    assert solved.row_duals == pytest.approx([1.25])


def test_a_row_counts_with_coefficients(cheapest):
    row = cheapest.add_row(np.array([1]), np.array([2.0]))
    cheapest.bound_row(row, 6.0, np.inf)
    assert cheapest.solve().objective == pytest.approx(2 * 1 + 3 * 3)


def test_an_elastic_row_is_missed_at_the_penalty_unless_that_is_forbidden(cheapest):
    row = cheapest.add_elastic_row(np.array([0]), PENALTY, np.array([0.5]))
    miss = np.array([cheapest.columns - 1])
    cheapest.bound_row(row, 2.0, np.inf)
    assert cheapest.solve().objective == pytest.approx(9 + 0.5 * PENALTY)
    cheapest.bound_columns(miss, 0.0)
    assert cheapest.solve() is None
    cheapest.bound_columns(miss, np.inf)
    assert cheapest.solve().objective == pytest.approx(9 + 0.5 * PENALTY)


def test_costs_change(cheapest):
    cheapest.cost_columns(np.array([1]), np.array([1.0]))
    assert cheapest.solve().objective == pytest.approx(4)


@pytest.mark.parametrize("columns", [[True, False], [False, True], [True, True], [False, False]])
def test_any_start_ends_at_the_optimum_and_says_what_is_basic(cheapest, columns):
    """Also from what is no basis: of one row one thing is basic."""
    cheapest.start_from(np.array(columns), np.array([False]))
    assert cheapest.solve().objective == pytest.approx(9)
    basic, rows = cheapest.basic()
    assert (basic.tolist(), rows.tolist()) == ([False, True], [False])


def test_what_is_basic_is_as_the_basis_says_whether_it_is_factorised_or_not():
    program = LinearProgram(cheapest_of_many())
    told = program.basic()  # before any solve there may be nothing to ask
    assert [each.tolist() for each in told] == [each.tolist() for each in basic(program.basis())]
    program.solve()
    columns, rows = program.basic()
    expected = basic(program.basis())
    assert (columns.tolist(), rows.tolist()) == (expected[0].tolist(), expected[1].tolist())
    assert rows.any()
    assert columns.any()


def cheapest_of_many():
    """Twelve rows over thirty columns, of which some rows bind."""
    draw = np.random.default_rng(5)
    return Program(
        cost=draw.uniform(1, 2, 30),
        offset=0.0,
        lower=np.zeros(30),
        upper=np.full(30, 2.0),
        integer=np.zeros(30, dtype=bool),
        matrix=csr_array(draw.uniform(0, 1, (12, 30))),
        row_lower=draw.uniform(0, 6, 12),
        row_upper=np.full(12, np.inf),
    )


def test_rows_are_added_at_once(cheapest):
    assert cheapest.solve().objective == pytest.approx(9)  # three of the first, one of the second
    first = cheapest.add_rows(np.array([2.0, 8.0]), csr_array(np.array([[1.0, 0.0], [0.0, 2.0]])))
    assert (first, cheapest.rows) == (1, 3)
    solved = cheapest.solve()
    assert solved.x == pytest.approx([2, 2])
    assert solved.row_duals[1:] == pytest.approx([-1, 0])
