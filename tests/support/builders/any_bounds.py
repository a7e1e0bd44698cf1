"""Random rollouts beside their bounds, many more than the suite draws.

    python -m tests.support.builders.any_bounds 2000

Scenarios, jobs and policies are those of the laws in `tests/bounds`, which draw at most 200 of
them: times and makespans over all physics, bills and mean JCT at the bill where nodes may be
rented, and mean JCT at the bill where they have to start. The exit code is 1 if a rollout is below
a bound or a bound is not proven; Hypothesis then prints the example.
"""

import argparse
import sys
from importlib import import_module
from unittest import mock

from hypothesis import HealthCheck, seed, settings

from optsched.rollout.settings import SETTINGS

LAWS = {
    "times": ("tests.bounds.test_laws", "test_no_rollout_is_below_its_bound"),
    "bills": ("tests.bounds.test_bill", "test_no_rollout_is_billed_less_or_quicker_at_its_bill"),
    "starts": (
        "tests.bounds.test_ready_nodes",
        "test_no_rollout_is_quicker_at_its_bill_than_starts_allow",
    ),
}
EACH = 200
"""Examples that each law draws for a seed."""


def refutation(name, count, first=0):
    """Draw examples of a law, `EACH` for each seed; return what refutes it, or None."""
    module, function = LAWS[name]
    law = getattr(import_module(module), function)
    with mock.patch.dict(vars(SETTINGS), {"idle_epochs": 30}):
        for number in range(first, first - (-count // EACH)):
            try:
                seed(number)(law)()
            except Exception as error:  # whatever a law raises refutes it
                return error
    return None


def main(arguments=None):
    """Try the laws, say what was found, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int, help=f"examples of each law, rounded up to {EACH}s")
    parser.add_argument("--laws", choices=[*LAWS], nargs="+", default=[*LAWS])
    parser.add_argument("--seed", type=int, default=0, help="the first")
    chosen = parser.parse_args(arguments)
    is_refuted = False
    for name in chosen.laws:
        error = refutation(name, chosen.count, chosen.seed)
        print(f"{name}: {'none below' if error is None else repr(error)}", flush=True)
        is_refuted |= error is not None
    return int(is_refuted)


if __name__ == "__main__":
    settings.register_profile(
        "many",
        max_examples=EACH,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("many")  # laws ask for it when they are imported
    sys.exit(main())
