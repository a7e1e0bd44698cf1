"""What a rollout leaves: records, metrics, files, tables, pictures."""
