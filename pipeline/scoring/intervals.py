"""How sure a mean over items is: 95% intervals, and the label that its number of clusters allows.

Items of one cluster are not independent and count as one. Sources: Wilson 1927; Student 1908; Miller 2024, "Adding
error bars to evals" (clustered standard error); Kish 1965 (effective number).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from statistics import NormalDist
from typing import Literal, NamedTuple, TypeVar

Value = TypeVar("Value")
Label = Literal["no items", "insufficient items", "low confidence", "ok"]

CONFIDENCE = 0.95
FEWEST = 20
"""Fewer clusters than this are insufficient."""
SURE = 50
"""Fewer clusters than this give low confidence."""
FEWEST_CHANGED = 6
"""In a comparison, fewer changed items than this are insufficient."""

_Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)


class Interval(NamedTuple):
    """Bounds of a mean, within 0 and 1."""

    low: float
    high: float


def label(n: int, changed: int | None = None) -> Label:
    """Return what ``n`` scored clusters allow to say; a comparison says how many ``changed`` too."""
    if n == 0:
        return "no items"
    if n < FEWEST or (changed is not None and changed < FEWEST_CHANGED):
        return "insufficient items"
    return "low confidence" if n < SURE else "ok"


def wilson(share: float, n: float) -> Interval | None:
    """Return Wilson's score interval for ``share`` of ``n`` trials; None without a trial."""
    if not n:
        return None
    centre = share + _Z**2 / (2 * n)
    half = _Z * math.sqrt(share * (1 - share) / n + (_Z / (2 * n)) ** 2)
    low, high = (centre - half) / (1 + _Z**2 / n), (centre + half) / (1 + _Z**2 / n)
    return _clipped(0.0 if share == 0 else low, 1.0 if share == 1 else high)  # there they are exact


def student(values: Sequence[float], clusters: Sequence[Hashable]) -> Interval | None:
    """Return Student's t interval of the mean of ``values``, with the clustered standard error.

    The error is that of ``clustered_error`` times sqrt(C / (C - 1)) for C clusters: with clusters of one size it is the
    t interval over their means, with clusters of one item the plain one. None with fewer than 2 clusters.
    """
    number = len(set(clusters))
    if number < 2:
        return None
    from scipy.special import stdtrit

    centre = math.fsum(values) / len(values)
    quantile = float(stdtrit(number - 1, 0.5 + CONFIDENCE / 2))
    half = quantile * clustered_error(values, clusters) * math.sqrt(number / (number - 1))
    return _clipped(centre - half, centre + half)


def clustered_error(values: Sequence[float], clusters: Sequence[Hashable]) -> float:
    """Return sqrt(sum over clusters of (sum of x - mean)^2) / n, the standard error of the mean of ``values``."""
    centre = math.fsum(values) / len(values)
    members = _members(values, clusters)
    return math.sqrt(math.fsum(math.fsum(x - centre for x in group) ** 2 for group in members.values())) / len(values)


def effective_number(clusters: Sequence[Hashable]) -> float:
    """Return n^2 / sum of cluster sizes squared: the clusters' number where they are of one size, else fewer."""
    if not clusters:
        return 0.0
    sizes = [len(group) for group in _members(clusters, clusters).values()]
    return sum(sizes) ** 2 / sum(size**2 for size in sizes)


def _members(values: Sequence[Value], clusters: Sequence[Hashable]) -> Mapping[Hashable, list[Value]]:
    members: dict[Hashable, list[Value]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        members.setdefault(cluster, []).append(value)
    return members


def _clipped(low: float, high: float) -> Interval:
    return Interval(max(0.0, low), min(1.0, high))
