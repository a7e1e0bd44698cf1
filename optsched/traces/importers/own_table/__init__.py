"""Jobs of a user's own table, with columns of any names."""
