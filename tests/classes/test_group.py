"""Content classes: what a mirror is, what a homonym is, and that the order of the rows decides nothing."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.catalog.entries import EntryFacts
from pipeline.classes.digests import CLASS_RULE_VERSION, CLASS_RULES, ClassRule
from pipeline.classes.group import (
    CLASS_ROWS,
    CORPUS_ENTRIES,
    NO_MIRRORS,
    Grouped,
    TapMirrors,
    counted_classes,
    counted_classes_by_tap,
    group,
    mirrors_by_tap,
)
from pipeline.records import Table

FACTS = Table("facts", EntryFacts, ("tap", "path"))
Rows = list[dict[str, Any]]


class Row(NamedTuple):
    tap: str
    path: str
    body: str
    slug: str = "a"
    locale: str | None = None


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def table(rows: list[Row]) -> pa.Table:
    """Facts in the order given, with digests as if the file held slug and body."""
    facts = [
        EntryFacts(
            tap=row.tap,
            path=row.path.encode(),
            path_text=row.path,
            kind="rule",
            name=row.slug,
            slug=row.slug,
            description=None,
            description_source=None,
            parse_status="none",
            encoding="utf-8",
            via_link=False,
            empty_body=not row.body,
            alias_stub=False,
            locale=row.locale,
            spec_violations=[],
            blob=digest("blob" + row.body)[:40],
            raw_sha256=digest(f"{row.slug} {row.body}"),
            body_sha256=digest(row.body),
            entry_sha256=digest(f"{row.slug}\n\n{row.body}"),
        )
        for row in rows
    ]
    return pa.Table.from_pylist([fact.model_dump() for fact in facts], schema=FACTS.schema)


def grouped(*rows: Row, rule: ClassRule = "body") -> Grouped:
    return group(table(list(rows)), rule)


def column(found: Grouped, name: str) -> list[Any]:
    values: list[Any] = found.entries[name].to_pylist()
    return values


# --- mirrors ---------------------------------------------------------------------------------------------------------


def test_the_first_entry_of_a_class_is_no_mirror() -> None:
    found = grouped(Row("t", "b", "x"), Row("t", "a", "x"))
    assert (column(found, "path"), column(found, "mirror")) == ([b"a", b"b"], [False, True])


def test_a_mirror_is_intra_tap_only_beside_an_earlier_one_of_its_tap() -> None:
    found = grouped(
        Row("t1", "a", "x"), Row("t1", "b", "x"), Row("t2", "a", "x"), Row("t2", "b", "x"), Row("t2", "c", "y")
    )
    assert column(found, "mirror_kind") == [None, "intra_tap", "cross_tap", "intra_tap", None]


def test_a_mirror_is_renamed_when_its_slug_is_not_the_first_ones() -> None:
    found = grouped(Row("t", "a", "x", "one"), Row("t", "b", "x", "two"), Row("t", "c", "x", "one"))
    assert column(found, "renamed_mirror") == [False, True, False]


def test_names_are_compared_case_and_all() -> None:
    assert column(grouped(Row("t", "a", "x", "One"), Row("t", "b", "x", "one")), "renamed_mirror") == [False, True]


def test_entries_are_ordered_by_bytes() -> None:
    found = grouped(Row("b", "a", "x"), Row("B", "é", "x"), Row("B", "z", "x"), Row("B", "Z", "x"))
    assert column(found, "path_text") == ["Z", "z", "é", "a"]


# --- empty bodies and homonyms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", CLASS_RULES)
def test_empty_bodies_never_join_under_any_rule(rule: ClassRule) -> None:
    found = grouped(Row("t", "a", ""), Row("t", "b", ""), Row("u", "a", ""), rule=rule)
    assert column(found, "mirror") == [False, False, False]
    assert len(set(column(found, "class_id"))) == 3


def test_the_class_of_an_empty_body_is_the_digest_of_tap_and_path() -> None:
    assert column(grouped(Row("t/u", "a b", "")), "class_id") == [digest("t/u\na b")]


def test_the_class_of_a_body_is_the_digest_of_rule_version_and_content() -> None:
    assert column(grouped(Row("t", "a", "x")), "class_id") == [digest(f"body\n{CLASS_RULE_VERSION}\n{digest('x')}")]


def test_each_empty_body_is_counted_and_the_count_as_one_stands_beside() -> None:
    found = grouped(Row("t", "a", ""), Row("t", "b", ""), Row("t", "c", "x"), Row("t", "d", "x"))
    assert (found.facts()["classes"], found.facts()["classes_empties_as_one"]) == (3, 2)


def test_homonyms_are_the_other_classes_with_the_same_slug() -> None:
    found = grouped(Row("t", "a", "x"), Row("t", "b", "x"), Row("t", "c", "y"), Row("t", "d", "z", "other"))
    assert column(found, "homonyms") == [1, 1, 1, 0]


def test_a_renamed_mirror_has_the_homonyms_of_its_own_name() -> None:
    found = grouped(Row("t", "a", "x", "one"), Row("t", "b", "x", "two"), Row("t", "c", "y", "two"))
    assert column(found, "homonyms") == [0, 1, 1]


# --- rules and classes -----------------------------------------------------------------------------------------------


def test_under_entry_a_renamed_mirror_is_not_merged() -> None:
    rows = (Row("t", "a", "x", "one"), Row("t", "b", "x", "two"))
    assert [grouped(*rows, rule=rule).classes.num_rows for rule in ("body", "entry", "raw", "blob")] == [1, 2, 2, 1]


def test_ids_of_different_rules_never_meet() -> None:
    ids = [column(grouped(Row("t", "a", "x"), rule=rule), "class_id")[0] for rule in CLASS_RULES]
    assert len(set(ids)) == len(CLASS_RULES)


def test_a_class_tells_its_members() -> None:
    found = grouped(Row("u", "a", "x", "b"), Row("t", "z", "x", "a", "ja"), Row("u", "b", "x", "B"))
    (row,) = found.classes.to_pylist()
    assert row == {
        "class_id": column(found, "class_id")[0], "rule": "body", "entries": 3, "taps": 2, "names": ["B", "a", "b"],
        "intra_tap_mirrors": 1, "cross_tap_mirrors": 1, "renamed_mirrors": 2, "empty_body": False, "locale_copy": False,
        "tap": "t", "path": b"z", "path_text": "z",
    }  # fmt: skip


def test_a_class_is_a_locale_copy_only_when_every_member_is() -> None:
    both = grouped(Row("t", "a", "x", locale="ja"), Row("t", "b", "x", locale="zh"))
    one = grouped(Row("t", "a", "x", locale="ja"), Row("t", "b", "x"))
    assert (both.classes["locale_copy"].to_pylist(), one.classes["locale_copy"].to_pylist()) == ([True], [False])


def test_mirrors_are_counted_by_tap() -> None:
    found = grouped(Row("t", "a", "x"), Row("t", "b", "x", "b"), Row("u", "a", "x"), Row("v", "a", "y"))
    assert mirrors_by_tap(found.entries) == {"t": TapMirrors(1, 0, 1), "u": TapMirrors(0, 1, 0), "v": NO_MIRRORS}


def test_classes_are_counted_by_tap() -> None:
    rows = [Row("u", "a", "x"), Row("t", "a", "x"), Row("t", "b", "x"), Row("t", "c", ""), Row("t", "d", "")]
    assert (counted_classes(table(rows)), counted_classes_by_tap(table(rows))) == (3, {"t": 3, "u": 1})


def test_no_entries_make_no_classes() -> None:
    found = group(FACTS.schema.empty_table())
    assert (found.entries.num_rows, found.classes.num_rows, found.facts()["classes"]) == (0, 0, 0)
    assert (found.entries.schema, found.classes.schema) == (CORPUS_ENTRIES.schema, CLASS_ROWS.schema)


# --- properties ------------------------------------------------------------------------------------------------------

ROWS = st.lists(
    st.builds(
        Row,
        st.sampled_from(["t1", "t2", "T"]),
        st.sampled_from("abcdefé"),
        st.sampled_from(["", "x", "y"]),
        st.sampled_from(["one", "two"]),
        st.sampled_from([None, "ja"]),
    ),
    unique_by=lambda row: (row.tap, row.path),
)


@given(ROWS, st.data())
@settings(deadline=None)
def test_the_order_of_the_rows_never_matters(rows: list[Row], data: st.DataObject) -> None:
    found, again = group(table(rows)), group(table(data.draw(st.permutations(rows))))
    assert CORPUS_ENTRIES.to_bytes(again.entries) == CORPUS_ENTRIES.to_bytes(found.entries)
    assert CLASS_ROWS.to_bytes(again.classes) == CLASS_ROWS.to_bytes(found.classes)


@given(ROWS, st.sampled_from(list(CLASS_RULES)))
@settings(deadline=None)
def test_grouping_agrees_with_the_definitions_read_literally(rows: list[Row], rule: ClassRule) -> None:
    found = group(table(rows), rule)
    entries: Rows = found.entries.to_pylist()
    earlier: dict[str, Rows] = defaultdict(list)
    classes_of: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        classes_of[entry["slug"]].add(entry["class_id"])
    for entry in entries:
        before = earlier[entry["class_id"]]
        kind = None
        if before:
            kind = "intra_tap" if any(other["tap"] == entry["tap"] for other in before) else "cross_tap"
        assert entry["mirror_kind"] == kind
        assert entry["mirror"] == bool(before)
        assert entry["renamed_mirror"] == bool(before and before[0]["slug"] != entry["slug"])
        assert entry["homonyms"] == len(classes_of[entry["slug"]] - {entry["class_id"]})
        before.append(entry)
    assert set(found.classes["class_id"].to_pylist()) == set(earlier)
    assert counted_classes(found.entries, rule) == found.classes.num_rows
    assert sum(found.classes["entries"].to_pylist()) == len(rows)
