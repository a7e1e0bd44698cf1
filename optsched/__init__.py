"""Provably optimal scheduling of deep-learning jobs on GPU clusters.

>>> import optsched
>>> instance = optsched.read("boa/hand")
>>> result = optsched.solve(instance)
>>> round(result.objective, 6), result.status.value
(1.151316, 'optimal')
"""

import sys as _sys
from types import ModuleType as _ModuleType

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


class _Package(_ModuleType):
    """Keeps `optsched.solve` the function when the module of the same name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if isinstance(value, _ModuleType) and name in ("check", "export", "frontier", "solve"):
            value = getattr(value, name)
        super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Package
