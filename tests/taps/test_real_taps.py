"""The real registries: every entry that an independent reader found is among the files, and no other sure entry is."""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.store import Store
from pipeline.taps.profile import classify, skill_folders
from pipeline.taps.snapshot import SnapshotOptions, attempt, read_files, read_manifest
from pipeline.taps.taplist import read_tap_list


@pytest.mark.corpora
@pytest.mark.slow
def test_the_files_of_real_registries_are_those_that_another_reader_found(
    corpora: Path, registries: Path, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    listed = read_tap_list(registries / "taps.toml")
    with ThreadPoolExecutor(2) as pool:
        attempts = list(pool.map(lambda tap: attempt(store, tap, listed.base, SnapshotOptions()), listed.taps))
    expected = _entries(corpora / "entries.tsv.gz")
    for state, artifact in attempts:
        assert artifact is not None, state
        paths = [file.path for file in read_files(store, artifact)]
        skills = skill_folders(paths)
        kinds = {path: classify(path, skills) for path in paths}
        sure = {path: kind for path, kind in kinds.items() if kind != "maybe_workflow"}
        found = expected[state.name]
        assert sure == {path: kind for path, kind in found.items() if kinds.get(path) != "maybe_workflow"}
        assert all(found[path] == "workflow" for path in found if path not in sure)
        manifest = read_manifest(artifact)
        assert manifest.files == manifest.read + sum(manifest.passed_over.values()) + sum(manifest.others.values())
    assert len(attempts) == len(expected)


def _entries(path: Path) -> dict[str, dict[bytes, str]]:
    """Return the kind of each entry by tap and path."""
    found: dict[str, dict[bytes, str]] = defaultdict(dict)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            found[row["tap"]][json.loads(row["path_json"]).encode()] = row["kind"]
    return found
