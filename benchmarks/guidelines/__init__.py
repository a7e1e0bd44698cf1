"""The guidelines of ATC'19, each measured against Philly's scheduler on the same traces."""
