"""Pictures and explanations of BOA."""
