"""The judge whose judgments count is pinned by model and prompt version, and is part of a run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline.cli import main
from tests.conftest import Ended
from tests.projects import TAP, Project, small_project

Assay = Callable[..., Ended]

OLD, NEW = ("m1", "p1"), ("m1", "p2")
NAMED = {"queryId": "n", "question": "sum csv columns", "relevant": ["csv"]}


def judged(project: Project, grade: int, **by: object) -> dict[str, object]:
    return {"queryId": "n", "docId": f"{TAP}@{project.pin}:csv/SKILL.md", "grade": grade, **by}


def by_model(project: Project, grade: int, judge: tuple[str, str]) -> dict[str, object]:
    return judged(project, grade, source="llm", judge_model=judge[0], prompt_version=judge[1])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in whose ledger two judges and nobody else judged. Not to be written to: copy it."""
    project = small_project(tmp_path_factory.mktemp("judged") / "project")
    project.write("golden/named", NAMED)
    main(["run", *project.options, "--json"])
    said = project.write("said", by_model(project, 1, OLD), by_model(project, 3, NEW))
    main(["qrels", "import", str(said), *project.options])
    return project


@pytest.fixture
def project(made: Project, tmp_path: Path) -> Project:
    return made._replace(folder=Path(shutil.copytree(made.folder, tmp_path / "project")))


def pinned(judge: tuple[str, str]) -> list[str]:
    return ["--judge-model", judge[0], "--judge-prompt-version", judge[1]]


def table(run: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(Path(run["feed"]) / f"{name}.parquet").to_pylist()
    return rows


def grade(run: dict[str, Any]) -> tuple[object, object]:
    (row,) = [row for row in table(run, "outcomes") if row["query_id"] == "n"]
    return row["grade"], row["grade_source"]


def test_only_the_pinned_judge_counts_and_none_where_none_is_pinned(project: Project, assay: Assay) -> None:
    runs = {
        judge: assay("run", *project.options, *(pinned(judge) if judge else []), "--json").json
        for judge in (None, OLD, NEW, ("m2", "p1"))
    }
    assert [grade(run) for run in runs.values()] == [(None, None), (1, "llm"), (3, "llm"), (None, None)]
    assert len({run["run_id"] for run in runs.values()}) == len(runs)
    (row,) = table(runs[NEW], "runs")
    assert json.loads(row["configuration"])["judge"] == [*NEW]
    assert "m1, prompt p2" in (Path(runs[NEW]["feed"]) / "report.html").read_text()
    command = assay("explain", runs[NEW]["run_id"], "--run", runs[NEW]["run_id"], *project.options, "--json").json
    assert "--judge-model m1 --judge-prompt-version p2" in command["reproduction"]["command"]


def test_people_go_before_the_judge_and_what_differs_is_told(project: Project, assay: Assay) -> None:
    said = project.write("people", judged(project, 0, source="human", annotator="kim"))
    assert assay("qrels", "import", said, *project.options).exit_code == 0
    run = assay("run", *project.options, *pinned(NEW), "--json").json
    assert grade(run) == (0, "human")
    (conflict,) = table(run, "conflicts")
    told = {
        name: conflict[name] for name in ("query_id", "grade", "source", "human", "provenance", "llm", "annotators")
    }
    assert told == {
        "query_id": "n",
        "grade": 0,
        "source": "human",
        "human": 0,
        "provenance": None,
        "llm": 3,
        "annotators": [{"annotator": "kim", "grade": 0}],
    }
    checked = assay("golden", "check", "named", *project.options, *pinned(NEW), "--json").json
    (judge,) = [row for row in checked if row["demand"] == "judge"]
    assert (judge["verdict"], "over 1 pairs" in judge["says"]) == ("fail", True)
    assert judge["says"].endswith("`judge_unvalidated`")


def test_trec_qrels_have_the_grades_of_the_pinned_judge(project: Project, assay: Assay) -> None:
    for words, grades in ((pinned(OLD), {"g": "3", "n": "1"}), ([], {"g": "3"})):
        lines = assay("qrels", "export", "--form", "trec", *project.options, *words).out.splitlines()
        assert {line.split()[0]: line.split()[-1] for line in lines} == grades


@pytest.mark.parametrize(
    ("words", "lacking"),
    [(["--judge-model", "m1"], "judge_prompt_version"), (["--judge-prompt-version", "p1"], "judge_model")],
)
def test_half_a_judge_is_refused(project: Project, assay: Assay, words: list[str], lacking: str) -> None:
    ended = assay("run", *project.options, *words)
    assert (ended.exit_code, f"{lacking}: is empty where the other half" in ended.err) == (2, True)
