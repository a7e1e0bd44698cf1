"""What each system claims, and the rollouts that it is measured by: one module for each."""
