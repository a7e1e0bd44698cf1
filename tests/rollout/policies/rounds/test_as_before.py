"""200 random rollouts of the policies that were made faster end as they did before that.

The digests in `golden/rollouts/any-200.json` are of the version before, but for those of three
rollouts under `sia`, which now leaves out jobs that need not run; its module
`tests.support.builders.any_rollouts` writes them.
"""

import json
from pathlib import Path

from tests.support.builders.any_rollouts import digest

BEFORE = Path(__file__).parents[3] / "golden" / "rollouts" / "any-200.json"


def test_random_rollouts_are_as_before():
    before = json.loads(BEFORE.read_text())
    assert len(before) == 200
    assert len(set(before.values())) > 150
    assert {seed: digest(int(seed)) for seed in before} == before
