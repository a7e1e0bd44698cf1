"""The verifier of PAL: it shares no code with the methods."""
