"""BOA (Budget-Optimal Allocation): how many GPUs to rent for each job within a budget."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
