"""The tables and figures of the paper on Philly, of rollouts: Jeon et al., USENIX ATC 2019."""
