"""The engine of rollouts: events, state, decisions and accounts."""
