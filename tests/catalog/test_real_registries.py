"""The real registries: every entry as an independent reader of the rules finds it, and the count of classes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipeline.catalog.entries import catalogue
from pipeline.classes.group import counted_classes, counted_classes_by_tap, group
from pipeline.store import Store
from pipeline.taps.snapshot import SnapshotOptions, read_files, snapshot
from pipeline.taps.taplist import TapList, read_tap_list

pytestmark = [pytest.mark.corpora, pytest.mark.slow]

Seen = dict[tuple[str, bytes], tuple[str, str, str, str]]


@pytest.fixture(scope="module")
def taps(registries: Path) -> TapList:
    return read_tap_list(registries / "taps.toml")


@pytest.fixture(scope="module")
def entries(taps: TapList, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    store, options = Store(tmp_path_factory.mktemp("store")), SnapshotOptions()
    tables = []
    for tap in taps.taps:
        files = read_files(store, snapshot(store, tap, taps.path.parent, options).artifact)
        tables.append(catalogue(tap.name, files).entries.drop_columns("body"))
    return pa.concat_tables(tables)


@pytest.fixture(scope="module")
def expected(corpora: Path) -> Seen:
    seen: Seen = {}
    with gzip.open(corpora / "entries.tsv.gz", "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            tap, path, kind, slug, status, body = line.rstrip("\n").split("\t")
            seen[tap, json.loads(path).encode("utf-8", "surrogateescape")] = (kind, slug, status, body)
    return seen


def test_every_entry_is_as_an_independent_reader_finds_it(entries: pa.Table, expected: Seen) -> None:
    # The independent reader writes the word «empty» for the digest of an empty body.
    names = ("tap", "path", "kind", "slug", "parse_status", "body_sha256", "empty_body")
    columns = [entries[name].to_pylist() for name in names]
    found: Seen = {
        (tap, path): (kind, slug, status, "empty" if empty else body)
        for tap, path, kind, slug, status, body, empty in zip(*columns, strict=True)
    }
    assert len(expected) == 15_769
    assert {entry: (found.get(entry), row) for entry, row in expected.items() if found.get(entry) != row} == {}
    assert found.keys() == expected.keys()


def test_there_are_as_many_classes_as_published(entries: pa.Table) -> None:
    # 33 bodies are empty: 12,199 counts each of them, 12,167 counts them as one.
    facts = group(entries).facts()
    assert (facts["classes"], facts["classes_empties_as_one"], facts["empty_bodies"]) == (12_199, 12_167, 33)
    assert counted_classes(entries) == 12_199


def test_each_tap_has_the_classes_that_its_row_says(entries: pa.Table, taps: TapList) -> None:
    counts = counted_classes_by_tap(entries)
    assert {tap.name: counts[tap.name] for tap in taps.taps} == {tap.name: tap.classes for tap in taps.taps}


def test_locale_copies_are_found(entries: pa.Table) -> None:
    of_tap = entries.filter(pc.equal(entries["tap"], "affaan-m/everything-claude-code"))
    assert of_tap.num_rows - of_tap["locale"].null_count == 899
