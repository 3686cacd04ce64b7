"""Real files that break readers: each row of ``odd-files.tsv`` is an entry, has its flag, or is counted by a reason."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline.store import Store
from pipeline.taps.snapshot import SnapshotOptions, read_files, snapshot
from pipeline.taps.taplist import Tap, read_tap_list
from tests.odd.facts import REAL, Case, Counted, Entry, differing, measured
from tests.odd.taps import Reading, read_tap

pytestmark = [pytest.mark.corpora, pytest.mark.slow, pytest.mark.xdist_group("corpora")]


class Row(NamedTuple):
    """A row of the list."""

    category: str
    tap: str
    pin: str
    path: bytes

    @property
    def shown(self) -> str:
        return f"{self.category}: {self.tap}::{self.path!r}"


@pytest.fixture(scope="module")
def rows(corpora: Path) -> list[Row]:
    with (corpora / "odd-files.tsv").open(encoding="utf-8", newline="") as file:
        listed = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [Row(row["category"], row["tap"], row["commit"], _path(row["path_json"])) for row in listed]


def _path(text: str) -> bytes:
    path = json.loads(text) if text.startswith('"') else text
    return str(path).encode("utf-8", "surrogateescape")


@pytest.fixture(scope="module")
def readings(
    rows: list[Row], registries: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Tap, Reading, dict[bytes, bytes]]]:
    """Each tap that the list names: its row, what a night makes of it, and the bytes of the files that were read."""
    listed = read_tap_list(registries / "taps.toml")
    store, named = Store(tmp_path_factory.mktemp("store")), {row.tap for row in rows}
    found = {}
    for tap in listed.taps:
        if tap.name in named:
            files = read_files(store, snapshot(store, tap, listed.base, SnapshotOptions()).artifact)
            found[tap.name] = (tap, read_tap(store, tap, listed.base), {file.path: file.content for file in files})
    return found


def test_every_category_and_row_of_the_list_has_facts_here(rows: list[Row]) -> None:
    counts = {category: sum(row.category == category for row in rows) for category in {row.category for row in rows}}
    assert counts == {category: len(cases) for category, cases in REAL.items()}


def test_every_row_is_an_entry_as_the_facts_say_or_is_counted(
    rows: list[Row], readings: dict[str, tuple[Tap, Reading, dict[bytes, bytes]]]
) -> None:
    left = {category: list(cases) for category, cases in REAL.items()}
    wrong = {}
    for row in rows:
        tap, reading, contents = readings[row.tap]
        assert tap.pin == row.pin, row.shown
        case = left[row.category].pop(0)
        found = _differing(case, row, reading, contents)
        if found:
            wrong[row.shown] = found
    assert wrong == {}


def _differing(case: Case, row: Row, reading: Reading, contents: dict[bytes, bytes]) -> object:
    if isinstance(case, Counted):
        counts = {**reading.manifest.model_dump(include={"passed_over", "others"}), "counted": reading.counted}
        found = (row.path in reading.entries, row.path in reading.read, counts[case.where].get(case.reason))
        expected = (False, case.where == "counted", case.files)
        return None if found == expected else (found, expected)
    if row.path not in reading.entries:
        return "it is no entry"
    links = sum(entry["via_link"] for entry in reading.entries.values())
    return differing(case.facts, measured(reading.entries[row.path], links, contents[row.path]))


def test_git_lists_what_is_counted_as_what_it_is(rows: list[Row], registries: Path) -> None:
    left = {category: list(cases) for category, cases in REAL.items()}
    for row in rows:
        case = left[row.category].pop(0)
        if isinstance(case, Entry):
            continue
        git = ["git", f"--git-dir={registries / row.tap.replace('/', '+')}.git", "--literal-pathspecs"]
        done = subprocess.run([*git, "ls-tree", "-z", row.pin, row.path], capture_output=True, check=True)
        head, _, path = done.stdout.removesuffix(b"\0").partition(b"\t")
        assert (head.split(b" ")[0].decode(), path) == (case.mode, row.path), row.shown


def test_nothing_of_these_taps_is_lost(readings: dict[str, tuple[Tap, Reading, dict[bytes, bytes]]]) -> None:
    for tap, reading, _ in readings.values():
        assert reading.accounted == reading.manifest.files, tap.name
        assert len(reading.entries) == tap.entries, tap.name
