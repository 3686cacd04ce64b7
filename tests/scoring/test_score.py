import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.golden.items import GoldenSet, parse_golden_set
from pipeline.golden.resolve import ResolvedSet, resolve
from pipeline.scoring.intervals import effective_number, wilson
from pipeline.scoring.means import FACETS, MAIN, PUBLISHED
from pipeline.scoring.score import HEADLINE, METRICS, TABLES, Scored, score_run

TREATMENTS = ("removed", "irrelevant", "unmodified")
Entry = tuple[str, str, str]
"""Path, name and class; all in one tap."""

ENTRIES: list[Entry] = [
    ("e1", "x", "A"),
    ("e2", "y", "B"),
    ("e3", "x", "A"),
    ("e4", "x", "C"),
    ("e5", "z", "D"),
    ("e6", "y", "E"),
]
ITEMS_ASKED: list[dict[str, object]] = [
    {"queryId": "names", "query": "by names", "relevant": ["x", "z"], "kind": "skill", "cluster_id": "pair"},
    {"queryId": "any", "query": "any", "relevant": ["x"], "exemplar": ["t::e1", "t::e5"], "cluster_id": "pair"},
    {"queryId": "all", "query": "all", "exemplar": ["t::e1", "t::e5"], "match": "all", "kind": "rule"},
    {"queryId": "lost", "query": "missing from the run", "relevant": ["z"], "popularity": "tail", "kind": "skill"},
    {"queryId": "none", "query": "no answer", "answerable": False, "questionType": "false_premise"},
]
RUNS = {"names": ENTRIES, "any": ENTRIES, "all": ENTRIES[::-1], "none": ENTRIES[:1]}


NOT_TIED = {"tied_at_1": False, "tied_at_10": False, "tied_at_100": False}
TOLD = {"empty_query": False, "reach": 4.0, **NOT_TIED}


def golden(rows: Sequence[dict[str, object]]) -> GoldenSet:
    return parse_golden_set(Path("set.jsonl"), "\n".join(map(json.dumps, rows)).encode())


def corpus(entries: Sequence[Entry] = ENTRIES) -> pa.Table:
    return pa.table(
        {
            "tap": ["t"] * len(entries),
            "path": pa.array([path.encode() for path, _, _ in entries], pa.binary()),
            "path_text": [path for path, _, _ in entries],
            "slug": [name for _, name, _ in entries],
            "class_id": [class_id for _, _, class_id in entries],
            "body_sha256": [class_id * 64 for _, _, class_id in entries],
            "empty_body": [False] * len(entries),
        }
    )


def entries_of(entries: Sequence[Entry] = ENTRIES, locales: dict[str, str] | None = None) -> pa.Table:
    """The corpus as scoring reads it: with locales by path, and how many other classes carry each name."""
    classes: dict[str, set[str]] = {}
    for _, name, class_id in entries:
        classes.setdefault(name, set()).add(class_id)
    table = corpus(entries)
    locale = pa.array([(locales or {}).get(path) for path, _, _ in entries], pa.string())
    homonyms = pa.array([len(classes[name]) - 1 for _, name, _ in entries])
    described = table.append_column("description", pa.nulls(len(entries), pa.string()))
    return described.append_column("locale", locale).append_column("homonyms", homonyms)


def hits_of(query_id: str, ranking: Sequence[Entry], scores: Sequence[float] | None = None) -> list[dict[str, object]]:
    rows, rank, seen = [], 0, set()
    for raw_rank, (path, name, class_id) in enumerate(ranking, start=1):
        mirror = class_id in seen
        seen.add(class_id)
        rank += not mirror
        rows.append(
            {
                "query_id": query_id,
                "raw_rank": raw_rank,
                "rank": None if mirror else rank,
                "tap": "t",
                "path": path.encode(),
                "path_text": path,
                "slug": name,
                "class_id": class_id,
                "score": float(scores[raw_rank - 1] if scores else len(ranking) - raw_rank + 1),
            }
        )
    return rows


def tables(runs: dict[str, list[Entry]]) -> tuple[pa.Table, pa.Table]:
    hits = [row for query_id, ranking in runs.items() for row in hits_of(query_id, ranking)]
    words = [{"query_id": query_id, "unknown_words": ["zzz"], **TOLD} for query_id in runs]
    return pa.Table.from_pylist(hits), pa.Table.from_pylist(words)


def score(resolved: ResolvedSet, hits: pa.Table, queries: pa.Table, entries: pa.Table | None = None) -> Scored:
    entries = entries_of() if entries is None else entries
    return score_run(
        resolved, hits=hits, queries=queries, entries=entries, engine="bm25", corpus="c", class_rule="body"
    )


