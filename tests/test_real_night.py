"""A night over the real registries: what an independent program found, and what a second night costs."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.conftest import PROJECT
from tests.engines.sentence_models import carried_model

pytestmark = [pytest.mark.corpora, pytest.mark.slow, pytest.mark.xdist_group("corpora")]

TARGETS = (
    "0xfurai/claude-code-subagents",
    "Aaronontheweb/dotnet-cursor-rules",
    "LessUp/awesome-cursorrules-zh",
    "NeoLabHQ/context-engineering-kit",
    "anthropics/skills",
)

# Engine bm25, tokenizer ascii, k = 10: (recall@10, hit@1, mrr@100, ndcg@10), from the README of the registries.
PUBLISHED = {
    ("targets", "name"): (0.7222, 0.2889, 0.4381, 0.4876),
    ("targets", "row"): (0.7444, 0.2889, 0.4381, 0.4999),
    ("all", "name"): (0.3000, 0.0889, 0.1534, 0.1764),
    ("all", "row"): (0.3000, 0.0889, 0.1516, 0.1764),
}


CONFIG = PROJECT / "config" / "assay.toml"


def night(taps: Path, golden: Path, store: Path, config: Path = CONFIG) -> subprocess.CompletedProcess[str]:
    options = ["--config", config, "--taps", taps, "--golden", golden, "--store", store]
    command = [sys.executable, "-m", "pipeline.cli", "run", *options, "--engines.bm25.tokenizer", "ascii", "--json"]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def whole(registries: Path, corpora: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The store and what was printed of a night over all 39 registries."""
    store = tmp_path_factory.mktemp("whole") / "store"
    done = night(registries / "taps.toml", corpora.parent / "golden" / "natural.jsonl", store)
    assert done.returncode == 0, done.stderr
    return store, json.loads(done.stdout)


def table(whole: tuple[Path, Any], name: str, columns: list[str] | None = None) -> Any:
    return pq.read_table(Path(whole[1]["feed"]) / f"{name}.parquet", columns=columns)


def test_the_published_figures_over_all_registries_hold_to_four_decimals(whole: tuple[Path, Any]) -> None:
    (run,) = table(whole, "runs").to_pylist()
    assert (run["taps"], run["entries"], run["classes"]) == (39, 15_769, 12_199)
    headline = whole[1]["headline"]
    order = ("recall@10", "hit@1", "mrr@100", "ndcg@10")
    found = {row["grading"]: tuple(round(row["values"][name], 4) for name in order) for row in headline}
    assert found == {"row": PUBLISHED["all", "row"], "name": PUBLISHED["all", "name"]}


def test_the_published_figures_over_the_targets_hold_to_four_decimals(
    registries: Path, corpora: Path, tmp_path: Path
) -> None:
    _, *rows = (registries / "taps.toml").read_text().split("[[tap]]")
    taps = registries / "targets.toml"
    taps.write_text("".join(["", *(f"[[tap]]{row}" for row in rows if any(f'"{name}"' in row for name in TARGETS))]))
    done = night(taps, corpora.parent / "golden" / "natural.jsonl", tmp_path / "store")
    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout)
    (run,) = pq.read_table(Path(ended["feed"]) / "runs.parquet").to_pylist()
    assert (run["taps"], run["entries"], run["classes"]) == (5, 724, 721)
    order = ("recall@10", "hit@1", "mrr@100", "ndcg@10")
    found = {row["grading"]: tuple(round(row["values"][name], 4) for name in order) for row in ended["headline"]}
    assert found == {"row": PUBLISHED["targets", "row"], "name": PUBLISHED["targets", "name"]}


def test_every_entry_is_read_as_an_independent_reader_reads_it(whole: tuple[Path, Any], corpora: Path) -> None:
    columns = ["tap", "path", "kind", "slug", "parse_status", "body_sha256", "empty_body"]
    ours = {
        (row["tap"], row["path"]): (
            row["kind"],
            row["slug"],
            row["parse_status"],
            "empty" if row["empty_body"] else row["body_sha256"],
        )
        for row in table(whole, "entries", columns).to_pylist()
    }
    with gzip.open(corpora / "entries.tsv.gz", "rt", encoding="utf-8") as rows:
        next(rows)
        theirs = {
            (tap, json.loads(path).encode("utf-8", "surrogateescape")): (kind, slug, status, body)
            for tap, path, kind, slug, status, body in (row.rstrip("\n").split("\t") for row in rows)
        }
    assert ours == theirs


def test_rows_that_name_nothing_are_named_with_what_may_have_been_meant(
    whole: tuple[Path, Any], registries: Path, corpora: Path
) -> None:
    golden = corpora.parent / "golden" / "natural-as-found.jsonl"
    done = night(registries / "taps.toml", golden, whole[0])
    told = [line for line in done.stderr.splitlines() if line.startswith("assay: ")]
    by_line = {int(line.split(" line ")[1].split()[0]): line for line in told if " exemplar 1: " in line}
    assert done.returncode == 2
    assert sorted(by_line) == [16, 17, 18, 47]
    for line, name in ((16, "docx"), (17, "xlsx"), (18, "pptx")):
        assert "candidates: " in by_line[line] and f"/{name}" in by_line[line]
    assert "bash-expert" in by_line[47] and "no candidate" in by_line[47]


def test_an_unchanged_night_recomputes_nothing(whole: tuple[Path, Any], registries: Path, corpora: Path) -> None:
    done = night(registries / "taps.toml", corpora.parent / "golden" / "natural.jsonl", whole[0])
    assert {step["stage"]: step["computed"] for step in json.loads(done.stdout)["steps"]}["index"] == 0
    assert sum(step["computed"] for step in json.loads(done.stdout)["steps"]) == 0


def test_the_published_figures_of_a_sentence_model_and_its_fusion_hold_to_four_decimals(
    whole: tuple[Path, Any], registries: Path, corpora: Path, tmp_path: Path
) -> None:
    config = tmp_path / "assay.toml"
    path = carried_model(tmp_path / "wordllama")
    config.write_text(f'[engines.bm25]\n[engines.dense]\npath = "{path}"\n[engines.hybrid]\nof = ["bm25", "dense"]\n')
    done = night(registries / "taps.toml", corpora.parent / "golden" / "natural.jsonl", whole[0], config)
    assert done.returncode == 0, done.stderr
    headline = json.loads(done.stdout)["headline"]
    order = ("recall@10", "hit@1", "mrr@100", "ndcg@10")
    found = {
        row["engine"]: tuple(round(row["values"][name], 4) for name in order)
        for row in headline
        if row["grading"] == "row"
    }
    assert found == {
        "bm25": PUBLISHED["all", "row"],
        "dense": (0.3111, 0.0444, 0.1179, 0.1542),
        "hybrid": (0.4111, 0.2222, 0.2733, 0.2961),
    }
