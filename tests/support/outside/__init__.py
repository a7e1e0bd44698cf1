"""Oracles, instances and forgers that share nothing with the project."""
