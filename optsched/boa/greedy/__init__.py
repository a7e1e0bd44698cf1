"""Greedy rules of BOA."""
