"""Importers of traces that others published."""
