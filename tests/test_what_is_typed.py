"""What people type by hand: names as pages show them are taken, and slips are told in words that help."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.cli import main
from tests.conftest import Ended
from tests.projects import TAP, Project, small_project

Assay = Callable[..., Ended]
CSV = f"{TAP}::csv/SKILL.md"
BY = ["--by", "kim"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with one run. Not to be written to: copy it."""
    project = small_project(tmp_path_factory.mktemp("typed") / "project")
    main(["run", *project.options, "--json"])
    return project


@pytest.fixture
def project(made: Project, tmp_path: Path) -> Project:
    return made._replace(folder=Path(shutil.copytree(made.folder, tmp_path / "project")))


@pytest.fixture
def typed(project: Project, assay: Assay) -> Assay:
    def run(*words: object) -> Ended:
        return assay(*words, *project.options)

    return run


def missed(typed: Assay) -> str:
    """Enter a miss; return its id."""
    return str(typed("feedback", "add", "sum a column", "--json").json["id"])


def test_a_judgment_names_content_as_pages_show_it(project: Project, typed: Assay) -> None:
    judge = ["--annotator", "kim", "--json"]
    by_entry = typed("qrels", "add", "g", CSV, 3, *judge).json
    assert by_entry["docId"] == f"{TAP}@{project.pin}:csv/SKILL.md"
    body = by_entry["judged_sha256"]
    for target in (f"class:{body[:12]}", f"class:{body}", by_entry["docId"]):
        assert typed("qrels", "add", "g", target, 3, *judge).json["judged_sha256"] == body


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (f"{TAP}::no/SKILL.md", "names nothing in the corpus: the tap has no such entry"),
        ("csv", "names no entry and no content"),
        ("class:", "names no entry and no content"),
        ("class:000000000000", "names nothing in the corpus: no id of content begins so"),
        (f"{TAP}@{'0' * 40}:csv/SKILL.md", "names another commit than the corpus"),
    ],
)
def test_a_judgment_of_nothing_says_how_to_name_content(typed: Assay, target: str, says: str) -> None:
    ended = typed("qrels", "add", "g", target, 3, "--annotator", "kim")
    assert ended.exit_code == 2 and len(ended.err.splitlines()) == 1
    assert f"judgment of '{target}': {says}" in ended.err and "`tap@<full pin>:path`" in ended.err


def test_a_wrong_grade_is_told_without_a_line(typed: Assay) -> None:
    ended = typed("qrels", "add", "g", CSV, 7, "--annotator", "kim")
    assert (ended.exit_code, ended.err.startswith("assay: judgment grade: ")) == (2, True)
