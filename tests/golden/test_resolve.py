import gzip
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.golden.items import parse_golden_set, read_golden_set
from pipeline.golden.resolve import Resolved, edited, resolve, unresolved

Rows = list[tuple[str, bytes, str, str]]

BODY = {letter: letter * 64 for letter in "abcdef"}
ROWS: Rows = [
    ("one/tap", b"skills/pdf/SKILL.md", "pdf", "a"),
    ("one/tap", b"skills/copy/SKILL.md", "pdf", "a"),
    ("two/tap", b"skills/pdf/SKILL.md", "pdf", "b"),
    ("two/tap", b"agents/docker.md", "docker", "c"),
    ("two/tap", b"agents/\xff.md", "odd", "d"),
    ("two/tap", b"skills/empty/SKILL.md", "empty", ""),
]


def corpus(rows: Rows = ROWS) -> pa.Table:
    return pa.table(
        {
            "tap": [tap for tap, _, _, _ in rows],
            "path": pa.array([path for _, path, _, _ in rows], pa.binary()),
            "path_text": [path.decode("utf-8", "backslashreplace") for _, path, _, _ in rows],
            "slug": [slug for _, _, slug, _ in rows],
            "class_id": [f"class-{body}" if body else f"{tap}-{path!r}" for tap, path, _, body in rows],
            "body_sha256": [BODY.get(body, "0" * 64) for _, _, _, body in rows],
            "empty_body": [not body for _, _, _, body in rows],
        }
    )


Bodies = dict[tuple[str, bytes], list[str]]


def resolved(row: dict[str, object], earlier: Bodies | None = None) -> Resolved:
    golden = parse_golden_set(Path("set.jsonl"), json.dumps({"query": "q"} | row).encode())
    (one,) = resolve(golden, corpus(), lambda: earlier or {}).items
    return one


def faults(row: dict[str, object], earlier: Bodies | None = None) -> list[str]:
    with pytest.raises(BadInput) as caught:
        resolved(row, earlier)
    return [str(fault) for fault in caught.value.faults]


def test_what_answers_an_item_is_called_as_the_row_says_and_as_its_exemplars_are() -> None:
    assert resolved({"relevant": ["docker"], "exemplar": "one/tap::skills/pdf/SKILL.md"}).names == {"docker", "pdf"}
    assert resolved({"relevant": ["docker"]}).names == {"docker"}


def test_an_exemplar_names_the_content_class_of_its_entry() -> None:
    one = resolved({"exemplar": "two/tap::agents/docker.md"})
    assert (one.classes, one.class_entries) == (("class-c",), 1)


def test_exemplars_of_one_class_are_that_class_once() -> None:
    one = resolved({"exemplar": ["one/tap::skills/pdf/SKILL.md", "one/tap::skills/copy/SKILL.md"]})
    assert (one.classes, one.class_entries) == (("class-a",), 2)


def test_a_body_digest_names_its_class() -> None:
    assert resolved({"exemplar": f"class:{BODY['a']}"}).classes == ("class-a",)


def test_a_path_that_is_not_utf_8_is_named_in_its_readable_form() -> None:
    assert resolved({"exemplar": "two/tap::agents/\\xff.md"}).classes == ("class-d",)


def test_a_name_of_several_classes_is_ambiguous() -> None:
    assert resolved({"relevant": ["pdf"]}).ambiguous
    assert not resolved({"relevant": ["docker"]}).ambiguous
    assert resolved({"relevant": ["pdf", "docker"]}).name_entries == 4


def test_a_row_without_an_answer_names_nothing_and_is_no_fault() -> None:
    one = resolved({"answerable": False})
    assert (one.item.mode, one.classes, one.name_entries) == (None, (), 0)


def test_an_exemplar_never_falls_back_to_the_name() -> None:
    (fault,) = faults({"exemplar": "one/tap::skills/gone/SKILL.md", "relevant": ["pdf"]})
    assert fault.startswith("set.jsonl line 1 exemplar 1: 'one/tap::skills/gone/SKILL.md' names nothing in the corpus")
    assert "two/tap::skills/pdf/SKILL.md (same name)" in fault


def test_a_tap_that_is_not_in_the_corpus_is_said_to_be_none() -> None:
    assert "no tap is called 'six/tap'" in faults({"exemplar": "six/tap::agents/docker.md"})[0]


def test_the_same_path_in_another_tap_is_proposed_before_the_name() -> None:
    (fault,) = faults({"exemplar": "one/tap::agents/docker.md", "relevant": ["pdf"]})
    assert fault.index("two/tap::agents/docker.md (same path)") < fault.index("(same name)")


