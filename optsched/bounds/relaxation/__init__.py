"""Prices of GPU time, found in floats; what they prove is for the verifier to say."""
