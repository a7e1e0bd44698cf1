"""Policies that know the whole trace beforehand."""
