"""100 random rollouts of policies that share GPUs end as they did before these were made faster.

The digests in `golden/rollouts/shared-100.json` are of the version before; the module
`tests.support.builders.any_shared_rollouts` writes them.
"""

import json
from pathlib import Path

from tests.support.builders.any_shared_rollouts import FAMILY, any_shared_rollout, digest

BEFORE = Path(__file__).parents[3] / "golden" / "rollouts" / "shared-100.json"


def test_random_rollouts_of_jobs_that_share_gpus_are_as_before():
    before = json.loads(BEFORE.read_text())
    assert len(before) == 100
    policies = {any_shared_rollout(int(seed))[2].partition(":")[0] for seed in before}
    assert policies == set(FAMILY)
    assert {seed: digest(int(seed)) for seed in before} == before
