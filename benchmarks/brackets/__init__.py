"""How far policies are from certified bounds of mean JCT, on the bundled scenarios."""
