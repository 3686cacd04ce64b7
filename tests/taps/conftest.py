from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.store import Store
from tests.taps.gitforge import Repository, Wrapped


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "served" / "repo.git")


@pytest.fixture
def watched_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wrapped:
    """From here on, every call of git by our own code is noted."""
    wrapped = Wrapped.make(tmp_path / "watched")
    monkeypatch.setenv("PATH", str(wrapped.folder), prepend=":")
    return wrapped
