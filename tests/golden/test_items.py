import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.golden.items import KEPT, GoldenSet, frozen_digest, parse_golden_set, read_golden_set
from tests.worked import EXAMPLES

HERE = Path("set.jsonl")
GOOD = {"query": "how do I rebase", "relevant": ["git-rebase"]}


def parse(*rows: object) -> GoldenSet:
    return parse_golden_set(HERE, "\n".join(json.dumps(row) for row in rows).encode())


def faults(data: bytes | dict[str, object]) -> list[str]:
    if isinstance(data, dict):
        data = json.dumps(data).encode()
    with pytest.raises(BadInput) as caught:
        parse_golden_set(HERE, data)
    return [str(fault) for fault in caught.value.faults]


def test_the_short_form_is_read_as_it_is() -> None:
    (item,) = parse(GOOD | {"kind": "skill", "note": "common", "exemplar": "a/b::x/SKILL.md"}).items
    assert (item.question, item.relevant, item.exemplar) == (GOOD["query"], ("git-rebase",), ("a/b::x/SKILL.md",))
    assert (item.kind, item.note, item.mode, item.match) == ("skill", "common", "exemplar", "any")


def test_what_a_row_leaves_out_has_a_default() -> None:
    (item,) = parse(GOOD).items
    assert item.query_id == hashlib.sha256(b"how do I rebase").hexdigest()[:16]
    assert (item.answerable, item.language, item.cluster_id, item.item_version) == (True, "en", item.query_id, 1)
    assert (item.popularity, item.split, item.mode) == (None, None, "name")


def test_a_null_counts_as_absent() -> None:
    assert parse(GOOD | {"popularity": None, "exemplar": None}).digest == parse(GOOD).digest


def test_blank_lines_and_comments_are_skipped_and_lines_are_counted() -> None:
    data = b"# header\n\n  \t\n" + json.dumps(GOOD).encode() + b"\r\n   # indented\n"
    assert [item.line for item in parse_golden_set(HERE, data).items] == [4]


def test_a_line_separator_inside_text_ends_no_line() -> None:
    row = json.dumps({"query": "one\u2028two\x85three", "relevant": ["x"]}, ensure_ascii=False)
    assert parse_golden_set(HERE, row.encode()).items[0].question == "one\u2028two\x85three"


def test_a_false_premise_has_no_answer_unless_told() -> None:
    (item,) = parse({"question": "when did the moon shop close", "questionType": "false_premise"}).items
    assert not item.answerable
    assert item.mode is None


def test_the_frozen_digest_is_that_of_the_worked_example() -> None:
    example = EXAMPLES["E21_golden_set_version"]
    rows, expected = example["input"]["items"], example["expected"]
    frozen = "\n".join(expected["lines"]).encode()
    assert frozen_digest(rows) == hashlib.sha256(frozen).hexdigest() == expected["sha256"]
    read = parse(*(row | ({"relevant": ["review"]} if row["answerable"] else {}) for row in rows))
    assert [item.query_id for item in read.items] == ["G2", "G1"]
    assert parse(*reversed(read.written)).digest == read.digest


@settings(deadline=None)
@given(st.permutations(range(4)), st.randoms(use_true_random=False))
def test_no_order_of_rows_or_keys_and_no_date_moves_the_digest(order: list[int], random: object) -> None:
    rows = [{"queryId": f"q{n}", "question": f"ask {n}", "relevant": [f"n{n}"]} for n in range(4)]
    shuffled = [dict(sorted(rows[n].items(), reverse=n % 2 == 0)) | {"createdAt": f"2026-01-0{n + 1}"} for n in order]
    assert parse(*shuffled).digest == parse(*rows).digest


@pytest.mark.parametrize("change", [{"kind": "rule"}, {"relevant": ["other"]}, {"note": "n"}, {"queryId": "other"}])
def test_anything_else_moves_the_digest(change: dict[str, object]) -> None:
    assert parse(GOOD | change).digest != parse(GOOD).digest


def test_query_is_another_word_for_question() -> None:
    assert parse(GOOD).digest == parse({"question": GOOD["query"], "relevant": GOOD["relevant"]}).digest


def test_only_the_highest_version_of_an_item_is_asked() -> None:
    old = {"queryId": "a", "question": "first words", "relevant": ["x"]}
    golden = parse(old | {"item_version": 2, "question": "better words"}, old, GOOD)
    assert [item.question for item in golden.items] == ["better words", GOOD["query"]]
    assert golden.superseded == 1
    assert golden.digest != parse(old | {"item_version": 2, "question": "better words"}, GOOD).digest


