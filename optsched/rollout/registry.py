"""The registry of policies: names, and how one is made; `declarations` says what each is.

Nothing heavy is imported here; a policy's module is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optsched.plugins.errors import PluginError
from optsched.plugins.plugin import POLICIES, Plugin, installed, referred
from optsched.registry import UnknownNameError
from optsched.rollout.declarations.adaptive import ADAPTIVE
from optsched.rollout.declarations.entry import Entry
from optsched.rollout.declarations.gangs import GANGS
from optsched.rollout.declarations.malleable import MALLEABLE
from optsched.rollout.declarations.placements import PLACEMENTS
from optsched.rollout.declarations.sharing import SHARING_POLICIES
from optsched.rollout.declarations.widths import BUDGETS, CAPACITY

if TYPE_CHECKING:
    from optsched.rollout.engine.decision import Policy
    from optsched.rollout.scenario import Scenario

    PolicyLike = str | Policy | type[Policy]


ENTRIES: tuple[Entry, ...] = (
    *GANGS,
    *PLACEMENTS,
    *BUDGETS,
    *CAPACITY,
    *MALLEABLE,
    *ADAPTIVE,
    *SHARING_POLICIES,
)


def named(text: str) -> tuple[Entry, str]:
    """Look a policy up by its name, and part that from its options.

    Parameters
    ----------
    text
        A name of ours or of an installed plug-in, ``module:Name`` or ``file.py:Name``; after a
        colon its options.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    name, _, rest = text.partition(":")
    for known in ENTRIES:  # those of others are not even looked for, if it is one of ours
        if known.name == name:
            return known, rest
    others = installed_entries()
    for known in others:
        if known.name == name:
            return known, rest
    found = referred(text)
    if found is not None:
        return _of_plugin(found[0]), found[1]
    if name.endswith(".py"):
        raise PluginError(f"policy '{name}': name the class in it, too: {name}:Name")
    raise UnknownNameError("policy", name, [known.name for known in (*ENTRIES, *others)])


def entry(name: str) -> Entry:
    """Look a policy up, as `named` does."""
    return named(name)[0]


def installed_entries() -> list[Entry]:
    """Return the policies of installed plug-ins; none is imported."""
    ours = [known.name for known in ENTRIES]
    return [_of_plugin(plugin) for plugin in installed(POLICIES, ours)]


def _of_plugin(plugin: Plugin) -> Entry:
    return Entry(plugin.name, "", plugin.owner, "", plugin=plugin)


def make(policy: PolicyLike, scenario: Scenario, seed: int = 0) -> Policy:
    """Return a policy by its name and options, such as ``"fifo:relax_s=600"``.

    Of the scenario it is told what policies believe; a clairvoyant one knows the truth.

    Parameters
    ----------
    policy
        As `named` takes it, with options as ``key=value``, separated by commas: numbers, words, and
        true or false (yes, no, on, off, 1, 0); null where nothing is meant. Or a class of policies,
        or a policy, which is copied.

    Raises
    ------
    UnknownNameError
        If there is no such policy.
    PluginError
        If it is one of others that cannot be used.
    ValueError
        If an option is not one of the policy's, or not of its type or range.
    """
    from optsched.rollout.physics.beliefs import believed
    from optsched.rollout.policy_needs import refuse_gpu_types, refuse_priorities
    from optsched.rollout.policy_options import OptionError, read

    if not isinstance(policy, str):
        from optsched.rollout.own_policies import maker_of

        return maker_of(policy, f"policy {label_of(policy)}")(believed(scenario, seed), seed)
    known, rest = named(policy)
    maker = known.maker()
    if not known.knows_types_of(scenario):
        knowing = [one.name for one in ENTRIES if one.knows_types_of(scenario)]
        refuse_gpu_types(known.name, scenario, knowing)
    if "priorities" in known.refused_with:
        knowing = [one.name for one in ENTRIES if one.knows_priorities]
        refuse_priorities(known.name, scenario, knowing)
    told = scenario if known.clairvoyant == "all" else believed(scenario, seed)
    try:
        return maker(told, seed, **read(maker.options, rest))
    except OptionError as error:
        raise OptionError(f"policy '{policy}': {error}") from None


def label_of(policy: PolicyLike) -> str:
    """Return what a policy is called in tables and files."""
    if isinstance(policy, str):
        return policy
    name = getattr(policy, "name", None)
    fallback = policy.__name__ if isinstance(policy, type) else type(policy).__name__
    return name if isinstance(name, str) else fallback


def draws(policy: PolicyLike) -> bool:
    """Tell whether rollouts of a policy may differ between seeds on the same trace."""
    if isinstance(policy, str):
        return named(policy)[0].maker().draws
    from optsched.rollout.own_policies import maker_of

    return maker_of(policy, label_of(policy)).draws


def origin(policy: PolicyLike) -> str:
    """Return whose a policy is, and the hash of its source; nothing of one of ours."""
    plugin = named(policy)[0].plugin if isinstance(policy, str) else None
    return "" if plugin is None else plugin.origin()
