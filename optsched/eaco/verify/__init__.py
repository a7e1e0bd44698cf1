"""The verifier of EaCO: it shares no code with the methods."""
