"""The registry of generators of traces."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

from optsched.documents.faults import InstanceError
from optsched.registry import UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable

    from optsched.instance import CheckedDocument
    from optsched.traces.trace import Trace

MOST_JOBS = 1_000_000


class Generator(NamedTuple):
    """A named generator.

    `module` has the function, which takes how many jobs, a seed and the options, and the class of
    its options.
    """

    module: str
    function: str
    options: str
    summary: str
    source: str

    def option_class(self) -> type[CheckedDocument]:
        """Import and return the class of the options."""
        module = importlib.import_module(f"optsched.traces.generators.{self.module}")
        options_class: type[CheckedDocument] = getattr(module, self.options)
        return options_class


GENERATORS = {
    "philly-atc19": Generator(
        *("synthetic", "philly", "ClusterOptions"),
        "Philly: gangs, failures by 22 reasons, retries, kills, bursts, virtual clusters",
        "USENIX ATC 2019, tables 2, 3, 6, 7",
    ),
    "helios-like": Generator(
        *("synthetic", "helios", "ClusterOptions"),
        "Helios: mean 3.72 GPUs and 6,652 s, median 206 s; shapes of Philly",
        "InternLM/AcmeTrace @6d6ac9cd",
    ),
    "acme-like": Generator(
        *("synthetic", "acme", "ClusterOptions"),
        "Acme's Seren: mean 5.68 GPUs and 1,414 s, median 122 s; shapes of Philly",
        "InternLM/AcmeTrace @6d6ac9cd",
    ),
    "sia-like": Generator(
        *("sia_like", "sia_like", "SiaTraceOptions"),
        "Sia-Philly: 160 jobs of six models in 5 hours, as in PAL's artifact",
        "hal-uw/blox-pal @8a59070",
    ),
    "boa": Generator(
        *("theory_streams", "boa", "BoaStreamOptions"),
        "The classes of a BOA instance, each job on one GPU",
        "arXiv 2602.01404",
    ),
    "poisson": Generator(
        *("theory_streams", "poisson", "PoissonOptions"),
        "Equal gangs, as in the M/M/c and M/D/1 queues",
        "queueing theory",
    ),
}
"""By name."""


def generate(name: str, jobs: int, seed: int = 0, **options: Any) -> Trace:
    """Return a generated trace; the same arguments give the same trace.

    Parameters
    ----------
    name
        A key of `GENERATORS`.
    jobs
        How many, from 1 to a million.
    seed
        A whole number of at least 0.
    **options
        Of the generator: see `options_of`.

    Raises
    ------
    UnknownNameError
        If there is no such generator.
    InstanceError
        If options are unknown or wrong; all faults at once.
    """
    known = _known(name)
    faults = []
    if not (isinstance(jobs, int) and 1 <= jobs <= MOST_JOBS):
        faults.append(f"jobs: expected a whole number from 1 to {MOST_JOBS:,}, found {jobs!r}")
    if not (isinstance(seed, int) and seed >= 0):
        faults.append(f"seed: expected a whole number of at least 0, found {seed!r}")
    if faults:
        raise InstanceError(f"generator {name}", faults)
    checked = known.option_class().from_document(dict(options), f"options of generator {name}")
    module = importlib.import_module(f"optsched.traces.generators.{known.module}")
    make: Callable[[int, int, Any], Trace] = getattr(module, known.function)
    return make(jobs, seed, checked)


def options_of(name: str) -> dict[str, str]:
    """Return the options of a generator, each with its default and what it is."""
    fields = _known(name).option_class().model_fields
    return {
        key: f"({field.default!r}) {field.description}" if field.default is not None else
        field.description or ""
        for key, field in fields.items()
    }  # fmt: skip


def _known(name: str) -> Generator:
    if name not in GENERATORS:
        raise UnknownNameError("generator", name, list(GENERATORS))
    return GENERATORS[name]
