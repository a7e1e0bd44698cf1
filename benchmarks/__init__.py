"""Claims about speed: one script for each, and one command for all of them.

    python -m benchmarks --quick

`optsched` is imported as it is installed; nothing here is part of the package.
"""
