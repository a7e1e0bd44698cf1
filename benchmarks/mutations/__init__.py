"""Files of every kind, mutated: whatever is done to them, they are read or refused in a line.

    python -m benchmarks.mutations --files 20000      # all kinds of files, in turn

It prints the tracebacks and the slow files, and the kinds that took longest.
`tests/test_mutated_files.py` has a hundred of them, and two thousand in CI.
"""
