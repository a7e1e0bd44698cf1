"""`optsched`, and `python -m optsched`. Ctrl-C is dealt with before anything large is imported."""

from __future__ import annotations

from optsched.cli.interrupts import install


def main() -> None:
    """Run the command line."""
    install()
    from optsched.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
