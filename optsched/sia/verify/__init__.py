"""The verifier of rounds: it shares no code with the solver."""
