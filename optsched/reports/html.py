"""Pieces of a page: headings, tables, pictures, and data for its controls."""

from __future__ import annotations

import base64
import json
import math
from html import escape
from importlib.resources import files
from io import BytesIO
from string import Template
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsFloat

from optsched.plugins.plugin import referred

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd
    from matplotlib.figure import Figure


def page(title: str, sections: Sequence[Section], data: Any) -> str:
    """Return a whole page: its sections, links to them if they are more than two, and controls.

    Parameters
    ----------
    data
        What the controls show; see `report.js`.
    """
    listed = contents([section.title for section in sections]) if len(sections) > 2 else ""
    body = listed + "".join(section.html(n) for n, section in enumerate(sections))
    return Template(_text("report.html")).substitute(
        title=escape(title),
        style=_text("report.css"),
        body=body,
        data=data_script("data", data),
        script=_text("report.js"),
    )


def _text(name: str) -> str:
    return files("optsched.reports").joinpath(name).read_text(encoding="utf-8")


class Section(NamedTuple):
    """A part of the page with a title of its own."""

    title: str
    contents: str

    def html(self, number: int) -> str:
        """Return it with the name that the contents of the page refer to."""
        head = f"<h2>{escape(self.title)}</h2>"
        return f"<section id='s{number}'>{head}{self.contents}</section>"


def section(title: str, *contents: str) -> Section:
    """Return a section of these pieces."""
    return Section(title, "".join(contents))


def rows_table(texts: dict[str, str]) -> str:
    """Return names and texts as a table."""
    rows = (
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(text)}</td></tr>"
        for name, text in texts.items()
    )
    return f"<table class='rows'>{''.join(rows)}</table>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], *, is_prose: bool = False) -> str:
    """Return a table with a heading; numbers stand on the right.

    Parameters
    ----------
    is_prose
        Whether cells hold sentences, which are folded.
    """
    columns = "".join(f"<th scope='col'>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    kind = "wide prose" if is_prose else "wide"
    return (
        f"<div class='{kind}' tabindex='0'><table><thead><tr>{columns}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def frame_table(frame: pd.DataFrame, most: int = 200) -> str:
    """Return a frame as a table, its first rows if there are more than so many."""
    shown = frame.head(most)
    html = table([str(c) for c in shown.columns], shown.itertuples(index=False))
    if len(frame) > most:
        html += f"<p class='note'>{most} of {len(frame):,} rows</p>"
    return html


def picture(figure: Figure, text: str) -> str:
    """Return a figure as an image inside the page, and close it; above 400 kB as pixels.

    Parameters
    ----------
    text
        What the picture shows, for those who cannot see it.
    """
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    with mpl.rc_context({"svg.hashsalt": "optsched"}):
        kind, data = "svg+xml", _bytes(figure, "svg", metadata={"Date": None})
    if len(data) > 400_000:
        kind, data = "png", _bytes(figure, "png", dpi=110, metadata={"Software": None})
    plt.close(figure)
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return f"<figure class='picture'><img src='{source}' alt='{escape(text, quote=True)}'></figure>"


def download(text: str, name: str) -> str:
    """Return a link that saves a text which the page holds as a file."""
    data = base64.b64encode(text.encode()).decode()
    named = escape(name, quote=True)
    return f"<a download='{named}' href='data:application/json;base64,{data}'>{named}</a>"


def command(text: str) -> str:
    """Return a command line."""
    return f"<pre class='command' tabindex='0'>{escape(text)}</pre>"


def code_note(*names: str) -> str:
    """Return a warning if a command names code by these: what is shown may be anybody's file."""
    named = [name for name in names if referred(name) is not None]
    if not named:
        return ""
    text = f"This command runs the code of {', '.join(named)}, which is not in this report."
    return f"<p class='note'>{escape(text)}</p>"


def contents(titles: Sequence[str]) -> str:
    """Return links to the sections of a page, which are called s0, s1 ..."""
    links = (f"<li><a href='#s{n}'>{escape(title)}</a></li>" for n, title in enumerate(titles))
    return f"<nav aria-label='Contents'><ul>{''.join(links)}</ul></nav>"


def data_script(name: str, data: Any) -> str:
    """Return data for the controls of the page."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    text = text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f"<script type='application/json' id='{name}'>{text}</script>"


def number(value: SupportsFloat) -> str:
    """Write a number for a reader."""
    size = float(value)
    if math.isnan(size):
        return ""
    if size.is_integer() and abs(size) < 1e15:
        return f"{int(size):,}"
    return f"{size:,.1f}" if abs(size) >= 1000 else f"{size:,.5g}"


def duration(seconds: float) -> str:
    """Write a length of time for a reader, in its two largest units."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    if hours < 72:
        return f"{hours} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"


def _cell(value: object) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, bool | str) or not isinstance(value, SupportsFloat):
        return f"<td>{escape(str(value))}</td>"
    return f"<td class='number'>{number(value)}</td>"


def _bytes(figure: Figure, kind: str, **options: Any) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()
