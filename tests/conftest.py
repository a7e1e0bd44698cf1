"""Hypothesis profiles: quick by default, thorough with HYPOTHESIS_PROFILE=ci."""

import os

from hypothesis import HealthCheck, settings

COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("default", max_examples=25, **COMMON)
settings.register_profile("ci", max_examples=2000, derandomize=True, **COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
