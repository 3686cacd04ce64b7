"""The second number is what the headline would be, had a person confirmed every cluster of copies."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.golden.resolve import resolve
from pipeline.scoring.near import NO_COPIES, Copies, copies, joined_classes
from pipeline.scoring.score import Scored, score_run
from tests.scoring.test_score import ENTRIES, ITEMS_ASKED, RUNS, Entry, corpus, entries_of, golden, tables

Becomes = dict[str, str]


def scored(entries: list[Entry], runs: dict[str, list[Entry]], near: Copies = NO_COPIES) -> Scored:
    hits, queries = tables(runs)
    return score_run(
        resolve(golden(ITEMS_ASKED), corpus(entries)),
        hits=hits,
        queries=queries,
        entries=entries_of(entries),
        engine="bm25",
        corpus="c",
        class_rule="body",
        near=near,
    )


def near_of(becomes: Becomes) -> Copies:
    return Copies({class_id * 64: cluster for class_id, cluster in becomes.items()})


def values(table: pa.Table, column: str = "value") -> dict[tuple[str, str], Any]:
    rows = table.to_pylist()
    return {
        (row["grading"], row["metric"]): (row[column], row["n"], row["n_null"], row["ci_low"], row["ci_high"])
        for row in rows
        if row.get("facet", "all") == "all" and row.get("treatment", "removed") == "removed"
    }


@settings(max_examples=20, deadline=None)
@given(st.dictionaries(st.sampled_from("ABCDE"), st.sampled_from(["1", "2"])), st.permutations(ENTRIES))
def test_it_equals_the_headline_of_a_corpus_whose_classes_were_joined(becomes: Becomes, order: list[Entry]) -> None:
    runs = {**RUNS, "names": order, "any": order[::-1]}
    near = scored(ENTRIES, runs, near_of(becomes)).near_metrics

    # In a corpus with only one letter a class, a class that is alone in its cluster stays what it is.
    name = {class_id: becomes.get(class_id, class_id) for _, _, class_id in ENTRIES}

    def joined(entries: list[Entry]) -> list[Entry]:
        return [(path, slug, name[class_id]) for path, slug, class_id in entries]

    confirmed = scored(joined(ENTRIES), {query: joined(ranking) for query, ranking in runs.items()}).metrics
    assert values(near) == values(confirmed)
    assert values(near, "exact").keys() == values(scored(ENTRIES, runs).metrics).keys()


def test_the_headline_stands_beside_and_is_not_touched() -> None:
    plain, near = scored(ENTRIES, RUNS), scored(ENTRIES, RUNS, near_of({"A": "1", "B": "1"}))
    assert plain.metrics == near.metrics and plain.rankings == near.rankings
    headline = {key: value for key, (value, *_) in values(plain.metrics).items()}
    assert {key: value for key, (value, *_) in values(near.near_metrics, "exact").items()} == headline


def test_the_items_whose_first_ten_hits_moved_are_counted() -> None:
    near = scored(ENTRIES, RUNS, near_of({"A": "1", "B": "1"})).near_metrics
    # Three of the four rankings hold A and B; the fourth holds A alone.
    assert set(near["n_moved"].to_pylist()) == {3}


def test_only_clusters_of_copies_are_joined() -> None:
    clusters = pa.table({"cluster_id": ["1", "2", "3"], "reading": ["copies", "family", "vetoed"]})
    members = pa.table({"cluster_id": ["1", "1", "2", "3"], "body_sha256": ["a", "b", "c", "d"]})
    assert copies(clusters, members).cluster_of == {"a": "1", "b": "1"}


def test_a_confirmed_class_ties_the_clusters_of_its_bodies() -> None:
    # Class X holds the bodies 1 and 3, which lie in two clusters with the classes Y and Z.
    entries = pa.table({"class_id": ["X", "Y", "X", "Z", "W"], "body_sha256": ["1", "2", "3", "4", "5"]})
    becomes = joined_classes(entries, Copies({"1": "p", "2": "p", "3": "q", "4": "q"}))
    assert becomes.keys() == {"X", "Y", "Z"} and len(set(becomes.values())) == 1