@pytest.fixture(scope="module")
def scored() -> Scored:
    return score(resolve(golden(ITEMS_ASKED), corpus()), *tables(RUNS))


def item(scored: Scored, query_id: str, grading: str = "row") -> dict[str, Any]:
    (row,) = [one for one in scored.items.to_pylist() if (one["query_id"], one["grading"]) == (query_id, grading)]
    return dict(row)


def values(row: dict[str, Any]) -> dict[str, float | None]:
    return {one["metric"]: one["value"] for one in row["metrics"]}


def metric(scored: Scored, name: str, facet: str = "all", value: str = "*", **key: str) -> dict[str, Any]:
    of_all = {"grading": "row", "aggregate": "micro", "treatment": "removed"}
    wanted = {"metric": name, "facet": facet, "facet_value": value} | of_all | key
    (row,) = [row for row in scored.metrics.to_pylist() if all(row[column] == wanted[column] for column in wanted)]
    return dict(row)


def test_an_item_is_graded_as_its_row_says_and_by_name(scored: Scored) -> None:
    assert values(item(scored, "names"))["recall@3"] == 0.5
    assert values(item(scored, "any"))["recall@3"] == 1.0
    assert values(item(scored, "all"))["recall@3"] == 0.5
    assert [item(scored, "any", grading)["mode"] for grading in ("row", "name")] == ["exemplar", "name"]


def test_a_row_without_names_has_no_value_by_name_and_says_why(scored: Scored) -> None:
    row = item(scored, "all", "name")
    assert (row["scored"], row["reason"], row["relevant"], row["mode"]) == (
        False,
        "the row has no relevant name",
        None,
        None,
    )
    assert {(one["value"], one["reason"]) for one in row["metrics"]} == {(None, row["reason"])}


def test_an_item_missing_from_the_run_scores_zero(scored: Scored) -> None:
    row = item(scored, "lost")
    assert (row["scored"], row["abstained"], row["hits"], row["top_score"]) == (True, True, 0, None)
    assert {values(row)[name] for name in HEADLINE} == {0.0}
    assert values(row)["judged@10"] is None


def test_an_item_that_is_not_answerable_is_shown_and_counts_in_no_mean(scored: Scored) -> None:
    row = item(scored, "none")
    assert (row["scored"], row["reason"], row["abstained"]) == (False, "not answerable", False)
    assert set(values(row).values()) == {None}


def test_means_run_over_the_items_that_have_a_value_and_count_the_others(scored: Scored) -> None:
    row = metric(scored, "recall@3")
    assert row["value"] == (0.5 + 1.0 + 0.5 + 0.0) / 4
    assert (row["n_items"], row["n_null"], row["n"], row["label"]) == (5, 1, 3, "insufficient items")
    judged = metric(scored, "judged@3")
    assert (judged["n_items"], judged["n_null"], judged["n"]) == (5, 2, 2)
    assert row["judged_at_k"] == judged["value"]


def test_an_answerable_item_without_a_relevant_class_is_null_and_a_missing_one_zero() -> None:
    rows: list[dict[str, object]] = [
        {"queryId": "q1", "query": "1", "relevant": ["a"]},
        {"queryId": "q2", "query": "2", "answerable": False},
        {"queryId": "q3", "query": "3", "relevant": ["c"]},
    ]
    entries = [("a", "a", "A"), ("b", "b", "B"), ("c", "c", "C")]
    runs = {"q1": entries[:1], "q2": entries[1:2]}
    scored = score(resolve(golden(rows), corpus(entries)), *tables(runs))
    assert [values(item(scored, query))["recall@5"] for query in ("q1", "q2", "q3")] == [1.0, None, 0.0]
    row = metric(scored, "recall@5")
    assert (row["value"], row["n_items"] - row["n_null"], row["n_null"]) == (0.5, 2, 1)


def test_a_facet_without_a_scored_item_has_no_value_and_says_so(scored: Scored) -> None:
    row = metric(scored, "hit@1", "answerable", "false")
    assert (row["value"], row["label"], row["n"], row["n_items"], row["ci_low"]) == (None, "no items", 0, 1, None)
    assert row["reason"]


def test_a_missing_facet_value_is_a_value_of_its_own(scored: Scored) -> None:
    assert metric(scored, "recall@3", "kind", "(none)")["n_items"] == 2
    assert metric(scored, "recall@3", "kind", "skill")["value"] == 0.25


def test_the_macro_mean_is_over_the_means_of_the_facets_values(scored: Scored) -> None:
    row = metric(scored, "recall@3", "kind", "*", aggregate="macro")
    assert row["value"] == pytest.approx((0.25 + 0.5 + 1.0) / 3)
    assert (row["n_items"], row["n_null"], row["ci_low"]) == (5, 1, None)


