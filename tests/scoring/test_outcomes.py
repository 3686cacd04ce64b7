"""What is expected of items, and kinds of failure: the worked examples E18 and E19, and single cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.golden.assertions import Assertion, Check
from pipeline.golden.items import parse_golden_set
from pipeline.golden.resolve import Resolved, resolve
from pipeline.judgments.resolution import Grades, ResolvedGrade
from pipeline.scoring import Signal
from pipeline.scoring.expectations import Held, Listed, concepts_found, evaluate, holds, visible
from pipeline.scoring.failures import Case, failure_class
from pipeline.scoring.measures import Undefined
from pipeline.scoring.outcomes import SOURCE_FILTERS
from pipeline.scoring.score import score_run
from tests.scoring.test_score import TOLD, corpus, entries_of, golden, hits_of
from tests.worked import EXAMPLES, close

HITS = [Listed("a", "git", 10), Listed("b", "pdf", 10), Listed("c", "csv", 10)]


@pytest.fixture
def resolved() -> Resolved:
    (item,) = parse_golden_set(Path("set.jsonl"), b'{"question": "q", "relevant": ["git"]}').items
    places = {"o/r::b": frozenset({"b"}), "o/r::z": frozenset({"z"})}
    return Resolved(item, (), False, 0, 0, places=places, concepts={"b": frozenset({"paper"})})


@pytest.mark.parametrize(
    ("kind", "arg", "k", "expected"),
    [
        ("class_in_top_k", "o/r::b", 2, True),
        ("class_in_top_k", "o/r::b", 1, False),
        ("class_in_top_k", "o/r::z", None, False),
        ("name_in_top_k", "csv", 3, True),
        ("name_in_top_k", "csv", 2, False),
        ("concept_in_top_k", "paper", None, True),
        ("concept_in_top_k", "paper", 1, False),
        ("not_in_top_k", "o/r::b", 1, True),
        ("not_in_top_k", "o/r::b", 2, False),
        ("not_in_top_k", "pdf", 2, False),
        ("not_in_top_k", "paper", 2, False),
        ("not_in_top_k", "csv", 2, True),
        ("abstain", None, None, False),
    ],
)
def test_a_check_looks_at_the_first_hits(resolved: Resolved, kind: Any, arg: str, k: int, expected: bool) -> None:
    assert holds(Check(type=kind, arg=arg, k=k), resolved, HITS, abstained=False) == expected


def test_an_assertion_without_a_check_is_not_evaluated(resolved: Resolved) -> None:
    held = evaluate([Assertion(kind="must", text="t", conceptId=None)], resolved, HITS, abstained=False)
    assert (held.must, held.not_evaluated) == ((), 1)
    assert isinstance(held.must_pass, Undefined)


def test_a_hit_is_visible_while_the_list_of_the_host_has_room() -> None:
    assert visible(HITS, [False, True, False], budget=20) == 1
    assert visible(HITS, [False, True, False], budget=19) == 0
    assert visible(HITS, [False, False, False]) == 0
    assert visible([], []) == 0


def test_a_first_hit_that_nobody_judged_is_not_wrong() -> None:
    assert failure_class(Case(True, True, ["x", "right"], {"right": 3})) is None
    assert failure_class(Case(True, True, ["x", "right"], {"right": 3, "x": 1})) == "rank_error"
    assert failure_class(Case(True, True, ["x", "right"], {"right": 3}, ["x"])) == "conflict_mishandled"
    assert failure_class(Case(True, True, ["x", "right"], {"right": 3, "x": 2}, ["x"])) is None
    assert failure_class(Case(True, False, [], {"right": 3})) == "retrieval_miss"


def test_assertions_and_concepts_of_the_worked_example() -> None:
    given, expected = (EXAMPLES["E18_assertions_and_concepts"][part] for part in ("input", "expected"))
    passed = {
        kind: tuple(each["pass"] for each in given["assertions"] if each["kind"] == kind) for kind in ("must", "should")
    }
    held = Held(passed["must"], passed["should"], 0)
    assert held.must_rate == close(expected["must_pass_rate"])
    assert held.should_rate == close(expected["should_pass_rate"])
    assert held.must_pass == float(expected["item_pass(all must)"])
    assert held.weighted == close(expected["weighted_score(must=1,should=0.5)"])
    found = concepts_found(given["golden_concepts"], given["detected"])
    assert found.required_recall == close(expected["required_concept_recall"])
    assert found.acceptable_recall == close(expected["acceptable_concept_recall"])
    assert list(found.irrelevant) == expected["irrelevant_concepts_pulled"]
    assert list(found.unlabelled) == expected["unlabelled_concepts"]
    assert found.precision == close(expected["concept_precision_over_labelled"])


def test_kinds_of_failure_of_the_worked_example() -> None:
    example = EXAMPLES["E19_failure_class"]
    found = {
        case["queryId"]: failure_class(
            Case(
                case["answerable"],
                case["answered"],
                case["ranking"],
                case["resolved_grades"],
                case.get("homonyms_of_required", ()),
            ),
            case["k"],
        )
        for case in example["input"]["cases"]
    }
    assert found == example["expected"]


# --- through the tables of a set -------------------------------------------------------------------------------------

ASKED: list[dict[str, object]] = [
    {"queryId": "sure", "query": "1", "relevant": ["x"], "split": "tuning"},
    {"queryId": "close", "query": "2", "relevant": ["x"], "split": "tuning"},
    {"queryId": "none", "query": "3", "answerable": False, "split": "tuning"},
]
ENTRIES = [("e1", "x", "A"), ("e2", "y", "B")]


def ended(deciding: Signal, grades: Grades) -> dict[str, dict[str, Any]]:
    """Score three items: the first reaches most, the second scores highest, the third has no answer."""
    scores = {"sure": [4.0, 1.0], "close": [9.0, 8.5], "none": [6.0, 5.0]}
    hits = [row for query_id, found in scores.items() for row in hits_of(query_id, ENTRIES, found)]
    queries = [
        {"query_id": query_id, "unknown_words": [], **TOLD, "reach": reach}
        for query_id, reach in {"sure": 5.0, "close": 30.0, "none": 30.0}.items()
    ]
    scored = score_run(
        resolve(golden(ASKED), corpus(ENTRIES)),
        hits=pa.Table.from_pylist(hits),
        queries=pa.Table.from_pylist(queries),
        entries=entries_of(ENTRIES),
        engine="bm25",
        corpus="c",
        class_rule="body",
        grades={name: grades for name in SOURCE_FILTERS},
        deciding=deciding,
    )
    return {row["query_id"]: row for row in scored.outcomes.to_pylist()}


RIGHT = ResolvedGrade(3, "human", "1")


def test_the_configured_signal_decides_what_is_answered() -> None:
    signals: tuple[Signal, ...] = ("top_score", "reached", "gap")
    rows = {signal: ended(signal, {"sure": {"A": RIGHT}}) for signal in signals}
    assert {signal: {row["signal"] for row in found.values()} for signal, found in rows.items()} == {
        signal: {signal} for signal in signals
    }
    assert {query_id: row["reached"] for query_id, row in rows["gap"].items()} == {
        "sure": 0.8,
        "close": 0.3,
        "none": 0.2,
    }
    # Only by the share is the question without an answer below both others.
    assert {signal for signal, found in rows.items() if not found["none"]["answered"]} == {"reached"}
    assert {row["threshold"] for row in rows["reached"].values()} == {0.3}


def test_an_item_that_is_answerable_now_names_the_taps_that_answer_it() -> None:
    quiet, alarm = ended("top_score", {})["none"], ended("top_score", {"none": {"B": RIGHT}})["none"]
    assert (quiet["answerable_now"], quiet["answering_taps"]) == (False, [])
    assert (alarm["answerable_now"], alarm["answering_taps"]) == (True, ["t"])
