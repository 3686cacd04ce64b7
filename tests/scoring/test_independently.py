"""Answers and abstentions of a whole run, worked out again by a program of its own and compared to 1e-9."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks.answered import lines
from tests.conftest import PROJECT
from tests.scoring.independent import Run, figures, fitted

SIGNALS = ("top_score", "reached", "gap")
POLICIES = {"always_answer": -math.inf, "always_abstain": math.inf}


def compared(store: Path, feed: Path, golden: Path) -> int:
    """Compare every figure of ``abstention`` and the signals of ``outcomes``; return how many."""
    run = Run(store, feed, golden)
    signals = run.signals(run.reach())
    outcomes = {
        row["query_id"]: row
        for row in pq.read_table(feed / "outcomes.parquet").to_pylist()
        if (row["golden_set"], row["engine"]) == (golden.stem, "bm25")
    }
    table = {
        (row["signal"], row["items"], row["policy"]): row
        for row in pq.read_table(feed / "abstention.parquet").to_pylist()
        if (row["golden_set"], row["engine"]) == (golden.stem, "bm25")
    }
    number = 0
    for query_id, own in signals.items():
        for name, value in own.items():
            assert outcomes[query_id][name] == close(value), (query_id, name)
            number += 1
    for signal in SIGNALS:
        items = {
            query_id: {
                "signal": own[signal],
                "answerable": run.answerable(query_id),
                "grade": run.grade(query_id),
                "split": run.rows[query_id].get("split"),
                "cluster": run.rows[query_id].get("cluster_id", query_id),
            }
            for query_id, own in signals.items()
        }
        threshold = fitted([item for item in items.values() if item["split"] == "tuning"])
        for split in ("all", *sorted({item["split"] for item in items.values()} - {None})):
            chosen = [item for item in items.values() if split in ("all", item["split"])]
            for policy, at in {"fitted": threshold, **POLICIES}.items():
                row = table.pop((signal, split, policy))
                for name, value in figures(chosen, at).items():
                    assert row[name] == close(value), (signal, split, policy, name)
                    number += 1
            assert table_threshold(threshold) == close(row_threshold(feed, golden, signal, split))
    assert not table
    return number


def close(value: float | None) -> Any:
    return value if value is None else pytest.approx(value, abs=1e-9, rel=0)


def table_threshold(threshold: float) -> float | None:
    return threshold if math.isfinite(threshold) else None


def row_threshold(feed: Path, golden: Path, signal: str, items: str) -> float | None:
    (row,) = [
        row
        for row in pq.read_table(feed / "abstention.parquet").to_pylist()
        if (row["golden_set"], row["engine"], row["signal"], row["items"], row["policy"])
        == (golden.stem, "bm25", signal, items, "fitted")
    ]
    return row["threshold"]  # type: ignore[no-any-return]


def test_the_answers_of_the_embedded_registries_are_those_of_another_program(finished: Path) -> None:
    (feed,) = (finished / "feed").glob("run=*")
    assert compared(finished, feed, PROJECT / "config" / "golden" / "default.jsonl") == 3 * 93 + 3 * 4 * 3 * 16


@pytest.mark.slow
@pytest.mark.corpora
def test_the_answers_of_the_real_registries_are_those_of_another_program(
    registries: Path, corpora: Path, tmp_path: Path
) -> None:
    questions = tmp_path / "natural.jsonl"
    questions.write_text("\n".join(lines((corpora.parent / "golden" / "natural.jsonl").read_text("utf-8"))) + "\n")
    store = tmp_path / "store"
    files = ["--config", PROJECT / "config" / "assay.toml", "--taps", registries / "taps.toml", "--golden", questions]
    command = [sys.executable, "-m", "pipeline.cli", "run", *map(str, files), "--store", str(store), "--orders", "0"]
    subprocess.run(command, check=True, capture_output=True)
    (feed,) = (store / "feed").glob("run=*")
    assert compared(store, feed, questions) == 3 * 69 + 3 * 3 * 3 * 16
