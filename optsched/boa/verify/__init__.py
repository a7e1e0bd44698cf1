"""The verifier of BOA: it shares no code with the methods."""
