"""EaCO (energy-aware co-location): which jobs share GPUs so that the work takes least energy."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
