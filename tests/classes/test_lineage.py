"""What became of entries and clusters between two corpora, and that the id of a cluster is carried on."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipeline.classes.lineage import COLUMNS, Lineage, lineage

SCHEMA = pa.schema([(name, pa.binary() if name == "path" else pa.string()) for name in COLUMNS])


def corpus(**entries: str) -> pa.Table:
    """Entries given by path as `body`, or as `body cluster`; the class is the body."""
    rows = []
    for path, said in entries.items():
        body, _, cluster = said.partition(" ")
        rows.append(("t", path.encode(), path, path, body, body, cluster or None))
    return pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema=SCHEMA)


def told(found: Lineage) -> list[tuple[str, ...]]:
    """Each row as event, then path, where it came from, lineage id, as far as it has them."""
    rows: list[dict[str, Any]] = found.rows.to_pylist()
    columns = ("path", "path_before", "lineage_id")
    return [
        (row["event"], *(part.decode() if isinstance(part, bytes) else part for c in columns if (part := row[c])))
        for row in rows
    ]


def test_nothing_became_of_a_corpus_that_is_the_same_but_that_its_clusters_were_kept() -> None:
    same = corpus(a="1 x", b="2 x", c="3")
    found = lineage(same, same, {"x": "old"})
    assert told(found) == [("kept", "old")] and found.ids == {"x": "old"}


def test_entries_are_born_gone_edited_and_moved() -> None:
    found = lineage(corpus(a="1", b="2", c="3"), corpus(a="1", b="9", d="3", e="4"), {})
    assert told(found) == [("born", "e"), ("edited", "b"), ("moved", "d", "c")]
    assert told(lineage(corpus(a="1", b="2"), corpus(a="1"), {})) == [("gone", "b")]


def test_an_entry_that_a_decision_put_into_another_class_was_not_edited() -> None:
    before, after = corpus(a="1", b="2", c="3"), corpus(a="1", b="2", c="4")
    joined = after.set_column(after.column_names.index("class_id"), "class_id", pa.array(["1", "1", "4"]))
    assert told(lineage(before, joined, {})) == [("edited", "c"), ("regrouped", "b")]
    assert told(lineage(joined, after, {})) == [("regrouped", "b")]


def test_an_entry_joins_and_leaves_a_cluster_whose_id_goes_on() -> None:
    found = lineage(corpus(a="1 x", b="2 x", c="3"), corpus(a="1 y", b="2", c="3 y"), {})
    assert told(found) == [("kept", "x"), ("joined", "c", "x"), ("left", "b", "x")]
    assert found.ids == {"y": "x"}


def test_an_entry_that_moved_within_its_cluster_neither_left_nor_joined_it() -> None:
    found = lineage(corpus(a="1 x", b="2 x"), corpus(a="1 x", c="2 x"), {})
    assert told(found) == [("kept", "x"), ("moved", "c", "b")]


def test_the_larger_part_of_a_split_cluster_carries_its_id() -> None:
    found = lineage(
        corpus(a="1 x", b="2 x", c="3 x", d="4 x", e="5 x"), corpus(a="1 y", b="2 y", c="3 y", d="4 z", e="5 z"), {}
    )
    assert found.ids == {"y": "x", "z": "z"}
    assert ("split", "x") in told(found) and ("split", "z") in told(found)
    assert ("left", "d", "x") in told(found) and ("joined", "d", "z") in told(found)


def test_a_merged_cluster_carries_the_id_of_its_larger_part() -> None:
    found = lineage(
        corpus(a="1 x", b="2 x", c="3 y", d="4 y", e="5 y"), corpus(a="1 z", b="2 z", c="3 z", d="4 z", e="5 z"), {}
    )
    assert found.ids == {"z": "y"}
    assert [row for row in told(found) if row[0] == "merged"] == [("merged", "x"), ("merged", "y")]


def test_a_cluster_whose_bodies_were_all_edited_is_known_by_its_places() -> None:
    found = lineage(corpus(a="1 x", b="2 x"), corpus(a="8 y", b="9 y"), {})
    assert found.ids == {"y": "x"}


def test_a_new_cluster_never_takes_an_id_that_another_one_carries() -> None:
    # x became y with c; later the old members of x stand elsewhere, as a cluster with x's very digest.
    found = lineage(corpus(a="1 y", b="2 y", c="3 y"), corpus(a="7 w", b="8 w", c="3 w", p="5 x", q="6 x"), {"y": "x"})
    assert found.ids["w"] == "x" and found.ids["x"] not in ("x", "w", "y")


CORPORA = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.tuples(st.sampled_from("12345"), st.sampled_from(["", "x", "y", "z"])).map(lambda both: " ".join(both).strip()),
)


@given(CORPORA, CORPORA, st.randoms(use_true_random=False))
def test_the_order_of_rows_decides_nothing_and_no_two_clusters_share_an_id(
    before: Any, after: Any, random: Any
) -> None:
    shuffled = random.sample(list(after), len(after))
    first = lineage(corpus(**before), corpus(**after), {})
    again = lineage(corpus(**before), corpus(**{path: after[path] for path in shuffled}), {})
    assert first == again
    assert len(set(first.ids.values())) == len(first.ids)
    assert first.ids.keys() == {said.partition(" ")[2] for said in after.values()} - {""}


@given(CORPORA, CORPORA)
def test_entries_add_up(before: Any, after: Any) -> None:
    events = [row[0] for row in told(lineage(corpus(**before), corpus(**after), {}))]
    rows = lineage(corpus(**before), corpus(**after), {}).rows.to_pylist()
    of_entries = [row["event"] for row in rows if row["subject"] == "entry"]
    assert len(before) + of_entries.count("born") - of_entries.count("gone") == len(after)
    assert len(events) == len(rows)
