"""The worksheet of a golden set: read from what the night left in the store, and nothing is written there."""

from __future__ import annotations

import json
from typing import NamedTuple

from pydantic import JsonValue

from pipeline.engines import RANK
from pipeline.golden.items import GoldenSet
from pipeline.golden.worksheet import Ranks, Worksheet, pinned_lines, worksheet
from pipeline.keeping import golden_set
from pipeline.store import Artifact
from pipeline.workspace import Corpus, Workspace, find_classes, find_corpus, mentioned, rank_inputs, read


class Prepared(NamedTuple):
    """What a person works with."""

    sheet: Worksheet
    pins: list[str]
    """Rows that a lookup pins, as lines for the file."""


def prepare(workspace: Workspace, name: str) -> Prepared:
    """Prepare the worksheet of the golden set called ``name``.

    Raises:
        BadInput: no set has this name, or rows of it name nothing in the corpus.
        MissingArtifact: the corpus has not been grouped yet, or an engine has not ranked this set.
    """
    from pipeline.golden.resolve import resolve

    golden = golden_set(workspace, name)
    corpus = find_corpus(workspace)
    grouped = find_classes(workspace, corpus)
    entries = read(workspace, grouped, "entries.parquet")
    resolved = resolve(golden, entries, concepts=mentioned(workspace, entries))
    ranks = _ranks(workspace, corpus, grouped, golden)
    return Prepared(worksheet(resolved, entries, ranks), pinned_lines(resolved, entries, _written(golden)))


def _written(golden: GoldenSet) -> dict[int, dict[str, JsonValue]]:
    """Return each row that is asked as it is written, by its line."""
    if not golden.path.exists():
        newest = {(row["queryId"], row.get("item_version", 1)): dict(row) for row in golden.written}
        return {item.line: newest[item.query_id, item.item_version] for item in golden.items}
    lines = golden.path.read_bytes().split(b"\n")
    return {item.line: json.loads(lines[item.line - 1]) for item in golden.items}


def _ranks(workspace: Workspace, corpus: Corpus, grouped: Artifact, golden: GoldenSet) -> Ranks:
    """Return where each engine ranked each class, by engine and item."""
    ranks: dict[str, dict[str, dict[str, int]]] = {}
    for engine in workspace.settings.running:
        inputs = rank_inputs(workspace, corpus, grouped, engine, golden)
        made = workspace.store.get(RANK, inputs, f"assay rank --engine {engine}")
        by_item = ranks.setdefault(engine, {})
        for row in read(workspace, made, "hits.parquet", ["query_id", "class_id", "rank"]).to_pylist():
            if row["rank"] is not None:
                by_item.setdefault(row["query_id"], {})[row["class_id"]] = row["rank"]
    return ranks
