import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.golden.resolve import ResolvedSet, resolve
from pipeline.golden.worksheet import as_markdown, pinned_lines, similarity, worksheet
from tests.scoring.test_score import Entry, corpus, golden

ENTRIES: list[Entry] = [
    ("a/SKILL.md", "commit", "A"),
    ("b/SKILL.md", "commit", "B"),
    ("c/SKILL.ja.md", "commit", "C"),
    ("d/SKILL.md", "rebase", "D"),
    ("e/SKILL.md", "squash", "D"),
    ("f/SKILL.md", "stash", "E"),
]
DESCRIPTIONS = ["Write a good commit", "write a good message | <b>now</b>\x1b[31m", None, "Rebase", "Rebase", "Stash"]
ROWS: list[dict[str, object]] = [
    {"query": "what do I write?", "relevant": ["commit"], "note": "keep me"},
    {"query": "tidy up", "relevant": ["rebase", "stash"]},
    {"query": "just one", "relevant": ["stash"]},
    {"query": "pinned", "relevant": ["commit"], "exemplar": "t::a/SKILL.md"},
    {"query": "none", "answerable": False},
]


def entries() -> pa.Table:
    table = corpus(ENTRIES).append_column("description", pa.array(DESCRIPTIONS, pa.string()))
    locale = pa.array([None, None, "ja", None, None, None], pa.string())
    stub = pa.array([False, True, False, False, False, False])
    return table.append_column("locale", locale).append_column("alias_stub", stub)


def resolved(rows: list[dict[str, object]]) -> ResolvedSet:
    return resolve(golden(rows), entries())


RANKS = {"bm25": {resolved(ROWS).items[0].item.query_id: {"B": 4}}}


def test_the_rows_are_counted_by_what_they_need() -> None:
    sheet = worksheet(resolved(ROWS), entries(), RANKS)
    assert (sheet.pinned, sheet.pinnable, sheet.to_judge, sheet.judged, sheet.without_answer) == (1, 2, 1, 0, 1)


def test_every_candidate_is_listed_with_what_a_judge_needs() -> None:
    (row,) = worksheet(resolved(ROWS), entries(), RANKS).rows
    assert [one.class_id for one in row.candidates] == ["A", "B", "C"]
    assert [one.ranks for one in row.candidates] == [{"bm25": None}, {"bm25": 4}, {"bm25": None}]
    assert [(one.entries[0].locale, one.entries[0].alias_stub) for one in row.candidates] == [
        (None, False),
        (None, True),
        ("ja", False),
    ]
    assert row.candidates[0].similarity == {"B": pytest.approx(3 / 8), "C": None}
    assert row.median_similarity == pytest.approx(3 / 8)


@pytest.mark.parametrize(
    ("one", "other", "value"),
    [("a b", "B, c!", 1 / 3), ("a", "a a", 1.0), ("a", "b", 0.0), ("a", None, None), ("", "--", None)],
)
def test_similarity_is_of_the_words(one: str | None, other: str | None, value: float | None) -> None:
    assert similarity(one, other) == value


def test_what_was_decided_is_shown_and_a_row_with_every_candidate_decided_is_judged() -> None:
    decisions = [
        {"entry": f"t::{path}", "include": include, "reason": "helps" if include else "other", "by": "me", "note": "n"}
        for path, include in (("a/SKILL.md", True), ("b/SKILL.md", False), ("c/SKILL.ja.md", False))
    ]
    sheet = worksheet(resolved([{**ROWS[0], "decisions": decisions}]), entries(), RANKS)
    assert (sheet.to_judge, sheet.judged) == (1, 1)
    assert [one.decision for one in sheet.rows[0].candidates] == [True, False, False]


def test_text_of_registries_marks_nothing_up_and_moves_no_cursor() -> None:
    text = as_markdown(worksheet(resolved(ROWS), entries(), RANKS))
    assert "\x1b" not in text
    assert r"write a good message \| \<b\>now\</b\>" in text
    assert "1 row pinned, 2 pinnable by lookup, 1 to be judged" in text


@pytest.mark.parametrize(
    ("targets", "exemplar"),
    [
        (set(), "class:" + "d" * 64),
        ({"w"}, "w::d/SKILL.md"),
        ({"t", "w"}, "t::d/SKILL.md"),
        ({"x"}, "class:" + "d" * 64),
    ],
)
def test_a_content_of_several_taps_is_pinned_where_its_answer_is_written_or_by_itself(
    targets: set[str], exemplar: str
) -> None:
    copied = entries()
    digests = pc.utf8_lower(copied["body_sha256"])
    copied = copied.set_column(copied.column_names.index("body_sha256"), "body_sha256", digests)
    copied = pa.concat_tables([copied, copied.set_column(0, "tap", pa.array(["w"] * copied.num_rows))])
    rows: list[dict[str, object]] = [{"query": "tidy up", "relevant": ["rebase"]}]
    written: dict[int, Any] = {1: rows[0]}
    (line,) = pinned_lines(resolve(golden(rows), copied), copied, written, targets)
    assert json.loads(line)["exemplar"] == exemplar
    (again,) = resolve(golden([json.loads(line)]), copied).items
    assert again.classes == ("D",)


def test_the_rows_that_a_lookup_pins_are_ready_for_the_file() -> None:
    written: dict[int, Any] = {number: row for number, row in enumerate(ROWS, start=1)}
    lines = [json.loads(line) for line in pinned_lines(resolved(ROWS), entries(), written)]
    assert lines == [
        {**ROWS[1], "exemplar": ["t::d/SKILL.md", "t::f/SKILL.md"], "match": "all"},
        {**ROWS[2], "exemplar": "t::f/SKILL.md"},
    ]
    again = resolved([ROWS[0], *lines, *ROWS[3:]])
    assert [one.item.mode for one in again.items] == ["name", "exemplar", "exemplar", "exemplar", None]
