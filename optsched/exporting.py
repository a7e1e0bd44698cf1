"""Formulations as LP or MPS files, for other solvers."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from optsched.instance import as_instance
from optsched.registry import UnknownNameError, problem

if TYPE_CHECKING:
    from optsched.instance import Instance

FORMATS = ["lp", "mps"]


def export(instance: Instance | str | Path, file_format: str = "lp") -> str:
    """Return the formulation of an instance in a format that other solvers read.

    Parameters
    ----------
    instance
        Or a path, or the name of a bundled one.
    file_format
        ``"lp"`` or ``"mps"``.

    Returns
    -------
    str
        With the names of the formulation, as in ``w(bert_0_8)``; the same text for the same data.

    Raises
    ------
    UnknownNameError
        If there is no such format.
    ValueError
        If the formulation cannot treat such an instance.

    Examples
    --------
    >>> import optsched
    >>> optsched.export("boa/hand").splitlines()[2:6]
    ['min ', 'objective:', '+1.0 w(A_0_1)', '+0.625 w(A_0_2)']
    """
    if file_format not in FORMATS:
        raise UnknownNameError("format", file_format, FORMATS)
    instance = as_instance(instance)
    model = importlib.import_module(problem(instance.problem).specification).build(instance)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        model.write(str(path), format=file_format, io_options={"labeler": _Names()})
        return path.read_text(encoding="utf-8")


class _Names:
    """Gives every variable and constraint a name that both formats allow, each name once."""

    def __init__(self) -> None:
        self.given: set[str] = set()

    def __call__(self, component: Any) -> str:
        plain = component.name.replace("[", "(").replace("]", ")")
        name = unique = re.sub(r"[^A-Za-z0-9_()]", "_", plain)
        number = 1
        while unique in self.given:
            number += 1
            unique = f"{name}_{number}"
        self.given.add(unique)
        return unique