@pytest.mark.parametrize(
    ("row", "place", "what"),
    [
        ({"relevant": ["x"]}, "question", "is missing"),
        ({"query": " \n", "relevant": ["x"]}, "query", "is blank"),
        ({"query": "", "relevant": ["x"]}, "query", "is blank"),
        ({"query": 3, "relevant": ["x"]}, "query", "string"),
        (GOOD | {"question": "too"}, "query", "stands beside"),
        (GOOD | {"relevnt": 1}, "relevnt", "unknown field"),
        (GOOD | {"query_id": "q"}, "query_id", "unknown field"),
        (GOOD | {"answerable": "yes"}, "answerable", "boolean"),
        (GOOD | {"answerable": 1}, "answerable", "boolean"),
        (GOOD | {"item_version": True}, "item_version", "integer"),
        (GOOD | {"item_version": 0}, "item_version", "greater"),
        (GOOD | {"questionType": "hard"}, "questionType", "'simple'"),
        (GOOD | {"popularity": "body"}, "popularity", "'torso'"),
        (GOOD | {"dynamism": "quick"}, "dynamism", "'static'"),
        (GOOD | {"split": "train"}, "split", "'holdout'"),
        (GOOD | {"match": "some", "exemplar": "a::b"}, "match", "'any'"),
        (GOOD | {"match": "all"}, "match", "without an exemplar"),
        (GOOD | {"origin": "found"}, "origin", "none of authored"),
        (GOOD | {"createdAt": "yesterday"}, "createdAt", "no ISO 8601 time"),
        (GOOD | {"queryId": "a b"}, "queryId", "white space"),
        (GOOD | {"queryId": ""}, "queryId", "empty"),
        (GOOD | {"relevant": "git-rebase"}, "relevant", "list"),
        (GOOD | {"relevant": ["x", 3]}, "relevant 2", "string"),
        (GOOD | {"relevant": ["x", ""]}, "relevant 2", "no entry can be called ''"),
        (GOOD | {"relevant": ["Git Rebase"]}, "relevant 1", "no entry can be called 'Git Rebase'"),
        (GOOD | {"relevant": ["x", "x"]}, "relevant 2", "again"),
        ({"query": "q"}, "relevant", "no name and no exemplar"),
        ({"query": "q", "relevant": [], "exemplar": []}, "relevant", "no name and no exemplar"),
        (GOOD | {"answerable": False}, "relevant", "not answerable"),
        ({"query": "q", "exemplar": "a::b", "answerable": False}, "exemplar", "not answerable"),
        (GOOD | {"questionType": "false_premise"}, "relevant", "not answerable"),
        ({"query": "q", "questionType": "false_premise", "answerable": True}, "answerable", "false premise"),
        (GOOD | {"exemplar": "skills/x/SKILL.md"}, "exemplar 1", "names no entry"),
        (GOOD | {"exemplar": ["a::b", "::b"]}, "exemplar 2", "names no entry"),
        (GOOD | {"exemplar": "class:abc"}, "exemplar 1", "names no entry"),
        (GOOD | {"exemplar": ["a::b", "a::b"]}, "exemplar 2", "again"),
        (GOOD | {"exemplar": 7}, "exemplar", "neither text nor a list"),
        (GOOD | {"exemplar": ["a::b", 7]}, "exemplar 2", "string"),
    ],
)
def test_what_is_wrong_in_a_row_is_named_with_line_and_field(row: dict[str, object], place: str, what: str) -> None:
    (fault,) = faults(row)
    assert fault.startswith(f"set.jsonl line 1 {place}: ")
    assert what in fault


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"{'query': 1}", "no JSON"),
        (b'{"query": "q", "relevant": ["x"]} {}', "no JSON"),
        (b"[1]", "is no object"),
        (b"null", "is no object: null"),
        (b'"text"', "is no object"),
        (b'{"query": "q", "relevant": ["x"], "item_version": NaN}', "NaN"),
        (b'{"query": "q", "relevant": ["x"], "item_version": -Infinity}', "-Infinity"),
        (b'{"query": "q", "relevant": ["x"], "item_version": 1e999}', "integer"),
        (b'{"query": "q", "relevant": ["x"], "item_version": ' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"query": "q", "relevant": ["x"], "query": "q"}', "occurs twice"),
        (b'{"query": "\xff", "relevant": ["x"]}', "byte 12 is not UTF-8"),
        (b'{"query": "\\ud800", "relevant": ["x"]}', "unicode"),
        (b'\xef\xbb\xbf{"query": "q", "relevant": ["x"]}', "byte order mark"),
        (b"[" * 200_000, "nested too deeply"),
        (b"", "holds no row"),
        (b"# nothing\n", "holds no row"),
    ],
)
def test_what_is_no_row_at_all_is_named(data: bytes, what: str) -> None:
    (fault,) = faults(data)
    assert what in fault


