"""Primal heuristics of EaCO's exact methods: they find plans."""
