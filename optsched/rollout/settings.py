"""Settings of rollouts that no scenario and no policy has."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RolloutSettings:
    """How rollouts are ended, saved and compared.

    Attributes
    ----------
    idle_epochs
        Epochs without a change after which a rollout ends in which nothing else can happen.
    save_every_s, save_share
        Seconds from one checkpoint to the next: so many at least, and so many that saving takes no
        more than this share of the time.
    tell_every_s
        Seconds from one report of progress to the next.
    confidence, resamples
        Of intervals: the share of what is drawn that lies inside, and how often the bootstrap
        draws.
    """

    idle_epochs: int = 10_000
    save_every_s: float = 5.0
    save_share: float = 0.05
    tell_every_s: float = 0.1
    confidence: float = 0.95
    resamples: int = 9999


SETTINGS = RolloutSettings()
