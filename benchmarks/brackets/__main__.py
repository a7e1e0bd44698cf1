"""How far policies are from the certified bound of mean JCT, on the bundled scenarios.

    python -m benchmarks.brackets                          # with hindsight: hours of CPU
    python -m benchmarks.brackets --no-hindsight           # eight minutes: the tables of the page
    python -m benchmarks.brackets --policies foresight,wsrpt    # these alone, not for the page
    python -m benchmarks.brackets --orders                 # pal-64: orders x placements
    python -m benchmarks.brackets --told                   # with wrong estimates of run times
    python -m benchmarks.brackets --energy                 # eaco-28 and 64: watts beside bounds
    python -m benchmarks.brackets --energy --policies eaco --seeds 0-2    # 1 to 3 CPU min each
    python -m benchmarks.brackets --bills --policies boa-budgeted --seeds 0-2    # mean JCT at bills
    python -m benchmarks.brackets --starts --seeds 0-2     # boa-cloud: where the bill goes
    python -m benchmarks.brackets --makespan               # who ends all jobs soonest
    python -m benchmarks.brackets --no-hindsight --to-docs # into docs/brackets.md

Each seed has a trace of its own, and each trace its bound, which the verifier proves before
anything is set beside it. The exit code is 1 if a policy is below its bound.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.brackets import makespans
from benchmarks.brackets.bills import BUDGETED, BUDGETS, bills_markdown, spent
from benchmarks.brackets.energies import SAVING, SCENARIOS, drawn, energies_markdown
from benchmarks.brackets.measure import (
    ESTIMATED,
    GUESSING,
    HINDSIGHT,
    POLICIES,
    TOLD,
    bracket,
    estimated,
    orders_by_placements,
)
from benchmarks.brackets.report import markdown, orders_markdown, told_markdown
from benchmarks.brackets.starts import splits, splits_markdown
from benchmarks.philly_tables.__main__ import seeds_of
from benchmarks.philly_tables.report import put
from optsched.cli.options import policies

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Path(__file__).parents[2] / "docs" / "brackets.md"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables, and return the exit code."""
    chosen = _parser().parse_args(arguments)
    if chosen.policies and chosen.to_docs:
        raise SystemExit("error: tables of the page have all policies: no --policies")
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    head = f"Seeds {', '.join(map(str, chosen.seeds))} ({today})."
    measured = next((OTHERS[name] for name in OTHERS if getattr(chosen, name)), None)
    if measured is not None:
        tables, is_below = measured(chosen, head)
        print(tables)
        if chosen.to_docs:
            put(PAGE, tables, _mark(chosen))
        return int(is_below)
    if chosen.orders:
        brackets = [orders_by_placements(chosen.seeds)]
        tables = orders_markdown(brackets[0], head)
    elif chosen.told:
        guessing = chosen.policies or GUESSING
        brackets = [estimated(n, t, guessing, chosen.seeds) for n in ESTIMATED for t in TOLD]
        tables = told_markdown(brackets, head)
    else:
        brackets = []
        for name in chosen.scenarios:
            usual = POLICIES[name] + ((HINDSIGHT,) if chosen.hindsight else ())
            brackets.append(bracket(name, chosen.policies or usual, chosen.seeds))
            print(name, file=sys.stderr)
        tables = markdown(brackets, head)
    print(tables)
    if chosen.to_docs:
        put(PAGE, tables, begin(chosen.orders, chosen.told))
    return int(any(row.below for found in brackets for row in found.rows))


def _energies(chosen: argparse.Namespace, head: str) -> tuple[str, bool]:
    names = [name for name in SCENARIOS if name in chosen.scenarios]
    found = {name: drawn(name, chosen.policies or SAVING, chosen.seeds) for name in names}
    rows = [row for told in found.values() for rows in told.values() for row in rows]
    return energies_markdown(found, head), any(row.is_below for row in rows)


def _bills(chosen: argparse.Namespace, head: str) -> tuple[str, bool]:
    found = {
        (p, b): spent(p, b, chosen.seeds) for b in BUDGETS for p in chosen.policies or BUDGETED
    }
    return bills_markdown(found, head), any(row.is_below for rows in found.values() for row in rows)


def _makespans(chosen: argparse.Namespace, head: str) -> tuple[str, bool]:
    usual = makespans.POLICIES
    found = {
        name: makespans.makespans(name, chosen.policies or usual[name], chosen.seeds)
        for name in chosen.scenarios
    }
    values = [value for rows in found.values() for told in rows.values() for value in told]
    return makespans.makespans_markdown(found, head), min(values, default=0.0) < 0


def _starts(chosen: argparse.Namespace, head: str) -> tuple[str, bool]:
    found = splits(chosen.budget, chosen.seeds)
    return splits_markdown(found, head), any(row.jct_s < row.bound_s for row in found)


OTHERS = {"energy": _energies, "bills": _bills, "makespan": _makespans, "starts": _starts}
"""What is measured instead of mean JCTs, by option."""


def _mark(chosen: argparse.Namespace) -> str:
    what = next(f"--{name}" for name in OTHERS if getattr(chosen, name))
    return f"<!-- begin: python -m benchmarks.brackets {what} --to-docs -->"


def begin(orders: bool = False, told: bool = False) -> str:
    """Return the mark of the page behind which the tables stand."""
    what = " --orders" if orders else " --told" if told else ""
    return f"<!-- begin: python -m benchmarks.brackets{what} --to-docs -->"


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := sorted(set(names) - set(POLICIES)):
        known = ", ".join(POLICIES)
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; known: {known}")
    return names


def _policies(text: str) -> tuple[str, ...]:
    return tuple(policies([text]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=seeds_of, default=list(range(10)), help="such as 0-4,7")
    parser.add_argument("--scenarios", type=_names, default=list(POLICIES), help="by commas")
    parser.add_argument("--policies", type=_policies, help="these alone, in the usual or --told")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--orders", action="store_true", help="orders x placements instead")
    what.add_argument("--told", action="store_true", help="errors of estimates instead")
    parser.add_argument(
        "--no-hindsight", dest="hindsight", action="store_false", help="30 rollouts a seed less"
    )
    what.add_argument("--energy", action="store_true", help="of policies that share GPUs instead")
    what.add_argument(
        "--bills", action="store_true", help="mean JCT at the bill, by budget instead"
    )
    what.add_argument(
        "--starts", action="store_true", help="where boa-budgeted's bill goes, and what starts cost"
    )
    parser.add_argument("--budget", type=float, default=30.0, help="GPUs, with --starts")
    what.add_argument("--makespan", action="store_true", help="makespans instead")
    parser.add_argument("--to-docs", action="store_true", help="put the tables on the page")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
