"""Published power levels of GPUs: what a power limit does to speed and watts of single jobs."""

from __future__ import annotations

from optsched.eaco.instance import PowerLevel
from optsched.registry import UnknownNameError

SOURCE = (
    "medians over 45 to 68 configurations of ml-energy/zeus @75a8b939 (Apache-2.0), "
    "examples/research_reproducibility/zeus_nsdi23/trace, relative to the highest limit"
)
# Limit in W: time per epoch and mean watts, both relative to the highest limit, which is left out
# (it is full power: V100 250 W, A40 300 W, RTX6000 260 W, P100 250 W), as is P100 at 225 W, where
# the median power is 1.0017.
MEASURED: dict[str, dict[int, tuple[float, float]]] = {
    "V100": {
        100: (1.3801, 0.5084),
        125: (1.173, 0.5911),
        150: (1.1124, 0.6821),
        175: (1.0632, 0.7808),
        200: (1.0366, 0.8673),
        225: (1.0129, 0.9447),
    },
    "A40": {
        100: (2.8236, 0.5381),
        125: (1.9645, 0.6217),
        150: (1.3321, 0.6742),
        175: (1.0762, 0.7763),
        200: (1.0464, 0.8468),
        225: (1.0155, 0.9188),
        250: (1.0107, 0.9613),
        275: (1.0047, 0.9815),
    },
    "RTX6000": {
        100: (1.8239, 0.4807),
        125: (1.2186, 0.5966),
        150: (1.0999, 0.6798),
        175: (1.0512, 0.7619),
        200: (1.0297, 0.8478),
        225: (1.018, 0.9215),
        250: (1.007, 0.9782),
    },
    "P100": {
        125: (1.0597, 0.8146),
        150: (1.0362, 0.9338),
        175: (1.0166, 0.9693),
        200: (1.0048, 0.995),
    },
}


def power_levels(gpu: str) -> tuple[PowerLevel, ...]:
    """Return the published power levels of a GPU, below full power, from the lowest limit up.

    Parameters
    ----------
    gpu
        A key of `MEASURED`.

    Examples
    --------
    >>> import optsched
    >>> [level.limit_w for level in optsched.eaco.power_levels("V100")]
    [100.0, 125.0, 150.0, 175.0, 200.0, 225.0]
    """
    if gpu not in MEASURED:
        raise UnknownNameError("GPU with published power levels", gpu, list(MEASURED))
    return tuple(
        PowerLevel(id=f"{limit} W", limit_w=limit, rate=1 / time, power=power)
        for limit, (time, power) in MEASURED[gpu].items()
    )
