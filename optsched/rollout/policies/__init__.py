"""Policies: what a rollout calls, exact and greedy; see `optsched.rollout.registry`."""
