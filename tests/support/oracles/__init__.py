"""Slow and obvious ways to the same answers."""
