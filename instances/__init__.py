"""The bundled instances, one folder per problem, and their best known values."""
