"""Exact methods of BOA: Lagrangian dual, label setting, frontier."""
