"""Rollouts that go on after they were interrupted: their state as plain data, and its file."""
