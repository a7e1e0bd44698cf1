"""Reports: results, frontiers and rollouts as one page."""