def test_a_key_that_no_text_can_hold_is_an_unknown_field() -> None:
    (fault,) = faults(b'{"query": "q", "relevant": ["x"], "\\udc80": 1}')
    assert "\\udc80: unknown field" in fault


def test_all_faults_of_all_rows_are_named_at_once_in_order() -> None:
    rows = [GOOD, {"query": "", "relevant": ["a b"], "split": "x"}, {"query": "How  do I REBASE", "relevant": ["y"]}]
    found = faults("\n".join(json.dumps(row) for row in rows).encode() + b"\nnonsense")
    assert [fault.split(":")[0] for fault in found] == [
        "set.jsonl line 2 query",
        "set.jsonl line 2 split",
        "set.jsonl line 2 relevant 1",
        "set.jsonl line 3 question",
        "set.jsonl line 4",
    ]


def test_a_question_is_asked_once_whatever_its_white_space_and_case() -> None:
    (fault,) = faults(b'{"query": "Stra\xc3\x9fe  x", "relevant": ["x"]}\n{"query": "STRASSE\\tX", "relevant": ["y"]}')
    assert "line 2 question: asks the same as line 1" in fault


def test_the_same_question_twice_is_one_fault_though_the_id_repeats_too() -> None:
    (fault,) = faults(json.dumps(GOOD).encode() + b"\n" + json.dumps(GOOD).encode())
    assert "asks the same" in fault


def test_an_id_is_given_once() -> None:
    row = {"queryId": "a", "relevant": ["x"]}
    (fault,) = faults("\n".join(json.dumps(row | {"question": text}) for text in ("one", "two")).encode())
    assert "line 2 queryId: 'a', version 1, is the id of line 1 too" in fault


def test_a_fault_prints_as_one_line_whatever_the_row_holds() -> None:
    (fault,) = faults({"query": "q", "relevant": ["\x1b[2J\nx"]})
    assert fault.isprintable()


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_golden_set(tmp_path / "none.jsonl")


def test_the_set_is_called_by_the_stem_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "people.v2.jsonl").write_text(json.dumps(GOOD))
    assert read_golden_set(tmp_path / "people.v2.jsonl").name == "people.v2"


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        parse_golden_set(HERE, data)
    except BadInput as error:
        assert error.faults


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None, max_examples=150)
@given(
    st.dictionaries(st.sampled_from([*GOOD, "exemplar", "answerable", "questionType", "queryId", "note", "zz"]), JSON)
)
def test_any_object_is_read_or_refused_with_its_line(row: dict[str, object]) -> None:
    try:
        parse_golden_set(HERE, json.dumps(row).encode())
    except BadInput as error:
        assert all(fault.where.startswith("set.jsonl line 1") for fault in error.faults)


@pytest.mark.parametrize("field", ["note", "exemplar", "kind", "origin", "language", "cluster_id", "queryId"])
def test_half_of_a_surrogate_pair_is_refused_in_every_field(field: str) -> None:
    (fault,) = faults(b'{"query": "q", "relevant": ["x"], "%s": "a/b::\\udcff"}' % field.encode())
    assert f"set.jsonl line 1 {field}" in fault


def test_of_a_set_that_the_ledger_keeps_an_item_is_named_in_place_of_a_line() -> None:
    rows = [{"queryId": "a", "question": "q", "relevant": ["x"]}, {"queryId": "b", "question": "Q", "relevant": ["x"]}]
    with pytest.raises(BadInput) as caught:
        parse_golden_set(Path(f"{KEPT}asked"), "\n".join(map(json.dumps, rows)).encode())
    (fault,) = caught.value.faults
    assert fault.where == "ledger:asked item b question"
