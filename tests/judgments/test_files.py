from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.errors import BadInput
from pipeline.judgments.files import as_jsonl, as_trec, parse_jsonl, parse_trec
from pipeline.judgments.qrels import Judgment, Qrel
from pipeline.judgments.resolution import ResolvedGrade, resolve_qrels
from pipeline.judgments.targets import Targets

FILE = Path("qrels.jsonl")
PIN = "a" * 40
BODY = sha256(b"rebase").hexdigest()
ROW = {"queryId": "Q", "chunkId": f"class:{BODY}", "grade": 2, "source": "human", "annotator": "ann"}


@pytest.fixture
def targets() -> Targets:
    rows = [
        ("o/r", b"git/SKILL.md", BODY, False),
        ("o/r", b"a b/SKILL.md", sha256(b"other").hexdigest(), False),
        ("o/r", b"none/SKILL.md", sha256(b"").hexdigest(), True),
    ]
    names = ("tap", "path", "path_text", "class_id", "body_sha256", "empty_body")
    entries = [(tap, path, path.decode(), body, body, empty) for tap, path, body, empty in rows]
    return Targets(pa.Table.from_pylist([dict(zip(names, entry, strict=True)) for entry in entries]), {"o/r": PIN})


def parse(targets: Targets, *rows: object) -> list[Judgment]:
    return parse_jsonl(FILE, "\n".join(json.dumps(row) for row in rows).encode(), targets)


def test_a_judgment_of_content_or_of_an_entry_gets_the_digest_of_its_body(targets: Targets) -> None:
    entry = {**ROW, "chunkId": None, "docId": f"o/r@{PIN}:git/SKILL.md"}
    assert [judgment.judged_sha256 for judgment in parse(targets, ROW, entry)] == [BODY, BODY]


def test_the_id_of_a_class_of_several_bodies_names_the_first_of_them() -> None:
    bodies = sorted(sha256(text).hexdigest() for text in (b"one", b"two"))
    place = {"tap": "o/r", "class_id": "f" * 64, "empty_body": False}
    rows = [{**place, "path": body.encode(), "path_text": body, "body_sha256": body} for body in bodies]
    joined = Targets(pa.Table.from_pylist(rows), {"o/r": PIN})
    (judgment,) = parse(joined, {**ROW, "chunkId": "class:" + "f" * 64})
    assert (judgment.judged_sha256, judgment.chunk_id) == (bodies[0], f"class:{bodies[0]}")


