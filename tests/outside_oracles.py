"""Oracles from outside: written anew from the mathematics, they know documents and fractions only.

Each has `optimum(document)`: two fractions around the least objective, None for no plan;
`judge(document, plan)`: broken rules and two fractions around the objective; `unit`; `gap_scale`.
Nothing in them, nor in `outside_instances`, imports the project.
"""

import outside_boa
import outside_choice
import outside_eaco
import outside_pal

ORACLES = {
    "boa": outside_boa,
    "choice": outside_choice,
    "eaco": outside_eaco,
    "pal": outside_pal,
}
