"""Known items: which entries are asked for by name, and when they count as found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.checks import known
from pipeline.checks.known import KnownItemsRow, ask, draw, not_asked
from pipeline.engines.bm25 import Bm25, Bm25Options
from pipeline.terminal import show_checks


def corpus(names: Sequence[str], classes: Sequence[str] | None = None) -> pa.Table:
    classes = classes or [f"class {row}" for row in range(len(names))]
    carriers = {name: {classes[row] for row, other in enumerate(names) if other == name} for name in names}
    return pa.table(
        {
            "tap": pa.array(["acme/skills"] * len(names), pa.string()),
            "path": pa.array([f"{row:04}.md".encode() for row in range(len(names))], pa.binary()),
            "path_text": pa.array([f"{row:04}.md" for row in range(len(names))], pa.string()),
            "name": pa.array(names, pa.string()),
            "slug": pa.array(names, pa.string()),
            "description": pa.array([None] * len(names), pa.string()),
            "body": pa.array([""] * len(names), pa.string()),
            "class_id": pa.array(classes, pa.string()),
            "homonyms": pa.array([len(carriers[name]) - 1 for name in names], pa.int64()),
            "mirror": pa.array([classes[row] in classes[:row] for row in range(len(names))], pa.bool_()),
        }
    )


def asked(entries: pa.Table) -> KnownItemsRow:
    engine = Bm25(Bm25Options())
    return ask("bm25", engine.retriever([engine.index_tap(entries)]), entries)


def test_an_entry_that_its_name_finds_is_a_hit() -> None:
    row = asked(corpus(["alpha", "beta", "gamma"]))
    assert (row.metric, row.value, row.n, row.n_ambiguous, row.misses) == ("hit@10", 1.0, 3, 0, [])
    assert row.label == "insufficient items"
    assert row.ci_low is not None and 0.3 < row.ci_low < 0.5 and row.ci_high == 1.0


def test_a_name_of_many_contents_finds_the_first_ten_of_them() -> None:
    row = asked(corpus(["alpha"] * 12 + ["beta"]))
    assert (row.n, row.n_ambiguous, row.value, row.value_unambiguous) == (13, 12, 11 / 13, 1.0)
    assert [(miss.path_text, miss.rank, miss.ambiguous) for miss in row.misses] == [
        ("0010.md", 11, True),
        ("0011.md", 12, True),
    ]


def test_a_copy_in_front_is_the_same_content_and_is_not_asked_for_again() -> None:
    row = asked(corpus(["alpha"] * 12, ["same"] * 12))
    assert (row.n, row.value, row.n_ambiguous) == (1, 1.0, 0)


def test_a_name_without_a_word_is_a_miss_and_an_empty_corpus_has_no_value() -> None:
    (miss,) = asked(corpus(["x", "alpha"])).misses
    assert (miss.name, miss.rank) == ("x", None)
    assert (asked(corpus([])).value, asked(corpus([])).reason) == (None, "the corpus has no entry")


def test_a_corpus_that_grows_asks_for_nearly_the_same_entries() -> None:
    names = [f"name{row}" for row in range(1000)]
    small, large = ({each.name for each in draw(corpus(names[:size]))} for size in (900, 1000))
    assert len(small) == len(large) == known.SAMPLED
    assert len(small & large) > 0.8 * known.SAMPLED


def test_known_items_are_published_apart_from_the_golden_sets(finished: Path) -> None:
    (run,) = (finished / "feed").glob("run=*")
    (row,) = pq.read_table(run / "known_items.parquet").to_pylist()
    assert row["engine"] == "bm25" and 100 < row["n"] <= known.SAMPLED and 0.5 < row["value"] < 1
    assert len(row["misses"]) == round((1 - row["value"]) * row["n"])
    assert "Known items" in (run / "report.html").read_text()
    assert set(pq.read_table(run / "metrics.parquet")["golden_set"].to_pylist()) == {"default"}


def test_an_engine_without_an_index_is_not_asked_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    show_checks([], [not_asked("hybrid"), asked(corpus(["alpha"]))])
    lines = capsys.readouterr().out.splitlines()
    assert (
        lines[0] == "names   hybrid: no hit@10 by exact name: it ranks what others ranked, and was not asked for names"
    )
    assert lines[1].startswith("names   bm25: hit@10 by exact name 1.000 (0.21 to 1.00), n 1, 0 of them ambiguous")
