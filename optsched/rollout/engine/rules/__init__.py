"""Whether a decision of a policy may be applied."""
