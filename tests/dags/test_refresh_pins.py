"""The weekly DAG that proposes pins, on real Airflow: it keeps a proposal, fails with its taps, and changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.dags.test_nightly_evaluation import FIRST_PIN, FIRST_URL, airflow_home, change, project, run_dag

__all__ = ["airflow_home", "project"]
pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("airflow")]


def proposed(project: Path) -> dict[str, Any]:
    """Return the proposal that was made last."""
    proposals = project / ".assay" / "proposals"
    folder = proposals / json.loads((proposals / "latest.json").read_text())["folder"]
    proposal: dict[str, Any] = json.loads((folder / "proposal.json").read_text())
    assert (folder / "proposal.md").read_text().startswith("# Proposed pins")
    return proposal


def test_the_dag_keeps_a_proposal_and_changes_nothing_else(project: Path, airflow_home: Path) -> None:
    change(project, FIRST_PIN + "\nentries = 33\nclasses = 30\n", "")
    text = (project / "config" / "taps.toml").read_text()
    ended = run_dag(project, airflow_home, retries=0, name="refresh_pins")
    assert ended["state"] == "success"
    assert {task["task"] for task in ended["tasks"]} == {"open_run", "list_rows", "read_heads", "propose"}
    first = proposed(project)["taps"][0]
    assert (first["pin"], f'pin = "{first["proposed"]}"') == (None, FIRST_PIN)
    assert (project / "config" / "taps.toml").read_text() == text
    assert {path.name for path in (project / ".assay").iterdir()} <= {"store", "git", "proposals", "nights", ".tmp"}
    assert not list((project / ".assay" / "nights").iterdir())


def test_with_a_tap_that_is_gone_the_proposal_is_kept_and_the_run_fails(project: Path, airflow_home: Path) -> None:
    change(project, FIRST_URL, 'url = "../build/examples/gone.git"')
    ended = run_dag(project, airflow_home, retries=3, name="refresh_pins")
    states = {(task["label"] or task["task"]): (task["state"], task["tries"]) for task in ended["tasks"]}
    assert ended["state"] == "failed"
    assert states["driftwood/curiosities"] == states["propose"] == ("failed", 1)
    assert states["solo-dev/dotfiles"] == ("success", 1)
    assert [tap["state"] for tap in proposed(project)["taps"]] == ["gone"] + ["ok"] * 9
