"""Oracles from outside: written anew from the mathematics, they know documents and fractions only.

Each has `optimum(document)`: two fractions around the least objective, None for no plan;
`judge(document, plan)`: broken rules and two fractions around the objective; `unit`; `gap_scale`.
Nothing in them, nor in `outside.instances`, imports the project.
"""

from tests.support.outside import boa, eaco, pal, sia

ORACLES = {
    "boa": boa,
    "sia": sia,
    "eaco": eaco,
    "pal": pal,
}
