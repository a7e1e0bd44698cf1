"""Clusters: their topology, from the files that people have, as a tree of domains with GPUs."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
