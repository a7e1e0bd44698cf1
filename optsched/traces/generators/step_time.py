"""Speedups by Pollux's model of step time and statistical efficiency.

Source: Qiao et al., "Pollux: Co-adaptive Cluster Scheduling for Goodput-Optimized Deep Learning",
OSDI 2021, section 3; adaptdl's `goodput.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from optsched.documents.arrays import Floats


class StepTime(NamedTuple):
    """Seconds of a training step, and how much a larger batch is worth.

    Computing takes T_c = alpha_c + beta_c m for m samples on each GPU; exchanging gradients among
    k > 1 GPUs T_n = alpha + beta max(k - 2, 0), with (alpha_r, beta_r) inside a node and
    (alpha_n, beta_n) across nodes; a step (T_c^gamma + T_n^gamma)^(1/gamma), and each accumulation
    step before it T_c. A batch of M is worth (phi + m0) / (phi + M) of as many batches of m0.
    """

    alpha_c: float
    beta_c: float
    alpha_n: float
    beta_n: float
    alpha_r: float
    beta_r: float
    gamma: float
    smallest_batch: int
    largest_batch: int
    noise_scale: float

    def goodput(self, gpus: int, gpus_per_node: int, local_batch: int | None = None) -> float:
        """Return samples per second that the smallest batch is worth, at the best batch.

        Parameters
        ----------
        gpus, gpus_per_node
            The width; nodes are filled one after the other.
        local_batch
            Most samples that a GPU has memory for; larger batches accumulate. None: any number.
        """
        batch = np.geomspace(self.smallest_batch, self.largest_batch, 200)
        step = self.seconds(batch, gpus, gpus_per_node, local_batch)
        worth = (self.noise_scale + self.smallest_batch) / (self.noise_scale + batch)
        return float((batch / step * worth).max())

    def seconds(
        self, batch: Floats, gpus: int, gpus_per_node: int, local_batch: int | None = None
    ) -> Floats:
        """Return seconds of a step at each batch; arguments as of `goodput`."""
        share = batch / gpus
        extra = np.zeros_like(share)
        if local_batch is not None:
            extra = np.maximum(np.ceil(share / local_batch - 1e-9) - 1, 0)
        compute = self.alpha_c + self.beta_c * share / (extra + 1)
        network = self._network(gpus, gpus > gpus_per_node)
        step = (compute**self.gamma + network**self.gamma) ** (1 / self.gamma)
        whole: Floats = step + extra * compute
        return whole

    def _network(self, gpus: int, across: bool) -> float:
        if gpus == 1:
            return 0.0
        alpha, beta = (self.alpha_n, self.beta_n) if across else (self.alpha_r, self.beta_r)
        return alpha + beta * max(gpus - 2, 0)


STEP_TIMES = {
    "cifar10": StepTime(
        0.01683, 7.109e-4, 0.12474, 0.002648, 0.03055, 0.00529, 2.24, 128, 4_096, 4_837
    ),
    "deepspeech2": StepTime(
        0.3105, 0.02387, 0.5036, 0.009858, 4.19e-4, 0.1022, 1.45, 20, 640, 2.1e4
    ),
    "bert": StepTime(0.1719, 0.05867, 1.4093, 0.0094, 0.2521, 0.05702, 2.02, 12, 384, 423),
    "yolov3": StepTime(0.1872, 0.02538, 0.7477, 0.01072, 0.0625, 0.0811, 1.11, 8, 512, 434),
    "imagenet": StepTime(
        0.0636, 0.004497, 0.3076, 0.006656, 0.0562, 0.02442, 2.68, 200, 12_800, 1.1e4
    ),
    "ncf": StepTime(
        0.00694, 6.5e-7, 0.01459, 5.417e-4, 0.003137, 0.001163, 1.0, 256, 32_768, 7.49e6
    ),
}
"""Least-squares fits to measured steps on nodes of 4 T4 (root mean square of the log error 0.10 to
0.13); smallest and largest batch, and the noise scale half-way through training. Measured by
petuum/adaptdl, branch osdi21-artifact, simulator/traces."""


def pollux_speedups(
    parameters: StepTime,
    widths: Sequence[int],
    gpus_per_node: int = 4,
    local_batch: int | None = None,
) -> tuple[float, ...]:
    """Return the speedup at each width over one GPU, each at its best batch.

    Raises
    ------
    ValueError
        If a width is below 1.
    """
    small = [width for width in widths if width < 1]
    if small:
        raise ValueError(f"width {small[0]}: expected at least 1 GPU")
    one = parameters.goodput(1, gpus_per_node, local_batch)
    return tuple(parameters.goodput(k, gpus_per_node, local_batch) / one for k in widths)
