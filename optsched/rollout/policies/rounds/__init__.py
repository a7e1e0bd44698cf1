"""Rounds that are kept up to date from call to call: only what has changed is looked at."""
