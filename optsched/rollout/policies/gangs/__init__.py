"""Parts of policies of gangs that keep their GPUs."""
