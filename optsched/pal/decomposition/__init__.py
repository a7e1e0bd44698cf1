"""PAL on large clusters: a partition, with prices for the whole."""
