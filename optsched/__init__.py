"""Provably optimal scheduling of deep-learning jobs on GPU clusters.

>>> import optsched
>>> result = optsched.solve("boa/hand")
>>> round(result.objective, 6), result.status.value
(1.151316, 'optimal')
>>> optsched.verify("boa/hand", result)
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
