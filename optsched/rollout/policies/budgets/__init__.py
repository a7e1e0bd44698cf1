"""Policies of BOA: widths within a budget."""
