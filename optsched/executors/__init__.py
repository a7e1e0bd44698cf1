"""Work for this process, others of this machine, or those of an executor: calls and tasks."""
