"""The version, as the package's metadata have it."""

from importlib.metadata import version

#: Of the package that is installed.
__version__ = version("optsched")
