import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.golden.items import parse_golden_set
from pipeline.golden.resolve import Resolved, resolve
from pipeline.scoring.grade import Hit
from pipeline.scoring.means import PUBLISHED, Run, score_item
from pipeline.scoring.score import Scored, score_run
from pipeline.scoring.sensitivity import lookup, sensitivity_rows, views
from tests.scoring.test_score import Entry, corpus, entries_of, golden, item, score, tables, values

ENTRIES: list[Entry] = [
    ("e1", "x", "A"),
    ("e2", "x", "B"),
    ("e3", "other", "A"),
    ("e4", "y", "C"),
    ("e5", "z", "D"),
    ("e6", "w", "E"),
]


def studied(rows: list[dict[str, object]], runs: dict[str, list[Entry]]) -> Scored:
    hits, queries = tables(runs)
    return score(resolve(golden(rows), corpus(ENTRIES)), hits, queries, entries_of(ENTRIES))


def sensitivity(found: Scored, measure: str) -> dict[str, Any]:
    (row,) = [row for row in found.sensitivity.to_pylist() if row["metric"] == measure]
    return dict(row)


def test_each_effect_is_what_its_step_changes() -> None:
    # By name, x and y are two items, and the class A, shown as «other», carries neither; pinned, it is right; but the
    # decision excludes B, C and the rest as well.
    row: dict[str, object] = {
        "queryId": "q",
        "query": "q",
        "relevant": ["x", "y"],
        "decisions": [
            {"entry": "t::e2", "include": False, "reason": "different_job", "by": "me"},
            {"entry": "t::e3", "include": False, "reason": "alias_stub", "by": "me"},
        ],
    }
    found = studied([row], {"q": [ENTRIES[2], ENTRIES[1], ENTRIES[5], ENTRIES[3]]})
    recall, first = sensitivity(found, "recall@10"), sensitivity(found, "hit@1")
    assert [recall[name] for name in ("by_name", "by_name_as_one", "all_pinned", "decided")] == [1.0, 1.0, 1.0, 1.0]
    assert [first[name] for name in ("by_name", "by_name_as_one", "all_pinned", "decided")] == [0.0, 0.0, 1.0, 0.0]
    assert (first["denominator_effect"], first["identity_effect"], first["judgment_effect"]) == (0.0, 1.0, -1.0)
    assert (recall["credited"], recall["credited_ambiguous"], first["credited"]) == (2, 1, 0)
    assert (recall["n_items"], recall["n_left_out"], recall["n_decided"]) == (1, 0, 1)


def test_counting_all_names_as_one_item_moves_the_denominator_alone() -> None:
    found = studied([{"queryId": "q", "query": "q", "relevant": ["y", "z"]}], {"q": [ENTRIES[3]]})
    row = sensitivity(found, "recall@10")
    assert (row["by_name"], row["by_name_as_one"]) == (0.5, 1.0)
    assert (row["denominator_effect"], row["identity_effect"], row["judgment_effect"]) == (0.5, 0.0, 0.0)


def test_the_exemplar_of_a_row_is_a_decision() -> None:
    rows: list[dict[str, object]] = [{"queryId": "q", "query": "q", "relevant": ["x"], "exemplar": "t::e2"}]
    row = sensitivity(studied(rows, {"q": [ENTRIES[0], ENTRIES[1]]}), "mrr@100")
    assert (row["all_pinned"], row["decided"], row["judgment_effect"], row["n_decided"]) == (1.0, 0.5, -0.5, 1)


def test_an_item_without_a_name_or_with_nothing_left_is_counted_and_left_out() -> None:
    rows: list[dict[str, object]] = [
        {"queryId": "pinned", "query": "1", "exemplar": "t::e2"},
        {"queryId": "none", "query": "2", "answerable": False},
        {
            "queryId": "empty",
            "query": "3",
            "relevant": ["z"],
            "decisions": [{"entry": "t::e5", "include": False, "reason": "other", "by": "me", "note": "gone"}],
        },
    ]
    row = sensitivity(studied(rows, {"pinned": ENTRIES}), "recall@10")
    assert (row["n_items"], row["n_left_out"]) == (0, 3)
    assert {row[name] for name in ("by_name", "decided", "shift", "identity_effect")} == {None}
    assert row["reason"]


