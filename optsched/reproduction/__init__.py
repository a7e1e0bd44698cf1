"""The figures that published systems rest on, measured again: ``optsched.reproduce()``."""
