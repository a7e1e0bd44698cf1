"""Certified lower bounds of whole rollouts: how good any schedule of a stated class could be."""
