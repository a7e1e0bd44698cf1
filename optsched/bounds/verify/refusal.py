"""What is raised where a certificate cannot be of a world."""


class Refused(ValueError):
    """A certificate that is none of this world."""
