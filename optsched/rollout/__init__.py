"""Rollouts: policies over a trace of jobs on a simulated cluster.

The package can be called: ``optsched.rollout("philly-small", policy="fifo").metrics``; see
`optsched.rollout.run.rollout`.
"""

import sys as _sys
from types import ModuleType as _ModuleType
from typing import Any as _Any

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


class _CallablePackage(_ModuleType):
    """Lets `optsched.rollout(...)` run a rollout, though the name is this package's too."""

    def __call__(self, *arguments: _Any, **options: _Any) -> _Any:
        from optsched.rollout.run import rollout as run

        return run(*arguments, **options)

    @property
    def __signature__(self) -> _Any:
        from inspect import signature

        from optsched.rollout.run import rollout as run

        return signature(run)


_sys.modules[__name__].__class__ = _CallablePackage
rollout = _sys.modules[__name__]
