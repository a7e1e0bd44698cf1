"""The registry of policies: names, where they are from, and how one is made.

Nothing heavy is imported here; a policy's module is imported when it is first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from optsched.eaco.greedy.rules import EACO
from optsched.eaco.greedy.rules import RULES as GROUPING_RULES
from optsched.pal.greedy.rules import RULES as PLACEMENT_RULES
from optsched.pal.greedy.rules import SC24
from optsched.plugins.errors import PluginError
from optsched.plugins.plugin import POLICIES, Plugin, installed, referred
from optsched.registry import UnknownNameError, loaded

if TYPE_CHECKING:
    from optsched.rollout.engine.decision import Policy
    from optsched.rollout.policy_options import Maker
    from optsched.rollout.scenario import Scenario

    PolicyLike = str | Policy | type[Policy]


@dataclass(frozen=True)
class Entry:
    """A named policy.

    `make` is "module:name" of a `Maker`, which takes the scenario, a seed and the options as
    keywords, and returns a policy; where a `rule` is named, of a function of that to a `Maker`.
    A policy of others has a `plugin` instead.
    """

    name: str
    summary: str
    source: str
    make: str
    rule: str = ""
    plugin: Plugin | None = None

    def maker(self) -> Maker[Any, Policy]:
        """Import the maker; its `options` are what the policy takes."""
        if self.plugin is not None:
            from optsched.rollout.own_policies import maker_of

            return maker_of(self.plugin.load(), f"policy {self.plugin.told}")
        made = loaded(self.make)
        maker: Maker[Any, Policy] = made(self.rule) if self.rule else made
        return maker


_POLICIES = "optsched.rollout.policies."
_EPEW = "Li et al., EPEW 2024, arXiv 2406.15560; BOA, arXiv 2602.01404"
_POLLUX = "Pollux, OSDI 2021, petuum/adaptdl, branch osdi21-artifact"

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "fifo",
        "first in, first out, best fit; called at events it is fast",
        "",
        _POLICIES + "fifo:fifo",
    ),
    Entry(
        "philly",
        "gangs with relaxed locality and Philly's guidelines as switches",
        "Jeon et al., USENIX ATC 2019",
        _POLICIES + "philly:philly",
    ),
    Entry(
        "las",
        "least attained service, consolidated, preemptive",
        "Gu et al., Tiresias, NSDI 2019; Blox",
        _POLICIES + "round_based:las",
    ),
    Entry(
        "srtf",
        "shortest remaining time first, consolidated, preemptive",
        "Blox, hal-uw/blox-pal, schedulers/",
        _POLICIES + "round_based:srtf",
    ),
    Entry(
        "tiresias",
        "discretised least attained service, consolidated, preemptive",
        "Gu et al., Tiresias, NSDI 2019",
        _POLICIES + "round_based:tiresias",
    ),
    *(
        Entry(
            rule.name,
            f"in rounds: {rule.summary}",
            rule.source,
            _POLICIES + "round_based:placing",
            rule.name,
        )
        for rule in PLACEMENT_RULES
        if rule.is_policy
    ),
    Entry(
        "pal",
        "in rounds: least total slowdown of all jobs at once, by the exact method",
        SC24,
        _POLICIES + "round_based:pal",
    ),
    Entry(
        "boa",
        "the stationary widths of least mean JCT within a budget; nodes are rented for them",
        _EPEW,
        _POLICIES + "budgets.boa:boa",
    ),
    Entry(
        "boa-budgeted",
        "at epochs: the widths of the jobs at hand within an allowance, by an integer program",
        _EPEW,
        _POLICIES + "budgets.boa_budgeted:boa_budgeted",
    ),
    Entry(
        "one-width-per-class",
        "one width for all jobs of a class, the best within the budget",
        _EPEW,
        _POLICIES + "budgets.boa:one_width_per_class",
    ),
    Entry(
        "fixed-width",
        "k GPUs for every job; nodes are rented for them",
        "Li-Zhouzi/artifacts, policy dummy",
        _POLICIES + "budgets.boa:fixed_width",
    ),
    Entry(
        "efficiency-threshold",
        "the largest width of a given efficiency; nodes are rented for them",
        "common practice",
        _POLICIES + "budgets.boa:efficiency_threshold",
    ),
    Entry(
        "equi", "so many GPUs, an equal share for every job", "", _POLICIES + "fixed_capacity:equi"
    ),
    Entry(
        "fifo-requested",
        "so many GPUs, what each job asks for, first in, first out",
        "",
        _POLICIES + "fixed_capacity:fifo_requested",
    ),
    Entry(
        "srpt-k",
        "so many GPUs, all it can use to the job with the least work left",
        "",
        _POLICIES + "fixed_capacity:srpt_k",
    ),
    Entry(
        "marginal-greedy",
        "so many GPUs, step by step to the largest drop of a remaining time",
        "Optimus, EuroSys 2018",
        _POLICIES + "fixed_capacity:marginal_greedy",
    ),
    Entry(
        "pollux",
        "so many GPUs, the best power mean of speedups, p = -1",
        _POLLUX,
        _POLICIES + "pollux:pollux",
    ),
    Entry(
        "pollux-autoscaling",
        "the same on as many nodes as are used well",
        _POLLUX,
        _POLICIES + "pollux:pollux_autoscaling",
    ),
    Entry(
        "sia",
        "so many GPUs, a configuration for every job by Sia's integer program, round after round",
        "Sia, SOSP 2023, siasosp23/artifacts, sia-simulator/sia.py",
        _POLICIES + "sia:sia",
    ),
    Entry(
        "eaco",
        "sharing at least energy, by the exact method, with moves",
        EACO,
        _POLICIES + "eaco:eaco",
    ),
    *(
        Entry(rule.name, rule.summary, rule.source, _POLICIES + "eaco:sharing", rule.name)
        for rule in GROUPING_RULES
    ),
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
    from optsched.rollout.policy_options import OptionError, read

    if not isinstance(policy, str):
        from optsched.rollout.own_policies import maker_of

        return maker_of(policy, f"policy {label_of(policy)}")(scenario, seed)
    known, rest = named(policy)
    maker = known.maker()
    try:
        return maker(scenario, seed, **read(maker.options, rest))
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
