"""The engines of a run: several of one kind side by side, and those that cannot run, reported as such everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq

from pipeline.config import Overrides, load
from tests.conftest import Ended
from tests.engines.test_plugins import project_with

Assay = Callable[..., Ended]

MISSING = '[engines.theirs]\nkind = "run-file"\npath = "nowhere/their.run"\n'


def test_an_engine_that_cannot_run_is_reported_everywhere_and_the_others_are_published(
    examples: Path, stored: Path, tmp_path: Path, assay: Assay
) -> None:
    config = project_with(examples, tmp_path / "project", f"[engines.bm25]\n{MISSING}")
    shown = assay("run", "--config", config, "--store", stored)
    assert shown.exit_code == 0
    assert "Not run: 1 of 2 engines" in shown.out and "there is no run file their.run" in shown.out
    assert str(config.parent / "nowhere" / "their.run") in "".join(shown.out.split())
    told = assay("run", "--config", config, "--store", stored, "--json").json
    assert told["not_run"] == {"theirs": "there is no run file their.run"}
    feed = Path(told["feed"])
    (run,) = pq.read_table(feed / "runs.parquet").to_pylist()
    assert [(row["engine"], row["kind"], row["status"], row["reason"]) for row in run["engines"]] == [
        ("bm25", "bm25", "ok", None),
        ("theirs", "run-file", "not run", "there is no run file their.run"),
    ]
    assert [row["made_of"] is None for row in run["engines"]] == [False, True]
    assert str(tmp_path) not in json.dumps(run)
    for table in ("rankings", "items", "metrics"):
        assert set(pq.read_table(feed / f"{table}.parquet").column("engine").to_pylist()) == {"bm25"}
    assert '<span class="tag">not run</span>' in (feed / "report.html").read_text(encoding="utf-8")


def test_that_an_engine_is_not_run_is_part_of_the_identity(
    examples: Path, stored: Path, tmp_path: Path, assay: Assay
) -> None:
    alone = project_with(examples, tmp_path / "alone", "[engines.bm25]\n")
    both = project_with(examples, tmp_path / "both", f"[engines.bm25]\n{MISSING}")
    ids = {assay("run", "--config", config, "--store", stored, "--json").json["run_id"] for config in (alone, both)}
    assert len(ids) == 2


def test_a_run_without_an_engine_that_runs_is_published_and_says_so(
    examples: Path, stored: Path, tmp_path: Path, assay: Assay
) -> None:
    config = project_with(examples, tmp_path / "project", MISSING)
    ended = assay("run", "--config", config, "--store", stored, "--json")
    assert ended.exit_code == 0, ended.err
    feed = Path(ended.json["feed"])
    assert pq.read_table(feed / "metrics.parquet").num_rows == 0
    assert "Nothing was scored: no engine ran." in (feed / "report.html").read_text(encoding="utf-8")


def test_by_hand_an_engine_that_is_not_run_is_refused_by_name_and_listed_otherwise(
    examples: Path, stored: Path, tmp_path: Path, assay: Assay
) -> None:
    config = project_with(examples, tmp_path / "project", f"[engines.bm25]\n{MISSING}")
    refused = assay("rank", "--engine", "theirs", "--config", config, "--store", stored)
    assert refused.exit_code == 2
    assert "theirs is not run: there is no run file their.run" in refused.err
    listed = assay("rank", "--config", config, "--store", stored, "--json").json
    assert [row.get("status") for row in listed] == [None, "not run"]


def test_engines_of_one_kind_stand_side_by_side_and_share_indices(
    examples: Path, stored: Path, tmp_path: Path, assay: Assay
) -> None:
    engines = (
        '[engines.bm25]\n[engines.long]\nkind = "bm25"\nb = 0.0\n[engines.bm25-okapi]\n[engines.same]\nkind = "bm25"'
    )
    config = project_with(examples, tmp_path / "project", engines)
    told = assay("run", "--config", config, "--store", stored, "--json").json
    made = {step["stage"]: step["computed"] for step in told["steps"]}
    assert (made["index"], made["rank"], made["score"]) == (0, 2, 3)
    values = {row["engine"]: json.dumps(row["values"]) for row in told["headline"] if row["grading"] == "row"}
    assert values["same"] == values["bm25"] != values["long"]


def test_an_option_in_the_environment_goes_to_the_longest_name_that_fits(examples: Path, tmp_path: Path) -> None:
    config = project_with(examples, tmp_path / "project", '[engines.bm25]\n[engines.bm25-x]\nkind = "bm25"\n')
    environ = {"ASSAY_ENGINES_BM25_OKAPI_K1": "2", "ASSAY_ENGINES_BM25_X_K1": "3", "ASSAY_ENGINES_BM25_K1": "1"}
    built = load(Overrides(config=config), environ).engines
    k1 = {name: engine.options.model_dump()["k1"] for name, engine in built.items()}
    assert k1 == {"bm25": 1, "bm25-okapi": 2, "bm25-x": 3}


def test_a_path_is_relative_to_the_file_and_elsewhere_to_the_current_folder(examples: Path, tmp_path: Path) -> None:
    config = project_with(examples, tmp_path / "project", MISSING)

    def path(environ: dict[str, str]) -> object:
        return load(Overrides(config=config), environ).engines["theirs"].options.model_dump()["path"]

    assert path({}) == str(config.parent / "nowhere" / "their.run")
    assert path({"ASSAY_ENGINES_THEIRS_PATH": "x.run"}) == str(Path.cwd() / "x.run")
