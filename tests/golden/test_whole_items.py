"""Items whole: what must hold of a ranking, concepts, citations; and rows of CRAG."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.errors import BadInput
from pipeline.golden.concepts import Concepts, Mentioned, find_mentions, mentioned, parse_concepts
from pipeline.golden.crag import from_crag
from pipeline.golden.items import GoldenSet, parse_golden_set
from pipeline.golden.resolve import Resolved, resolve

HERE = Path("set.jsonl")
GOOD: dict[str, Any] = {"question": "how do I rebase", "relevant": ["git-rebase"]}
BODY = sha256(b"git/SKILL.md").hexdigest()
PIN = "a" * 40


def parse(*rows: object) -> GoldenSet:
    return parse_golden_set(HERE, "\n".join(json.dumps(row) for row in rows).encode())


def entries() -> pa.Table:
    paths = ["git/SKILL.md", "pdf/SKILL.md"]
    bodies = [sha256(path.encode()).hexdigest() for path in paths]
    return pa.table(
        {
            "tap": ["o/r", "o/r"],
            "path": [path.encode() for path in paths],
            "path_text": paths,
            "slug": ["git-rebase", "pdf"],
            "class_id": bodies,
            "body_sha256": bodies,
            "empty_body": [False, False],
        }
    )


def resolved(row: dict[str, Any], concepts: Mentioned = Mentioned()) -> Resolved:  # noqa: B008
    return resolve(parse(row), entries(), concepts=concepts).items[0]


def refused(row: dict[str, Any], concepts: Mentioned = Mentioned()) -> list[str]:  # noqa: B008
    with pytest.raises(BadInput) as caught:
        resolved(row, concepts)
    return [str(fault) for fault in caught.value.faults]


def test_a_row_with_citations_alone_is_graded_on_what_it_cites() -> None:
    row = {"question": "how do I rebase", "citations": [{"docId": f"o/r@{PIN}:git/SKILL.md"}]}
    found = resolved(row)
    assert (found.item.mode, found.classes) == ("exemplar", (BODY,))
    assert found.bodies == (("o/r::git/SKILL.md", BODY),)


def test_a_citation_of_content_goes_by_its_content() -> None:
    cited = {"docId": "o/r::pdf/SKILL.md", "chunkId": f"class:{BODY}"}
    assert resolved({"question": "q", "citations": [cited]}).classes == (BODY,)


def test_an_assertion_with_a_concept_and_no_check_is_checked_for_that_concept() -> None:
    about = {"kind": "must", "text": "rebase", "conceptId": "rebase"}
    row = GOOD | {"assertions": [about, {"kind": "should", "text": "t"}]}
    item = resolved(row, Mentioned(frozenset({"rebase"}))).item
    with_concept, plain = item.assertions
    assert with_concept.checked is not None
    assert (with_concept.checked.type, with_concept.checked.arg) == ("concept_in_top_k", "rebase")
    assert plain.checked is None


CHECK = {"kind": "must", "text": "t"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"assertions": [{"kind": "may", "text": "t"}]}, "set.jsonl line 1 assertions 1 kind"),
        ({"assertions": [CHECK | {"text": " "}]}, "assertions 1 text: is blank"),
        ({"assertions": [CHECK | {"check": {"type": "luck"}}]}, "assertions 1 check type"),
        ({"assertions": [CHECK | {"check": {"type": "name_in_top_k"}}]}, "assertions 1 check arg: is missing"),
        ({"assertions": [CHECK | {"check": {"type": "class_in_top_k", "arg": "x"}}]}, "names no entry and no content"),
        ({"assertions": [CHECK | {"check": {"type": "abstain", "k": 3}}]}, "looks at nothing"),
        ({"assertions": [CHECK | {"check": {"type": "abstain"}}]}, "asks to abstain where there is an answer"),
        ({"assertions": [CHECK | {"check": {"type": "name_in_top_k", "arg": "x", "k": 0}}]}, "assertions 1 check k"),
        ({"golden_concepts": [{"conceptId": "c", "grade": "good"}]}, "golden_concepts 1 grade"),
        ({"golden_concepts": [{"conceptId": "c", "grade": "required"}] * 2}, "golden_concepts 2: grades 'c' again"),
        ({"citations": [{"docId": "nowhere"}]}, "citations 1 docId: is no `tap@pin:path`"),
        ({"citations": [{"docId": "o/r::x"}] * 2}, "citations 2: cites 'o/r::x' again"),
        (
            {"relevant": None, "answerable": False, "citations": [{"docId": "o/r::git/SKILL.md"}]},
            "citations: stands in a row that is not answerable",
        ),
        ({"citations": [{"docId": "o/r::gone"}]}, "set.jsonl line 1 citations 1: 'o/r::gone' names nothing"),
        (
            {"assertions": [CHECK | {"check": {"type": "class_in_top_k", "arg": "o/r::gone"}}]},
            "assertions 1 check arg: 'o/r::gone' names nothing",
        ),
        ({"golden_concepts": [{"conceptId": "c", "grade": "required"}]}, "golden_concepts 1: no concept is called 'c'"),
        ({"assertions": [CHECK | {"conceptId": "c"}]}, "assertions 1 conceptId: no concept is called 'c'"),
    ],
)
def test_what_is_wrong_in_a_whole_item_is_named_with_line_and_field(change: dict[str, Any], says: str) -> None:
    faults = refused(GOOD | change)
    assert says in faults[0]


def test_a_citation_that_mentions_an_irrelevant_concept_is_refused() -> None:
    concepts = Mentioned(frozenset({"pdf"}), {BODY: frozenset({"pdf"})})
    row = GOOD | {
        "golden_concepts": [{"conceptId": "pdf", "grade": "irrelevant"}],
        "citations": [{"docId": "o/r::git/SKILL.md"}],
    }
    (fault,) = refused(row, concepts)
    assert fault.startswith("set.jsonl line 1 citations 1: 'o/r::git/SKILL.md' mentions 'pdf'")


def concepts(*rows: object) -> Concepts:
    return parse_concepts(Path("concepts.jsonl"), "\n".join(json.dumps(row) for row in rows).encode())


def counts(names: dict[str, Any], text: str) -> list[int]:
    row = {"tap": "o/r", "path": b"x", "body_sha256": BODY, "slug": "x", "name": "x", "description": None, "body": text}
    found = find_mentions(pa.Table.from_pylist([row]), concepts({"conceptId": "c", **names}))
    return [mention["mentions"] for mention in found.to_pylist()]


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        ({"name": "rebase"}, "Rebase, then REBASE again", [2]),
        ({"name": "rebase"}, "prebased and rebases", []),
        ({"name": "Straße"}, "die STRASSE dort", [1]),
        ({"name": "flaky test"}, "a flaky\n  test", [1]),
        ({"name": "git", "aliases": ["git rebase"]}, "git rebase", [1]),
        ({"name": "C++"}, "in C++, not c", [1]),
        ({"name": "node.js"}, "nodexjs", []),
    ],
)
def test_names_are_found_on_word_boundaries_whatever_their_case(
    names: dict[str, Any], text: str, expected: list[int]
) -> None:
    assert counts(names, text) == expected


def test_a_class_mentions_what_its_entries_mention() -> None:
    rows = [
        {"tap": "o/r", "path": path, "body_sha256": BODY, "slug": "s", "name": "s", "description": said, "body": "b"}
        for path, said in ((b"git/SKILL.md", "about rebase"), (b"pdf/SKILL.md", None))
    ]
    declared = concepts({"conceptId": "rebase", "name": "rebase"}, {"conceptId": "never", "name": "zebra"})
    found = mentioned(declared, find_mentions(pa.Table.from_pylist(rows), declared), entries())
    assert found == Mentioned(frozenset({"rebase", "never"}), {BODY: frozenset({"rebase"})})


def test_wrong_concepts_are_all_named_at_once() -> None:
    with pytest.raises(BadInput) as caught:
        concepts({"conceptId": "a b", "name": "x"}, {"conceptId": "c"}, {"conceptId": "d", "name": "x", "colour": 1})
    assert [fault.where for fault in caught.value.faults] == [
        "concepts.jsonl line 1 conceptId",
        "concepts.jsonl line 2 name",
        "concepts.jsonl line 3 colour",
    ]
    with pytest.raises(BadInput, match="line 2 conceptId: is the id of line 1 too"):
        concepts({"conceptId": "c", "name": "x"}, {"conceptId": "c", "name": "y"})


def test_a_row_of_crag_is_mapped_to_ours() -> None:
    row: dict[str, Any] = {
        "interaction_id": "1b5a",
        "query_time": "03/05/2024, 23:18:31 PT",
        "domain": "finance",
        "question_type": "multi-hop",
        "static_or_dynamic": "fast-changing",
        "query": "which one",
        "answer": "that one",
        "popularity": "",
        "split": 1,
        "search_results": [{"page_url": "x"}],
        "relevant": ["one"],
    }
    (item,) = parse(from_crag(row)).items
    assert (item.query_id, item.question_type, item.dynamism, item.split) == ("1b5a", "multi_hop", "fast", "holdout")
    assert (item.popularity, item.note) == (None, "domain: finance")
    assert [(each.kind, each.text, each.checked) for each in item.assertions] == [("must", "that one", None)]


def test_a_row_of_crag_without_an_answer_is_not_answerable() -> None:
    row: dict[str, Any] = {
        "query": "q",
        "question_type": "false_premise",
        "answer": "Invalid question",
        "static_or_dynamic": "static",
    }
    (item,) = parse(from_crag(row)).items
    assert (item.answerable, item.assertions) == (False, ())


def test_a_row_of_ours_is_left_as_it_is() -> None:
    row = GOOD | {"questionType": "set", "dynamism": "slow", "split": "tuning"}
    assert from_crag(row) == row


CRAG: dict[str, Any] = {
    "interaction_id": "c",
    "query": "q",
    "answer": "42",
    "domain": "open",
    "alt_ans": ["forty-two"],
    "split": 0,
}


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"question_type": name}, {"question_type": name.replace("-", "_"), "split": "tuning"})
        for name in ("simple", "simple_w_condition", "comparison", "aggregation", "set", "post-processing", "multi-hop")
    ]
    + [
        ({"static_or_dynamic": name}, {"dynamism": ours})
        for name, ours in (
            ("static", "static"),
            ("slow-changing", "slow"),
            ("fast-changing", "fast"),
            ("real-time", "fast"),
        )
    ]
    + [({"popularity": name}, {"popularity": name or None}) for name in ("head", "torso", "tail", "")]
    + [({"answer": text}, {"answerable": False}) for text in ("I don't know", "i don't know.", "invalid question")],
)
def test_a_row_of_crag_as_it_is_published_is_read(theirs: dict[str, Any], ours: dict[str, Any]) -> None:
    (item,) = parse(from_crag({**CRAG, **theirs})).items
    assert {name: getattr(item, name) for name in ours} == ours
    assert (item.mode, item.note) == (None, "domain: open; alt_ans: ['forty-two']")


def refused_alone(row: dict[str, Any]) -> str:
    with pytest.raises(BadInput) as caught:
        parse(row)
    return str(caught.value)


def test_a_row_that_leaves_to_judgments_what_answers_says_so() -> None:
    for told in ({"answerable": True}, {"assertions": [{"kind": "must", "text": "t"}]}):
        (item,) = parse({"question": "q", **told}).items
        assert (item.answerable, item.mode) == (True, None)
    assert "no name and no exemplar says what answers" in refused_alone({"question": "q"})
