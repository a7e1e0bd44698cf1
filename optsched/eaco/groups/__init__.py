"""Groups of jobs as columns: enumeration, and pricing by bounded search."""
