"""Greedy rules for Sia's round."""
