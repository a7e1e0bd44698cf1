"""Batch sizes: what jobs gain by more GPUs where a larger batch makes less of each example."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from optsched.boa.instance import Phase, Table
from optsched.documents.base import Items
from optsched.documents.faults import is_number, shown
from optsched.instance import Document, Fault, NonNegative

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from optsched.boa.instance import Speedup
    from optsched.documents.arrays import Floats

Examples = Annotated[int, Field(ge=1, le=1_000_000_000)]


class BatchSizes(Document):
    """The examples of a step, and how much of them a larger batch wastes.

    Where a model has these, the speedups of its phases are of throughput: examples per second. Jobs
    get on at **goodput**, throughput x statistical efficiency, at the best batch of their width, as
    jobs of AdaptDL do. A batch of M examples makes (noise_scale + batch_size) / (noise_scale + M)
    as much of each as one of `batch_size`.

    Notes
    -----
    With k GPUs a batch has from `batch_size` examples to k x `batch_size`, and `max_batch_size` at
    most. A step takes M / k for the examples, and what the speedup at k says is lost beside it
    (communication), which does not depend on M: so throughput at batch k x `batch_size` is that of
    the curve. Where a curve is above k, no time is lost, and its throughput holds at every batch.

    Source: Pollux, OSDI 2021, section 3: efficiency by the gradient noise scale, and the model of a
    step, here with alpha_grad = 0 and gamma = 1 (communication does not overlap with computing).
    """

    batch_size: Examples = Field(
        description="Examples of each GPU in a step where the speedups were measured: on one GPU "
        "the batch that its user chose."
    )
    max_batch_size: Examples | None = Field(
        default=None, description="The largest batch on all GPUs together; any if not given."
    )
    noise_scale: Items[NonNegative] = Field(
        min_length=1,
        description="Gradient noise scale in examples: one for all phases, or one for each.",
    )

    def goodput(self, speedup: Speedup, phase: int) -> Table:
        """Return the goodput of a phase at each width, over one GPU of speedup 1."""
        from optsched.boa.speedup_curves import curve

        gpus, speed = curve(speedup)
        noise = self.noise_scale[phase if len(self.noise_scale) > 1 else 0]
        goodput = self._goodput(gpus, speed, noise)
        widths = tuple(int(k) for k in gpus)
        return Table.model_construct(gpus=widths, speedup=tuple(goodput.tolist()))

    def _goodput(self, gpus: Floats, speed: Floats, noise: float) -> Floats:
        """Return the greatest goodput, whose batch has a derivative of 0 or is at an end.

        M / (M / c + t) x (noise + b) / (noise + M) is greatest at M ** 2 = c x t x noise.
        """
        import numpy as np

        least = float(self.batch_size)
        most = gpus * least
        if self.max_batch_size is not None:
            most = np.clip(self.max_batch_size, least, most)
        computing = np.maximum(gpus, speed)
        lost = least * (gpus / speed - gpus / computing)
        batch = np.clip(np.sqrt(computing * lost * noise), least, most)
        throughput = batch / (batch / computing + lost)
        return throughput * ((noise + least) / (noise + batch))


def goodput_phases(phases: Items[Phase], batches: BatchSizes | None) -> tuple[Phase, ...]:
    """Return phases with the speedups at which jobs get on: those given, or goodput of these."""
    if batches is None:
        return tuple(phases)
    return tuple(
        Phase.model_construct(work_gpu_s=phase.work_gpu_s, speedup=batches.goodput(phase.curve, n))
        for n, phase in enumerate(phases)
    )


def batch_faults(batches: Mapping[str, Any], phases: Any) -> Iterator[Fault]:
    """Yield the faults that concern several fields; bears fields of wrong types."""
    count = len(phases) if isinstance(phases, list | tuple) else 0
    if not count:
        yield (), "belongs to phases, whose speedups are of throughput then; there are none"
    noise = batches.get("noise_scale")
    if isinstance(noise, list | tuple) and count and len(noise) not in (0, 1, count):
        yield ("noise_scale",), f"has {len(noise)} values for {count} phases: give one, or {count}"
    least, most = batches.get("batch_size"), batches.get("max_batch_size")
    if is_number(least) and is_number(most) and most < least:
        yield ("max_batch_size",), f"at least batch_size ({shown(least)}), found {shown(most)}"
