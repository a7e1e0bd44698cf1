"""Parts of policies that put several jobs on one GPU."""