NAMES = ["x", "y", "z", "other", "w"]
ROWS = st.fixed_dictionaries(
    {"relevant": st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True)},
    optional={
        "exemplar": st.lists(st.sampled_from(["t::e1", "t::e2", "t::e4"]), min_size=1, unique=True),
        "decisions": st.lists(
            st.builds(
                lambda entry, include: {
                    "entry": f"t::{entry}",
                    "include": include,
                    "reason": "helps" if include else "different_job",
                    "by": "me",
                },
                st.sampled_from(["e5", "e6"]),
                st.booleans(),
            ),
            unique_by=lambda decision: decision["entry"],
        ),
    },
)


DRAWN = st.lists(st.tuples(ROWS, st.lists(st.sampled_from(ENTRIES), max_size=20)), min_size=1, max_size=5)


@settings(deadline=None, max_examples=40)
@given(DRAWN, st.booleans())
def test_the_effects_add_up_to_the_whole_shift(drawn: list[tuple[dict[str, Any], list[Entry]]], each: bool) -> None:
    rows = [
        {
            "queryId": f"q{place}",
            "query": f"q{place}",
            **row,
            **({"match": "all"} if each and "exemplar" in row else {}),
        }
        for place, (row, _) in enumerate(drawn)
    ]
    asked = resolve(golden(rows), corpus(ENTRIES))
    scores = [
        score_item(one, "row", [Hit(class_id, name) for _, name, class_id in ranking])
        for one, (_, ranking) in zip(asked.items, drawn, strict=True)
    ]
    for row in sensitivity_rows(Run("c", "body", "set", "digest", "bm25"), scores, frozenset({"x"})):
        effects = [row.denominator_effect, row.identity_effect, row.judgment_effect]
        assert row.n_items + row.n_left_out == len(rows)
        if row.decided is None or row.by_name is None:
            assert {*effects, row.shift} == {None} and row.reason
        else:
            whole = row.decided - row.by_name
            assert row.shift == whole
            assert math.fsum(effect or 0.0 for effect in effects) == pytest.approx(whole, abs=1e-12)


# --- rows that can be looked up --------------------------------------------------------------------------------------


def test_a_row_of_names_with_one_class_each_is_the_same_by_name_and_pinned() -> None:
    found = studied([{"queryId": "q", "query": "q", "relevant": ["y", "z"]}], {"q": ENTRIES})
    row = item(found, "q")
    assert (row["lookup_equal"], row["lookup_reason"]) == (True, None)


def test_a_mirror_of_another_name_that_shows_the_class_is_told_with_the_row() -> None:
    entries = [("e1", "y", "C"), ("e2", "why", "C")]
    hits, queries = tables({"q": [entries[1], entries[0]]})
    rows: list[dict[str, object]] = [{"queryId": "q", "query": "q", "relevant": ["y"]}]
    row = item(score(resolve(golden(rows), corpus(entries)), hits, queries, entries_of(entries)), "q")
    assert row["lookup_equal"] is False
    assert row["lookup_reason"] == "the class C is shown by a mirror called why"


def test_two_names_of_one_class_are_told_with_the_row() -> None:
    entries = [("e1", "y", "C"), ("e2", "why", "C")]
    hits, queries = tables({"q": entries})
    rows: list[dict[str, object]] = [{"queryId": "q", "query": "q", "relevant": ["y", "why"]}]
    row = item(score(resolve(golden(rows), corpus(entries)), hits, queries, entries_of(entries)), "q")
    assert (row["lookup_equal"], row["lookup_reason"]) == (False, "2 names have 1 classes")


