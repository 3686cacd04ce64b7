"""An old run scored again as of its position gives its old bytes, whatever was said since, in both databases."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import Ended
from tests.projects import TAP, Project, small_project

Assay = Callable[..., Ended]

JUDGE = ["--judge-model", "m1", "--judge-prompt-version", "p1"]
ASKED = {"queryId": "k", "question": "sum a csv table", "relevant": ["csv"]}
LATER = [{"conceptId": "table", "grade": "required"}]


def deeds(project: Project, assay: Assay, options: list[object]) -> Iterator[tuple[str, bool]]:
    """Say one thing after another; yield what was said, and whether it can change a result."""

    def done(*words: object) -> Any:
        ended = assay(*words, *options, "--json")
        assert ended.exit_code == 0, ended.err
        return json.loads(ended.out)

    def entry(name: str) -> str:
        return f"{TAP}@{project.pin}:{name}/SKILL.md"

    done("qrels", "add", "g", entry("csv"), 2, "--annotator", "kim")
    yield "a person judged", True
    by_judge = {"queryId": "g", "docId": entry("sql"), "grade": 1, "source": "llm"}
    said = project.write("said", {**by_judge, "judge_model": "m1", "prompt_version": "p1"})
    done("qrels", "import", said)
    yield "a judge judged", True
    done("concepts", "import", project.write("more", {"conceptId": "table", "name": "csv table"}))
    yield "a concept was declared", True
    done("golden", "import", "asked", project.write("asked", ASKED))
    yield "an item was imported", True
    done(
        "golden", "decide", "asked", "k", f"{TAP}::sql/SKILL.md", "--exclude", "--reason", "different_job", "--by", "k"
    )
    yield "a decision was made", True
    done("golden", "import", "asked", project.write("asked", {**ASKED, "item_version": 2, "golden_concepts": LATER}))
    yield "a version of an item was imported", True
    missed = done("feedback", "add", "read a page", "--golden-set", "first", "--wanted", "pdf")["id"]
    rejected = done("feedback", "add", "of no use", "--golden-set", "first")["id"]
    done("feedback", "triage", missed, "looked at", "--by", "kim")
    done("feedback", "reject", rejected, "no failure", "--by", "kim")
    done("feedback", "correct", missed, "the pdf skill", "--cite", f"{TAP}::pdf/SKILL.md", "--by", "kim")
    yield "the queue moved", False
    done("feedback", "promote", missed, "--by", "kim")
    yield "a failure was promoted", True
    done("concepts", "import", project.write("more", {"conceptId": "table", "name": "moon"}))
    yield "a concept was renamed", True


def position(run: dict[str, Any]) -> int:
    (row,) = pq.read_table(Path(run["feed"]) / "runs.parquet").to_pylist()
    return int(json.loads(row["configuration"])["qrels_position"])


def files(run: dict[str, Any]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(run["feed"]).iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_an_old_run_scored_again_gives_its_old_bytes(
    database: str, request: pytest.FixtureRequest, assay: Assay, tmp_path: Path
) -> None:
    project = small_project(tmp_path / "project")
    ledger = str(project.ledger) if database == "sqlite" else request.getfixturevalue("postgresql")
    options: list[object] = [*project.options, *JUDGE, "--ledger", ledger]

    def run(*words: object) -> dict[str, Any]:
        ended = assay("run", *options, *words, "--json")
        assert ended.exit_code == 0, ended.err
        found: dict[str, Any] = json.loads(ended.out)
        return found

    runs = [run()]
    for said, moves in deeds(project, assay, options):
        made = run()
        assert (made["run_id"] != runs[-1]["run_id"]) == moves, said
        if moves:
            runs.append(made)
    assert len({made["run_id"] for made in runs}) == len(runs) == 9
    assert sorted(map(position, runs)) == [position(made) for made in runs]
    was = [files(made) for made in runs]
    elsewhere = ["--store", tmp_path / "elsewhere"]
    for made, then in zip(runs, was, strict=True):
        again = run("--as-of", position(made), *elsewhere)
        assert (again["run_id"], files(again)) == (made["run_id"], then)
