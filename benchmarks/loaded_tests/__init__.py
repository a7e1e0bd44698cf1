"""The tests on a busy machine: which of them depend on how fast it is."""
