"""Items, concepts and decisions that the ledger keeps: read at night like those of files, as of its position."""

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

ASKED = {
    "queryId": "k",
    "question": "sum a csv table",
    "relevant": ["csv"],
    "golden_concepts": [{"conceptId": "table", "grade": "required"}],
}
TABLE = {"conceptId": "table", "name": "csv table"}
EXCLUDE = ["--exclude", "--reason", "different_job", "--by", "kim"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose ledger keeps a concept, and a set that asks for it. Not to be written to: copy it."""
    project = small_project(tmp_path_factory.mktemp("kept") / "project")
    main(["run", *project.options, "--json"])
    main(["concepts", "import", str(project.write("more", TABLE)), *project.options])
    main(["golden", "import", "asked", str(project.write("asked", ASKED)), *project.options])
    return project


@pytest.fixture
def project(made: Project, tmp_path: Path) -> Project:
    return made._replace(folder=Path(shutil.copytree(made.folder, tmp_path / "project")))


def position(run: dict[str, Any]) -> int:
    """Return the position of the ledger that a run names."""
    (row,) = pq.read_table(Path(run["feed"]) / "runs.parquet").to_pylist()
    return int(json.loads(row["configuration"])["qrels_position"])


def outcomes(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    rows = pq.read_table(Path(run["feed"]) / "outcomes.parquet").to_pylist()
    return {row["query_id"]: {each["metric"]: each["value"] for each in row["metrics"]} for row in rows}


def files(run: dict[str, Any]) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(run["feed"]).iterdir()}


def test_a_concept_of_the_ledger_is_found_at_night_and_its_versions_stay(project: Project, assay: Assay) -> None:
    first = assay("run", *project.options, "--json").json
    assert outcomes(first)["k"]["required_concept_recall@10"] == 1
    was = files(first)
    renamed = project.write("renamed", {**TABLE, "name": "moon"}, {"conceptId": "new", "name": "pdf"})
    for added in (2, 0):
        assert assay("concepts", "import", renamed, *project.options, "--json").json["added"] == added
    second = assay("run", *project.options, "--json").json
    assert (outcomes(second)["k"]["required_concept_recall@10"], second["run_id"] == first["run_id"]) == (0, False)
    assert [row["name"] for row in assay("concepts", "export", *project.options, "--json").json] == ["pdf", "moon"]
    then = ["--as-of", position(first)]
    elsewhere = ["--store", project.folder / "again", "--ledger", project.ledger]
    again = assay("run", *project.options, *then, *elsewhere, "--json").json
    assert (again["run_id"], files(again)) == (first["run_id"], was)
    (known,) = assay("concepts", "export", *project.options, *then, "--json").json
    assert known["name"] == "csv table"


def test_a_concept_is_declared_in_a_file_or_in_the_ledger(project: Project, assay: Assay) -> None:
    both = project.write("both", {"conceptId": "fresh", "name": "x"}, {"conceptId": "rebase", "name": "rebase"})
    refused = assay("concepts", "import", both, *project.options)
    assert (refused.exit_code, f"{both} line 2 conceptId: 'rebase' is declared in" in refused.err) == (2, True)
    project.write("concepts", {"conceptId": "rebase", "name": "rebase"}, TABLE)
    for command in (["run"], ["rank"]):
        ended = assay(*command, *project.options)
        assert (ended.exit_code, ended.err.count("assay: ")) == (2, 1)
        assert "concept table: is declared in the file of concepts, and in the ledger too" in ended.err


def test_a_concept_that_would_make_a_set_wrong_is_refused_before_it_is_written(project: Project, assay: Assay) -> None:
    far, citation = {"conceptId": "far", "name": "moon"}, {"docId": f"{TAP}::pdf/SKILL.md"}
    assert assay("concepts", "import", project.write("far", far), *project.options).exit_code == 0
    item = {"question": "read a page", "citations": [citation]}
    item |= {"golden_concepts": [{"conceptId": "far", "grade": "irrelevant"}]}
    assert assay("golden", "import", "asked", project.write("cites", item), *project.options).exit_code == 0
    before = assay("concepts", "export", *project.options).out
    near = project.write("near", {"conceptId": "new", "name": "x"}, {**far, "name": "pdf page"})
    refused = assay("concepts", "import", near, *project.options)
    assert (refused.exit_code, refused.err.count("assay: ")) == (2, 1)
    assert f"{near}: ledger:asked item " in refused.err
    assert f"citations 1: '{TAP}::pdf/SKILL.md' mentions 'far', which the row grades `irrelevant`" in refused.err
    assert assay("concepts", "export", *project.options).out == before
    assert assay("run", *project.options).exit_code == 0
    sun = project.write("sun", {**far, "name": "sun"})
    assert assay("concepts", "import", sun, *project.options, "--json").json == {"added": 1, "known": 0}


def test_what_is_exported_is_the_same_elsewhere(project: Project, assay: Assay, tmp_path: Path) -> None:
    other = small_project(tmp_path / "other")
    assert assay("run", *other.options).exit_code == 0
    assay("golden", "decide", "asked", "k", f"{TAP}::sql/SKILL.md", *EXCLUDE, *project.options)
    version = project.write("v2", {**ASKED, "item_version": 2, "note": "again"})
    assert assay("golden", "import", "asked", version, *project.options, "--json").json["added"] == 1
    concepts, items = other.folder / "concepts-out.jsonl", other.folder / "items-out.jsonl"
    concepts.write_text(assay("concepts", "export", *project.options).out)
    items.write_text(assay("golden", "export", "asked", *project.options).out)
    assert assay("concepts", "import", concepts, *other.options).exit_code == 0
    for each, added in ((other, 2), (other, 0), (project, 0)):
        assert assay("golden", "import", "asked", items, *each.options, "--json").json["added"] == added
    frozen = [assay("golden", "freeze", "asked", *each.options, "--json").json for each in (project, other)]
    assert frozen[0] == frozen[1]
    assert (frozen[0]["items"], frozen[0]["superseded"]) == (1, 1)


def test_a_decision_is_appended_and_applied_and_the_later_one_counts(project: Project, assay: Assay) -> None:
    first = assay("run", *project.options, "--json").json
    decide = ["golden", "decide", "asked", "k", f"{TAP}::sql/SKILL.md"]
    digests = {assay("golden", "freeze", "asked", *project.options, "--json").json["digest"]}
    helping = ["--include", "--reason", "helps", "--by", "kim"]
    for words in (helping, helping, EXCLUDE):
        digests.add(assay(*decide, *words, *project.options, "--json").json["digest"])
    assert len(digests) == 3
    (row,) = assay("golden", "export", "asked", *project.options, "--json").json
    assert row["decisions"] == [
        {"entry": f"{TAP}::sql/SKILL.md", "include": False, "reason": "different_job", "by": "kim"}
    ]
    second = assay("run", *project.options, "--json").json
    assert second["run_id"] != first["run_id"]
    items = pq.read_table(Path(second["feed"]) / "items.parquet").to_pylist()
    again = assay("run", *project.options, "--as-of", position(first), "--json").json
    assert again["run_id"] == first["run_id"]
    assert len(items) == pq.read_table(Path(first["feed"]) / "items.parquet").num_rows


def test_a_later_decision_counts_however_the_content_is_named(project: Project, assay: Assay) -> None:
    run = assay("run", *project.options, "--json").json
    entries = pq.read_table(Path(run["feed"]) / "entries.parquet").to_pylist()
    (body,) = [row["body_sha256"] for row in entries if row["path_text"] == "sql/SKILL.md"]
    helping = ["--include", "--reason", "helps", "--by", "kim"]
    for target, words in ((f"{TAP}::sql/SKILL.md", EXCLUDE), (f"class:{body}", helping)):
        decided = assay("golden", "decide", "asked", "k", target, *words, *project.options)
        assert decided.exit_code == 0, decided.err
    (row,) = assay("golden", "export", "asked", *project.options, "--json").json
    assert [decision["include"] for decision in row["decisions"]] == [True]
    assert assay("run", *project.options).exit_code == 0


def test_a_decision_about_an_earlier_version_is_not_carried_to_the_next(project: Project, assay: Assay) -> None:
    assay("golden", "decide", "asked", "k", f"{TAP}::sql/SKILL.md", *EXCLUDE, *project.options)
    version = project.write("v2", {**ASKED, "item_version": 2})
    assert assay("golden", "import", "asked", version, *project.options).exit_code == 0
    rows = assay("golden", "export", "asked", *project.options, "--json").json
    assert {row.get("item_version", 1): "decisions" in row for row in rows} == {1: True, 2: False}


@pytest.mark.parametrize(
    ("name", "item", "target", "words", "says"),
    [
        ("first", "g", f"{TAP}::sql/SKILL.md", EXCLUDE, "golden set first: is a file; write the decision into its row"),
        ("none", "g", f"{TAP}::sql/SKILL.md", EXCLUDE, "no golden set is called 'none'"),
        ("asked", "g", f"{TAP}::sql/SKILL.md", EXCLUDE, "no item has the id 'g'"),
        ("asked", "k", f"{TAP}::gone/SKILL.md", EXCLUDE, "decisions 1: 'acme/skills::gone/SKILL.md' names nothing"),
        ("asked", "k", "sql", EXCLUDE, "decisions 1 entry: is no `tap::path`"),
        ("asked", "k", f"{TAP}::sql/SKILL.md", [*EXCLUDE[:2], "helps", *EXCLUDE[3:]], "'helps' excludes nothing"),
        ("asked", "k", f"{TAP}::sql/SKILL.md", [*EXCLUDE[:2], "other", *EXCLUDE[3:]], "decisions 1 note: is missing"),
        ("asked", "k", f"{TAP}::sql/SKILL.md", [*EXCLUDE[:4], " "], "decisions 1 by: is blank"),
    ],
)
def test_a_wrong_decision_is_refused_and_leaves_nothing(
    project: Project, assay: Assay, name: str, item: str, target: str, words: list[str], says: str
) -> None:
    before = assay("golden", "freeze", "asked", *project.options).out
    refused = assay("golden", "decide", name, item, target, *words, *project.options)
    assert (refused.exit_code, says in refused.err) == (2, True), refused.err
    assert assay("golden", "freeze", "asked", *project.options).out == before


def test_a_position_that_nobody_has_reached_is_refused(project: Project, assay: Assay) -> None:
    for words in (["--as-of", 99], ["--as-of", 1, "--ledger", project.folder / "new.sqlite"]):
        ended = assay("run", *project.options, *words)
        assert (ended.exit_code, "as_of: is " in ended.err) == (2, True), ended.err
    assert not (project.folder / "new.sqlite").exists()


def test_a_row_of_crag_counts_once_somebody_judged_what_answers_it(project: Project, assay: Assay) -> None:
    row = {"interaction_id": "c", "query": "sum columns", "answer": "with csv", "question_type": "multi-hop"}
    assert assay("golden", "import", "crag", project.write("crag", row), *project.options).exit_code == 0

    def found() -> tuple[object, object, object]:
        run = assay("run", *project.options, "--json").json
        read = pq.read_table(Path(run["feed"]) / "outcomes.parquet").to_pylist()
        (outcome,) = [each for each in read if each["query_id"] == "c"]
        items = pq.read_table(Path(run["feed"]) / "items.parquet").to_pylist()
        reasons = {metric["reason"] for each in items if each["query_id"] == "c" for metric in each["metrics"]}
        return outcome["answer"], outcome["failure_class"], reasons

    assert found() == ("unjudged", None, {"the row has no relevant name"})
    csv = f"{TAP}@{project.pin}:csv/SKILL.md"
    assert assay("qrels", "add", "c", csv, 0, "--annotator", "kim", *project.options).exit_code == 0
    assert found()[:2] == ("incorrect", "retrieval_miss")
    assert assay("qrels", "add", "c", csv, 3, "--annotator", "kim", *project.options).exit_code == 0
    assert found()[:2] == ("perfect", None)


def test_what_is_typed_and_names_nothing_is_refused(project: Project, assay: Assay) -> None:
    csv = f"{TAP}@{project.pin}:csv/SKILL.md"
    bad = "x\udcff"
    wrong: list[tuple[list[object], str]] = [
        (["qrels", "add", "no-such", csv, 1, "--annotator", "kim"], "no golden set has an item 'no-such'"),
        (["qrels", "add", "k", csv, 1, "--annotator", bad], "no text in UTF-8"),
        (["qrels", "add", "k", csv, 1, "--annotator", "kim", "--rationale", bad], "no text in UTF-8"),
        (["feedback", "add", bad, "--golden-set", "first"], "no text in UTF-8"),
        (["feedback", "add", "q", "--shown", bad, "--golden-set", "first"], "no text in UTF-8"),
        (["feedback", "add", "q", "--golden-set", "../../evil"], "no golden set is called '../../evil'"),
        (["feedback", "correct", "X", bad, "--by", "kim"], "no text in UTF-8"),
        *(
            (
                list[object](["golden", "import", name, project.folder / "asked.jsonl"]),
                "is no name: empty, too long, or",
            )
            for name in ("", "../x", "a/b", "x\ny", "k\x1b[31m")
        ),
    ]
    for words, says in wrong:
        ended = assay(*words, *project.options)
        assert (ended.exit_code, says in ended.err) == (2, True), (words, ended.err)
        assert len(ended.err.splitlines()) == 1
    said = project.write("said", {"queryId": "later", "docId": csv, "grade": 1, "source": "human", "annotator": "kim"})
    done = assay("qrels", "import", said, *project.options, "--json").json
    assert done == {"added": 1, "passed_over": 0, "unasked": ["later"]}
    assert "count nowhere yet: later" in assay("qrels", "import", said, *project.options).out


def test_a_version_that_no_database_counts_to_is_refused(project: Project, assay: Assay) -> None:
    row = {**ASKED, "item_version": 99999999999999999999}
    ended = assay("golden", "import", "asked", project.write("huge", row), *project.options)
    assert (ended.exit_code, "line 1 item_version: " in ended.err) == (2, True)


def test_a_question_that_only_an_earlier_version_asks_is_free(project: Project, assay: Assay) -> None:
    reworded = project.write("v2", {**ASKED, "question": "add up columns", "item_version": 2})
    assert assay("golden", "import", "asked", reworded, *project.options).exit_code == 0
    freed = project.write("freed", {"queryId": "w", "question": str(ASKED["question"]), "relevant": ["csv"]})
    assert assay("golden", "import", "asked", freed, *project.options).exit_code == 0
    assert assay("golden", "freeze", "asked", *project.options).exit_code == 0
