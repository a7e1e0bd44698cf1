"""Classes of applications, by what they ask of a GPU: its arithmetic or its memory."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from optsched.documents.arrays import Floats, Indices


@dataclass(frozen=True)
class ApplicationClasses:
    """Applications in classes "A", "B", ..., from the most compute-intensive down.

    Attributes
    ----------
    members
        Applications of each class, sorted.
    centres
        Mean utilisation (DRAM, FMA) of each class, in percent of the peak.
    silhouette
        Mean silhouette of the clustering, from -1 to 1; None where there are too few applications
        to compare numbers of classes.
    """

    members: dict[str, tuple[str, ...]]
    centres: dict[str, tuple[float, float]]
    silhouette: float | None

    @property
    def class_of(self) -> dict[str, str]:
        """The class of each application."""
        return {app: name for name, apps in self.members.items() for app in apps}


def classify_applications(
    utilisation: Mapping[str, tuple[float, float]], seed: int = 1
) -> ApplicationClasses:
    """Put applications into classes by K-means on their utilisation of DRAM and FMA units.

    The number of classes, from 2 to 10, is that with the best mean silhouette. With fewer than
    three distinct utilisations there is nothing to compare, and each is a class. Classes are named
    in the order of FMA minus DRAM utilisation of their centres, the greatest first: class A is the
    most sensitive to differences between GPUs.

    Parameters
    ----------
    utilisation
        Per application (DRAM, FMA), in percent of the peak, 0 to 100. Nsight Compute:
        ``dram__throughput.avg.pct_of_peak_sustained_elapsed`` and
        ``smsp__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active``. The order of the
        applications does not matter.
    seed
        Of the starts of K-means.

    Raises
    ------
    ValueError
        If there is no application, or a utilisation is not between 0 and 100.

    Notes
    -----
    Source: Jain et al., SC 2024, arXiv 2408.11919, application classification. No measured
    utilisations are published; the release fixes the class of each model.

    Examples
    --------
    >>> from optsched.cluster.applications import classify_applications
    >>> measured = {"vgg": (20, 80), "resnet": (25, 78), "pagerank": (90, 5), "bfs": (85, 2)}
    >>> classify_applications(measured).members
    {'A': ('resnet', 'vgg'), 'B': ('bfs', 'pagerank')}
    """
    import numpy as np

    apps = sorted(utilisation)
    _check(utilisation, apps)
    points = np.array([utilisation[app] for app in apps], dtype=np.float64)
    labels, silhouette = _clusters(points, seed)
    groups = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    groups.sort(key=lambda group: _order(points[group]))
    named = list(zip(string.ascii_uppercase, groups, strict=False))
    centres = {name: points[group].mean(axis=0) for name, group in named}
    return ApplicationClasses(
        members={name: tuple(apps[n] for n in group) for name, group in named},
        centres={name: (float(dram), float(fma)) for name, (dram, fma) in centres.items()},
        silhouette=silhouette,
    )


def _clusters(points: Floats, seed: int) -> tuple[Indices, float | None]:
    """Return the cluster of each point, and the silhouette if it was what chose the number."""
    import numpy as np

    from optsched.cluster.kmeans import best_clusters, kmeans, silhouettes

    different, labels = np.unique(points, axis=0, return_inverse=True)
    if len(different) < 3:
        return labels.astype(np.intp), None
    scores = silhouettes(points, seed)
    if not scores:  # equal but for rounding
        return np.zeros(len(points), dtype=np.intp), None
    clusters = best_clusters(scores)
    return kmeans(points, clusters, seed)[1], scores[clusters]


def _order(points: Floats) -> tuple[float, float]:
    """Sort key: from the most compute-intensive centre to the most memory-intensive."""
    dram, fma = points.mean(axis=0)
    return float(dram - fma), float(-fma)


def _check(utilisation: Mapping[str, tuple[float, float]], apps: Iterable[str]) -> None:
    if not utilisation:
        raise ValueError("there is no application to classify")
    for app in apps:
        if len(utilisation[app]) != 2:
            raise ValueError(f"application '{app}': expected two utilisations, (DRAM, FMA)")
        for unit, value in zip(("DRAM", "FMA"), utilisation[app], strict=True):
            if not 0 <= value <= 100:
                raise ValueError(
                    f"application '{app}': {unit} utilisation must be between 0 and 100 percent, "
                    f"found {value}"
                )
