"""What reproduce() gives back: rows, what they were read off, and files of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from optsched.documents.json_files import dumps
from optsched.reproduction.verdicts import Verdict
from optsched.results.result import versions

if TYPE_CHECKING:
    import pandas as pd

    from optsched.reproduction.claim import Row
    from optsched.reproduction.studies import Level, Measured

SCHEMA_ID: Final = "optsched/reproduction/1"


@dataclass(frozen=True, eq=False)
class Reproduction:
    """Published figures beside ours.

    Attributes
    ----------
    systems, level, seed
        What was asked for.
    rows
        One for each claim.
    measured
        What the rows were read off: by study, seed and cell.
    files
        The SHA-256 of each file of the authors, by system.

    Examples
    --------
    >>> import optsched
    >>> optsched.reproduce("eaco", only=["eaco-set-*"]).verdicts
    {'reproduced': 2}
    """

    systems: tuple[str, ...]
    level: Level
    seed: int
    rows: tuple[Row, ...]
    measured: Measured
    files: dict[str, str]

    @property
    def verdicts(self) -> dict[str, int]:
        """How many rows have each verdict, in the order of `Verdict`, parts of others aside."""
        counts = Counter(row.verdict for row in self.rows if not row.claim.is_detail)
        return {str(each): counts[each] for each in Verdict if counts[each]}

    def frame(self) -> pd.DataFrame:
        """Return a row for each claim, by its key."""
        import pandas as pd

        return pd.DataFrame([row.record() for row in self.rows]).set_index("key")

    def content(self) -> dict[str, Any]:
        """Return all that hangs on systems, level, seed and files alone, as data."""
        return {
            "schema": SCHEMA_ID,
            "systems": list(self.systems),
            "level": str(self.level),
            "seed": self.seed,
            "files": self.files,
            "versions": versions(),
            "rows": [row.record() for row in self.rows],
            "sha256_of_draws": hashlib.sha256(self.draws().encode()).hexdigest(),
        }

    def draws(self) -> str:
        """Return what the rows were read off as JSON: the figures of each study, seed and cell."""
        return dumps(
            {
                study: {str(seed): cells for seed, cells in seeds.items()}
                for study, seeds in self.measured.draws.items()
            }
        )

    @property
    def digest(self) -> str:
        """The SHA-256 of the content: the same for the same seed."""
        return hashlib.sha256(dumps(self.content()).encode()).hexdigest()

    def document(self) -> dict[str, Any]:
        """Return all as data: the content, its digest, and the timings, which differ."""
        timings = {name: round(seconds, 3) for name, seconds in self.measured.seconds.items()}
        clocks = {"timings_cpu_s": timings, "timings_of_decisions": self.measured.timings}
        return {**self.content(), "sha256": self.digest, **clocks}

    def to_json(self) -> str:
        """Return `document` as JSON."""
        return dumps(self.document())

    def page(self) -> str:
        """Return a page with the rows and pictures, in HTML that fetches nothing.

        The same bytes for the same content, but for the times of decisions, where these were asked
        for.
        """
        from optsched.reproduction.page import page

        return page(self)

    def __repr__(self) -> str:
        told = ", ".join(f"{count} {name}" for name, count in self.verdicts.items())
        return f"<Reproduction of {', '.join(self.systems)}: {told}>"
