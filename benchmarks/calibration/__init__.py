"""Fits of the generators of traces to published figures: `python -m benchmarks.calibration`."""
