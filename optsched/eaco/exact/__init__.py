"""Exact methods of EaCO: column generation, branch and bound, bounds."""
