"""Tests for a policy of one's own: that it keeps the rules, peeks at nothing, and is repeatable.

``optsched.testing.check_policy("my.py:Fair")``, or ``optsched policies my.py:Fair --check``. For
property-based tests `instances`, `traces` and `worlds` are strategies of Hypothesis, which is
imported only when they are used.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
