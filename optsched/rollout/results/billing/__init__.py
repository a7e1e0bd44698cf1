"""What rollouts were billed, and what their budgets allow."""
