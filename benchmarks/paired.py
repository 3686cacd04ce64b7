"""Count by question which of two engines of a published run does better.

``python benchmarks/paired.py RUN ENGINE OTHER ...`` reads ``items.parquet`` of the run's folder and prints, for each
other engine and measure, the mean of both and on how many questions the other is better, worse and equal; graded as
pinned.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq

MEASURES = ("recall@10", "hit@1", "mrr@100", "ndcg@10")


def values_of(items: list[dict[str, object]], engine: str, measure: str) -> dict[tuple[object, object], float]:
    """Return the value of each scored question."""
    found = {}
    for item in items:
        if item["engine"] == engine and item["grading"] == "row" and item["scored"]:
            (value,) = [row["value"] for row in item["metrics"] if row["metric"] == measure]
            if value is not None:
                found[item["golden_set"], item["query_id"]] = value
    return found


def main(run: Path, engine: str, others: list[str]) -> None:
    """Print a table in Markdown."""
    columns = ["golden_set", "query_id", "engine", "grading", "scored", "metrics"]
    items = pq.read_table(run / "items.parquet", columns=columns).to_pylist()
    print(f"| against `{engine}` | measure | its mean | other's mean | better | worse | equal |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for other in others:
        for measure in MEASURES:
            one, two = values_of(items, engine, measure), values_of(items, other, measure)
            pairs = [(one[question], two[question]) for question in sorted(one.keys() & two.keys(), key=str)]
            means = [sum(values) / len(pairs) for values in zip(*pairs, strict=True)]
            better, worse = (sum(a < b for a, b in pairs), sum(a > b for a, b in pairs))
            equal = len(pairs) - better - worse
            print(f"| `{other}` | {measure} | {means[0]:.4f} | {means[1]:.4f} | {better} | {worse} | {equal} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
