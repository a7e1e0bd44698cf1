"""Policies that search lists of the jobs at hand in a quick simulation."""
