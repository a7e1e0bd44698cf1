"""What a file of optsched holds, in readable form: single fields, and a table for each list."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from optsched.cli.printing.sheets import Column, Sheet, facts, sheet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MOST = 20
"""Entries of a list that are shown."""
WIDEST = 40
"""Characters of a list of numbers in a cell."""


def parts(document: Mapping[str, Any]) -> list[Sheet | str]:
    """Return what is printed of a document."""
    flat = dict(_flat(document))
    lists = {key: value for key, value in flat.items() if _is_table(value)}
    single = {key: _text(value, 0) for key, value in flat.items() if key not in lists}
    made: list[Sheet | str] = [facts(single)]
    for key, entries in lists.items():
        made += ["", *_table(key, entries)]
    return made


def _table(key: str, entries: list[dict[str, Any]]) -> Iterator[Sheet | str]:
    """Yield a table with a row for each entry, and what is left out."""
    rows = [dict(_flat(entry)) for entry in islice(entries, MOST)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    texts = [[_text(row.get(name, ""), WIDEST) for name in names] for row in rows]
    numbers = [all(_is_number(row.get(name, 0)) for row in rows) for name in names]
    columns = (
        Column(name, right=is_number, rank=n)
        for n, (name, is_number) in enumerate(zip(names, numbers, strict=True))
    )
    count = f"{len(entries):,}" if len(entries) <= MOST else f"{MOST} of {len(entries):,}"
    yield sheet(columns, texts, f"{key} ({count}):")


def _flat(document: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields, those of objects by paths such as ``speedup.kind``."""
    for key, value in document.items():
        path = f"{above}{key}"
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{path}.")
        else:
            yield path, value


def _is_table(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(v, dict) for v in value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any, most: int) -> str:
    """Return a value in a few words; of a long list how many it has and where it begins."""
    if _is_number(value):
        return f"{value:,.10g}"
    if not isinstance(value, list):
        return (
            "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        )
    if value and isinstance(value[0], dict):
        return f"{len(value)}: {_text(next(iter(value[0].values())), most)}, ..."
    whole = ", ".join(_text(each, most) for each in value[: MOST + 1])
    if len(value) <= MOST and (not most or len(whole) <= most):
        return whole
    return f"{len(value):,}: {', '.join(_text(each, most) for each in value[:3])}, ..."
