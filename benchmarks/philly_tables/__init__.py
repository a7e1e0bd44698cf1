"""The figures of ATC'19 beside rollouts of generated traces on a cluster as Philly's."""
