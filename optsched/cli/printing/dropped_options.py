"""What to say of options that were given up, or that only other commands have."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

DROPPED = {
    "--policies": "it is called --policy now, and takes the same list",
    "--methods": "it is called --method",
    "--greedy": "it is called --compare now, as in `optsched solve`",
    "--option": "it is called --set now: --set KEY=VALUE",
    "--drop-larger": "it is --set trace.drop_larger=true now",
    "--seeds": "it is called --seed; `rollout` and `compare` take lists: --seed 0,1,7 or 0-4",
    "--jobs": "it is --set trace.jobs=N",
    "--budget": "it is --set budget_gpus=N",
}
"""What to give instead of options that no command has, or that only others have."""


def dropped(arguments: Sequence[str], known: Collection[str], formats: Collection[str]) -> str:
    """Return what to say of an option that a command does not have; or "".

    Parameters
    ----------
    formats
        Those of what is printed; none where `--format` is that of the file, as in imports.
    """
    for number, argument in enumerate(arguments):
        option, _, value = argument.partition("=")
        if option in DROPPED and option not in known:
            return f"there is no option {option}: {DROPPED[option]}"
        following = value or next(iter(arguments[number + 1 :]), "")
        is_taken = formats and "--input-format" in known
        if option == "--format" and is_taken and following not in formats:
            return (
                f"--format {following}: the format of the file is --input-format {following} now; "
                f"--format is that of what is printed: {', '.join(formats)}"
            )
    return ""
