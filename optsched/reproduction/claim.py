"""Claims and the rows that they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optsched.reproduction.estimates import Estimate, Reading, estimate
from optsched.reproduction.verdicts import Basis, Published, Verdict, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.reproduction.estimates import Draw

UNMEASURED = "not measured"
CLOCKED = "times differ from run to run: ours stand in the picture below and in the JSON's timings"
ON = {
    Basis.GENERATED: "on generated jobs",
    Basis.FITTED: "in a world fitted to such figures",
    Basis.AUTHORS: "on the authors' jobs",
    Basis.TABLES: "from the published tables",
}
"""What ours rests on, in words."""


@dataclass(frozen=True)
class Claim:
    """One published figure, or one that a paper should have.

    Attributes
    ----------
    where
        Paper, and section, figure or table.
    what
        What the figure is of.
    published
        None where none is at hand.
    setting
        What ours is measured in.
    assumed
        What of it is assumed, not published.
    study, ours
        The study, and how our figure is read off; None where nothing can be measured.
    exact, bound
        The same figure by the exact method, and what no schedule can pass.
    is_setting_published
        Whether what the figure was measured in is known.
    note
        What else there is to say, such as why there is no figure.
    is_detail
        Whether it is a part of another row.
    timed
        Cells of its study whose times are ours: they stand among the timings.
    """

    key: str
    system: str
    where: str
    what: str
    unit: str
    published: Published | None
    setting: str
    assumed: str = ""
    study: str | None = None
    ours: Reading | None = None
    exact: Reading | None = None
    bound: Reading | None = None
    is_setting_published: bool = True
    note: str = ""
    is_detail: bool = False
    timed: tuple[str, ...] = ()

    @property
    def cells(self) -> set[str]:
        """What of its study is read."""
        readings = filter(None, (self.ours, self.exact, self.bound))
        return {*self.timed, *(cell for reading in readings for cell in reading.cells)}


@dataclass(frozen=True)
class Row:
    """A claim beside what was measured.

    Attributes
    ----------
    claim
        What was published.
    basis
        What ours rests on; None if nothing was measured.
    ours, exact, bound
        What was measured.
    beside_exact
        Ours on those seeds alone that the exact method has.
    """

    claim: Claim
    basis: Basis | None
    ours: Estimate | None
    exact: Estimate | None
    bound: Estimate | None
    beside_exact: Estimate | None = None

    @property
    def verdict(self) -> Verdict:
        """What ours says of the claim."""
        claim, basis = self.claim, self.basis or Basis.GENERATED
        return verdict(claim.published, self.ours, basis, claim.is_setting_published)

    @property
    def why(self) -> str:
        """Why, in one line."""
        return "; ".join(filter(None, (_reason(self), self.claim.note)))

    def record(self) -> dict[str, object]:
        """Return it as data of one level."""
        claim, ours = self.claim, self.ours
        published = claim.published
        return {
            "key": claim.key,
            "system": claim.system,
            "where": claim.where,
            "what": claim.what,
            "unit": claim.unit,
            "published_low": None if published is None else published.low,
            "published_high": None if published is None else published.high,
            "published_note": "" if published is None else published.note,
            "ours": None if ours is None else ours.value,
            "low": None if ours is None else ours.low,
            "high": None if ours is None else ours.high,
            "seeds": 0 if ours is None else ours.seeds,
            "exact": None if self.exact is None else self.exact.value,
            "exact_seeds": 0 if self.exact is None else self.exact.seeds,
            "beside_exact": None if self.beside_exact is None else self.beside_exact.value,
            "bound": None if self.bound is None else self.bound.value,
            "verdict": str(self.verdict),
            "why": self.why,
            "data": UNMEASURED if self.basis is None else str(self.basis),
            "setting": claim.setting,
            "assumed": claim.assumed,
            "is_detail": claim.is_detail,
        }


def row_of(claim: Claim, basis: Basis | None, draws: Sequence[Draw]) -> Row:
    """Return a claim beside what the draws of its study found."""

    def read(reading: Reading | None, of: Sequence[Draw] = draws) -> Estimate | None:
        return None if reading is None else estimate(reading, of)

    ours = read(claim.ours)
    exact = claim.exact
    both = [] if exact is None else [each for each in draws if exact.of_draw(each) is not None]
    return Row(
        claim,
        basis if ours or claim.timed else None,
        ours,
        read(exact),
        read(claim.bound),
        read(claim.ours, both),
    )


def _reason(row: Row) -> str:
    """Return what the verdict rests on, in words."""
    ours, published = row.ours, row.claim.published
    if ours is None:
        return CLOCKED if row.claim.timed else UNMEASURED
    if published is None:
        return "no published figure is at hand"
    on = "" if row.basis is None else ON[row.basis]
    near = f"ours lies within 10 % of it, {on}"
    if ours.low <= published.high and ours.high >= published.low:
        near = f"our interval over {ours.seeds} seeds holds it, {on}"
    said = {
        Verdict.REPRODUCED: near,
        Verdict.CONSISTENT: near,
        Verdict.REFUTED: f"over {ours.seeds} seeds our interval holds 0, or lies beyond it",
        Verdict.UNPUBLISHED: f"in our setting it {_compared(published, ours)}",
    }
    return said.get(row.verdict) or f"ours {_compared(published, ours)}"


def _compared(published: Published, ours: Estimate) -> str:
    """Say how many times the nearer end of what was published ours is."""
    if published.low <= ours.value <= published.high:
        return "lies in the published range"
    nearer = min((published.low, published.high), key=lambda end: abs(end - ours.value))
    times = ours.value / nearer if nearer else float("inf")
    return f"is {times:.2f} times as large" if times >= 0 else "points the other way"
