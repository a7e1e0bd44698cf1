"""Greedy rules of EaCO."""
