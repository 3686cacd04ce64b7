"""Engines of others: one that works, run for real; and those that cannot be loaded, or take a name that is taken."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline.config import Overrides, load
from pipeline.errors import BadInput
from tests.conftest import PROJECT

EXAMPLE = PROJECT / "tests" / "engines" / "example_plugin"


def project_with(examples: Path, folder: Path, engines: str) -> Path:
    """Make a project of its own with these engines; return its configuration file."""
    shutil.copytree(examples / "config", folder / "config")
    (folder / "build").symlink_to(examples / "build")
    file = folder / "config" / "assay.toml"
    file.write_text(file.read_text().partition("[engines.")[0] + engines)
    return file


def install(folder: Path, package: str, entry_points: str, code: str | None = None) -> Path:
    """Put a package into ``folder``, as an installer leaves it."""
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[assay.engines]\n{entry_points}\n")
    if code is not None:
        (folder / f"{package}.py").write_text(code)
    return folder


def test_the_example_is_found_run_scored_and_part_of_the_identity(examples: Path, stored: Path, tmp_path: Path) -> None:
    packages = Path(shutil.copytree(EXAMPLE, tmp_path / "packages"))
    file = project_with(examples, tmp_path / "project", "[engines.bm25]\n[engines.shortest]\nlongest = 900\n")
    path = os.pathsep.join([str(packages), *sys.path])

    def run() -> dict[str, Any]:
        command = [sys.executable, "-m", "pipeline.cli", "run", "--config", str(file), "--store", str(stored), "--json"]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path}
        )
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    told = run()
    assert {row["engine"] for row in told["headline"]} == {"bm25", "shortest"}
    assert told["not_run"] == {}
    hits = pq.read_table(Path(told["feed"]) / "rankings.parquet", filters=[("engine", "=", "shortest")])
    assert hits.num_rows > 100
    assert run()["run_id"] == told["run_id"]
    metadata = packages / "assay_shortest-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.0", "1.1"))
    assert run()["run_id"] != told["run_id"]


BROKEN = [
    ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
    ("raise RuntimeError('no\\nlicence')", r"RuntimeError: no\nlicence"),
    ("", "AttributeError"),
    ("class Engine: name = 'other'", "is no engine: it lacks VERSION, Options, why_not"),
]


@pytest.mark.parametrize(("code", "reason"), BROKEN)
def test_a_plugin_that_cannot_be_loaded_is_not_run_with_the_reason(
    examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path / "packages", "broken_engine", "other = broken_engine:Engine", code))
    monkeypatch.delitem(sys.modules, "broken_engine", raising=False)
    file = project_with(examples, tmp_path / "project", "[engines.bm25]\n[engines.other]\nsize = 3\n")
    settings = load(Overrides(config=file), {})
    assert settings.running == ["bm25"]
    assert reason in settings.not_run["other"]


def test_a_plugin_that_calls_itself_otherwise_is_not_run(
    examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.syspath_prepend(install(tmp_path / "packages", "renamed", "longest = assay_shortest:Shortest"))
    file = project_with(examples, tmp_path / "project", "[engines.longest]\n")
    assert "does not call itself longest" in load(Overrides(config=file), {}).not_run["longest"]


@pytest.mark.parametrize("taken", ["bm25 = assay_shortest:Shortest", "shortest = elsewhere:Shortest"])
def test_a_plugin_overrides_no_other_engine(
    examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.syspath_prepend(install(tmp_path / "packages", "grabber", taken))
    file = project_with(examples, tmp_path / "project", "[engines.bm25]\n")
    with pytest.raises(BadInput, match=r"has too; uninstall one of them"):
        load(Overrides(config=file), {})


def test_a_plugin_that_nobody_configures_is_not_even_imported(
    examples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "raise SystemExit('imported')"
    monkeypatch.syspath_prepend(install(tmp_path / "packages", "idle", "idle = idle:Engine", code))
    file = project_with(examples, tmp_path / "project", "[engines.bm25]\n")
    assert load(Overrides(config=file), {}).running == ["bm25"]
