"""What the Makefile removes: whatever can be made again, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import PROJECT

MADE = (".assay/store/catalog/x", ".assay/feed/latest.json", ".venv/bin/python", "build/examples/x", ".airflow/x")
LEDGER = (".assay/ledger.sqlite", ".assay/ledger.sqlite-wal", ".assay/ledger.sqlite-shm")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with this Makefile, in which everything was made."""
    shutil.copy(PROJECT / "Makefile", tmp_path)
    for name in (*MADE, "pipeline/kept.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def clean(folder: Path) -> tuple[str, list[str]]:
    done = subprocess.run(["make", "-s", "clean"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout, sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_clean_keeps_the_ledger_and_says_where_it_is(folder: Path) -> None:
    for name in LEDGER:
        (folder / name).write_text(name)
    said, left = clean(folder)
    assert left == sorted([*LEDGER, "Makefile", "pipeline/kept.py"])
    assert "kept .assay/ledger.sqlite" in said
    assert clean(folder) == (said, left)


def test_clean_removes_the_whole_store_where_there_is_no_ledger(folder: Path) -> None:
    assert clean(folder) == ("", ["Makefile", "pipeline/kept.py"])
    assert not (folder / ".assay").exists()
