"""Small things that pages would otherwise show wrongly.

Doctests in Markdown end with an empty line, which is no part of the code; the release notes mark
their lines with words in bars; and fields of named tuples have no texts of their own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARK = re.compile(r"\|(new|changed|fixed|removed)\| ?")


def _tidied(_app: Sphinx, page: nodes.document) -> None:
    """Take empty lines from the ends of blocks of code, and set marks in words of their own."""
    for block in page.findall(nodes.literal_block):
        if block.rawsource == block.astext():  # else it is highlighted already
            text = block.astext().rstrip()
            block.rawsource = text
            block.children = [nodes.Text(text)]
    for text in list(page.findall(nodes.Text)):
        found = MARK.match(text)
        if found and isinstance(text.parent, nodes.paragraph):
            mark = nodes.inline("", found[1], classes=["note-kind"])
            text.parent.replace(text, [mark, nodes.Text(" " + text[found.end() :])])


def _is_left_out(
    _app: Sphinx, _what: str, _name: str, value: Any, skip: bool, _options: Any
) -> bool | None:
    """Leave out fields of named tuples, of which Python only says which number they have."""
    is_alias = str(getattr(value, "__doc__", "")).startswith("Alias for field number")
    return True if is_alias else (skip or None)


def _plain(signature: str) -> str:
    """Return a signature whose types are told without what else pydantic checks of them."""
    while (start := signature.find("Annotated[")) >= 0:
        depth, comma, end = 1, 0, start + len("Annotated[")
        while depth:
            depth += {"[": 1, "]": -1}.get(signature[end], 0)
            comma = comma or (end if signature[end] == "," and depth == 1 else 0)
            end += 1
        inner = signature[start + len("Annotated[") : comma]
        signature = signature[:start] + inner + signature[end:]
    return signature


def _told(
    _app: Sphinx, _what: str, _name: str, _value: Any, _options: Any, signature: Any, result: Any
) -> tuple[Any, Any] | None:
    return (_plain(signature), result) if signature else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of these."""
    app.connect("doctree-read", _tidied)
    app.connect("autodoc-skip-member", _is_left_out)
    app.connect("autodoc-process-signature", _told)
    return {"parallel_read_safe": True}
