"""What policies are told of the world: the scenario as they believe it, with errors of some kind.

Every policy is made with this scenario and finds it in its view. The engine has the true one.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from optsched.boa.instance import ByType, Power, Table
from optsched.boa.speedup_curves import curve
from optsched.rollout.engine.random_streams import stream
from optsched.rollout.scenario_parts import Beliefs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from optsched.boa.instance import Phase
    from optsched.boa.speedups import PhaseSpeedup, Speedup
    from optsched.cluster.profile import Profile
    from optsched.eaco.interference import Interference, MeasuredGroup
    from optsched.rollout.scenario import Scenario

LEAST, MOST = 1e-6, 1e6
"""Figures with errors stay between these, if the truth is between them."""


def believed(scenario: Scenario, seed: int) -> Scenario:
    """Return a scenario as policies believe it; itself if they know the truth.

    Parameters
    ----------
    seed
        Of the rollout. Each figure has a draw of its own, so that its error stays the same whatever
        else has errors.
    """
    beliefs = scenario.beliefs
    if beliefs == Beliefs():
        return scenario
    profile = beliefs.profile or scenario.profile
    if beliefs.slowdowns and profile is not None:
        profile = _profile(profile, beliefs.slowdowns, seed)
    changes: dict[str, Any] = {
        "beliefs": Beliefs(arrivals=beliefs.arrivals, works=beliefs.works),
        "profile": profile,
    }
    if beliefs.speedups:
        powers = {
            name: factor(beliefs.speedups, seed, "speedups", name) for name in scenario.models
        }
        changes["models"] = {
            name: model.model_copy(update={"phases": _phases(model.phases, powers[name])})
            for name, model in scenario.models.items()
        }
    if beliefs.interference:
        table = _interference(scenario.sharing.interference, beliefs.interference, seed)
        changes["sharing"] = scenario.sharing.model_copy(update={"interference": table})
    told: Scenario = scenario.model_copy(update=changes)
    return told


def factor(sigma: float, seed: int, *names: str) -> float:
    """Return exp(sigma x a standard normal draw) for what is named; 1 with a sigma of 0."""
    return float(np.exp(sigma * _draws(seed, *names).standard_normal())) if sigma else 1.0


def _draws(seed: int, *names: str) -> np.random.Generator:
    return stream(seed, "beliefs", *(zlib.crc32(name.encode()) for name in names))


def _near(true: float, value: float) -> float:
    """Return a value with an error, in the range of figures."""
    return min(max(value, min(true, LEAST)), max(true, MOST))


def _profile(true: Profile, sigma: float, seed: int) -> Profile:
    slowdown = {}
    for name, values in true.slowdown.items():
        draws = _draws(seed, "slowdowns", name).standard_normal(len(values))
        factors = np.exp(sigma * draws).tolist()
        slowdown[name] = tuple(_near(v, v * f) for v, f in zip(values, factors, strict=True))
    return true.model_copy(update={"slowdown": slowdown})


def _phases(true: Iterable[Phase], power: float) -> tuple[Phase, ...]:
    """Return phases with speedups to a power: at one GPU, or where nothing is gained, as before."""
    return tuple(
        phase.model_copy(update={"speedup": _phase_speedup(phase.speedup, power)}) for phase in true
    )


def _phase_speedup(true: PhaseSpeedup, power: float) -> PhaseSpeedup:
    if not isinstance(true, ByType):
        return _speedup(true, power)
    curves = tuple(
        one.model_copy(update={"speedup": _speedup(one.speedup, power)}) for one in true.curves
    )
    return ByType(curves=curves)


def _speedup(true: Speedup, power: float) -> Speedup:
    if isinstance(true, Power) and true.exponent * power <= 1:
        return Power(exponent=true.exponent * power, max_gpus=true.max_gpus)
    gpus, speeds = curve(true)
    told = tuple(_near(speed, _power(speed, power)) for speed in speeds.tolist())
    return Table(gpus=tuple(gpus.astype(int).tolist()), speedup=told)


def _power(value: float, power: float) -> float:
    """Return a positive value to a power, which may be too large for a float."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float64(value) ** power)


def _interference(true: Interference, sigma: float, seed: int) -> Interference:
    def error(*names: str) -> float:
        return factor(sigma, seed, "interference", *names)

    slope, partner = true.saturation_slope, true.partner_slowdown
    return true.model_copy(
        update={
            "groups": tuple(_group(group, error) for group in true.groups),
            "saturation_slope": _near(slope, slope * error("saturation_slope")),
            "partner_slowdown": _near(partner, partner * error("partner_slowdown")),
        }
    )


def _group(true: MeasuredGroup, error: Callable[..., float]) -> MeasuredGroup:
    """Return a measured group whose slowdowns beyond 1 have errors; what does not fit does not."""
    names = "\0".join([true.gpu or "", *sorted(true.types)])
    rates = []
    for name, rate in zip(true.types, true.rates, strict=True):
        told = 1 / (1 + (1 / rate - 1) * error(names, name)) if rate else 0.0
        rates.append(max(told, min(rate, LEAST)))
    return true.model_copy(update={"rates": tuple(rates)})
