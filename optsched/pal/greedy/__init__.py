"""Greedy rules of PAL."""
