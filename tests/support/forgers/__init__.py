"""Forgers of certificates."""
