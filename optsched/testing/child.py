"""A rollout of a policy in a process of its own: prints a short hash for each decision, as JSON."""

from __future__ import annotations

import json
import sys

from optsched.testing.runs import engine_of, run
from optsched.testing.small_worlds import bundled_worlds


def main(policy: str, name: str) -> None:
    """Run a policy in a bundled world."""
    (world,) = (known for known in bundled_worlds() if known.name == name)
    sys.stdout.write(json.dumps(run(engine_of(policy, world)).digests()))


if __name__ == "__main__":
    main(*sys.argv[1:])
