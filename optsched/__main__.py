"""`optsched`, and `python -m optsched`. Ctrl-C is dealt with before anything large is imported."""

from __future__ import annotations

import sys

from optsched.cli.interrupts import install


def main() -> None:
    """Run the command line."""
    install()
    try:
        from optsched.cli.main import main as run

        run()
    except MemoryError:
        sys.stderr.write("error: there is not enough memory\n")
        sys.exit(2)
    except (ImportError, SystemError) as error:  # of libraries that find no room, as a rule
        sys.stderr.write(f"error: optsched cannot begin: {error}\n")
        sys.exit(2)


if __name__ == "__main__":
    main()
