"""What tests of several parts share: the real registries, where somebody named their folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def corpora() -> Path:
    """The folder of real registries that CORPORA names."""
    named = os.environ.get("CORPORA")
    if not named:
        pytest.skip("CORPORA names no folder of real registries")
    folder = Path(named)
    if not (folder / "unpack.py").is_file():
        pytest.fail(f"CORPORA={named} holds no unpack.py")
    return folder


@pytest.fixture(scope="session")
def registries(corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real registries, unpacked once; the folder holds taps.toml and the bare repositories."""
    folder = tmp_path_factory.mktemp("registries")
    subprocess.run([sys.executable, str(corpora / "unpack.py"), str(folder)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project folder whose embedded registries are built: config/ beside build/examples/."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "config").symlink_to(PROJECT / "config")
    (folder / "dags").symlink_to(PROJECT / "dags")
    subprocess.run(
        [sys.executable, str(PROJECT / "examples" / "build.py"), str(folder / "build" / "examples")],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture(autouse=True)
def no_options_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A developer's own ASSAY_ variables must not steer a test."""
    for name in [name for name in os.environ if name.startswith("ASSAY_")]:
        monkeypatch.delenv(name)
    yield
