"""Mathematical programs: HiGHS, programs as arrays, Pyomo models, branching."""
