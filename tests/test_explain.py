"""From a number of the report to the rows behind it, and back to the same number by the printed command."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pydantic import JsonValue

from pipeline.reports.reading import FIGURES, figure_id, metric_digest, metric_id
from tests.conftest import Ended

Assay = Callable[..., Ended]


def table(store: Path, name: str) -> list[dict[str, Any]]:
    (path,) = store.glob(f"feed/run=*/{name}.parquet")
    return pq.ParquetFile(path).read().to_pylist()  # type: ignore[no-any-return]


def a_metric(store: Path, **wanted: str) -> dict[str, Any]:
    wanted = {"facet": "all", "grading": "row", "aggregate": "micro", "metric": "ndcg@10"} | wanted
    (row,) = [
        row
        for row in table(store, "metrics")
        if row["treatment"] == "removed" and all(row[name] == value for name, value in wanted.items())
    ]
    return row


@pytest.fixture
def explain(assay: Assay, finished: Path, examples: Path) -> Callable[..., Ended]:
    def run(*words: object, store: Path = finished) -> Ended:
        return assay("explain", *words, "--config", examples / "config" / "assay.toml", "--store", store)

    return run


Explain = Callable[..., Ended]


def test_a_number_of_the_page_leads_to_its_row_its_items_and_their_hits(explain: Explain, finished: Path) -> None:
    row = a_metric(finished)
    (page,) = finished.glob("feed/run=*/report.html")
    assert metric_id(row) in page.read_text(encoding="utf-8")
    found = explain(metric_id(row), "--json").json
    assert found["metric"] == row
    items = {item["query_id"]: item for item in table(finished, "items") if item["grading"] == "row"}
    assert {item["query_id"] for item in found["items"]} == set(items) and len(items) == 93
    ranked: dict[str, list[dict[str, Any]]] = {query_id: [] for query_id in items}
    for hit in table(finished, "rankings"):
        ranked[hit["query_id"]].append(hit)
    for shown in found["items"]:
        item = items[shown["query_id"]]
        assert shown["question"] == item["question"] and shown["wanted"] == item["wanted"]
        assert shown["values"] == [value for value in item["metrics"] if value["metric"] == "ndcg@10"]
        first = sorted(ranked[shown["query_id"]], key=lambda hit: hit["rank"])[:10]
        assert [
            (hit["rank"], hit["class_id"], hit["tap"], hit["path"], hit["score"], hit["grade"]) for hit in shown["hits"]
        ] == [(hit["rank"], hit["class_id"], hit["tap"], hit["path_text"], hit["score"], hit["grade"]) for hit in first]
    without = [item for item in found["items"] if item["values"][0]["value"] is None]
    assert len(without) == 10 and {item["values"][0]["reason"] for item in without} == {"not answerable"}


def test_every_mean_is_that_of_the_items_shown_behind_it(finished: Path) -> None:
    from pipeline.reports.explained import TABLES, Published, Reproduction
    from pipeline.reports.feed import find_run, read_run
    from pipeline.store import Store

    store = Store(finished)
    published = Published(read_run(store, find_run(store, None), TABLES), hits=0)
    nothing = Reproduction(command=None, missing=[])
    checked = 0
    for row in table(finished, "metrics"):
        if row["metric"] in ("recall@10", "mrr@100") and row["treatment"] == "removed":
            found = published.explain_metric(metric_digest(row), nothing)
            assert len(found.items) == row["n_items"]
            if row["aggregate"] == "micro":
                assert found.mean_of_items == row["value"]
            else:
                values = [part.value for part in found.parts if part.value is not None]
                assert len(values) > 0 and sum(values) / len(values) == pytest.approx(row["value"], abs=1e-12)
            checked += 1
    assert checked > 60


def test_the_digests_of_the_run_stand_there(explain: Explain, finished: Path) -> None:
    row = a_metric(finished)
    origin = explain(metric_id(row), "--json").json["origin"]
    (run,) = table(finished, "runs")
    assert origin == {name: run[name] for name in origin}
    assert origin["golden_sets"][0]["digest"] == row["golden_digest"]
    assert set(origin) == {
        *("run_id", "corpus", "class_rule", "taps", "entries", "classes", "golden_sets", "engines", "stages")
    }


@pytest.mark.parametrize(
    "wanted", [{"metric": "ndcg@10"}, {"metric": "mrr@10", "facet": "kind", "facet_value": "rule"}]
)
def test_the_printed_command_finds_the_same_number_bit_for_bit(
    explain: Explain, stored: Path, tmp_path: Path, wanted: dict[str, str]
) -> None:
    row = a_metric(stored, **wanted)
    command = explain(metric_id(row), "--json", store=stored).json["reproduction"]["command"]
    again = stored / "again"
    assert not again.exists()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["metric"] == row
    assert found["metric"]["value"].hex() == row["value"].hex()
    # It was measured anew, not read from the store that it was explained from.
    assert sorted(path.name for path in again.glob("store/*")) == sorted(path.name for path in stored.glob("store/*"))


@pytest.mark.slow
def test_the_command_names_the_options_of_the_run_not_those_of_the_file(
    assay: Assay, explain: Explain, examples: Path, stored: Path, tmp_path: Path
) -> None:
    options = ["--engines.bm25.k1", "0.9", "--engines.bm25.tokenizer", "ascii", "--class-rule", "entry"]
    config = examples / "config" / "assay.toml"
    run = assay("run", "--config", config, "--store", stored, "--json", *options).json["run_id"]
    found = explain(run[:8], "--json", store=stored).json
    command = found["reproduction"]["command"]
    for words in ("--engines.bm25.k1 0.9", "--engines.bm25.tokenizer ascii", "--class-rule entry"):
        assert f" {words} " in command
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert json.loads(done.stdout)["headline"] == found["headline"], done.stderr


def test_where_the_files_differ_from_the_run_no_command_is_printed_and_it_is_said_why(
    assay: Assay, examples: Path, stored: Path, tmp_path: Path
) -> None:
    shutil.copytree(examples / "config", tmp_path / "config")
    golden = tmp_path / "config" / "golden" / "default.jsonl"
    golden.write_text(golden.read_text().replace('"split": "holdout"', '"split": "tuning"', 1))
    row = a_metric(stored)
    options = ["--config", tmp_path / "config" / "assay.toml", "--store", stored]
    found = assay("explain", metric_id(row), "--json", *options).json["reproduction"]
    assert found["command"] is None
    assert len(found["missing"]) == 1
    assert re.fullmatch(f"golden default: [0-9a-f]{{64}} here, {row['golden_digest']} in the run", found["missing"][0])
    (tmp_path / "config" / "taps.toml").unlink()
    ended = assay("explain", metric_id(row), *options)
    assert ended.exit_code == 0
    assert "It cannot be made again from here" in ended.out and "taps.toml" in ended.out


def test_what_differs_in_many_places_is_named_in_a_few_lines() -> None:
    from pipeline.explain import _differences

    roles: dict[str, JsonValue] = {f"acme/{number}": "scale" for number in range(40)}
    here: dict[str, JsonValue] = {"roles": roles, "options": {"bm25": {"k1": 1.2, "b": 0.75}}, "corpus": "a"}
    run: dict[str, JsonValue] = {
        "roles": {},
        "options": {"bm25": {"k1": 0.9, "b": 0.75}, "dense": {"path": "x" * 500}},
        "corpus": "a",
    }
    lines = list(_differences(here, run))
    assert "options bm25 k1: 1.2 here, 0.9 in the run" in lines
    assert [line for line in lines if line.startswith("roles")][-1] == "roles: 37 more differ"
    assert len(lines) == 6 and max(map(len, lines)) < 200


def test_the_command_is_shown_with_what_it_depends_on(explain: Explain, finished: Path) -> None:
    shown = explain(metric_id(a_metric(finished))).out
    assert "It reads the configuration file and what that names" in shown


def test_a_run_is_explained_by_what_identifies_it(explain: Explain, finished: Path) -> None:
    (run,) = table(finished, "runs")
    found = explain(run["run_id"][:6], "--json").json
    assert (found["kind"], found["id"]) == ("run", run["run_id"])
    assert found["configuration"] == run["configuration"]
    headline = {row["id"]: row["value"] for row in found["headline"]}
    assert len(headline) == 8 and headline[metric_id(a_metric(finished))] == a_metric(finished)["value"]


def test_a_question_is_explained_under_each_grading(explain: Explain, finished: Path) -> None:
    found = explain("access-set", "--json", "--hits", "3").json
    assert found["kind"] == "query"
    assert [item["grading"] for item in found["items"]] == ["row", "name"]
    for item in found["items"]:
        assert len(item["hits"]) == 3 and len(item["values"]) > 30


def test_by_name_the_hits_are_graded_by_name(explain: Explain, finished: Path) -> None:
    names = {item["query_id"]: item for item in table(finished, "items") if item["grading"] == "name"}
    row = a_metric(finished, grading="name", metric="hit@10")
    graded = 0
    for item in explain(metric_id(row), "--json").json["items"]:
        first = next((hit["rank"] for hit in item["hits"] if hit["grade"] == 1), None)
        known = names[item["query_id"]]["first_relevant_rank"]
        assert first == (known if known is not None and known <= 10 else None)
        graded += first is not None
    assert graded > 40


def test_an_id_that_begins_like_several_is_answered_with_the_list() -> None:
    from pipeline import explain as module
    from pipeline.errors import BadInput

    found = [module.Found("metric", f"abcdef{digit}" + "0" * 57) for digit in range(3)]
    with pytest.raises(BadInput) as raised:
        module._one_of("abcdef", found)
    assert all(one.id[:16] in str(raised.value) for one in found)
    assert "3 ids begin so" in str(raised.value)


@pytest.mark.parametrize("wanted", ["ffffff", "abc", "no-such-question"])
def test_an_id_of_nothing_is_refused_with_what_to_do(explain: Explain, finished: Path, wanted: str) -> None:
    ended = explain(wanted)
    assert ended.exit_code == 2
    assert "has no number and no question of this id" in ended.err and "--run" in ended.err
    assert str(finished / "feed") in ended.err


def test_people_see_digests_command_items_and_hits(explain: Explain, finished: Path) -> None:
    row = a_metric(finished)
    shown = explain(metric_id(row)).out
    for words in (repr(row["value"]), "To make it again", "assay run --config", "access-set", "keyboard-focus"):
        assert words in shown
    assert re.search(r"not answerable", shown)


def test_hostile_text_is_shown_and_never_obeyed(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from pipeline.reports.explained import TABLES, Published, Reproduction
    from pipeline.reports.feed import find_run, read_run
    from pipeline.store import Store
    from pipeline.terminal import show_explained

    store = Store(finished)
    published = Published(read_run(store, find_run(store, None), TABLES))
    found = published.explain_query("access-set", Reproduction(command=None, missing=["\x1b[2J[bold]"]))
    hits = [hit.model_copy(update={"path": "\x1b[31m[red]"}) for hit in found.items[0].hits]
    item = found.items[0].model_copy(update={"question": "\x1b]0;owned\x07[link=x]", "hits": hits})
    show_explained(found.model_copy(update={"items": [item]}))
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "\\x1b[2J[bold]" in shown and "[link=x]" in shown and "[red]" in shown


def test_a_question_shows_its_measures_as_a_table_with_four_decimals(explain: Callable[..., Ended]) -> None:
    shown = explain("access-set", "--hits", "3")
    assert re.search(r"^ +measure +@1 +@3 +@5 +@10 +@20 +@100 *$", shown.out, re.MULTILINE)
    assert re.search(r"^ +recall +0\.3333( +[01]\.\d{4}){5} *$", shown.out, re.MULTILINE)
    assert "bpref@100 – (nothing is judged not relevant)" in shown.out
    assert not re.search(r"\d\.\d{5}", shown.out)
    (first, *_) = explain("access-set", "--json").json["items"]
    assert {value["metric"]: value["value"] for value in first["values"]}["recall@1"] == 1 / 3


def test_a_figure_of_a_curve_leads_to_its_row_and_to_the_points_that_it_is_read_off(
    explain: Explain, finished: Path
) -> None:
    summaries = table(finished, "falloff_summaries")
    wanted = {"grading": "row", "metric": "recall@10", "summary": "loss per doubling"}
    (row,) = [each for each in summaries if all(each[name] == value for name, value in wanted.items())]
    (page,) = finished.glob("feed/run=*/report.html")
    id_ = figure_id("falloff_summaries", row)
    assert f'id="{id_}"' in page.read_text(encoding="utf-8")
    found = explain(id_, "--json").json
    assert (found["kind"], found["table"], found["row"]) == ("figure", "falloff_summaries", row)
    points, fits = found["behind"]
    assert [point["step"] for point in points["rows"]] == [*range(1, 13)]
    assert {point["metric"] for point in points["rows"]} == {"recall@10"}
    assert {fit["model"] for fit in fits["rows"]} == {"log-linear", "logistic", "power"}
    assert found["origin"]["run_id"] == row["run_id"]
    assert f"assay explain {id_}" in found["reproduction"]["command"]
    assert "Behind it, of falloff: 12 rows" in explain(id_).out


@pytest.mark.parametrize("name", ["falloff", "near_metrics", "known_items"])
def test_every_figure_of_the_page_beside_the_means_can_be_explained(
    explain: Explain, finished: Path, name: str
) -> None:
    (page,) = finished.glob("feed/run=*/report.html")
    text = page.read_text(encoding="utf-8")
    shown = [row for row in table(finished, name) if f'id="{figure_id(name, row)}"' in text]
    assert shown
    found = explain(figure_id(name, shown[-1]), "--json").json
    facts = {column: value for column, value in shown[-1].items() if not isinstance(value, list)}
    assert (found["table"], found["row"]) == (name, facts)


def test_every_id_of_the_page_is_one_of_a_table(finished: Path) -> None:
    (page,) = finished.glob("feed/run=*/report.html")
    ids = {*re.findall(r'class="id"[^>]* href="#([0-9a-f]{8})"', page.read_text(encoding="utf-8"))}
    known = {metric_id(row) for row in table(finished, "metrics")}
    known |= {figure_id(name, row) for name in FIGURES for row in table(finished, name)}
    assert ids and ids <= known


def test_a_figure_of_a_study_is_found_and_made_again_by_the_printed_command(
    explain: Explain, assay: Assay, examples: Path, tmp_path: Path
) -> None:
    words = ("--config", examples / "config" / "assay.toml", "--store", tmp_path / "store")
    made = assay("study", "--by", "size", "--seed", 3, "--step", 20, "--orders", 2, *words, "--json")
    id_ = made.json["said"][0]["ids"][1]
    found = explain(id_, "--json", store=tmp_path / "store").json
    assert found["origin"]["study_id"] == made.json["study_id"]
    assert found["table"] == "falloff_summaries" and len(found["behind"][0]["rows"]) > 2
    command = found["reproduction"]["command"]
    assert "assay study --by size --step 20 --seed 3 --statistics subset" in command
    again, asked = ([*words][1:] for words in map(shlex.split, command.replace(">/dev/null", "").split("&&")))
    assert assay(*again).exit_code == 0
    assert assay(*asked).json["row"] == found["row"]
    assert "The study that it belongs to" in explain(id_, store=tmp_path / "store").out
    nothing = explain("0123abcd", store=tmp_path / "store")
    assert nothing.exit_code == 2
