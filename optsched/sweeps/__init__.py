"""Sweeps over a parameter: frontiers, where they are computed and kept."""
