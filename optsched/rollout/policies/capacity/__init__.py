"""Rules that give jobs widths out of so many GPUs: first in, first out, and the least work left."""
