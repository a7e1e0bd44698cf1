"""Programs as arrays, and equilibration of their rows (Tomlin, Math. Programming Study 4, 1975).

They come from Pyomo models or are built with numpy, and are scaled as suits HiGHS.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import pyomo.environ as pyo
    from scipy.sparse import csr_array

    from optsched.documents.arrays import Bools, Floats


@dataclass(frozen=True)
class Program:
    """Minimise ``cost @ x + offset`` where ``row_lower <= matrix @ x <= row_upper``.

    Attributes
    ----------
    cost, lower, upper, integer
        Shape (columns,): ``lower <= x <= upper``, and x is whole where `integer` is true.
    matrix
        Shape (rows, columns), sparse.
    row_lower, row_upper
        Shape (rows,); infinite where a row has no such bound.
    """

    cost: Floats
    offset: float
    lower: Floats
    upper: Floats
    integer: Bools
    matrix: csr_array[Any, Any]
    row_lower: Floats
    row_upper: Floats


class Compiled(NamedTuple):
    """A Pyomo model as a program, and which variable and constraint each column and row is."""

    program: Program
    variables: list[Any]
    constraints: list[Any]


def compile_model(model: pyo.ConcreteModel) -> Compiled:
    """Compile a linear Pyomo model with one objective; rows and columns keep its order."""
    from pyomo.repn.plugins.standard_form import LinearStandardFormCompiler

    form = LinearStandardFormCompiler().write(model, mixed_form=True)
    sense = np.array([row.bound_type for row in form.rows])  # 1: <=, 0: ==, -1: >=
    program = Program(
        cost=form.c.toarray()[0],
        offset=float(form.c_offset[0]),
        lower=np.array([-np.inf if v.lb is None else v.lb for v in form.columns], float),
        upper=np.array([np.inf if v.ub is None else v.ub for v in form.columns], float),
        integer=np.array([not v.is_continuous() for v in form.columns]),
        matrix=form.A.tocsr(),
        row_lower=np.where(sense <= 0, form.rhs, -np.inf),
        row_upper=np.where(sense >= 0, form.rhs, np.inf),
    )
    return Compiled(program, form.columns, [row.constraint for row in form.rows])


def scaled(program: Program) -> tuple[Program, float, Floats]:
    """Scale cost and rows by powers of two, since HiGHS' tolerances are absolute.

    It also drops coefficients below 1e-9 and refuses those above 1e15. Rows of ones stay as they
    are: the largest coefficient of a row comes between 1 and 1024.
    """
    scale = cost_scale(program)
    row_scale = _power_of_two(abs(program.matrix).max(axis=1).toarray(), 1.0, 2.0**10)
    program = replace(
        program,
        cost=program.cost * scale,
        offset=program.offset * scale,
        matrix=program.matrix.multiply(row_scale[:, None]).tocsr(),
        row_lower=program.row_lower * row_scale,
        row_upper=program.row_upper * row_scale,
    )
    return program, scale, row_scale


def cost_scale(program: Program) -> float:
    """Return the power of two that brings the cost to a size that suits HiGHS' tolerances.

    The largest coefficient comes to about 10,000, for HiGHS gives up on improvements below 1e-6.
    """
    return float(_power_of_two(np.abs(program.cost).max(), 2.0**13, 2.0**14))


def _power_of_two(largest: Any, low: float, high: float) -> Any:
    """Return the power of two that brings a magnitude into a range; 1 for zero."""
    wanted = np.clip(largest, low, high)
    return np.exp2(np.rint(np.log2(wanted / np.where(largest > 0, largest, wanted))))
