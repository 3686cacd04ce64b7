import json
from pathlib import Path

import pytest

from pipeline.errors import BadInput
from pipeline.golden.items import parse_golden_set
from pipeline.golden.resolve import resolve
from tests.scoring.test_score import corpus, golden

HELPS = {"entry": "t::e1", "include": True, "reason": "helps", "by": "kim"}
OTHER_JOB = {"entry": "t::e4", "include": False, "reason": "different_job", "by": "kim"}


def row(*decisions: object, **fields: object) -> dict[str, object]:
    return {"query": "q", "relevant": ["x"], **fields, "decisions": list(decisions)}


def faults(*rows: dict[str, object]) -> list[str]:
    with pytest.raises(BadInput) as caught:
        parse_golden_set(Path("set.jsonl"), "\n".join(map(json.dumps, rows)).encode())
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("decision", "place", "what"),
    [
        (HELPS | {"reason": "nice"}, "decisions 1 reason", "'helps'"),
        (HELPS | {"include": "yes"}, "decisions 1 include", "boolean"),
        (HELPS | {"by": " "}, "decisions 1 by", "is blank"),
        (HELPS | {"entry": "e1"}, "decisions 1 entry", "is no `tap::path`"),
        ({**HELPS, "entry": None, "class": "A"}, "decisions 1 class", "64 hex digits"),
        (HELPS | {"class": f"class:{'a' * 64}"}, "decisions 1", "names a class and an entry"),
        (HELPS | {"entry": None}, "decisions 1", "names neither"),
        (HELPS | {"class_": f"class:{'a' * 64}"}, "decisions 1 class_", "Extra inputs"),
        (HELPS | {"include": False}, "decisions 1 reason", "'helps' excludes nothing"),
        (OTHER_JOB | {"include": True}, "decisions 1 reason", "'different_job' includes nothing"),
        (HELPS | {"reason": "other"}, "decisions 1 note", "is missing"),
        ("t::e1", "decisions 1", "valid dictionary"),
        (HELPS | {"by": "\ud800"}, "decisions 1 by", "unicode string"),
    ],
)
def test_what_is_wrong_in_a_decision_is_named_with_line_and_field(decision: object, place: str, what: str) -> None:
    (fault,) = faults(row(decision))
    assert fault.startswith(f"set.jsonl line 1 {place}: ") and what in fault


def test_all_wrong_decisions_of_all_rows_are_named_at_once() -> None:
    found = faults(row(HELPS, HELPS | {"by": ""}, OTHER_JOB | {"reason": "x"}), row(HELPS, HELPS, query="other"))
    assert [fault.split(":")[0] for fault in found] == [
        "set.jsonl line 1 decisions 2 by",
        "set.jsonl line 1 decisions 3 reason",
        "set.jsonl line 2 decisions 2",
    ]


def test_a_row_without_an_answer_includes_nothing() -> None:
    (fault,) = faults({"query": "q", "answerable": False, "decisions": [HELPS]})
    assert "decisions: stands in a row that is not answerable" in fault


def test_decisions_are_part_of_the_frozen_digest() -> None:
    assert golden([row(OTHER_JOB)]).digest != golden([{"query": "q", "relevant": ["x"]}]).digest


def test_a_decision_names_a_class_by_an_entry_or_by_the_digest_of_its_body() -> None:
    by_body = {"class": f"class:{'a' * 64}", "include": False, "reason": "other", "by": "kim", "note": "old"}
    table = corpus().set_column(5, "body_sha256", [[name.lower() * 64 for name in corpus()["class_id"].to_pylist()]])
    (one,) = resolve(golden([row(by_body, {**HELPS, "entry": "t::e5"})]), table).items
    assert (one.candidates, one.excluded, one.included) == (("A", "C"), ("A",), ("D",))
    assert one.decided == ("C", "D")


def test_decisions_start_from_the_exemplars_where_a_row_has_any() -> None:
    (one,) = resolve(golden([row(OTHER_JOB, HELPS, exemplar="t::e5")]), corpus()).items
    assert one.decided == ("A", "D")


def test_a_decision_about_nothing_in_the_corpus_fails_with_candidates() -> None:
    with pytest.raises(BadInput, match=r"decisions 1: 't::gone' names nothing .* candidates: t::e1 \(same name\)"):
        resolve(golden([row({**HELPS, "entry": "t::gone"})]), corpus())


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"exemplar": "t::e4"}, "decisions 1: is about content that `exemplar` includes"),
        ({"decisions": [OTHER_JOB, {**HELPS, "entry": "t::e1"}, {**OTHER_JOB, "entry": "t::e3"}]}, "`decisions 2`"),
    ],
)
def test_a_row_that_contradicts_itself_fails(fields: dict[str, object], what: str) -> None:
    with pytest.raises(BadInput, match=what):
        resolve(golden([{**row(OTHER_JOB), **fields}]), corpus())
