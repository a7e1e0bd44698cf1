"""What each policy is: its source, what is faithful, where it differs, what it needs."""
