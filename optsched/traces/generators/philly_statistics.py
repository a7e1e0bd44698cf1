"""Published figures of Microsoft's Philly clusters.

Source: Jeon et al., "Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training Workloads",
USENIX ATC 2019: tables 3, 6 and 7. Run times are read off figure 2 of the notebook in
msr-fiddle/philly-traces (+-10 %). Jobs by size and by virtual cluster: ATC'19 table 2 and the
82,247 jobs of pkusys/ElasticFlow @04a0109a. GPU-hours, run times and waits of the public trace:
InternLM/AcmeTrace @6d6ac9cd, cluster_summary.csv.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from optsched.traces.generators.arrivals import WeeklyProfile

SIZE_CLASSES = ("1", "2-4", "5-8", ">8")


_ARRIVALS = WeeklyProfile(
    hours=(
        *(5.31, 4.10, 4.66, 4.60, 2.92, 4.80, 6.97, 8.70, 4.62, 4.19, 4.27, 3.62),
        *(3.12, 2.94, 2.66, 2.70, 3.67, 2.78, 3.34, 3.03, 4.23, 3.82, 4.72, 4.21),
    ),
    days=(8.5, 12.32, 15.23, 16.26, 18.38, 20.61, 8.7),
)


@dataclass(frozen=True)
class PhillyFigures:
    """What was published; tuples by status are of passed, killed and failed jobs.

    Attributes
    ----------
    jobs, window_days
        How many, and from the first arrival to the last.
    status_jobs, status_gpu_time
        Table 6: jobs, and % of GPU time, by status.
    class_largest
        GPUs: the largest size of each of `SIZE_CLASSES` but the last.
    sizes, size_weights
        GPUs of a job, and weights within a size class: 2 and 4 equally; above 8 as in the CSV.
        Shares of the classes are fitted: `FITTED.class_shares`.
    mean_gpus, gpu_hours, mean_run_s, median_run_s
        Of a job in the public trace (112,956 jobs on GPUs: not the paper's 96,260).
    levels, run_minutes
        Run time at the levels by size class, without the last; the first is a tenth of the second
        or so, and 10,000 stands for "over 10,000".
    trial_levels
        Levels of the minutes to failure in table 7, with the least and the most.
    utilization_sizes, utilization, utilization_all
        Table 3, in %: GPUs of a job; by status and size; and over all statuses.
    virtual_clusters
        Names, with shares in % of jobs and of GPU-hours.
    virtual_cluster_sizes
        Jobs of each by size class, in the CSV.
    gap_median, gap_cv
        Gaps between arrivals: median over mean, and coefficient of variation.
    arrivals
        % of the CSV's arrivals by hour of the day (its own clock), and by day from Sunday.
    """

    jobs: int = 96_260
    window_days: float = 75.0
    status_jobs: tuple[int, ...] = (66_696, 12_996, 16_568)
    status_gpu_time: tuple[float, ...] = (44.53, 37.69, 17.76)
    class_largest: tuple[int, ...] = (1, 4, 8)
    sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 24, 32, 64, 128)
    size_weights: tuple[float, ...] = (1, 1, 1, 1, 199, 7, 67, 6, 3)
    mean_gpus: float = 1.928
    gpu_hours: float = 16.96
    mean_run_s: float = 18_006.0
    median_run_s: float = 874.0
    levels: tuple[float, ...] = (0.0, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 1.0)
    run_minutes: tuple[tuple[float, ...], ...] = (
        (0.1, 0.97, 2.0, 19.0, 64.0, 236.0, 685.0),
        (0.05, 0.31, 1.5, 29.0, 1_030.0, 3_450.0, 7_090.0),
        (0.1, 1.4, 15.0, 206.0, 1_920.0, 5_970.0, 10_000.0),
        (0.08, 0.84, 8.7, 136.0, 934.0, 3_110.0, 6_180.0),
    )
    trial_levels: tuple[float, ...] = (0.0, 0.5, 0.9, 0.95, 1.0)
    utilization_sizes: tuple[int, ...] = (1, 4, 8, 16)
    utilization: tuple[tuple[float, ...], ...] = (
        (53.51, 51.13, 51.09, 44.88),
        (37.02, 34.39, 60.63, 36.98),
        (62.82, 50.95, 64.34, 39.02),
    )
    utilization_all: tuple[float, ...] = (52.38, 45.18, 58.99, 40.39)
    virtual_clusters: tuple[tuple[str, float, float], ...] = (
        ("6214e9", 50.1, 9.9),
        ("11cb48", 19.6, 2.9),
        ("6c71a0", 12.1, 8.4),
        ("b436b2", 9.0, 12.9),
        ("103959", 2.4, 4.4),
        ("ee9e8c", 1.8, 26.2),
        ("0e4a51", 1.7, 7.9),
        ("ed69ec", 1.4, 0.9),
        ("7f04ca", 0.9, 16.9),
        ("2869ce", 0.5, 8.3),
        ("e13805", 0.5, 1.4),
    )
    virtual_cluster_sizes: tuple[tuple[int, ...], ...] = (
        (40_841, 194, 191, 0),
        (14_607, 1_455, 10, 19),
        (9_054, 433, 455, 11),
        (7_237, 75, 51, 60),
        (1_571, 363, 0, 0),
        (597, 375, 420, 119),
        (1_090, 345, 0, 0),
        (1_137, 0, 0, 0),
        (204, 329, 179, 11),
        (64, 14, 293, 51),
        (215, 105, 36, 18),
    )
    gap_median: float = 8.0 / 114.4
    gap_cv: float = 15.1
    arrivals: WeeklyProfile = _ARRIVALS


PHILLY = PhillyFigures()


class Reason(NamedTuple):
    """A row of table 7; minutes to failure, percent of the total, trials by GPUs asked for."""

    name: str
    category: str
    jobs: int
    p50: float
    p90: float
    p95: float
    time_share: float
    demand: tuple[int, int, int]
    gpu_time_share: float

    @property
    def trials(self) -> int:
        """How many, of all jobs."""
        return sum(self.demand)


_TABLE_7 = (
    ("CPU out of memory", "AE,U", 2_803, 13.45, 17.73, 33.97, 6.62, (11_465, 235, 376), 8.05),
    ("Incorrect inputs", "IF,U", 4_936, 1.87, 404.83, 2095.73, 30.43, (5_844, 2_638, 1_208), 24.21),
    ("Semantic error", "IF,U", 2_049, 2.72, 376.0, 1436.88, 9.22, (1_603, 494, 846), 17.06),
    ("Core dump", "AE,U", 1_784, 0.85, 72.75, 431.65, 3.35, (1_936, 496, 480), 3.02),
    ("Invalid mem access", "U", 1_235, 1.03, 403.5, 1357.38, 3.82, (712, 774, 1_116), 4.75),
    ("Model ckpt error", "IF", 948, 181.67, 3728.93, 8196.02, 21.73, (743, 384, 868), 16.33),
    ("CUDA failure", "AE", 571, 1.32, 19.87, 82.17, 0.62, (133, 1_153, 198), 0.72),
    ("Syntax error", "IF,U", 883, 0.58, 5.02, 12.0, 0.19, (780, 184, 168), 0.26),
    ("Traceback from crash", "IF,AE,U", 271, 1.02, 894.33, 1394.07, 2.34, (356, 277, 144), 1.74),
    ("MPI error", "IF", 166, 1.62, 3015.27, 5143.98, 3.7, (456, 54, 124), 1.24),
    ("GPU out of memory", "AE", 261, 18.53, 353.62, 2740.28, 1.08, (237, 70, 180), 2.1),
    ("MPI runtime failure", "IF", 420, 1389.48, 13778.6, 18090.88, 14.63, (240, 141, 97), 15.34),
    ("Permission error", "U", 151, 1.0, 8.15, 15.85, 0.07, (56, 202, 41), 0.03),
    ("Import error", "IF,U", 148, 0.67, 4.58, 10.73, 0.06, (108, 30, 10), 0.02),
    ("Job preempted", "IF", 95, 559.08, 2682.85, 5892.23, 1.66, (25, 95, 27), 4.73),
    ("CUDA init failed", "AE", 69, 1.08, 2.18, 4.63, 0.03, (16, 66, 59), 0.13),
    ("Model diverged", "U", 30, 1.48, 44.37, 76.53, 0.01, (78, 5, 1), 0.01),
    ("CUDA ver. mismatch", "AE", 49, 0.83, 1.65, 1.67, 0.0, (1, 1, 47), 0.0),
    ("GPU ECC error", "AE", 10, 26.82, 671.92, 2035.02, 0.03, (1, 5, 4), 0.05),
    ("Output node error", "U", 3, 0.85, 0.95, 0.95, 0.0, (3, 0, 0), 0.0),
    ("Cannot load libs", "AE", 1, 0.12, 0.12, 0.12, 0.0, (1, 0, 0), 0.0),
    ("No signature", "-", 698, 1.87, 28.0, 95.17, 0.42, (1_235, 294, 155), 0.21),
)
REASONS = tuple(Reason(*row) for row in _TABLE_7)
"""Why trials of jobs fail, how many, and after how long."""
