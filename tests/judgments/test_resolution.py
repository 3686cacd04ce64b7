from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.judgments.qrels import Judgment, Qrel, append, append_once, read_qrels
from pipeline.judgments.resolution import Conflict, PinnedJudge, Resolution, resolve_qrels
from pipeline.ledger.ledger import Ledger, open_ledger
from tests.worked import EXAMPLES

AT = datetime(2026, 7, 1, tzinfo=UTC)
JUDGE = PinnedJudge("m1", "p1")


def body(name: str) -> str:
    return sha256(name.encode()).hexdigest()


def judged(name: str, grade: int, **fields: Any) -> Judgment:
    by = {"source": "human", "annotator": "ann"} if "source" not in fields else {}
    if fields.get("source") == "llm":
        by = {"judge_model": "m1", "prompt_version": "p1"}
    named = {"query_id": "Q", "chunk_id": f"class:{body(name)}", "judged_sha256": body(name)}
    return Judgment.model_validate({**named, "grade": grade, **by, **fields})


def rows(*judgments: Judgment) -> list[Qrel]:
    return [
        Qrel.model_validate({**each.model_dump(), "id": f"{n:026}", "seq": n + 1, "created_at": "", "position": n + 1})
        for n, each in enumerate(judgments)
    ]


def resolved(*judgments: Judgment, **options: Any) -> Resolution:
    return resolve_qrels(rows(*judgments), lambda digest: [digest], **{"judge": JUDGE, **options})


def grade(resolution: Resolution, name: str) -> int | None:
    found = resolution.grades.get("Q", {}).get(body(name))
    return None if found is None else found.grade


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite")


def add(ledger: Ledger, *judgments: Judgment) -> list[Qrel]:
    with ledger.adding("test", AT) as addition:
        return append(addition, judgments)


def test_people_are_believed_before_exemplars_and_exemplars_before_the_judge() -> None:
    llm, provenance, human = judged("a", 1, source="llm"), judged("a", 3, source="provenance"), judged("a", 2)
    assert grade(resolved(llm), "a") == 1
    assert grade(resolved(provenance, llm), "a") == 3
    assert grade(resolved(human, provenance, llm), "a") == 2


def test_of_what_an_annotator_said_the_last_counts() -> None:
    assert grade(resolved(judged("a", 3), judged("a", 1)), "a") == 1


def test_of_several_annotators_the_lower_median_counts() -> None:
    said = [judged("a", grade, annotator=name) for name, grade in (("x", 3), ("y", 1), ("z", 2), ("w", 3))]
    assert grade(resolved(*said), "a") == 2
    assert grade(resolved(*said[:2]), "a") == 1


def test_a_judge_that_is_not_pinned_does_not_count() -> None:
    other = judged("a", 2, source="llm", prompt_version="p2")
    assert grade(resolved(other), "a") is None
    assert grade(resolved(other, judge=PinnedJudge("m1", "p2")), "a") == 2
    assert grade(resolved(other, judge=None), "a") is None


def test_what_nobody_judged_is_no_zero() -> None:
    resolution = resolved(judged("a", 0))
    assert (grade(resolution, "a"), grade(resolution, "b")) == (0, None)


def test_a_judgment_follows_its_content_into_the_class_that_holds_it() -> None:
    qrels = rows(judged("a", 3), judged("gone", 3))
    resolution = resolve_qrels(qrels, lambda digest: {body("a"): ["joined", "renamed"]}.get(digest, ()))
    assert set(resolution.grades["Q"]) == {"joined", "renamed"}


def test_a_difference_between_sources_or_people_is_a_conflict() -> None:
    same = resolved(judged("a", 2), judged("a", 2, source="llm"))
    assert same.conflicts == ()
    differ = resolved(judged("a", 2), judged("a", 1, annotator="bob"), judged("a", 3, source="provenance"))
    assert differ.conflicts == (Conflict("Q", body("a"), {"human": 1, "provenance": 3}, {"ann": 2, "bob": 1}),)


def test_sources_that_are_not_asked_for_are_left_out() -> None:
    said = judged("a", 2), judged("a", 1, source="llm")
    assert grade(resolved(*said, sources=("llm",)), "a") == 1


@given(st.permutations([("x", 0), ("y", 1), ("z", 3), ("w", 3)]))
def test_the_order_of_annotators_does_not_matter(said: list[tuple[str, int]]) -> None:
    assert grade(resolved(*(judged("a", grade, annotator=name) for name, grade in said)), "a") == 1


def test_numbers_count_within_question_body_source_and_judge(ledger: Ledger) -> None:
    first = add(ledger, judged("a", 1), judged("a", 2), judged("b", 1), judged("a", 1, annotator="bob"))
    later = add(ledger, judged("a", 3), judged("a", 0, query_id="other"), judged("a", 1, source="llm"))
    assert [row.seq for row in first + later] == [1, 2, 1, 1, 3, 1, 1]
    assert read_qrels(ledger) == first + later
    assert read_qrels(ledger, as_of=1) == first


def test_provenance_is_written_once(ledger: Ledger) -> None:
    for expected in (1, 0):
        with ledger.adding("test", AT) as addition:
            said = judged("a", 3, source="provenance")
            assert len(append_once(addition, [said, said])) == expected
    assert len(read_qrels(ledger)) == 1


def test_the_worked_example_of_resolution(ledger: Ledger) -> None:
    example = EXAMPLES["E12_qrel_resolution"]
    for row in example["input"]["rows"]:
        by = {key: row.get(key) for key in ("source", "judge_model", "prompt_version", "annotator")}
        add(ledger, judged(row["docId"], row["grade"], query_id=row["queryId"], rationale=row["id"], **by))
    named = {body(row["docId"]): row["docId"] for row in example["input"]["rows"]}
    written = {qrel.id: qrel.rationale for qrel in read_qrels(ledger)}
    expected = example["expected"]
    resolution = resolve_qrels(read_qrels(ledger), lambda digest: [named[digest]], JUDGE)
    found = {
        name: {"grade": each.grade, "source": each.source, "row": written[each.row]}
        for name, each in resolution.grades["G1"].items()
    }
    assert found == expected["resolved"]
    other = resolve_qrels(read_qrels(ledger), lambda digest: [named[digest]], PinnedJudge("m1", "p2")).grades["G1"]
    assert {name: each.grade for name, each in other.items()} == expected["resolved_if_pinned_p2"]
    assert len(written) == expected["rows_kept"]
    differ = [
        {"docId": conflict.class_id, "human": conflict.grades["human"], "llm": conflict.grades["llm"]}
        for conflict in resolution.conflicts
        if {"human", "llm"} <= conflict.grades.keys()
    ]
    assert differ == expected["conflicts_human_vs_llm"]