def test_a_row_with_an_ambiguous_name_or_none_is_not_looked_up() -> None:
    rows: list[dict[str, object]] = [
        {"queryId": "q", "query": "1", "relevant": ["x"]},
        {"queryId": "p", "query": "2", "exemplar": "t::e1"},
    ]
    found = studied(rows, {"q": ENTRIES})
    assert [item(found, name)["lookup_equal"] for name in ("q", "p")] == [None, None]


# --- decisions as judgments, locale copies ----------------------------------------------------------------------------

EXCLUDED = {"entry": "t::e2", "include": False, "reason": "different_job", "by": "me"}


def test_a_class_that_a_decision_excludes_is_judged_and_makes_bpref_defined() -> None:
    rows: list[dict[str, object]] = [
        {"queryId": "q", "query": "1", "exemplar": "t::e1", "decisions": [EXCLUDED]},
        {"queryId": "p", "query": "2", "exemplar": "t::e1"},
    ]
    found = studied(rows, {"q": [ENTRIES[1], ENTRIES[0]], "p": [ENTRIES[1], ENTRIES[0]]})
    assert [values(item(found, name))["bpref@100"] for name in ("q", "p")] == [0.0, None]
    assert [values(item(found, name))["ndcg_condensed@10"] for name in ("q", "p")] == [
        pytest.approx(0.6309, abs=1e-4),
        1,
    ]
    assert [values(item(found, name))["judged@10"] for name in ("q", "p")] == [1.0, 0.5]
    shown = [row for row in found.rankings.to_pylist() if row["query_id"] == "q"]
    assert [(row["grade"], row["grade_source"]) for row in shown] == [(0, "decision"), (1, "exemplar")]


def test_a_second_right_answer_is_not_judged_wrong_by_bpref() -> None:
    rows: list[dict[str, object]] = [
        {
            "queryId": "q",
            "query": "1",
            "relevant": ["x", "z"],
            "decisions": [{"entry": "t::e6", "include": False, "reason": "different_job", "by": "me"}],
        }
    ]
    found = studied(rows, {"q": [ENTRIES[0], ENTRIES[1], ENTRIES[4]]})
    assert values(item(found, "q"))["bpref@100"] == 1.0


def test_rbp_and_its_residual_add_up_to_one_where_all_is_right_or_unjudged() -> None:
    found = studied([{"queryId": "q", "query": "1", "relevant": ["y"]}], {"q": [ENTRIES[5], ENTRIES[3]]})
    measured = values(item(found, "q"))
    assert measured["rbp@100"] == pytest.approx(0.2 * 0.8)
    assert measured["rbp_residual@100"] == pytest.approx(0.2 + 0.8**2)


@pytest.mark.parametrize(("language", "foreign"), [(None, 2), ("ja", 1), ("zh-TW", 1), ("de", 2)])
def test_a_locale_copy_is_out_of_place_only_in_another_language(language: str | None, foreign: int) -> None:
    row: dict[str, object] = {"queryId": "q", "query": "q", "relevant": ["x"], "language": language}
    hits, queries = tables({"q": [*ENTRIES]})
    locales = {"e1": "ja", "e4": "zh-CN"}
    scored = score_run(
        resolve(golden([row]), corpus(ENTRIES)),
        hits=hits,
        queries=queries,
        entries=entries_of(ENTRIES, locales),
        engine="bm25",
        corpus="c",
        class_rule="body",
    )
    assert item(scored, "q")["other_language_hits"] == foreign


def test_the_views_of_a_row_that_matches_all_count_each_candidate() -> None:
    written = {"query": "q", "relevant": ["x"], "exemplar": ["t::e1", "t::e2"], "match": "all"}
    one = parse_golden_set(Path("s.jsonl"), json.dumps(written).encode()).items[0]
    resolved = Resolved(one, ("A", "B"), True, 2, 2, candidates=("A", "B"))
    seen = views(resolved, [Hit("A", "x"), Hit("B", "x")])
    assert [view.ideal.size for view in seen] == [1, 2, 2, 2]
    assert [view.gains.tolist() for view in seen] == [[1, 0], [1, 1], [1, 1], [1, 1]]
    assert lookup(resolved, [], PUBLISHED) is None
