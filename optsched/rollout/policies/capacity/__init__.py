"""Rules that give jobs widths out of so many GPUs: equal ones, as asked for, least work first."""
