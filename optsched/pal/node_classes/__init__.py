"""PAL on clusters of equal nodes: aggregation and patterns."""
