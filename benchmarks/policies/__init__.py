"""What a rollout of a Philly trace takes under every policy, by jobs and by GPUs."""
