"""check_policy() and conformance(): all checks of a policy, in all worlds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from optsched.plugins.errors import PluginError
from optsched.rollout.engine.decision import ADVICE, InvalidDecision
from optsched.rollout.registry import label_of, make
from optsched.testing.checks import CHECKS, NotSo, NotTried
from optsched.testing.runs import SEED, engine_of, run
from optsched.testing.small_worlds import bundled_worlds, world_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from optsched.rollout.registry import PolicyLike
    from optsched.testing.runs import Run
    from optsched.testing.small_worlds import World

    Outcome = Literal["passed", "failed", "not tried"]

RULES = "keeps the rules"


@dataclass(frozen=True)
class Finding:
    """What a check found in a world: passed, failed or not tried; and what to do."""

    check: str
    world: str
    outcome: Outcome
    message: str = ""

    def __str__(self) -> str:
        return f"{self.check} [{self.world}]: {self.message or self.outcome}"


def conformance(
    policy: PolicyLike, scenario: str | None = None, worlds: Sequence[World] | None = None
) -> list[Finding]:
    """Run all checks of a policy.

    Parameters
    ----------
    policy
        As `optsched.simulate` takes it: ``"my.py:Fair:alpha=0.5"``, a class or an object. Of an
        object, or a class inside a function, no other process is begun.
    scenario
        A scenario to try it in, besides; its file, or the name of a bundled one.
    worlds
        Where to try it; by default `bundled_worlds`.

    Returns
    -------
    list of Finding
        One for each check and world. A policy that is not made for sharing, quotas or rented nodes
        is not tried there any further.

    Raises
    ------
    UnknownNameError, PluginError
        If there is no such policy, or it cannot be loaded.

    Examples
    --------
    >>> from optsched.testing import bundled_worlds, conformance
    >>> found = conformance("fifo", worlds=bundled_worlds()[:1])
    >>> {finding.outcome for finding in found}
    {'passed'}
    """
    chosen = [*(bundled_worlds() if worlds is None else worlds)]
    if scenario is not None:
        chosen.append(world_of(scenario))
    found = [finding for world in chosen for finding in _in_world(policy, world)]
    if not any(finding.outcome == "passed" for finding in found):
        failed = [finding for finding in found if finding.outcome == "failed"]
        return failed or [Finding(RULES, "all", "failed", found[0].message if found else "")]
    return found


def check_policy(policy: PolicyLike, scenario: str | None = None) -> None:
    """Run all checks of a policy, for tests.

    Parameters
    ----------
    policy, scenario
        As of `conformance`.

    Raises
    ------
    AssertionError
        With a line for everything that failed, and what to do about it.

    Examples
    --------
    >>> from optsched.testing import check_policy
    >>> check_policy("las")
    """
    failed = [str(each) for each in conformance(policy, scenario) if each.outcome == "failed"]
    if failed:
        raise AssertionError(f"policy '{label_of(policy)}':\n" + "\n".join(failed))


def _in_world(policy: PolicyLike, world: World) -> Iterator[Finding]:
    try:
        make(policy, world.scenario, SEED)
    except PluginError:
        raise
    except ValueError as error:
        yield Finding(RULES, world.name, "not tried", f"it is not made for this: {error}")
        return
    engine = engine_of(policy, world)
    try:
        base = run(engine)
    except InvalidDecision as error:
        yield _broken(error, world, engine.now_us)
        return
    except PluginError as error:
        yield Finding(RULES, world.name, "failed", str(error))
        return
    yield Finding(RULES, world.name, "passed")
    for name in CHECKS:
        yield _checked(name, policy, world, base)


def _broken(error: InvalidDecision, world: World, now_us: int) -> Finding:
    advice = f"; {ADVICE[error.rule]}" if error.rule in ADVICE else ""
    text = f"at {now_us / 1e6:g} s it breaks a rule, {error}{advice}"
    if world.is_needed:
        return Finding(RULES, world.name, "failed", text)
    return Finding(RULES, world.name, "not tried", f"it is not made for this: {text}")


def _checked(name: str, policy: PolicyLike, world: World, base: Run) -> Finding:
    try:
        CHECKS[name](policy, world, base)
    except NotTried as reason:
        return Finding(name, world.name, "not tried", str(reason))
    except (NotSo, InvalidDecision, PluginError) as error:
        return Finding(name, world.name, "failed", str(error))
    return Finding(name, world.name, "passed")
