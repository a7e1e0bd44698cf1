"""Documents: reading and writing JSON, faults by path, changes of fields."""
