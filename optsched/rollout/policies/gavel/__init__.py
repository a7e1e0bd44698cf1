"""Gavel: shares of time on each type of GPUs by linear programs, and rounds that keep to them."""
