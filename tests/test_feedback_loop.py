"""The whole loop: a run, a failure, its correction, promotion, and the next run in which it is a scored test."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipeline.ledger import url_of
from pipeline.ledger.ledger import open_ledger
from tests.conftest import Ended, feed_bytes

pytestmark = pytest.mark.slow

Assay = Callable[..., Ended]
UNSTABLE = "harbor-works/field-skills::plugins/quality/skills/unstable-tests/SKILL.md"
DEBUG = "harbor-works/field-skills::skills/debug/SKILL.md"


def published(store: Path, run: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(Path(run["feed"]) / f"{name}.parquet").to_pylist()
    return rows


def test_a_failure_becomes_a_permanent_test(stored: Path, examples: Path, assay: Assay) -> None:
    options = ["--config", examples / "config" / "assay.toml", "--store", stored, "--json"]
    first = assay("run", *options).json
    failed = {
        row["query_id"]: row["failure_class"]
        for row in published(stored, first, "outcomes")
        if row["failure_class"] is not None
    }
    queue = assay("feedback", "list", *options).json
    assert {row["failure"]["query_id"]: row["failure"]["failure_class"] for row in queue} == failed
    missed = next(row for row in queue if row["failure"]["wanted"] and "::" in row["failure"]["wanted"][0])
    query_id, exemplar = missed["failure"]["query_id"], missed["failure"]["wanted"][0]
    told = {row["query_id"]: row for row in published(stored, first, "feedback")}
    assert {row["state"] for row in told.values()} == {None}
    key = told[query_id]["key"][:8]

    assert "has no correction" in assay("feedback", "promote", missed["id"], "--by", "kim", *options).err
    wrong = assay("feedback", "correct", missed["id"], "this", "--cite", "no/tap::x", "--by", "kim", *options)
    assert (wrong.exit_code, "no tap is called" in wrong.err) == (2, True)
    assay("feedback", "correct", key, "this", "--cite", exemplar, "--by", "kim", *options)
    done = assay("feedback", "promote", missed["id"][-8:], "--by", "kim", *options).json
    assert (done["golden_set"], done["query_id"], done["new"]) == ("default-regression", query_id, True)
    assert not assay("feedback", "promote", missed["id"], "--by", "kim", *options).json["new"]
    assert assay("feedback", "list", "--state", "promoted", *options).json[0]["id"] == missed["id"]

    second = assay("run", *options).json
    assert second["run_id"] != first["run_id"]
    scored = [row for row in published(stored, second, "outcomes") if row["golden_set"] == "default-regression"]
    assert [(row["query_id"], row["split"]) for row in scored] == [(query_id, "regression")]
    assert {metric["metric"]: metric["value"] for metric in scored[0]["metrics"]}["must_pass"] in (0.0, 1.0)
    assert scored[0]["failure_class"] == missed["failure"]["failure_class"]
    later = {(row["golden_set"], row["query_id"]): row for row in published(stored, second, "feedback")}
    promoted = later["default", query_id]
    assert (promoted["state"], promoted["feedback_id"], promoted["correction"]) == ("promoted", missed["id"], "this")
    assert later["default-regression", query_id]["state"] is None
    assert {row["state"] for row in later.values()} == {"promoted", "open", None}
    before = feed_bytes(stored)
    assert assay("run", *options).json["run_id"] == second["run_id"]
    assert feed_bytes(stored) == before


def test_an_old_run_scored_again_as_of_its_position_gives_its_old_bytes(
    stored: Path, examples: Path, assay: Assay, tmp_path: Path
) -> None:
    options = ["--config", examples / "config" / "assay.toml", "--store", stored, "--json"]
    first = assay("run", *options).json
    was = {file.name: file.read_bytes() for file in Path(first["feed"]).iterdir()}
    outcome = next(row for row in published(stored, first, "outcomes") if row["grade"] is None and row["answerable"])
    judged = ("qrels", "add", outcome["query_id"], f"class:{outcome['first_class']}", 2, "--annotator", "kim", *options)
    assert assay(*judged).json["seq"] == 1
    second = assay("run", *options).json
    assert second["run_id"] != first["run_id"]
    now = {row["query_id"]: row for row in published(stored, second, "outcomes")}[outcome["query_id"]]
    assert (now["grade"], now["grade_source"], now["answer"]) == (2, "human", "acceptable")

    elsewhere = ["--config", options[1], "--store", tmp_path / "other", "--ledger", stored / "ledger.sqlite", "--json"]
    again = assay("run", "--as-of", 0, *elsewhere).json
    assert again["run_id"] == first["run_id"]
    assert {file.name: file.read_bytes() for file in Path(again["feed"]).iterdir()} == was


def test_items_and_judgments_go_in_and_come_out(stored: Path, examples: Path, assay: Assay, tmp_path: Path) -> None:
    options = ["--config", examples / "config" / "assay.toml", "--store", stored]
    rows = tmp_path / "asked.jsonl"
    crag = {"interaction_id": "c1", "query": "q", "question_type": "multi-hop", "answer": "i don't know"}
    rows.write_text(json.dumps(crag) + "\n")
    for added in (1, 0):
        assert assay("golden", "import", "asked", rows, *options, "--json").json["added"] == added
    out = assay("golden", "export", "asked", *options).out
    rows.write_text(out.replace('"multi_hop"', '"set"'))
    refused = assay("golden", "import", "asked", rows, *options)
    assert (refused.exit_code, "line 1 queryId: 'c1' is kept, and differs" in refused.err) == (2, True)
    in_file = assay("golden", "import", "default", rows, *options)
    assert "never in both" in in_file.err
    digest = assay("golden", "freeze", "asked", *options, "--json").json["digest"]
    rows.write_text(out)
    other = [*options[:2], "--store", stored, "--ledger", tmp_path / "other.sqlite"]
    assay("golden", "import", "asked", rows, *other)
    assert assay("golden", "freeze", "asked", *other, "--json").json["digest"] == digest

    trec = tmp_path / "judged.qrels"
    entry = next(iter(pq.read_table(next((stored / "feed").glob("run=*")) / "entries.parquet").to_pylist()))
    trec.write_text(f"c1 0 {entry['tap']}::{entry['path_text']} 3\n")
    assert "--annotator: is missing" in assay("qrels", "import", trec, "--form", "trec", *options).err
    assert assay("qrels", "import", trec, "--form", "trec", "--annotator", "kim", *options, "--json").json == {
        "passed_over": 0,
        "added": 1,
        "unasked": [],
    }
    assert f"c1 0 class:{entry['class_id']} 3" in assay("qrels", "export", "--form", "trec", *options).out
    assert '"annotator":"kim"' in assay("qrels", "export", *options).out


def test_a_namesake_of_the_right_answer_is_another_kind_of_failure_however_the_row_names_it(
    stored: Path, examples: Path, assay: Assay, tmp_path: Path
) -> None:
    rows = [
        {"queryId": "pinned", "question": "debug debug debug", "exemplar": DEBUG},
        {"queryId": "named", "question": "debug, debug, debug", "exemplar": DEBUG, "relevant": ["debug"]},
    ]
    golden = tmp_path / "asked.jsonl"
    golden.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    config = examples / "config" / "assay.toml"
    run = assay("run", "--config", config, "--golden", golden, "--store", stored, "--json").json
    kinds = {(row["query_id"], row["failure_class"]) for row in published(stored, run, "outcomes")}
    assert kinds == {("pinned", "conflict_mishandled"), ("named", "conflict_mishandled")}


def test_each_ledger_gets_the_failures_of_a_run_that_the_store_has_seen(
    stored: Path, examples: Path, assay: Assay, tmp_path: Path, postgresql: str
) -> None:
    options = ["--config", examples / "config" / "assay.toml", "--store", stored, "--json"]
    assay("run", *options)
    wanted = [row["failure"] for row in assay("feedback", "list", *options).json]
    assert wanted
    older = tmp_path / "older.sqlite"
    open_ledger(url_of(str(older), tmp_path)).close()
    for ledger in (older, tmp_path / "new.sqlite", postgresql):
        for _ in range(2):
            assert assay("run", *options, "--ledger", ledger).exit_code == 0
            queue = assay("feedback", "list", *options, "--ledger", ledger).json
            assert [row["failure"] for row in queue] == wanted


def test_a_position_that_no_ledger_has_is_refused_before_any_work(
    stored: Path, examples: Path, assay: Assay, tmp_path: Path
) -> None:
    ended = assay("run", "--config", examples / "config" / "assay.toml", "--store", tmp_path / "new", "--as-of", 500)
    assert (ended.exit_code, "the ledger ends at 0" in ended.err) == (2, True)
    assert not (tmp_path / "new" / "ledger.sqlite").exists()


@pytest.mark.parametrize("rule", ["body", "entry", "raw", "blob"])
def test_whatever_makes_a_class_a_judgment_reaches_every_class_that_holds_its_body(
    examples: Path, finished: Path, assay: Assay, tmp_path: Path, rule: str
) -> None:
    stored = Path(shutil.copytree(finished, tmp_path / "store"))
    golden = tmp_path / "asked.jsonl"
    golden.write_text(json.dumps({"queryId": "flaky", "question": "unstable tests", "exemplar": UNSTABLE}) + "\n")
    options = ["--config", examples / "config" / "assay.toml", "--golden", golden, "--store", stored, "--json"]
    options += ["--class-rule", rule]
    run = assay("run", *options).json
    entries = published(stored, run, "entries")
    (mine,) = [row for row in entries if f"{row['tap']}::{row['path_text']}" == UNSTABLE]
    holding = {row["class_id"] for row in entries if row["body_sha256"] == mine["body_sha256"]}
    assert len(holding) == {"body": 1, "blob": 2, "raw": 2, "entry": 2}[rule]
    exported = {
        line.split()[2]: line.split()[3] for line in assay("qrels", "export", "--form", "trec", *options).json["lines"]
    }
    assert exported == {f"class:{class_id}": "3" for class_id in holding}
    judged = ("qrels", "add", "flaky", f"class:{mine['body_sha256']}", 0, "--annotator", "kim", *options)
    assert assay(*judged).exit_code == 0
    conflicts = assay("qrels", "conflicts", *options).json
    assert {(row["class_id"], row["grade"], row["provenance"]) for row in conflicts} == {
        (class_id, 0, 3) for class_id in holding
    }
    assert published(stored, assay("run", *options).json, "conflicts")[0]["annotators"] == [
        {"annotator": "kim", "grade": 0}
    ]


def test_what_exemplars_said_once_counts_no_more_when_they_say_something_else(
    stored: Path, examples: Path, assay: Assay, tmp_path: Path
) -> None:
    golden, judged = tmp_path / "asked.jsonl", tmp_path / "judged.jsonl"
    options = ["--config", examples / "config" / "assay.toml", "--golden", golden, "--store", stored, "--json"]
    for exemplar in (UNSTABLE, DEBUG):
        golden.write_text(json.dumps({"queryId": "one", "question": "unstable tests", "exemplar": exemplar}) + "\n")
        assert assay("run", *options).exit_code == 0
    (line,) = assay("qrels", "export", "--form", "trec", *options).json["lines"]
    entries = published(stored, assay("run", *options).json, "entries")
    classes = {f"{row['tap']}::{row['path_text']}": row["class_id"] for row in entries}
    assert line == f"one 0 class:{classes[DEBUG]} 3"
    rows = assay("qrels", "export", *options).json["lines"]
    judged.write_text("\n".join(rows))
    assert assay("qrels", "import", judged, *options).json == {
        "added": 0,
        "passed_over": len(rows),
        "unasked": [],
    }
