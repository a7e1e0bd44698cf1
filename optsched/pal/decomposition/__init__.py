"""PAL on large clusters: a partition, with duals for the whole."""
