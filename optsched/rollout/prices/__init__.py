"""What rented nodes cost."""
