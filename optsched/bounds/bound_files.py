"""Files of bounds: reading them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from optsched.bounds.certificate import Bounds
from optsched.documents.faults import InstanceError, lines, validation_faults
from optsched.instance import find, load

if TYPE_CHECKING:
    from pathlib import Path


def read_bounds(source: str | Path) -> Bounds:
    """Read bounds that `optsched bound -o` or `optsched.write` wrote; nothing is proven by that.

    Raises
    ------
    InstanceError
        If the file holds no bounds, with every fault.

    Examples
    --------
    >>> import optsched
    >>> optsched.write(optsched.bound("pal-64"), "bound.json")
    >>> optsched.read_bounds("bound.json").jobs
    160
    """
    try:
        return Bounds.model_validate(load(find(source)))
    except ValidationError as error:
        faults = dict(validation_faults(error, Bounds)).items()
        raise InstanceError(str(source), lines(faults)) from None
