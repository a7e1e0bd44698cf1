"""Published figures of Helios and of Acme's Seren, and what `benchmarks.calibration` fits to them.

Source: InternLM/AcmeTrace @6d6ac9cd, data/cluster_summary.csv; jobs on GPUs only.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OtherCluster:
    """A cluster of which means, medians and shares by status are known, and Philly's shapes.

    Attributes
    ----------
    mean_gpus, mean_run_s, median_run_s, gpu_hours
        Of a job.
    killed, failed
        Shares of the jobs.
    gpu_time
        % of the GPU time of passed, killed and failed jobs.
    size_exponent
        Shares of the sizes 1, 2, 4 ... 128 in proportion to size ** exponent: gives the mean GPUs.
    stretch, gang_stretch, trial_factor, kill_slope
        As in `World`: they give median and mean run time, GPU-hours, and GPU time by status.
    """

    mean_gpus: float
    mean_run_s: float
    median_run_s: float
    gpu_hours: float
    killed: float
    failed: float
    gpu_time: tuple[float, float, float]
    size_exponent: float
    stretch: tuple[float, float]
    gang_stretch: float
    trial_factor: float
    kill_slope: float


HELIOS = OtherCluster(
    mean_gpus=3.716,
    mean_run_s=6_652,
    median_run_s=206,
    gpu_hours=13.71,
    killed=0.221,
    failed=0.155,
    gpu_time=(51.3, 39.4, 9.3),
    size_exponent=-1.0452,
    stretch=(0.12974, 1.0328),
    gang_stretch=0.1682,
    trial_factor=1.32906,
    kill_slope=0.1485,
)
SEREN = OtherCluster(
    mean_gpus=5.68,
    mean_run_s=1_414,
    median_run_s=122,
    gpu_hours=9.00,
    killed=0.075,
    failed=0.429,
    gpu_time=(21.2, 66.4, 12.4),
    size_exponent=-0.8173,
    stretch=(0.11882, 0.6425),
    gang_stretch=0.843,
    trial_factor=4.38214,
    kill_slope=0.6683,
)
