"""What explains a result: rules that conflict, limits that bind, and what wider limits save."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import floor, log10
from typing import TYPE_CHECKING, Literal, NamedTuple

from optsched.results.result import Status, figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from optsched.instance import Instance
    from optsched.results.result import Result


ENOUGH = "Each of these would do, by itself:"


class Rule(NamedTuple):
    """A rule that an instance could be without: what its problem calls it, and its words."""

    id: str
    text: str


class Lever(NamedTuple):
    """A change of the data that a user may think of, and the changed instance.

    `note` tells of a result of the changed instance what a reader should know of its saving.
    """

    change: str
    instance: Instance
    note: Callable[[Result], str] | None = None


class Remedy(NamedTuple):
    """A limit that could be wider where there is no plan.

    Attributes
    ----------
    now, step
        The limit as it is, and by how much it is widened first.
    instance
        Makes the instance with another limit.
    text
        Tells of a limit that would do.
    is_whole
        Whether it is a whole number.
    """

    now: float
    step: float
    instance: Callable[[float], Instance]
    text: Callable[[float], str]
    is_whole: bool = False

    def between(self, low: float, high: float, digits: int) -> float | None:
        """Return a limit between two others, to so many figures; None if there is none."""
        middle = (low + high) / 2
        unit = 1.0 if self.is_whole else 10.0 ** (floor(log10(abs(high))) + 1 - digits)
        rounded = round(middle / unit) * unit
        return rounded if low < rounded < high else None

    def words(self, least: float, too_small: float) -> str:
        """Tell what would do, and what would not."""
        text = self.text(least)
        return text if too_small == self.now else f"{text} ({too_small:,.6g} would not)"


class Price(NamedTuple):
    """What a change of the data saves of the objective.

    Attributes
    ----------
    change
        In words.
    saves
        By how much the objective falls; per unit of the change where `source` is a certificate.
    most
        No more than this is saved: greater than `saves` where a bound left a gap open, or where
        `saves` is not known at all.
    source
        ``"certificate"``: a price that proves the bound, so it holds for small changes.
        ``"solved again"``: by the difference of two solves.
    """

    change: str
    saves: float | None
    unit: str
    source: Literal["certificate", "solved again"]
    most: float | None = None
    note: str = ""

    @property
    def text(self) -> str:
        """What is saved, in words."""
        if self.saves is None:
            told = "not known" if self.most is None else f"at most {figure(self.most)} {self.unit}"
        elif self.saves == 0 and not self.most:
            told = "nothing"
        else:
            told = f"{figure(self.saves)} {self.unit}"
            if self.most is not None and self.most > self.saves:
                told += f", {figure(self.most)} {self.unit} at most"
        return told + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True)
class Explanation:
    """Why there is no plan, or why it is this one.

    Attributes
    ----------
    because
        The result in a sentence.
    conflict
        Rules that no plan keeps together; empty if there is a plan.
    is_irreducible
        Whether it is proven that without any one of them there is a plan.
    binding
        Limits that the plan uses up, in words.
    prices
        What wider limits would save.
    remedies
        Without a plan: limits that would let one exist, in words, each by itself.
    """

    instance: str
    status: Status
    because: str
    conflict: tuple[Rule, ...] = ()
    is_irreducible: bool = False
    binding: tuple[str, ...] = ()
    prices: tuple[Price, ...] = ()
    remedies: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        lines = [f"{self.instance}: {self.because}"]
        if self.conflict:
            lines += ["", self.headline, *(f"  - {rule.text}" for rule in self.conflict)]
        if self.remedies:
            lines += ["", ENOUGH, *(f"  - {text}" for text in self.remedies)]
        if self.binding:
            lines += ["", "Limits:", *(f"  - {text}" for text in self.binding)]
        if self.prices:
            lines += ["", "What more room saves:"]
            width = max(len(price.change) for price in self.prices)
            lines += [f"  {p.change:<{width}}  {p.text}  [{p.source}]" for p in self.prices]
        return lines

    @property
    def headline(self) -> str:
        """What is known of the conflict."""
        count = f"{len(self.conflict)} rules" if len(self.conflict) != 1 else "1 rule"
        if self.is_irreducible:
            return f"No plan keeps these {count}; without any one of them there is a plan:"
        return f"No plan keeps these {count}; time did not suffice to tell whether fewer conflict:"

    def _repr_html_(self) -> str:
        parts = [f"<p>{escape(self.instance)}: {escape(self.because)}</p>"]
        if self.conflict:
            parts += [f"<p>{self.headline}</p>", _items(rule.text for rule in self.conflict)]
        if self.remedies:
            parts += [f"<p>{ENOUGH}</p>", _items(self.remedies)]
        if self.binding:
            parts.append(_items(self.binding))
        if self.prices:
            cells = ((p.change, p.text, p.source) for p in self.prices)
            rows = "".join(
                f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells
            )
            head = "<tr><th>change</th><th>saves</th><th>how it is known</th></tr>"
            parts.append(f"<table>{head}{rows}</table>")
        return "".join(parts)


def _items(texts: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"