def test_the_name_that_a_path_implies_is_proposed() -> None:
    (fault,) = faults({"exemplar": "one/tap::elsewhere/Docker/SKILL.md"})
    assert "two/tap::agents/docker.md (same name in other case)" in fault


def test_a_body_that_moved_is_proposed_first() -> None:
    earlier = {("old/tap", b"docs/what.md"): [BODY["c"]]}
    (fault,) = faults({"exemplar": "old/tap::docs/what.md", "relevant": ["pdf"]}, earlier)
    assert "candidates: two/tap::agents/docker.md (same body)" in fault


def test_of_a_body_that_moved_the_place_in_its_own_tap_is_proposed_and_not_a_mirror() -> None:
    earlier = {("two/tap", b"skills/old/SKILL.md"): [BODY["e"], BODY["b"]]}
    rows: Rows = [*ROWS, ("a/mirror", b"x/SKILL.md", "x", "b")]
    golden = parse_golden_set(Path("set.jsonl"), b'{"query": "q", "exemplar": "two/tap::skills/old/SKILL.md"}')
    (found,) = unresolved(golden, corpus(rows), lambda: earlier)
    assert [(each.id, each.why) for each in found.proposal.shown] == [("two/tap::skills/pdf/SKILL.md", "same body")]


def test_an_empty_body_that_moved_is_no_candidate() -> None:
    earlier = {("two/tap", b"agents/gone.md"): ["0" * 64]}
    assert "no candidate" in faults({"exemplar": "two/tap::agents/gone.md"}, earlier)[0]


def test_of_a_digest_that_no_body_has_now_the_entry_that_had_it_is_proposed() -> None:
    earlier = {("two/tap", b"agents/docker.md"): [BODY["f"]]}
    (fault,) = faults({"exemplar": f"class:{BODY['f']}"}, earlier)
    assert "candidates: two/tap::agents/docker.md (held this body earlier)" in fault


def test_what_was_earlier_is_asked_for_only_where_an_exemplar_names_nothing() -> None:
    def never() -> Bodies:
        raise AssertionError("it was asked for")

    good = parse_golden_set(Path("s.jsonl"), b'{"query": "q", "exemplar": "two/tap::agents/docker.md"}')
    assert resolve(good, corpus(), never).items
    nameless = parse_golden_set(Path("s.jsonl"), b'{"query": "q", "relevant": ["none"]}')
    assert len(unresolved(nameless, corpus(), never)) == 1


def test_an_exemplar_that_holds_other_content_is_told_with_the_place_of_the_old() -> None:
    rows = [(tap, path, slug, "f" if path == b"agents/docker.md" else body) for tap, path, slug, body in ROWS]
    rows.append(("one/tap", b"kept.md", "kept", "c"))
    written = ["two/tap::agents/docker.md", "two/tap::skills/pdf/SKILL.md", f"class:{BODY['c']}", "two/tap::gone.md"]
    golden = parse_golden_set(Path("s.jsonl"), json.dumps({"query": "q", "exemplar": written}).encode())
    (found,) = edited(golden, corpus(), corpus(rows))
    assert (found.written, [each.id for each in found.proposal.shown]) == (written[0], ["one/tap::kept.md"])


def test_a_decision_that_moved_or_was_edited_is_told_like_an_exemplar() -> None:
    decisions = [
        {"entry": entry, "include": True, "reason": "helps", "by": "somebody"}
        for entry in ("two/tap::agents/docker.md", "two/tap::skills/old/SKILL.md")
    ]
    row = {"query": "q", "relevant": ["pdf"], "decisions": decisions}
    golden = parse_golden_set(Path("s.jsonl"), json.dumps(row).encode())
    earlier = {("two/tap", b"skills/old/SKILL.md"): [BODY["b"]]}
    (gone,) = unresolved(golden, corpus(), lambda: earlier)
    assert (gone.field, gone.proposal.shown[0].id) == ("decisions 2", "two/tap::skills/pdf/SKILL.md")
    rows = [(tap, path, slug, "f" if path == b"agents/docker.md" else body) for tap, path, slug, body in ROWS]
    (changed,) = edited(golden, corpus(), corpus(rows))
    assert (changed.field, changed.written) == ("decisions 1", "two/tap::agents/docker.md")


def test_mirrors_are_one_candidate() -> None:
    (fault,) = faults({"exemplar": "one/tap::gone/pdf/SKILL.md"})
    assert fault.count("(same name)") == 2


def test_few_candidates_are_shown_and_the_rest_are_counted() -> None:
    rows: Rows = [(f"tap/{n}", b"x/SKILL.md", "same", letter) for n, letter in enumerate("abcdef")]
    golden = parse_golden_set(Path("set.jsonl"), b'{"query": "q", "exemplar": "no/tap::y/same/SKILL.md"}')
    with pytest.raises(BadInput, match=r"tap/4::x/SKILL\.md \(same name\), and 1 more"):
        resolve(golden, corpus(rows))


