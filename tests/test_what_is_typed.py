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


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--cite", CSV, "--no-answer"], "--no-answer: stands beside --cite; give one of the two"),
        ([], "--cite: is missing, and --no-answer too; cite what answers it, or say that nothing does"),
    ],
)
def test_a_correction_that_could_not_be_promoted_is_refused(typed: Assay, given: list[str], says: str) -> None:
    ended = typed("feedback", "correct", missed(typed), "the csv skill", *given, *BY)
    assert (ended.exit_code, says in ended.err) == (2, True)
    assert typed("feedback", "list", "--state", "corrected", "--json").json == []


def test_what_was_promoted_says_how_its_item_is_mended(project: Project, typed: Assay) -> None:
    failure = missed(typed)
    typed("feedback", "correct", failure, "the csv skill", "--cite", CSV, *BY)
    done = typed("feedback", "promote", failure, *BY, "--json").json
    for words in (["correct", failure, "another", "--no-answer"], ["reject", failure, "wrong"]):
        ended = typed("feedback", *words, *BY)
        assert (ended.exit_code, "is promoted; to mend its item" in ended.err) == (2, True)
        assert f"`item_version` {done['item_version'] + 1} or higher" in ended.err
        assert "`assay golden import first-regression FILE`" in ended.err
    row = {"queryId": done["query_id"], "item_version": 2, "question": "sum a column", "relevant": ["csv"]}
    assert typed("golden", "import", "first-regression", project.write("fix", row), "--json").json["added"] == 1


@pytest.mark.parametrize("option", ["--shown", "--wanted"])
def test_a_miss_names_entries_that_there_are(project: Project, typed: Assay, option: str) -> None:
    wrong = f"{TAP}::cvs/SKILL.md"
    ended = typed("feedback", "add", "sum", option, wrong, option, CSV, option, "any name")
    assert (ended.exit_code, f"{option} '{wrong}': the corpus has no such entry" in ended.err) == (2, True)
    assert not project.ledger.exists() or typed("feedback", "list", "--json").json == []
    assert typed("feedback", "add", "sum", option, CSV, option, "any name").exit_code == 0


def test_a_miss_is_entered_before_there_is_a_corpus(project: Project, typed: Assay) -> None:
    empty = ["--store", project.folder / "empty"]
    assert typed("feedback", "add", "sum", "--shown", "some/tap::x", *empty).exit_code == 0


def test_ids_of_failures_are_shown_whole_however_narrow(typed: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    failure = missed(typed)
    monkeypatch.setenv("COLUMNS", "60")
    assert failure in typed("feedback", "list").out


def test_a_question_that_is_nearly_called_so_is_proposed(project: Project, typed: Assay) -> None:
    project.write("golden/more", {"queryId": "access-set", "question": "sum it", "exemplar": CSV})
    assert typed("run").exit_code == 0
    ended = typed("explain", "acess-set")
    assert (ended.exit_code, "did you mean access-set?" in ended.err, "--run" in ended.err) == (2, True, False)


def test_a_named_ledger_that_is_not_there_is_told_in_one_line(project: Project, typed: Assay) -> None:
    slip = project.folder / "slip.sqlite"
    for words in (["feedback", "list"], ["score"], ["golden", "freeze", "first"], ["run"]):
        ended = typed(*words, "--ledger", slip)
        assert ended.exit_code == 0
        assert ended.err.count(f"assay: {slip}: there is no ledger here, so nothing is read from it") == 1
    assert "no ledger" not in typed("score", "--ledger", slip).err  # the night made it for its failures
    assert "no ledger" not in typed("score", "--store", project.folder / "store").err


def test_a_named_ledger_in_no_folder_is_refused_by_where_it_was_named(
    project: Project, typed: Assay, monkeypatch: pytest.MonkeyPatch
) -> None:
    slip = project.folder / "no-such" / "l.sqlite"
    ended = typed("run", "--ledger", slip)
    assert (ended.exit_code, f"--ledger: no such folder: {slip.parent}" in ended.err) == (2, True)
    monkeypatch.setenv("ASSAY_LEDGER", str(slip))
    ended = typed("feedback", "list")
    assert (ended.exit_code, f"ASSAY_LEDGER: no such folder: {slip.parent}" in ended.err) == (2, True)
    assert not slip.parent.exists()


def test_a_file_of_another_kind_is_told_in_ten_lines_and_a_count(project: Project, typed: Assay) -> None:
    text = project.folder / "text.jsonl"
    text.write_text("prose\n" * 152 + '{"queryId": "x"}\n')
    ended = typed("score", "--golden", text)
    lines = ended.err.splitlines()
    assert (ended.exit_code, len([line for line in lines if "no JSON" in line])) == (2, 10)
    assert f"assay: {text}: and 142 more lines that are no rows; write one JSON object a line" in lines
    assert any("line 153" in line for line in lines)


def test_a_folder_as_configuration_is_called_one(project: Project, assay: Assay) -> None:
    ended = assay("run", "--config", project.folder)
    assert (ended.exit_code, ended.err) == (2, f"assay: {project.folder}: is a folder; name the file in it\n")
