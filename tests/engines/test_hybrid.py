"""Engine hybrid: a fusion of two engines, against one made by hand from their run files."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.config import Overrides, load
from pipeline.engines import Lent, Query
from pipeline.engines.hybrid import Hybrid, HybridOptions
from pipeline.engines.ranking import HITS, Hit
from pipeline.errors import BadInput
from tests.conftest import Ended
from tests.engines.test_plugins import project_with

Assay = Callable[..., Ended]

ENGINES = '[engines.bm25]\n[engines.metadata]\n[engines.both]\nkind = "hybrid"\nof = ["bm25", "metadata"]\n'


def by_hand(*run_files: str) -> dict[str, dict[str, Fraction]]:
    """Fuse run files, line by line, in exact numbers."""
    scores: dict[str, dict[str, Fraction]] = {}
    for line in "".join(run_files).splitlines():
        query, _, document, rank, _, _ = line.split()
        own = scores.setdefault(query, {})
        own[document] = own.get(document, Fraction(0)) + Fraction(1, 60 + int(rank))
    return scores


def test_a_fusion_is_that_made_by_hand_from_the_two_run_files(
    examples: Path, stored: Path, tmp_path: Path, assay: Assay
) -> None:
    config = project_with(examples, tmp_path / "project", ENGINES)
    ended = assay("run", "--config", config, "--store", stored, "--json")
    assert ended.exit_code == 0, ended.err
    feed = Path(ended.json["feed"])
    # Engines may show another entry of a class, so documents are called by their class here.
    runs = {
        name: "".join(
            f"{row['query_id']} Q0 {row['class_id']} {row['rank']} {row['score']!r} {name}\n"
            for row in pq.read_table(feed / "rankings.parquet", filters=[("engine", "=", name)]).to_pylist()
        )
        for name in ("bm25", "metadata", "both")
    }
    fused = by_hand(runs["bm25"], runs["metadata"])
    assert len(fused) > 80
    for query, scores in fused.items():
        lines = [line.split() for line in runs["both"].splitlines() if line.startswith(f"{query} ")]
        assert len(lines) == min(100, len(scores))
        assert [float(line[4]) for line in lines] == pytest.approx(
            sorted(map(float, scores.values()))[::-1][:100], 1e-12
        )
        assert {line[2]: float(line[4]) for line in lines} == pytest.approx(
            {line[2]: float(scores[line[2]]) for line in lines}, 1e-12
        )


def hit(rank: int | None, class_id: str, path: bytes) -> dict[str, Any]:
    row = Hit(
        query_id="q", raw_rank=1, rank=rank, tap="o/r", path=path, path_text="", slug="", class_id=class_id, score=1.0
    )
    return row.model_dump()


def test_every_entry_of_a_class_has_its_score_and_mirrors_add_nothing_to_it() -> None:
    corpus = pa.table({"tap": ["o/r"] * 3, "path": pa.array([b"a", b"b", b"c"], pa.binary())})
    first = pa.Table.from_pylist([hit(1, "x", b"c"), hit(2, "y", b"b")], HITS.schema)
    second = pa.Table.from_pylist([hit(1, "y", b"a"), hit(None, "y", b"b")], HITS.schema)
    engine = Hybrid(HybridOptions(of=["one", "two"]))
    (answer,) = engine.answer(Lent([Query("q", "")], {"q"}, corpus, [first, second]))
    assert dict(zip(answer.entries.tolist(), answer.scores.tolist(), strict=True)) == {
        0: 1 / 62 + 1 / 61,
        1: 1 / 62 + 1 / 61,
        2: 1 / 61,
    }


@pytest.mark.parametrize(
    ("of", "words"),
    [
        ('["bm25", "nowhere"]', "it reads the rankings of 'nowhere'"),
        ('["bm25", "both"]', "it reads the rankings of 'both'"),
        ('["bm25", "bm25"]', "of names bm25 twice"),
        ('["bm25"]', "engines.both of"),
    ],
)
def test_a_wrong_pair_is_refused(examples: Path, tmp_path: Path, of: str, words: str) -> None:
    config = project_with(examples, tmp_path / "project", ENGINES.replace('["bm25", "metadata"]', of))
    with pytest.raises(BadInput) as caught:
        load(Overrides(config=config), {})
    assert words in str(caught.value)


def test_without_one_of_the_two_it_is_not_run(examples: Path, tmp_path: Path) -> None:
    theirs = '[engines.theirs]\nkind = "run-file"\npath = "x.run"\n'
    config = project_with(examples, tmp_path / "project", theirs + ENGINES.replace('"metadata"]', '"theirs"]'))
    settings = load(Overrides(config=config), {})
    assert settings.running == ["bm25", "metadata"]
    assert settings.not_run["both"] == "its source theirs is not run: there is no run file x.run"
