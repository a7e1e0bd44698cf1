"""How much more energy EaCO's greedy rules take than the optimum, on every bundled instance.

    python benchmarks/eaco_greedy.py             # a Markdown table
    python benchmarks/eaco_greedy.py --limit 60  # seconds for each optimum

A dash stands for a rule that finds no plan, or one that breaks a rule of the instance. Negative
costs are possible where the objective is an epoch's; then the difference itself is shown.
"""

from __future__ import annotations

import argparse

import optsched
from optsched.instance import names
from optsched.registry import problem


def rules():
    """Return the names of the greedy methods."""
    return [method.name for method in problem("eaco").methods if method.kind == "greedy"]


def above(objective, best):
    """Return by how much a rule's plan is above the optimum."""
    if objective is None:
        return "–"
    return f"{100 * (objective / best - 1):.1f} %" if best > 0 else f"+{objective - best:.2f}"


def column(name, limit_s):
    """Return what stands below the name of one instance."""
    instance = optsched.read(name)
    best = optsched.solve(instance, time_limit_s=limit_s)
    objectives = [optsched.solve(instance, method=rule).objective for rule in rules()]
    proven = "" if best.status == "optimal" else f" (gap {100 * best.gap:.2f} %)"
    cells = [above(objective, best.objective) for objective in objectives]
    return [name.partition("/")[2], f"{best.objective:.2f}{proven}", *cells]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each optimum")
    limit_s = parser.parse_args().limit
    columns = [["", "optimum, kWh", *rules()]]
    columns += [column(name, limit_s) for name in names("eaco")]
    heads, *lines = zip(*columns, strict=True)
    for line in (heads, ["---", *["---:"] * len(columns[1:])], *lines):
        print("| " + " | ".join(line) + " |")


if __name__ == "__main__":
    main()
