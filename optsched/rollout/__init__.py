"""Rollouts: policies over a trace of jobs on a simulated cluster.

``optsched.simulate("philly-small", policy="fifo").metrics``; see `optsched.rollout.run.simulate`.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
