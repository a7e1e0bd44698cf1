"""Small things to test with."""