@pytest.mark.parametrize("treatment", ["irrelevant", "unmodified"])
def test_the_macro_mean_of_another_treatment_is_over_the_items_values_under_it(treatment: str) -> None:
    rows: list[dict[str, object]] = [
        {"queryId": f"q{n}", "query": f"q{n}", "relevant": ["y"], "kind": kind}
        for n, kind in enumerate(["skill", "skill", "rule"])
    ]
    mirrors_first = [("e1", "x", "A"), ("e3", "x", "A"), ("e2", "y", "B"), ("e6", "y", "B")]
    runs = {"q0": mirrors_first[2:], "q1": mirrors_first, "q2": mirrors_first}
    scored = score(resolve(golden(rows), corpus()), *tables(runs))
    deep = metric(scored, "mrr@100", treatment=treatment)["value"] * 3 - 1
    row = metric(scored, "mrr@100", "kind", "*", aggregate="macro", treatment=treatment)
    assert row["value"] == pytest.approx(((1 + deep / 2) / 2 + deep / 2) / 2)
    assert deep / 2 == pytest.approx(1 / 3)
    assert (row["n_items"], row["ci_low"]) == (3, None)


def test_values_by_name_on_an_ambiguous_name_are_an_upper_bound(scored: Scored) -> None:
    assert [item(scored, "names", grading)["upper_bound"] for grading in ("row", "name")] == [True, True]
    assert [item(scored, "any", grading)["upper_bound"] for grading in ("row", "name")] == [False, True]
    assert metric(scored, "hit@1")["n_upper_bound"] == 1
    assert metric(scored, "hit@1", grading="name")["n_upper_bound"] == 2


def test_hit_has_wilsons_interval_and_the_others_students(scored: Scored) -> None:
    hit, recall = metric(scored, "hit@1"), metric(scored, "recall@3")
    assert (hit["ci_low"], hit["ci_high"]) == wilson(hit["value"], effective_number(["pair", "pair", "all", "lost"]))
    assert 0 <= recall["ci_low"] < recall["value"] < recall["ci_high"] <= 1


def test_the_rankings_hold_classes_with_their_grade_and_its_source(scored: Scored) -> None:
    rows = [row for row in scored.rankings.to_pylist() if row["query_id"] == "names"]
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["raw_rank"] for row in rows] == [1, 2, 4, 5, 6]
    assert [row["mirrors"] for row in rows] == [1, 0, 0, 0, 0]
    assert [row["grade"] for row in rows] == [1, None, 0, 1, None]
    assert [row["grade_source"] for row in rows] == ["name", None, "name", "name", None]


def test_recall_can_be_computed_again_from_the_rankings(scored: Scored) -> None:
    for query_id in ("names", "any", "all"):
        rows = scored.rankings.filter(pc.field("query_id") == query_id).to_pylist()
        row = item(scored, query_id)
        for k in (1, 3, 5, 100):
            found = sum(one["grade"] or 0 for one in rows if one["rank"] <= k)
            assert values(row)[f"recall@{k}"] == found / row["relevant"]


def test_the_first_relevant_rank_is_that_of_the_ranking_without_mirrors(scored: Scored) -> None:
    assert [item(scored, query_id)["first_relevant_rank"] for query_id in ("names", "all", "lost")] == [1, 2, None]


@pytest.mark.parametrize("cut", [1, 10, 100])
def test_a_tie_across_a_cut_is_told_as_the_ranking_told_it(cut: int) -> None:
    tied = {**NOT_TIED, f"tied_at_{cut}": True}
    hits, _ = tables({"any": ENTRIES})
    queries = pa.Table.from_pylist([{"query_id": "any", "unknown_words": [], **TOLD, **tied}])
    row = item(score(resolve(golden(ITEMS_ASKED), corpus()), hits, queries), "any")
    assert {name: row[name] for name in NOT_TIED} == tied


