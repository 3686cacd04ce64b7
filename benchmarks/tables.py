"""Sums runs up: the least and the median, ratios, growth; as rows and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from benchmarks.contests import Contest
from benchmarks.running import Figures


class Row(NamedTuple):
    """A contender at one size, over its repeats. Times in seconds."""

    name: str
    runs: int
    least: float
    median: float
    wall: float
    """The median clock time."""
    ratio: float
    """Its least processor time by that of the first contender."""
    memory: int
    """The most memory that the work took beside its input, in bytes; the median."""
    start: tuple[float, float]
    """Import and compilation, the first time and the shortest later one."""
    alike: float | None
    """Mean share of the first ten entries that the first contender has too; None where there are no rankings."""
    failed: str | None


def rows(contest: Contest, runs: Mapping[str, Sequence[Figures]]) -> list[Row]:
    """Sum up the runs of a contest at one size; contenders that were not run are left out."""
    first = [run for run in runs.get(contest.contenders[0].name, ()) if "failed" not in run]
    best = min((run["cpu"] for run in first), default=math.nan)
    base = first[0] if first else None
    return [_row(name, runs[name], best, base) for name, *_ in contest.contenders if name in runs]


def _row(name: str, runs: Sequence[Figures], best: float, base: Figures | None) -> Row:
    whole = [run for run in runs if "failed" not in run]
    if not whole:
        return Row(name, 0, math.nan, math.nan, math.nan, math.nan, 0, (math.nan, math.nan), None, runs[-1]["failed"])
    least = min(run["cpu"] for run in whole)
    starts = [run["import_cpu"] + run["compile_cpu"] for run in whole]
    return Row(
        name=name,
        runs=len(whole),
        least=least,
        median=median(run["cpu"] for run in whole),
        wall=median(run["wall"] for run in whole),
        ratio=least / best,
        memory=int(median(run["memory"] for run in whole)),
        start=(starts[0], min(starts[1:], default=starts[0])),
        alike=None if base is None else overlap(whole[0]["result"], base["result"]),
        failed=None,
    )


def overlap(found: object, others: object) -> float | None:
    """Return the mean share of the first ten of each list that the first ten of the other one hold too."""
    if not isinstance(found, list) or not isinstance(others, list):
        return None
    shares = [
        len(set(mine[:10]) & set(theirs[:10])) / max(min(len(mine), len(theirs), 10), 1)
        for mine, theirs in zip(found, others, strict=True)
    ]
    return sum(shares) / len(shares)


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float | None:
    """Return the power of the size that times grow by, fitted by least squares to logarithms; None for one size."""
    if len(sizes) < 2:
        return None
    xs, ys = [math.log(size) for size in sizes], [math.log(second) for second in seconds]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def as_markdown(found: Sequence[Row]) -> str:
    """Return the rows of one size as a table."""
    lines = [
        "| contender | runs | CPU, least | median | times | wall | memory | start, first | later | same top 10 |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in found:
        if row.failed is not None:
            lines.append(f"| {row.name} | not run: {row.failed.replace('|', '/')} | | | | | | | | |")
            continue
        alike = "" if row.alike is None else f"{row.alike:.2f}"
        start = " | ".join(f"{seconds:.2f} s" for seconds in row.start)
        lines.append(
            f"| {row.name} | {row.runs} | {row.least:.2f} s | {row.median:.2f} s | {row.ratio:.1f} | {row.wall:.2f} s "
            f"| {row.memory / 1e6:.0f} MB | {start} | {alike} |"
        )
    return "\n".join(lines)


def growth(contest: Contest, by_size: Mapping[int, Sequence[Row]]) -> str:
    """Return the least processor times of every size as a table, with the fitted exponents."""
    sizes = sorted(by_size)
    head = " | ".join(f"{size:,}" for size in sizes)
    lines = [f"| contender | {head} | grows as |", f"|---|{'--:|' * (len(sizes) + 1)}"]
    for name, *_ in contest.contenders:
        least = {size: row.least for size in sizes for row in by_size[size] if row.name == name and row.failed is None}
        cells = " | ".join(f"{least[size]:.2f} s" if size in least else "" for size in sizes)
        power = exponent(list(least), list(least.values()))
        lines.append(f"| {name} | {cells} | {'' if power is None else f'n^{power:.2f}'} |")
    return "\n".join(lines)
