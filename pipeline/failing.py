"""The failures of scored rankings, and what the queue said of them as of the position that the run names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipeline.feedback.queue import Failure, queue
from pipeline.feedback.rows import FeedbackRow, feedback_rows
from pipeline.golden.items import GoldenItem, GoldenSet
from pipeline.store import Artifact
from pipeline.workspace import Corpus, Workspace, find_scores, read

SHOWN = 10
"""Hits that are kept as evidence."""


def failures_of(
    workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet], run_id: str
) -> list[Failure]:
    """Return the failures of the scored rankings of all engines that run.

    Raises:
        MissingArtifact: an engine has not scored a set yet.
    """
    items = {(golden.name, item.query_id): item for golden in sets for item in golden.items}
    failures = []
    for made in find_scores(workspace, corpus, grouped, sets):
        columns = ["golden_set", "query_id", "engine", "failure_class"]
        failed = [row for row in read(workspace, made, "outcomes.parquet", columns).to_pylist() if row["failure_class"]]
        hits: dict[str, list[str]] = {}
        for hit in read(workspace, made, "rankings.parquet", ["query_id", "rank", "tap", "path_text"]).to_pylist():
            if hit["rank"] <= SHOWN:
                hits.setdefault(hit["query_id"], []).append(f"{hit['tap']}::{hit['path_text']}")
        failures += [_failure(row, items[row["golden_set"], row["query_id"]], hits, run_id) for row in failed]
    return failures


def _failure(row: dict[str, Any], item: GoldenItem, hits: dict[str, list[str]], run_id: str) -> Failure:
    return Failure(
        source="run",
        golden_set=row["golden_set"],
        query_id=item.query_id,
        item_version=item.item_version,
        engine=row["engine"],
        run_id=run_id,
        failure_class=row["failure_class"],
        question=item.question,
        shown=hits.get(item.query_id, []),
        wanted=[*item.exemplar, *item.relevant],
    )


def feedback_of(
    workspace: Workspace, corpus: Corpus, grouped: Artifact, sets: Sequence[GoldenSet], run_id: str
) -> list[FeedbackRow]:
    """Return the failures of a run with their states as of its position of the ledger."""
    failures = failures_of(workspace, corpus, grouped, sets, run_id)
    if not workspace.position:
        return feedback_rows(failures, ())
    from pipeline.ledger.ledger import existing_ledger

    with existing_ledger(workspace.settings.ledger_url) as ledger:
        return feedback_rows(failures, () if ledger is None else queue(ledger, workspace.position))
