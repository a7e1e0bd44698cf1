"""The verifier of EaCO: how much it goes through before it gives a proof up."""

from __future__ import annotations

MOST_TERMS = 1_000_000_000
MOST_KEPT = 4_000_000
PER_GROUP = 10  # terms of a group that is looked at, or of one at the prices of a leaf


class TooManyTermsError(Exception):
    """A proof takes more than the verifier goes through."""


class Effort:
    """A budget of terms: additions or the like, some 0.5 to 2 microseconds each.

    Parameters
    ----------
    most, most_kept
        Terms, and groups in memory.

    Attributes
    ----------
    spent, kept
        So far.
    """

    def __init__(self, most: int = MOST_TERMS, most_kept: int = MOST_KEPT) -> None:
        self.spent = self.kept = 0
        self._most, self._most_kept = most, most_kept

    def spend(self, groups: int) -> None:
        """Count groups that are looked at.

        Raises
        ------
        TooManyTermsError
            If they are more than the budget.
        """
        self.spent += PER_GROUP * groups
        if self.spent > self._most:
            raise TooManyTermsError

    def keep(self) -> None:
        """Count a group that stays in memory.

        Raises
        ------
        TooManyTermsError
            If they are more than the budget.
        """
        self.kept += 1
        if self.kept > self._most_kept:
            raise TooManyTermsError
