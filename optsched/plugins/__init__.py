"""Code of others: how it is named, found, loaded, and told from ours.

It is named on the command line or in Python: by an entry point of an installed package, as
``module:Name``, or as ``path/to/file.py:Name``. Never by a file that is read: no code from data.
Nothing of it is imported before it is asked for.
"""
