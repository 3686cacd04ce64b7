import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.golden.resolve import resolve
from pipeline.scoring.duplicates import EVERY_TAP, TAXED, tax_rows
from pipeline.scoring.grade import Grading, Hit
from pipeline.scoring.means import Run, number, score_item
from pipeline.scoring.score import Scored, score_run
from tests.scoring.test_score import ENTRIES, TOLD, Entry, corpus, entries_of, golden, hits_of, metric

PINNED: dict[str, object] = {
    "queryId": "all",
    "query": "all",
    "relevant": ["x", "z"],
    "exemplar": ["t::e1", "t::e5"],
    "match": "all",
}


def scored(ranking: list[Entry], taps: list[str], *rows: dict[str, object]) -> Scored:
    """Score a ranking whose entries are hits of ``taps``; what the corpus holds is not what is asked here."""
    hits = [
        {**hit, "tap": tap, "query_id": row["queryId"]}
        for row in rows
        for hit, tap in zip(hits_of("", ranking), taps, strict=True)
    ]
    queries = [{"query_id": row["queryId"], "unknown_words": [], **TOLD} for row in rows]
    return score_run(
        resolve(golden(rows), corpus()),
        hits=pa.Table.from_pylist(hits),
        queries=pa.Table.from_pylist(queries),
        entries=entries_of(),
        engine="bm25",
        corpus="c",
        class_rule="body",
    )


def tax(found: Scored, measure: str, grading: str = "row") -> dict[str, float | None]:
    rows = found.duplicate_tax.to_pylist()
    return {row["tap"]: row["value"] for row in rows if (row["metric"], row["grading"]) == (measure, grading)}


def test_the_worked_example_holds_in_the_published_tables() -> None:
    found = scored(ENTRIES, ["a", "b", "copies", "d", "e", "f"], PINNED)
    for treatment, expected in {
        "removed": {"recall@3": 0.5, "recall@5": 1.0, "ndcg@5": 0.8772153153380493},
        "irrelevant": {"recall@3": 0.5, "recall@5": 1.0, "ndcg@5": 0.8503449055347546},
        "unmodified": {"recall@3": 2 / 3, "recall@5": 1.0, "ndcg@5": 0.8854598815714874},
    }.items():
        values = {name: metric(found, name, treatment=treatment)["value"] for name in expected}
        assert values == pytest.approx(expected, abs=1e-9, rel=0), treatment
    assert tax(found, "ndcg@5") == pytest.approx({"*": 0.026870409803294654, "copies": 0.026870409803294654}, abs=1e-9)


def test_a_loss_is_shared_by_the_mirrors_above_the_right_answer_and_by_no_others() -> None:
    ranking = [("e1", "x", "A"), ("e2", "x", "A"), ("e3", "x", "A"), ("e5", "z", "D"), ("e6", "z", "D")]
    found = scored(ranking, ["a", "two", "one", "d", "below"], PINNED)
    loss = 0.5 * (1 - 0.0)  # the second of two right answers leaves the first three: rank 2 of classes, 4 of entries
    assert tax(found, "recall@3") == {"*": loss, "one": loss / 2, "two": loss / 2}
    assert tax(found, "hit@1") == {"*": 0.0, "one": 0.0, "two": 0.0}
    rows = [row for row in found.duplicate_tax.to_pylist() if row["metric"] == "recall@3" and row["grading"] == "row"]
    assert {row["tap"]: row["mirrors"] for row in rows} == {"*": 2, "one": 1, "two": 1}


def test_without_an_item_that_counts_the_tax_is_null_and_says_why() -> None:
    found = scored(ENTRIES[:1], ["a"], {"queryId": "none", "query": "no answer", "answerable": False})
    rows = found.duplicate_tax.to_pylist()
    assert {row["tap"] for row in rows} == {EVERY_TAP}
    assert {(row["value"], row["reason"], row["n_items"]) for row in rows} == {(None, "no item has a value", 0)}


RANKINGS = st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=40)
TAPS = st.lists(st.sampled_from("abcd"), min_size=40, max_size=40)


RUN = Run("c", "body", "set", "digest", "bm25")


@settings(deadline=None, max_examples=40)
@given(RANKINGS, TAPS, RANKINGS, st.sampled_from(["row", "name"]))
def test_the_taxes_of_the_taps_add_up_to_the_tax_of_the_set(
    first: list[Entry], taps: list[str], second: list[Entry], grading: Grading
) -> None:
    asked = resolve(golden([PINNED, {"queryId": "names", "query": "names", "relevant": ["x", "y"]}]), corpus())
    rankings = {"all": first, "names": second}
    scores = [
        score_item(one, grading, [Hit(class_id, name) for _, name, class_id in rankings[one.item.query_id]])
        for one in asked.items
    ]
    by_item = {query_id: taps[: len(ranking)] for query_id, ranking in rankings.items()}
    rows = list(tax_rows(RUN, grading, scores, by_item))
    for measure in TAXED:
        parts = {row.tap: row.value for row in rows if row.metric == str(measure)}
        whole = parts.pop(EVERY_TAP)
        removed, irrelevant = (
            math.fsum(number(values[measure]) or 0.0 for values in found) / 2
            for found in ([one.values for one in scores], [one.compared["irrelevant"] for one in scores])
        )
        assert whole == removed - irrelevant
        assert math.fsum(value or 0.0 for value in parts.values()) == pytest.approx(whole, abs=1e-12)
        assert whole >= 0
