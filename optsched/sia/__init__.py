"""Sia (SOSP 2023): which GPU type and how many GPUs each job gets in a round."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
