"""Exported TREC files: what other tools make of them is what was published, and they are the same bytes each time."""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote_to_bytes

import ir_measures
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import pytrec_eval
import yaml

from pipeline.reports.trec import Exported, falling, quoted
from tests.conftest import Ended, feed_bytes

Assay = Callable[..., Ended]
Values = dict[str, dict[str, float]]

ITEM_MEASURES = ("recall@10", "ndcg@10", "hit@1", "mrr@100")


@pytest.fixture(scope="module")
def exported(finished: Path, examples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from pipeline.cli import main

    folder = tmp_path_factory.mktemp("trec")
    main(["export", str(folder), "--config", str(examples / "config" / "assay.toml"), "--store", str(finished)])
    return folder


def table(store: Path, name: str) -> pa.Table:
    (path,) = store.glob(f"feed/run=*/{name}.parquet")
    return pq.ParquetFile(path).read()


def published(store: Path, grading: str) -> Values:
    """The published values of each item that has values."""
    return {
        item["query_id"]: {value["metric"]: value["value"] for value in item["metrics"]}
        for item in table(store, "items").to_pylist()
        if item["grading"] == grading and item["scored"]
    }


def by_pytrec_eval(run: Path, qrels: Path) -> Values:
    with run.open() as ranked, qrels.open() as judged:
        evaluator = pytrec_eval.RelevanceEvaluator(
            pytrec_eval.parse_qrel(judged), {"recall.10", "ndcg_cut.10", "success.1", "P.1", "recip_rank"}
        )
        found = evaluator.evaluate(pytrec_eval.parse_run(ranked))
    names = {"recall_10": "recall@10", "ndcg_cut_10": "ndcg@10", "success_1": "hit@1", "recip_rank": "mrr@100"}
    assert all(values["P_1"] == values["success_1"] for values in found.values())
    return {query: {ours: values[theirs] for theirs, ours in names.items()} for query, values in found.items()}


def by_ir_measures(run: Path, qrels: Path) -> Values:
    names = {"R@10": "recall@10", "nDCG@10": "ndcg@10", "Success@1": "hit@1", "RR": "mrr@100"}
    measures = [ir_measures.parse_measure(name) for name in names]
    judged = list(ir_measures.read_trec_qrels(str(qrels)))  # type: ignore[no-untyped-call]
    ranked = list(ir_measures.read_trec_run(str(run)))  # type: ignore[no-untyped-call]
    values: Values = defaultdict(dict)
    for one in ir_measures.iter_calc(measures, judged, ranked):
        values[one.query_id][names[str(one.measure)]] = one.value
    return values


@pytest.mark.parametrize("tool", [by_pytrec_eval, by_ir_measures])
@pytest.mark.parametrize("grading", ["row", "name"])
def test_other_tools_find_the_published_value_of_every_item(
    exported: Path, finished: Path, grading: str, tool: Callable[[Path, Path], Values]
) -> None:
    wanted = published(finished, grading)
    found = tool(exported / "default.bm25.run", exported / f"default.{grading}.bm25.qrels")
    assert len(wanted) == 83
    assert set(found) == set(wanted)
    for query, values in wanted.items():
        for metric in ITEM_MEASURES:
            assert found[query][metric] == pytest.approx(values[metric], abs=1e-9), (query, metric)


def test_the_qrels_for_any_system_agree_where_each_answer_is_one_document(exported: Path, finished: Path) -> None:
    qrels = exported / "default.row.qrels"
    slots = defaultdict(list)
    for line in qrels.read_text().splitlines():
        query, place, _, grade = line.split()
        assert grade == "1"
        slots[query].append(place)
    simple = {query for query, places in slots.items() if len(places) == len(set(places))}
    found, wanted = by_pytrec_eval(exported / "default.bm25.run", qrels), published(finished, "row")
    assert len(simple) > 60 and set(slots) == set(wanted)
    for query in simple:
        assert found[query]["recall@10"] == pytest.approx(wanted[query]["recall@10"], abs=1e-9)


def test_a_run_file_holds_every_hit_in_six_columns_and_in_the_order_of_the_ranking(
    exported: Path, finished: Path
) -> None:
    classes = {row["class_id"]: row for row in table(finished, "classes").to_pylist()}
    rows = [line.split(" ") for line in (exported / "default.bm25.run").read_text().splitlines()]
    assert {len(row) for row in rows} == {6}
    hits = sorted(table(finished, "rankings").to_pylist(), key=lambda hit: (hit["query_id"], hit["rank"]))
    assert len(rows) == len(hits)
    for (query, _, document, rank, score, tag), hit in zip(rows, hits, strict=True):
        shown = classes[hit["class_id"]]
        assert (query, int(rank), tag) == (hit["query_id"], hit["rank"], "assay-bm25")
        assert unquote_to_bytes(document) == shown["tap"].encode() + b"::" + shown["path"]
        assert float(score) == pytest.approx(hit["score"], rel=1e-5)


def test_the_embedded_registries_hold_ties_and_the_written_scores_fall_all_the_same(
    exported: Path, finished: Path
) -> None:
    hits = table(finished, "rankings").to_pylist()
    hits.sort(key=lambda hit: (hit["query_id"], hit["rank"]))
    pairs = [(a, b) for a, b in itertools.pairwise(hits) if a["query_id"] == b["query_id"]]
    assert any(a["score"] == b["score"] for a, b in pairs)
    rows = [line.split() for line in (exported / "default.bm25.run").read_text().splitlines()]
    for above, below in itertools.pairwise(rows):
        if above[0] == below[0]:
            assert np.float32(above[4]) > np.float32(below[4])


@pytest.mark.parametrize(
    ("scores", "written"),
    [
        ([3.0, 2.5, 0.1], ["3.0", "2.5", "0.1"]),
        ([1.0, 1.0, 1.0], ["1.0", "0.9999999403953552", "0.9999998807907104"]),
        # Apart in double precision and equal in single.
        ([1.0 + 1e-12, 1.0], ["1.000000000001", "0.9999999403953552"]),
        # A number that a tie above has taken.
        ([1.0, 1.0, 0.9999999403953552], ["1.0", "0.9999999403953552", "0.9999998807907104"]),
    ],
)
def test_a_tie_takes_the_next_smaller_number(scores: list[float], written: list[str]) -> None:
    assert falling(scores) == written


def test_scores_of_any_size_fall_strictly() -> None:
    shuffled = random.Random(11)
    for _ in range(300):
        kinds = [shuffled.uniform(0, 30), 1e-45, 5e-324, 3e38, 7.0]
        scores = sorted((shuffled.choice(kinds) for _ in range(100)), reverse=True)
        singles = [np.float32(text) for text in falling(scores)]
        assert all(above > below for above, below in itertools.pairwise(singles))


def test_an_identifier_holds_no_white_space_and_can_be_read_back() -> None:
    for text in ("a b", "tab\tline\nbreak", "nbsp\xa0ideographic\u3000", "50%25", "# no comment", "emoji 🙂"):
        assert re.fullmatch("[!-~]+", quoted(text)) and "#" not in quoted(text)
        assert unquote_to_bytes(quoted(text)) == text.encode()
    assert quoted(b"not\xffutf-8") == "not%FFutf-8"


def test_the_same_run_gives_the_same_bytes_and_leaves_the_feed_alone(
    assay: Assay, exported: Path, finished: Path, examples: Path, tmp_path: Path
) -> None:
    before = feed_bytes(finished)
    options = ["--config", examples / "config" / "assay.toml", "--store", finished]
    made = assay("export", tmp_path / "again", *options, "--json").json
    assert sorted(file["name"] for file in made["files"]) == sorted(path.name for path in exported.iterdir())
    for path in exported.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    assert feed_bytes(finished) == before


def test_the_order_of_the_tables_changes_no_byte(exported: Path, finished: Path) -> None:
    tables = {name: table(finished, name) for name in ("runs", "entries", "classes", "rankings", "items")}
    turned = {name: each.take(list(reversed(range(each.num_rows)))) for name, each in tables.items()}
    for file in Exported(turned).files():
        written = (exported / file.name).read_bytes()
        assert hashlib.sha256(file.text.encode()).digest() == hashlib.sha256(written).digest()


def test_the_metadata_stands_beside_the_run_and_on_request_above_it(
    assay: Assay, exported: Path, finished: Path, examples: Path, tmp_path: Path
) -> None:
    beside = (exported / "default.bm25.ir_metadata.yml").read_text()
    metadata = yaml.safe_load(beside)
    (run,) = table(finished, "runs").to_pylist()
    assert metadata["assay run"] == run["run_id"]
    assert metadata["data"]["test collection"]["corpus"] == run["corpus"]
    (used,) = metadata["method"]["retrieval"]
    assert used["fingerprint"] == run["engines"][0]["fingerprint"]
    assert used["made of"] == json.loads(run["engines"][0]["made_of"])
    options = ["--config", examples / "config" / "assay.toml", "--store", finished]
    assay("export", tmp_path, "--header", *options)
    lines = (tmp_path / "default.bm25.run").read_text().splitlines(keepends=True)
    comments = [line for line in lines if line.startswith("#")]
    assert (comments[0], comments[-1]) == ("# ir_metadata.start\n", "# ir_metadata.end\n")
    assert "".join(line.removeprefix("# ") for line in comments[1:-1]) == beside
    assert "".join(lines[len(comments) :]) == (exported / "default.bm25.run").read_text()


def test_a_class_of_two_wanted_names_is_one_document(finished: Path) -> None:
    tables = {name: table(finished, name) for name in ("runs", "entries", "classes", "rankings", "items")}
    entries = tables["entries"].to_pylist()
    first, second = entries[0], entries[1]
    second["class_id"] = first["class_id"]
    items = [item | {"mode": "name", "wanted": [first["slug"], second["slug"]]} for item in tables["items"].to_pylist()]
    tables |= {
        "entries": pa.Table.from_pylist(entries, schema=tables["entries"].schema),
        "items": pa.Table.from_pylist(items, schema=tables["items"].schema),
        "rankings": tables["rankings"].slice(0, 0),
    }
    files = {file.name: file.text for file in Exported(tables).files()}
    for name in ("default.row.qrels", "default.row.bm25.qrels"):
        pytrec_eval.parse_qrel(files[name].splitlines())
    credited = pytrec_eval.parse_qrel(files["default.row.bm25.qrels"].splitlines())
    assert {len(documents) for documents in credited.values()} == {2}


def test_a_run_that_is_not_there_and_a_folder_that_is_a_file_are_refused(
    assay: Assay, examples: Path, finished: Path, tmp_path: Path
) -> None:
    options = ["--config", examples / "config" / "assay.toml"]
    ended = assay("export", tmp_path / "out", *options, "--store", tmp_path / "none")
    assert ended.exit_code == 2 and "run `assay run` first" in ended.err
    ended = assay("export", tmp_path / "out", *options, "--store", finished, "--run", "f00")
    assert ended.exit_code == 2 and "no published run has an id that begins so" in ended.err
    (tmp_path / "file").write_text("kept")
    ended = assay("export", tmp_path / "file", *options, "--store", finished)
    assert ended.exit_code == 2 and (tmp_path / "file").read_text() == "kept"