def test_nothing_alike_is_no_candidate() -> None:
    assert "no candidate" in faults({"exemplar": "one/tap::agents/bash.md"})[0]


def test_a_name_that_nothing_carries_fails_like_an_exemplar() -> None:
    assert "relevant 2: no entry is called 'bash'; no candidate" in faults({"relevant": ["pdf", "bash"]})[0]
    assert "two/tap::agents/docker.md (same name in other case)" in faults({"relevant": ["Docker"]})[0]


def test_a_wrong_name_beside_a_good_exemplar_still_fails_and_shows_it() -> None:
    (fault,) = faults({"relevant": ["bash"], "exemplar": "two/tap::agents/docker.md"})
    assert "two/tap::agents/docker.md (the row's exemplar)" in fault


def test_an_empty_body_is_no_exemplar_by_digest() -> None:
    assert "empty body" in faults({"exemplar": "class:" + "0" * 64})[0]
    assert len(resolved({"exemplar": "two/tap::skills/empty/SKILL.md"}).classes) == 1


def test_a_digest_that_no_body_has_is_named() -> None:
    assert "no entry has this body" in faults({"exemplar": "class:" + "1" * 64, "relevant": ["pdf"]})[0]


def test_every_row_that_names_nothing_is_listed() -> None:
    rows = [{"query": f"q{n}", "relevant": [name]} for n, name in enumerate(["zip", "pdf", "tar"])]
    golden = parse_golden_set(Path("set.jsonl"), "\n".join(map(json.dumps, rows)).encode())
    with pytest.raises(BadInput) as caught:
        resolve(golden, corpus())
    assert [fault.where for fault in caught.value.faults] == [
        "set.jsonl line 1 relevant 1",
        "set.jsonl line 3 relevant 1",
    ]


@settings(deadline=None)
@given(st.permutations(ROWS))
def test_the_order_of_the_entries_changes_neither_classes_nor_candidates(rows: Rows) -> None:
    golden = parse_golden_set(Path("s.jsonl"), b'{"query": "q", "relevant": ["pdf"]}')
    wrong = parse_golden_set(Path("s.jsonl"), b'{"query": "q", "exemplar": "x/y::pdf/SKILL.md"}')
    assert resolve(golden, corpus(rows)).items == resolve(golden, corpus()).items
    messages = set()
    for table in (corpus(rows), corpus()):
        with pytest.raises(BadInput) as caught:
            resolve(wrong, table)
        messages.add(str(caught.value))
    assert len(messages) == 1


@pytest.fixture(scope="module")
def real(corpora: Path) -> tuple[Path, pa.Table]:
    folder = corpora
    with gzip.open(folder / "entries.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        lines = [line.rstrip("\n").split("\t") for line in file][1:]
    paths = [json.loads(line[1]).encode("utf-8", "surrogateescape") for line in lines]
    has_body = [len(line[5]) == 64 for line in lines]
    return folder.parent / "golden", pa.table(
        {
            "tap": [line[0] for line in lines],
            "path": pa.array(paths, pa.binary()),
            "path_text": [path.decode("utf-8", "backslashreplace") for path in paths],
            "slug": [line[3] for line in lines],
            "class_id": [line[5] if full else "::".join(line[:2]) for line, full in zip(lines, has_body, strict=True)],
            "body_sha256": [line[5] for line in lines],
            "empty_body": [not full for full in has_body],
        }
    )


@pytest.mark.corpora
def test_the_set_as_it_was_published_fails_for_the_rows_that_name_nothing(real: tuple[Path, pa.Table]) -> None:
    folder, entries = real
    with pytest.raises(BadInput) as caught:
        resolve(read_golden_set(folder / "natural-as-found.jsonl"), entries)
    found = [(fault.where.partition(" line ")[2], fault.todo) for fault in caught.value.faults]
    fields = [(16, "exemplar"), (17, "exemplar"), (18, "exemplar"), (47, "exemplar"), (47, "relevant")]
    assert [where for where, _ in found] == [f"{line} {field} 1" for line, field in fields]
    assert all("(same name)" in todo for _, todo in found[:3])
    assert all(todo.startswith("no candidate") for _, todo in found[3:])


@pytest.mark.corpora
def test_the_mended_set_resolves(real: tuple[Path, pa.Table]) -> None:
    folder, entries = real
    facts = resolve(read_golden_set(folder / "natural.jsonl"), entries).facts()
    assert (facts["items"], facts["by_exemplar"], facts["by_name"]) == (45, 24, 21)
