"""The weekly DAG of the corpus-growth study, on real Airflow: the study of the command, and a forecast beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ended, feed_bytes
from tests.dags.test_nightly_evaluation import airflow_home, project, run_dag
from tests.taps.gitforge import Repository

__all__ = ["airflow_home", "project"]
pytestmark = [pytest.mark.airflow, pytest.mark.slow, pytest.mark.xdist_group("airflow")]


def test_the_dag_publishes_the_study_of_the_command_with_a_forecast_beside_it(
    project: Path, airflow_home: Path, assay: Callable[..., Ended], tmp_path: Path
) -> None:
    pin = Repository(tmp_path / "new" / "texts.git").commit({"a/SKILL.md": b"---\nname: a\n---\nNothing alike.\n"})
    url = tmp_path / "new" / "texts.git"
    by = ["random", "harm"]
    ended = run_dag(
        project, airflow_home, 0, "corpus_growth", by=by, orders=4, sizes=3, seed=1, candidate=f"{url}@{pin}"
    )
    assert ended["state"] == "success"
    assert {task["label"] for task in ended["tasks"] if task["task"] == "draw"} == {*by}

    config = project / "config" / "assay.toml"
    words = ("--config", config, "--store", tmp_path / "other", "--json")
    done = assay("study", "--by", "random", "--by", "harm", "--orders", 4, "--sizes", 3, "--seed", 1, *words)
    assert done.exit_code == 0, done.err
    forecasts = list((project / ".assay" / "feed" / "forecasts").iterdir())
    assert len(forecasts) == 1
    by_dag, by_command = (
        {name: data for name, data in feed_bytes(store).items() if name.startswith("study=")}
        for store in (project / ".assay", tmp_path / "other")
    )
    assert by_dag == by_command and by_dag
    assert not list((project / ".assay" / "nights").iterdir())


def test_a_parameter_that_its_schema_refuses_starts_nothing(project: Path, airflow_home: Path) -> None:
    with pytest.raises(AssertionError, match="alphabet"):
        run_dag(project, airflow_home, 0, "corpus_growth", by=["alphabet"])
    assert not (project / ".assay").exists()


def test_what_a_study_cannot_do_without_fails_at_once(project: Path, airflow_home: Path) -> None:
    ended = run_dag(project, airflow_home, 3, "corpus_growth", exclude=["nobody/nothing"])
    states = {task["task"]: (task["state"], task["tries"]) for task in ended["tasks"]}
    assert ended["state"] == "failed"
    assert states["prepare"] == ("failed", 1), json.dumps(states)
