"""`assay duplicates`: each section, the exact join, the lines that decide; on a night over the embedded registries."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from pipeline import terminal
from pipeline.classes.decisions import parse_cluster_decisions
from pipeline.errors import BadInput
from pipeline.reports.duplication import WordRun
from tests.conftest import Ended

Assay = Callable[..., Ended]
SECTIONS = {
    "tap": {"taps"},
    "name": {"names"},
    "family": {"families"},
    "cluster": {"clusters"},
    "pairs": {"pairs"},
    "golden": {"golden", "golden_names"},
    "lineage": set[str](),
}
ALWAYS = {"run_id", "near_duplicates", "near_threshold", "left_out"}


@pytest.fixture
def duplicates(assay: Assay, finished: Path, examples: Path) -> Callable[..., Ended]:
    def run(*words: object, store: Path = finished) -> Ended:
        return assay("duplicates", *words, "--config", examples / "config" / "assay.toml", "--store", store)

    return run


Duplicates = Callable[..., Ended]


def table_path(store: Path, name: str) -> Path:
    (path,) = store.glob(f"feed/run=*/{name}.parquet")
    return path


def table(store: Path, name: str) -> list[dict[str, Any]]:
    return pq.ParquetFile(table_path(store, name)).read().to_pylist()  # type: ignore[no-any-return]


def rewrite(store: Path, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    path = table_path(store, name)
    rows = pq.ParquetFile(path).read()
    changed = [row | change(row) for row in rows.to_pylist()]
    pq.write_table(pa.Table.from_pylist(changed, schema=rows.schema), path)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_alone_holds_nothing_of_the_others(duplicates: Duplicates, section: str) -> None:
    alone = duplicates("--by", section, "--json").json
    assert {name for name, value in alone.items() if value is not None} == ALWAYS | SECTIONS[section]
    assert duplicates("--by", section).exit_code == 0


def test_all_sections_are_those_alone_put_together(duplicates: Duplicates) -> None:
    whole = duplicates("--json").json
    for section, names in SECTIONS.items():
        alone = duplicates("--by", section, "--json").json
        assert all(alone[name] == whole[name] for name in names)
    assert whole["left_out"] == {}


def test_the_taps_count_what_the_published_tables_hold(duplicates: Duplicates, finished: Path) -> None:
    found = {row["tap"]: row for row in duplicates("--by", "tap", "--json").json["taps"]}
    for tap in table(finished, "taps"):
        row = found[tap["tap"]]
        assert (row["mirrors_inside"], row["mirrors_of_earlier"]) == (
            tap["intra_tap_mirrors"],
            tap["cross_tap_mirrors"],
        )
    assert sum(row["near_inside"] + row["near_of_earlier"] for row in found.values()) > 0


def test_a_limit_says_what_it_leaves_out(duplicates: Duplicates) -> None:
    whole, cut = duplicates("--json").json, duplicates("--json", "--limit", 2).json
    assert cut["names"] == whole["names"][:2]
    assert cut["left_out"]["names"] == len(whole["names"]) - 2
    assert f"and {len(whole['names']) - 2:,} more" in duplicates("--by", "name", "--limit", 2).out


@pytest.mark.parametrize("words", [("--limit", 0), ("--run", "0" * 12), ("--by", "colour"), ("--decide", "zz")])
def test_what_cannot_be_meant_is_refused_in_one_line(duplicates: Duplicates, words: tuple[object, ...]) -> None:
    ended = duplicates(*words)
    assert ended.exit_code == 2 and ended.err.count("\n") == 1 and ended.out == ""


def test_pairs_show_the_words_of_the_bodies_and_without_them_those_of_the_table(
    duplicates: Duplicates, stored: Path
) -> None:
    pairs = duplicates("--by", "pairs", "--json").json["pairs"]
    assert pairs and all(any(run["side"] != "both" for run in pair["words"]) for pair in pairs)
    shutil.rmtree(stored / "store" / "catalog")
    bare = duplicates("--by", "pairs", "--json", store=stored).json["pairs"]
    assert [pair | {"words": None} for pair in pairs] == bare
    assert bare[0]["differs"][:20] in duplicates("--by", "pairs", "--limit", 1, store=stored).out


def test_nothing_that_a_registry_wrote_steers_the_terminal(duplicates: Duplicates, stored: Path) -> None:
    hostile = "\x1b[31m\u202e[bold]x\r\n"
    rewrite(stored, "entries", lambda row: {"slug": hostile + row["slug"], "tap": hostile + row["tap"]})
    rewrite(stored, "taps", lambda row: {"tap": hostile + row["tap"]})
    rewrite(stored, "items", lambda row: {"wanted": [hostile + name for name in row["wanted"]]})
    texts = {"names": [hostile], "evidence": [hostile], "path_text": hostile, "tap": hostile}
    rewrite(stored, "near_duplicate_clusters", lambda row: {**texts, "names": [hostile, "b"]})
    rewrite(stored, "template_families", lambda row: {**texts, "slots": [hostile]})
    rewrite(
        stored,
        "near_pairs",
        lambda row: {"left_slug": hostile, "right_tap": hostile, "left_path": hostile.encode(), "differs": hostile},
    )
    rewrite(stored, "near_duplicate_members", lambda row: {"path_text": hostile, "tap": hostile})
    shutil.rmtree(stored / "store" / "catalog")
    cluster = table(stored, "near_duplicate_clusters")[0]["cluster_id"]
    for ended in (duplicates(store=stored), duplicates("--decide", cluster, store=stored)):
        assert ended.exit_code == 0
        assert "\\x1b" in ended.out and "[bold]x" in ended.out
        assert all(char.isprintable() or char == "\n" for char in ended.out)


def test_bodies_are_shown_in_colours_on_a_terminal_and_with_marks_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    words = [
        WordRun(side="both", text="runs"),
        WordRun(side="left", text="n\x1bpm"),
        WordRun(side="right", text="[b]pnpm"),
    ]
    plain, coloured = terminal._worded(words, False).plain, Console(force_terminal=True, color_system="standard")
    assert plain.strip() == "runs [-n\\x1bpm-] {+[b]pnpm+}"
    with coloured.capture() as shown:
        coloured.print(terminal._worded(words, True))
    assert "[-" not in shown.get() and "\x1b[9;31mn\\x1bpm" in shown.get()


def test_the_clusters_stand_up_to_the_exact_join(duplicates: Duplicates, finished: Path) -> None:
    ended = duplicates("--exact", "--json")
    (facts,) = [row["near_duplicates"] for row in table(finished, "runs")]
    assert ended.exit_code == 0
    named = {"compared": "eligible", "candidates": "lsh_candidates", "recall": "lsh_recall", "astray": "astray"}
    assert {name: ended.json[name] for name in named} == {name: facts[its] for name, its in named.items()}
    assert ended.json["clustered_bodies"] == facts["bodies"]


def test_clusters_that_are_not_those_of_the_exact_join_end_with_1(duplicates: Duplicates, stored: Path) -> None:
    rewrite(stored, "near_duplicate_members", lambda row: {"cluster_id": "0" * 64})
    ended = duplicates("--exact", "--json", store=stored)
    assert ended.exit_code == 1 and ended.json["astray_share"] > 0.002
    assert "astray from the exact join" in ended.err


def test_the_exact_join_needs_the_bodies_and_the_decisions_of_the_run(
    duplicates: Duplicates, stored: Path, tmp_path: Path
) -> None:
    others = tmp_path / "others.jsonl"
    others.write_text(json.dumps({"same": False, "bodies": ["class:" + "a" * 64, "class:" + "b" * 64], "by": "me"}))
    other = duplicates("--exact", "--cluster-decisions", others, store=stored)
    assert other.exit_code == 2 and "other decisions" in other.err
    shutil.rmtree(stored / "store" / "catalog")
    bare = duplicates("--exact", store=stored)
    assert bare.exit_code == 2 and "no catalogue of the store" in bare.err


def test_a_line_that_decides_is_taken_only_with_a_name_under_it(duplicates: Duplicates, finished: Path) -> None:
    cluster = table(finished, "near_duplicate_clusters")[0]["cluster_id"]
    bodies = sorted(
        row["body_sha256"] for row in table(finished, "near_duplicate_members") if row["cluster_id"] == cluster
    )
    lines = [line for line in duplicates("--decide", cluster[:16]).out.splitlines() if not line.startswith("#")]
    assert len(lines) == 2
    with pytest.raises(BadInput, match="say who decided"):
        parse_cluster_decisions(Path("clusters.jsonl"), lines[0].encode())
    same, different = (line.replace('"by": ""', '"by": "me"').encode() for line in lines)
    assert parse_cluster_decisions(Path("clusters.jsonl"), same).confirmed == (tuple(bodies),)
    refused = parse_cluster_decisions(Path("clusters.jsonl"), different).refused
    assert len(refused) == len(bodies) * (len(bodies) - 1) // 2
    machine = duplicates("--decide", cluster, "--json").json
    assert [machine["same"], machine["different"]] == [json.loads(line) for line in lines]


def test_a_run_of_an_earlier_release_is_said_to_be_one(duplicates: Duplicates, stored: Path) -> None:
    table_path(stored, "near_pairs").unlink()
    ended = duplicates(store=stored)
    assert ended.exit_code == 2 and "no table near_pairs: an earlier release published it" in ended.err


def test_what_became_of_clusters_is_told_from_the_second_run_on(
    duplicates: Duplicates, assay: Assay, stored: Path, examples: Path
) -> None:
    assert duplicates("--by", "lineage", "--json").json["became"] is None
    config = ("--config", examples / "config" / "assay.toml", "--store", stored)
    assert assay("run", *config, "--near-threshold", 0.75, "--json").exit_code == 0
    became = duplicates("--by", "lineage", "--json", store=stored).json["became"]
    assert ("cluster", "kept") in {(row["subject"], row["event"]) for row in became["counts"]}
    assert all(event["event"] != "kept" for event in became["clusters"])
