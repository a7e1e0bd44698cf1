"""Budgets that hold: what policies are billed, and the mean JCT that they reach for it."""
