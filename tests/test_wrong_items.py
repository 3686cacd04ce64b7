"""What is wrong with golden sets is told with file, line and field, all of it at once, by whatever reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.cli import main
from tests.conftest import Ended
from tests.projects import TAP, Project, small_project

Assay = Callable[..., Ended]

CITED = {"docId": f"{TAP}::git/SKILL.md"}
GONE = {"docId": f"{TAP}::gone/SKILL.md"}
WRONG: list[dict[str, object]] = [
    {"question": "unknown enum", "relevant": ["git"], "questionType": "riddle", "citations": [GONE]},
    {"question": "false premise", "questionType": "false_premise", "answerable": True, "relevant": ["no-such"]},
    {"question": "citation of nothing", "citations": [CITED, GONE]},
    {
        "question": "irrelevant concept",
        "citations": [CITED],
        "golden_concepts": [{"conceptId": "rebase", "grade": "irrelevant"}, {"conceptId": "moon", "grade": "required"}],
    },
    {"question": "asked twice", "relevant": ["git"]},
    {"question": "Asked  twice", "relevant": ["Bad Slug", "no-name"]},
    {"relevant": ["no-question"]},
    {"question": "bad member", "citations": [{"docId": 5}, GONE, GONE], "assertions": [{"kind": "could", "text": "t"}]},
]
PLACES = [
    "line 1 questionType",
    "line 1 citations 1",
    "line 2 answerable",
    "line 2 relevant 1",
    "line 3 citations 2",
    "line 4 golden_concepts 2",
    "line 4 citations 1",
    "line 6 relevant 1",
    "line 6 question",
    "line 6 relevant 2",
    "line 7 question",
    "line 7 relevant 1",
    "line 8 citations 1 docId",
    "line 8 assertions 1 kind",
    "line 8 citations 3",
    "line 8 citations 2",
]


def told(ended: Ended, file: Path) -> list[str]:
    """Return line and field of each fault of a file, in the order in which they are told."""
    assert ended.exit_code == 2, ended.err
    lines = [line.removeprefix("assay: ") for line in ended.err.splitlines()]
    return [line.removeprefix(f"{file} ").split(":")[0] for line in lines if line.startswith(f"{file} ")]


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project of which two files of golden sets and the concepts are wrong, beside one that is right."""
    project = small_project(tmp_path_factory.mktemp("wrong"))
    project.write("golden/second", *WRONG)
    project.write("golden/third", {"question": "one more", "relevant": ["gone"]}, '{"question":')
    with pytest.raises(SystemExit):
        main(["run", *project.options])  # it reads the tap, for whoever asks first
    return project


@pytest.mark.parametrize("command", [["run"], ["golden", "check", "first"], ["rank"], ["score"]])
def test_all_faults_of_all_files_are_told_at_once(grouped: Project, assay: Assay, command: list[str]) -> None:
    ended = assay(*command, *grouped.options)
    assert sorted(told(ended, grouped.folder / "golden" / "second.jsonl")) == sorted(PLACES)
    assert told(ended, grouped.folder / "golden" / "third.jsonl") == ["line 1 relevant 1", "line 2"]
    assert ended.err.count("assay: ") == len(PLACES) + 2


def test_what_is_imported_is_refused_with_the_lines_of_its_file(grouped: Project, assay: Assay, tmp_path: Path) -> None:
    right = small_project(tmp_path / "right")
    assert assay("run", *right.options).exit_code == 0
    ended = assay("golden", "import", "asked", grouped.folder / "golden" / "second.jsonl", *right.options)
    assert sorted(told(ended, grouped.folder / "golden" / "second.jsonl")) == sorted(PLACES)
    good = right.write("good", {"queryId": "k", "question": "read a pdf", "relevant": ["pdf"]})
    assert assay("golden", "import", "asked", good, *right.options).exit_code == 0
    beside = right.write(
        "beside",
        {"queryId": "k", "question": "read a pdf now", "relevant": ["pdf"]},
        {"queryId": "other", "question": "Read a PDF", "relevant": ["pdf"]},
        {"queryId": "third", "question": "else", "relevant": ["none"]},
    )
    ended = assay("golden", "import", "asked", beside, *right.options)
    assert told(ended, beside) == ["line 1 queryId", "line 2 question", "line 3 relevant 1"]
    assert assay("golden", "export", "asked", *right.options, "--json").json == [
        {"queryId": "k", "question": "read a pdf", "relevant": ["pdf"], "origin": "imported"}
    ]


def test_without_a_corpus_rows_are_checked_by_themselves_and_none_is_taken(assay: Assay, tmp_path: Path) -> None:
    project = small_project(tmp_path / "new")
    wrong = project.write("wrong", {"question": "q", "relevant": ["Bad Slug"]})
    ended = assay("golden", "import", "asked", wrong, *project.options)
    assert (told(ended, wrong), "looked up once the taps are read" in ended.err) == (["line 1 relevant 1"], True)
    good = project.write("good", {"question": "q", "relevant": ["pdf"]})
    refused = assay("golden", "import", "asked", good, *project.options)
    assert (refused.exit_code, "assay snapshot" in refused.err) == (2, True)
    project.write("golden/second", {"question": "q", "relevant": ["Bad Slug"]})
    assert "Bad Slug" in assay("golden", "check", "first", *project.options).err


def test_wrong_concepts_hide_no_wrong_item_and_are_not_told_again_by_it(assay: Assay, tmp_path: Path) -> None:
    project = small_project(tmp_path / "new")
    concepts = project.write("concepts", {"conceptId": "rebase"}, {"conceptId": "paper", "name": "pdf"})
    graded = [{"conceptId": name, "grade": "irrelevant"} for name in ("rebase", "paper", "moon")]
    citing = {"question": "q", "citations": [{"docId": f"{TAP}::pdf/SKILL.md"}], "golden_concepts": graded}
    items = project.write("golden/second", citing)
    ended = assay("run", *project.options)
    assert told(ended, concepts) == ["line 1 name"]
    assert told(ended, items) == ["line 1 golden_concepts 3", "line 1 citations 1"]
    assert ended.err.count("assay: ") == 3


def test_the_path_of_the_concepts_or_the_ledger_holds_no_nul(assay: Assay, tmp_path: Path) -> None:
    project = small_project(tmp_path / "new", concepts="a\0b", ledger="c\0d")
    ended = assay("run", *project.options)
    assert ended.exit_code == 2
    assert [line.split(": ")[2] for line in ended.err.splitlines()] == ["holds a NUL character"] * 2


def test_the_first_run_tells_all_faults_too(assay: Assay, tmp_path: Path) -> None:
    project = small_project(tmp_path / "new")
    wrong = project.write("golden/second", *WRONG)
    assert sorted(told(assay("run", *project.options), wrong)) == sorted(PLACES)