def test_the_tap_of_the_target_is_that_of_the_exemplars_or_else_of_the_names() -> None:
    entries = [("e1", "x", "A"), ("e2", "x", "B"), ("e3", "y", "C")]
    whole = corpus(entries).set_column(0, "tap", pa.array(["a/a", "b/b", "b/b"]))
    rows: list[dict[str, object]] = [
        {"queryId": "pinned", "query": "1", "relevant": ["x"], "exemplar": "a/a::e1"},
        {"queryId": "both", "query": "2", "exemplar": ["a/a::e1", "b/b::e3"]},
        {"queryId": "named", "query": "3", "relevant": ["y"]},
        {"queryId": "homonym", "query": "4", "relevant": ["x"]},
        {"queryId": "none", "query": "5", "answerable": False},
    ]
    scored = score(resolve(golden(rows), whole), *tables({"pinned": entries}), entries_of(entries))
    taps = {query: item(scored, query)["target_tap"] for query in ("pinned", "both", "named", "homonym", "none")}
    assert taps == {"pinned": "a/a", "both": "(several)", "named": "b/b", "homonym": "(several)", "none": None}
    assert metric(scored, "hit@1", "target_tap", "a/a")["value"] == 1.0
    assert metric(scored, "hit@1", "target_tap", "(several)")["n_items"] == 2
    assert metric(scored, "hit@1", "target_tap", "(none)")["value"] is None


def test_what_became_of_the_words_is_kept(scored: Scored) -> None:
    assert item(scored, "any")["unknown_words"] == ["zzz"]
    assert item(scored, "lost")["unknown_words"] == []


def test_hits_of_a_question_that_the_set_does_not_ask_are_refused() -> None:
    hits, queries = tables({**RUNS, "stranger": ENTRIES})
    with pytest.raises(ValueError, match="stranger"):
        score(resolve(golden(ITEMS_ASKED), corpus()), hits, queries)


def test_every_measure_stands_in_every_cell_once(scored: Scored) -> None:
    rows = scored.metrics.to_pylist()
    keys = {tuple(row[column] for column in METRICS.key) for row in rows}
    assert len(keys) == len(rows)
    measures = {treatment: {row["metric"] for row in rows if row["treatment"] == treatment} for treatment in TREATMENTS}
    assert measures == {
        "removed": set(map(str, PUBLISHED)),
        "irrelevant": set(map(str, MAIN)),
        "unmodified": set(map(str, MAIN)),
    }
    assert {row["facet_value"] for row in rows if row["treatment"] != "removed"} == {"*"}
    assert {row["facet"] for row in rows} == {"all", *FACETS}


def test_null_has_a_reason_and_a_value_has_none(scored: Scored) -> None:
    rows = [*scored.metrics.to_pylist(), *(one for row in scored.items.to_pylist() for one in row["metrics"])]
    assert all((row["value"] is None) == (row["reason"] is not None) for row in rows)
    assert all(row["value"] is None or row["value"] == row["value"] for row in rows)


def test_the_headline_is_in_the_facts(scored: Scored) -> None:
    headline = scored.facts()["headline"]
    assert isinstance(headline, list)
    row, name = headline
    assert isinstance(row, dict) and isinstance(name, dict)
    assert (row["grading"], row["n_items"], name["grading"], name["n_items"]) == ("row", 4, "name", 3)
    assert row["values"] == {measure: metric(scored, measure)["value"] for measure in HEADLINE}


def bytes_of(scored: Scored) -> list[bytes]:
    return [table.to_bytes(scored.table(table)) for table in TABLES]


@settings(deadline=None, max_examples=10)
@given(st.randoms(use_true_random=False))
def test_no_order_of_items_entries_hits_or_queries_changes_a_byte(chance: random.Random) -> None:
    rows: list[dict[str, object]] = [
        {"queryId": f"q{n}", "query": f"q{n}", "relevant": ["x", "y"][: 1 + n % 2], "cluster_id": f"c{n % 4}"}
        for n in range(11)
    ]
    runs = {f"q{n}": ENTRIES[n % 6 :] for n in range(11)}
    hits, queries = tables(runs)

    def shuffled(table: pa.Table) -> pa.Table:
        return table.take(chance.sample(range(table.num_rows), table.num_rows))

    plain = score(resolve(golden(rows), corpus()), hits, queries)
    mixed = score(
        resolve(golden(chance.sample(rows, len(rows))), shuffled(corpus())), shuffled(hits), shuffled(queries)
    )
    assert bytes_of(mixed) == bytes_of(plain)


def test_where_two_gradings_have_other_items_the_facts_have_the_means_over_those_of_both(scored: Scored) -> None:
    pinned, by_name = cast("list[dict[str, Any]]", scored.facts()["headline"])
    assert (pinned["n_items"], by_name["n_items"]) == (4, 3)
    assert pinned["n_both"] == by_name["n_both"] == 3
    items = [row for row in scored.items.to_pylist() if row["grading"] == "row"]
    values = [
        value["value"]
        for row in items
        if row["query_id"] in ("names", "any", "lost")
        for value in row["metrics"]
        if value["metric"] == "recall@10"
    ]
    assert pinned["over_both"]["recall@10"] == pytest.approx(sum(values) / 3)
