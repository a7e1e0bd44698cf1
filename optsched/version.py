"""The version, as the package's metadata have it."""

from importlib.metadata import version

__version__ = version("optsched")