def test_a_judgment_that_brings_its_digest_may_name_what_is_gone(targets: Targets) -> None:
    gone = {**ROW, "chunkId": None, "docId": f"o/r@{'b' * 40}:git/SKILL.md", "judged_sha256": "c" * 64}
    (judgment,) = parse(targets, gone)
    assert judgment.judged_sha256 == "c" * 64


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"grade": 4}, "line 2 grade"),
        ({"grade": True}, "line 2 grade"),
        ({"source": "robot"}, "line 2 source"),
        ({"annotator": None}, "line 2 annotator: is missing where the source is `human`"),
        ({"source": "provenance"}, "line 2 annotator: stands where the source is `provenance`"),
        ({"source": "llm", "annotator": None}, "line 2 judge_model: is missing"),
        ({"verdict_id": "v"}, "line 2 verdict_id"),
        ({"chunkId": None}, "line 2 docId: is missing"),
        ({"chunkId": "class:" + "0" * 64}, "line 2 chunkId: .*no entry has this body"),
        ({"chunkId": "class:" + sha256(b"").hexdigest()}, "line 2 chunkId: .*no entry has this body"),
        ({"chunkId": None, "docId": f"o/x@{PIN}:git/SKILL.md"}, "no tap is called 'o/x'"),
        ({"chunkId": None, "docId": f"o/r@{'b' * 40}:git/SKILL.md"}, "another commit than the corpus"),
        ({"judged_sha256": "c" * 64}, "line 2 judged_sha256"),
        ({"colour": 1}, "line 2 colour: unknown field"),
    ],
)
def test_a_wrong_row_is_refused_with_line_and_field(targets: Targets, change: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        parse(targets, ROW, {**ROW, **change})


def test_all_wrong_rows_are_named_at_once(targets: Targets) -> None:
    with pytest.raises(BadInput) as caught:
        parse(targets, {**ROW, "grade": 9}, ROW, {**ROW, "annotator": None})
    assert [fault.where for fault in caught.value.faults] == [
        "qrels.jsonl line 1 grade",
        "qrels.jsonl line 3 annotator",
    ]


def qrel(judgment: Judgment, seq: int = 1) -> Qrel:
    given_by_us = {"id": "0" * 26, "seq": seq, "created_at": "2026-07-01T00:00:00.000Z", "position": 1}
    return Qrel.model_validate({**judgment.model_dump(), **given_by_us})


def test_what_is_exported_as_json_lines_is_imported_the_same(targets: Targets) -> None:
    by_judge = {**ROW, "source": "llm", "annotator": None, "judge_model": "m", "prompt_version": "1"}
    judgments = parse(targets, ROW, by_judge)
    lines = "\n".join(as_jsonl(map(qrel, judgments)))
    assert parse_jsonl(FILE, lines.encode(), targets) == judgments


def test_what_is_exported_as_trec_is_imported_with_its_grades(targets: Targets) -> None:
    resolution = resolve_qrels(map(qrel, parse(targets, ROW)), targets.classes_of)
    text = "\n".join(as_trec(resolution.grades))
    assert text == f"Q 0 class:{BODY} 2"
    assert [
        (read.query_id, read.judged_sha256, read.grade, read.annotator)
        for read in parse_trec(Path("x.qrels"), text.encode(), targets, "human", "bob")
    ] == [("Q", BODY, 2, "bob")]


def test_trec_documents_may_be_entries_and_faults_name_the_line(targets: Targets) -> None:
    good = f"Q 0 o/r::git/SKILL.md 1\nQ 0 o/r@{PIN}:a%20b/SKILL.md 3\n".encode()
    read = parse_trec(Path("x.qrels"), good, targets, "provenance", None)
    assert [judgment.doc_id for judgment in read] == [f"o/r@{PIN}:git/SKILL.md", f"o/r@{PIN}:a b/SKILL.md"]
    with pytest.raises(BadInput) as caught:
        parse_trec(Path("x.qrels"), b"Q 0 o/r::git/SKILL.md -1\nQ o/r 1\nQ 0 nowhere 1", targets, "human", "bob")
    assert [fault.where for fault in caught.value.faults] == [
        "x.qrels line 1 grade",
        "x.qrels line 2",
        "x.qrels line 3 document",
    ]


def test_a_field_of_the_wrong_type_hides_no_other_fault(targets: Targets) -> None:
    row = {"queryId": 5, "docId": f"o/r@{PIN}:gone", "grade": 7, "source": "human", "more": 1, "rationale": "\ud800"}
    with pytest.raises(BadInput) as caught:
        parse(targets, row, {"source": "people", "grade": 1, "queryId": "q"})
    assert sorted(fault.where for fault in caught.value.faults) == [
        f"{FILE} line 1 {field}" for field in ("annotator", "docId", "grade", "more", "queryId", "rationale")
    ] + [f"{FILE} line 2 source"]


PINNED = f"o/r@{PIN}:"


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (b"q 0 o/r::git/SKILL.md " + b"9" * 5000, "line 1 grade: is none of 0 to 3"),
        (b"%20 0 o/r::git/SKILL.md 1", "line 1 question: is no id: '%20'"),
        (b"a%20b 0 o/r::git/SKILL.md 1", "line 1 question: is no id"),
        (b"x%00y 0 o/r::git/SKILL.md 1", "line 1 question: is no id"),
        (b"x%ff 0 o/r::git/SKILL.md 1", "line 1 question: is no id"),
        (b"q 0 o/r::%ff 1", "line 1 document: 'o/r::%ff' is no text in percent-encoding"),
        (b"\xef\xbb\xbfq 0 o/r::git/SKILL.md 1", "line 1: starts with a byte order mark"),
        (b"q\xff 0 o/r::git/SKILL.md 1", "line 1: byte 2 is not UTF-8"),
    ],
)
def test_what_is_no_text_in_a_trec_file_is_named(targets: Targets, row: bytes, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_trec(Path("f"), row, targets, "human", "kim")
    assert f"f {says}" in str(caught.value)


@pytest.mark.parametrize("query_id", ["50%", "50%25", "#1", "ä/b", "a;b"])
def test_an_id_goes_out_and_comes_in_the_same(targets: Targets, query_id: str) -> None:
    body = targets.find("o/r::git/SKILL.md")
    assert not isinstance(body, str)
    lines = list(as_trec({query_id: {body.body: ResolvedGrade(2, "human", "1")}}))
    (back,) = parse_trec(Path("f"), "\n".join(lines).encode(), targets, "human", "kim")
    assert back.query_id == query_id


@pytest.mark.parametrize("text", ["\ud800", "a\0b"])
@pytest.mark.parametrize("field", ["rationale", "queryId", "annotator"])
def test_text_that_no_database_keeps_is_refused(targets: Targets, field: str, text: str) -> None:
    row = {
        "queryId": "q",
        "docId": f"{PINNED}git/SKILL.md",
        "grade": 1,
        "source": "human",
        "annotator": "kim",
        field: text,
    }
    with pytest.raises(BadInput) as caught:
        parse(targets, row)
    assert f"line 1 {field}: holds " in str(caught.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"judged_sha256": "0" * 64}, "docId: '{entry}' is other content than the row judges"),
        ({"chunkId": f"class:{'0' * 64}", "judged_sha256": "0" * 64}, "docId: '{entry}' is other content"),
        ({"docId": f"{PINNED}gone", "judged_sha256": "0" * 64}, f"docId: '{PINNED}gone' names nothing in the corpus"),
        ({"queryId": "a b"}, "queryId: holds white space"),
        ({"annotator": None, "docId": f"{PINNED}gone"}, f"docId: '{PINNED}gone' names nothing in the corpus"),
    ],
)
def test_what_a_judgment_names_is_one_content(targets: Targets, change: dict[str, Any], says: str) -> None:
    row = {
        "queryId": "q",
        "docId": f"{PINNED}git/SKILL.md",
        "grade": 1,
        "source": "human",
        "annotator": "kim",
        **change,
    }
    with pytest.raises(BadInput) as caught:
        parse(targets, row)
    assert f"line 1 {says.format(entry=PINNED + 'git/SKILL.md')}" in str(caught.value)


@pytest.mark.parametrize("grade", ["--1", "-1", "١", "²", "1_0", "+1"])
def test_a_trec_grade_is_a_digit_from_0_to_3(targets: Targets, grade: str) -> None:
    with pytest.raises(BadInput, match=r"x\.qrels line 1 grade: is none of 0 to 3"):
        parse_trec(Path("x.qrels"), f"Q 0 o/r::git/SKILL.md {grade}".encode(), targets, "human", "bob")
