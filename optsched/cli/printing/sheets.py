"""Tables as data, and the texts that they become: for a terminal, a pipe, a paper or a program.

On a terminal no name, unit or number is cut. Where the width does not suffice, prose is folded
between its words, columns of less importance are left out, and what is still too wide is stacked:
the same rows again with the next columns. In a pipe each row is one line.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

GAP = 2
PROSE = 24
"""Characters that a column of prose has at least, before others are left out for it."""
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
    character: "\\" + character for character in "&%$#_{}"
}


def plain(text: str) -> str:
    r"""Return a text as a terminal may have it: control characters as ``\u001b`` and the like.

    Names, messages and units come from files. What moves the cursor, changes colours or turns the
    direction of text becomes visible; in JSON these escapes mean the same characters.
    """
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class Column(NamedTuple):
    """A column of a sheet.

    Attributes
    ----------
    rank
        0 for what is always shown; of the others the greatest is left out first.
    fold
        What a text may be folded after: ``" "`` in prose, ``", "`` in a list of names; nothing
        in names and numbers.
    """

    name: str
    right: bool = False
    rank: int = 0
    fold: str = ""


@dataclass(frozen=True)
class Sheet:
    """A table of texts; without a heading, names and what is said of each."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    has_heading: bool = True
    title: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.title:
            yield self.title
        for number, part in enumerate(self.fitted(options.max_width)):
            if number:
                yield ""
            yield from part.drawn(options.max_width)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The width that each column asks for."""
        return tuple(
            max((cell_len(text) for text in texts), default=0) for texts in self._by_column()
        )

    @cached_property
    def least(self) -> tuple[int, ...]:
        """The width that each column can do with."""
        columns = zip(self.widths, self._by_column(), self.columns, strict=True)
        return tuple(
            min(width, max(PROSE, _longest(texts, column.fold))) if column.fold else width
            for width, texts, column in columns
        )

    def omitted(self, width: int) -> list[str]:
        """Return the names of the columns that a screen of a width leaves out."""
        kept = self._kept(width)
        return [column.name for n, column in enumerate(self.columns) if n not in kept]

    def fitted(self, width: int) -> Iterator[Sheet]:
        """Yield what is drawn on a screen of a width: one table, or several below one another."""
        kept = self._kept(width)
        if not kept:
            return
        first, *rest = kept
        block = [first]
        for n in rest:
            if len(block) > 1 and self._need([*block, n]) > width:
                yield self._only(block)
                block = [first]
            block.append(n)
        yield self._only(block)

    def drawn(self, width: int, *, ruled: bool = True) -> Iterator[Table]:
        """Yield the table as rich draws it, folded to a width."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        room = self._shared_out(width)
        table = Table(
            box=box.SIMPLE_HEAD if ruled and self.has_heading else None, show_edge=False,
            show_header=self.has_heading, pad_edge=False, header_style="bold",
            padding=(0, 1 if ruled and self.has_heading else GAP, 0, 0),
        )  # fmt: skip
        for n, column in enumerate(self.columns):
            style = "" if self.has_heading or n else "bold"
            justify: Any = "right" if column.right else "left"
            table.add_column(column.name, justify=justify, style=style, overflow="fold")
        for row in self.rows:
            cells = zip(row, self.columns, room, strict=True)
            table.add_row(*(Text(folded(text, most, c.fold)) for text, c, most in cells))
        yield table

    def records(self) -> list[dict[str, str]]:
        """Return the rows as names and texts."""
        if not self.has_heading and len(self.columns) == 2:
            return [{row[0]: row[1] for row in self.rows}] if self.rows else []
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def markdown(self) -> str:
        """Return the table as Markdown has it."""
        lines = [
            _marked(self._heading),
            _marked("---:" if c.right else "---" for c in self.columns),
        ]
        lines += [_marked(text.replace("|", r"\|") for text in row) for row in self.rows]
        return "\n".join([*([f"{self.title}\n"] if self.title else []), *lines])

    def latex(self) -> str:
        """Return the table as LaTeX has it, with the rules of the package booktabs."""
        letters = "".join("r" if column.right else "l" for column in self.columns)
        head = [_set(self._heading), r"\midrule"] if self.has_heading else []
        body = [*head, *(_set(row) for row in self.rows)]
        caption = [f"% {self.title}"] if self.title else []
        lines = [rf"\begin{{tabular}}{{{letters}}}", r"\toprule", *body, r"\bottomrule"]
        return "\n".join([*caption, *lines, r"\end{tabular}"])

    @property
    def _heading(self) -> list[str]:
        return [column.name if self.has_heading else "" for column in self.columns]

    def _by_column(self) -> list[tuple[str, ...]]:
        head = [(column.name,) if self.has_heading else () for column in self.columns]
        cells = zip(*self.rows, strict=True) if self.rows else [()] * len(head)
        return [(*top, *texts) for top, texts in zip(head, cells, strict=True)]

    def _need(self, numbers: Sequence[int]) -> int:
        return sum(self.least[n] for n in numbers) + GAP * (len(numbers) - 1)

    def _kept(self, width: int) -> list[int]:
        kept = list(range(len(self.columns)))
        while self._need(kept) > width:
            last = max(kept, key=lambda n: (self.columns[n].rank, n), default=None)
            if last is None or not self.columns[last].rank:
                break
            kept.remove(last)
        return kept

    def _only(self, numbers: Sequence[int]) -> Sheet:
        rows = tuple(tuple(row[n] for n in numbers) for row in self.rows)
        return Sheet(tuple(self.columns[n] for n in numbers), rows, self.has_heading)

    def _shared_out(self, width: int) -> list[int]:
        """Return the width of each column: what prose lacks is shared by what it asks for."""
        room = list(self.least)
        left = width - self._need(range(len(room)))
        for n in sorted(range(len(room)), key=lambda n: self.widths[n] - room[n]):
            wanting = sum(self.widths[m] > room[m] for m in range(len(room)))
            more = min(self.widths[n] - room[n], max(left, 0) // max(wanting, 1))
            room[n] += more
            left -= more
        return room


def sheet(columns: Iterable[Column | str], rows: Iterable[Iterable[str]], title: str = "") -> Sheet:
    """Return a table; columns by name alone are those of names, always shown."""
    made = (Column(c) if isinstance(c, str) else c for c in columns)
    safe = tuple(c._replace(name=one_line(c.name)) for c in made)
    return Sheet(safe, tuple(tuple(map(one_line, row)) for row in rows), True, title)


def facts(texts: Mapping[str, str]) -> Sheet:
    """Return a table without a heading: names and texts."""
    rows = tuple((one_line(name), one_line(text)) for name, text in texts.items())
    return Sheet((Column("name"), Column("value", fold=" ")), rows, has_heading=False)


def one_line(text: str) -> str:
    """Return a text as a cell has it: plain, in one line."""
    return plain(" ".join(text.splitlines()) if "\n" in text else text).replace("\t", " ")


def folded(text: str, width: int, fold: str) -> str:
    """Return a text with line breaks, so that it is no wider, folded where that is allowed."""
    if not fold or cell_len(text) <= width:
        return text
    lines = [""]
    for piece in _pieces(text, fold):
        if lines[-1] and cell_len(f"{lines[-1]}{piece}".rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def csv_text(records: Sequence[Mapping[Any, Any]]) -> str:
    """Return records as CSV, with a column for every key that one of them has."""
    names = list(dict.fromkeys(key for record in records for key in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


def _pieces(text: str, fold: str) -> list[str]:
    return re.findall(rf".*?(?:{re.escape(fold)}|$)", text)[:-1] if fold else [text]


def _longest(texts: Iterable[str], fold: str) -> int:
    """Return the width of the longest piece that is never folded."""
    return max(cell_len(piece.rstrip()) for text in texts for piece in _pieces(text, fold))


def _marked(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _set(cells: Iterable[str]) -> str:
    escaped = ("".join(_LATEX.get(c, c) for c in cell) for cell in cells)
    return " & ".join(escaped) + r" \\"
