"""The formulations as in the papers, in Pyomo: one file per problem."""
