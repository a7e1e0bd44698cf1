"""Results beside certified bounds: rows, means over seeds, bars."""
