"""The exact method of PAL: relaxation, cuts, branch and bound, heuristics."""
