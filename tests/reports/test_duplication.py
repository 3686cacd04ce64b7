"""The views on the duplicates of a run: counted by tap and name, pairs in order and drawn."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.reports.duplication import Duplication, PairView, drawn, first_of_each_side

Tables = dict[str, pa.Table]


class Made:
    """Tables of entries given as (tap, slug, class, cluster), each class one body."""

    def __init__(self, *entries: tuple[str, str, str, str | None], readings: dict[str, str] | None = None) -> None:
        seen: dict[str, set[str]] = {}
        rows = []
        for number, (tap, slug, class_id, cluster) in enumerate(sorted(entries, key=lambda entry: entry[0].encode())):
            taps = seen.setdefault(class_id, set())
            kind = None if not taps else "intra_tap" if tap in taps else "cross_tap"
            taps.add(tap)
            rows.append((tap, b"%04d" % number, slug, class_id, class_id, kind, cluster))
        names = ("tap", "path", "slug", "class_id", "body_sha256", "mirror_kind", "cluster_id")
        self.entries = [dict(zip(names, row, strict=True)) for row in rows]
        readings = readings or {}
        clusters = sorted({cluster for *_, cluster in entries if cluster is not None})
        self.clusters = [{"cluster_id": cluster, "reading": readings.get(cluster, "copies")} for cluster in clusters]
        self.golden: list[str] = []

    def views(self, order: random.Random | None = None) -> Duplication:
        entries = list(self.entries)
        if order is not None:
            order.shuffle(entries)
        strings = ("tap", "slug", "class_id", "body_sha256", "mirror_kind", "cluster_id")
        schema = pa.schema([*((name, pa.string()) for name in strings), ("path", pa.binary())])
        members = {(entry["class_id"], entry["cluster_id"]) for entry in self.entries if entry["cluster_id"]}
        taps = sorted({str(entry["tap"]) for entry in self.entries})
        counts = [sum(entry["tap"] == tap for entry in self.entries) for tap in taps]
        of_items = pa.schema([("grading", pa.string()), ("mode", pa.string()), ("wanted", pa.list_(pa.string()))])
        items = [{"grading": grading, "mode": "name", "wanted": [name]} for name in self.golden for grading in "nr"]
        return Duplication(
            {
                "entries": pa.Table.from_pylist(entries, schema=schema),
                "taps": pa.table({"tap": pa.array(taps, pa.string()), "entries": pa.array(counts, pa.int64())}),
                "items": pa.Table.from_pylist(
                    [item | {"grading": {"n": "name", "r": "row"}[str(item["grading"])]} for item in items], of_items
                ),
                "near_duplicate_clusters": pa.Table.from_pylist(
                    self.clusters, pa.schema([("cluster_id", pa.string()), ("reading", pa.string())])
                ),
                "near_duplicate_members": pa.Table.from_pylist(
                    [{"body_sha256": body, "cluster_id": cluster} for body, cluster in sorted(members)],
                    pa.schema([("body_sha256", pa.string()), ("cluster_id", pa.string())]),
                ),
            }
        )


def test_a_near_copy_is_no_mirror_and_stands_behind_an_earlier_entry_of_its_cluster() -> None:
    made = Made(
        ("a", "x", "1", "C"),
        ("b", "x", "2", "C"),
        ("b", "x", "3", "C"),
        ("b", "x", "4", "C"),
        ("b", "x", "1", "C"),
        ("b", "y", "9", None),
    )
    a, b = sorted(made.views().taps(), key=lambda row: row.tap)
    assert (a.mirrors, a.near, a.share) == (0, 0, 0.0)
    assert (b.mirrors_inside, b.mirrors_of_earlier, b.near_inside, b.near_of_earlier) == (0, 1, 2, 1)
    assert b.share == 0.8


def test_what_nearly_stands_elsewhere_is_counted_from_both_sides_and_never_beside_an_exact_copy() -> None:
    made = Made(
        ("a", "x", "1", "C"), ("b", "x", "2", "C"), ("b", "x", "2", "C"), ("c", "x", "3", "C"), ("c", "x", "9", None)
    )
    assert made.views().nearly_elsewhere() == {"a": 1, "c": 1}


@pytest.mark.parametrize("reading", ["family", "vetoed"])
def test_a_cluster_that_is_no_copies_makes_no_near_copy(reading: str) -> None:
    made = Made(("a", "x", "1", "C"), ("b", "x", "2", "C"), readings={"C": reading})
    views = made.views()
    assert [row.near for row in views.taps()] == [0, 0]
    assert [(row.classes, row.apart, row.clusters) for row in views.names()] == [(2, 2, 1)]


def test_a_name_counts_its_entries_contents_clusters_and_taps() -> None:
    made = Made(
        ("a", "x", "1", "C"), ("b", "x", "2", "C"), ("b", "x", "2", "C"), ("c", "x", "3", None), ("c", "y", "4", None)
    )
    (row,) = made.views().names()
    assert (row.name, row.entries, row.classes, row.apart, row.clusters, row.taps) == ("x", 4, 3, 2, 1, 3)


def test_golden_names_count_once_and_those_with_one_content_too() -> None:
    made = Made(("a", "x", "1", "C"), ("b", "x", "2", "C"), ("b", "y", "3", None), ("b", "z", "4", None))
    made.golden = ["x", "y", "x"]
    views = made.views()
    assert [(row.name, row.classes) for row in views.golden_names()] == [("x", 2), ("y", 1)]
    total = views.golden()
    assert (total.names, total.ambiguous, total.ambiguous_apart) == (2, 1, 0)
    assert (total.entries, total.classes, total.apart) == (3, 3, 2)


ENTRY = st.tuples(
    st.sampled_from("ab"), st.sampled_from("xyz"), st.sampled_from("12345"), st.sampled_from([None, "C", "D"])
)


@given(st.lists(ENTRY, min_size=1, max_size=12), st.integers(0, 9))
def test_the_order_of_rows_changes_nothing_and_no_entry_counts_twice(
    entries: list[tuple[str, str, str, str | None]], seed: int
) -> None:
    cluster_of: dict[str, str | None] = {}
    made = Made(*((tap, slug, body, cluster_of.setdefault(body, cluster)) for tap, slug, body, cluster in entries))
    made.golden = ["x", "y"]
    views, shuffled = made.views(), made.views(random.Random(seed))
    assert (views.taps(), views.names()) == (shuffled.taps(), shuffled.names())
    assert views.golden() == shuffled.golden()
    for tap in views.taps():
        assert 0 <= tap.mirrors + tap.near <= tap.entries
    for name in views.names():
        assert 1 <= name.apart <= name.classes <= name.entries and name.taps <= name.entries
    kept = sum(tap.entries - tap.mirrors - tap.near for tap in views.taps())
    groups = {cluster or body for body, cluster in cluster_of.items()}
    assert kept == len(groups)


def pair(side: str, number: int) -> PairView:
    similarity = 0.8 + number / 100 if side == "above" else 0.79 - number / 100
    texts = dict.fromkeys(("left", "right", "left_name", "right_name", "differs"), "")
    row = {"side": side, "similarity": similarity, "left_body": f"{number:02}", "right_body": "ff", **texts}
    return PairView.model_validate(row)


PAIRS = [pair(side, number) for side in ("above", "below") for number in range(30)]


def test_a_draw_hangs_on_its_seed_alone() -> None:
    backwards = list(reversed(PAIRS))
    assert drawn(PAIRS, 1) == drawn(backwards, 1) != drawn(PAIRS, 2)
    assert sorted(drawn(PAIRS, 1), key=PAIRS.index) == PAIRS


def test_the_first_of_each_side_are_as_many_on_both() -> None:
    first = list(first_of_each_side(drawn(PAIRS, 1), 7))
    assert [each.side for each in first] == ["above"] * 7 + ["below"] * 7


def test_pairs_stand_in_the_order_of_their_distance_on_each_side(small_run: Tables) -> None:
    found = Duplication(small_run).pairs()
    above = [each.similarity for each in found if each.side == "above"]
    below = [each.similarity for each in found if each.side == "below"]
    assert [each.side for each in found] == ["above"] * len(above) + ["below"] * len(below)
    assert above == sorted(above) and below == sorted(below, reverse=True) and len(above) > 1 < len(below)


def test_clusters_of_one_name_do_not_span_names(make_run: Callable[..., Tables]) -> None:
    views = Duplication(make_run(entries=80))
    assert all(len(each.names) > 1 for each in views.across_names())
    assert {each.cluster_id for each in views.across_names()} < {each.cluster_id for each in views.clusters()} or all(
        len(each.names) > 1 for each in views.clusters()
    )
