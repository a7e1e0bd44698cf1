"""How fast jobs run, what the cluster draws, what overheads cost."""
