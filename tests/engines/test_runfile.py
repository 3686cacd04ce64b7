"""Run files of outside systems: what they may say, what is wrong with them; they are scored like any engine."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engines import Lent, Query
from pipeline.engines.runfile import MOST_FAULTS, RunFile, RunFileOptions, document_id
from pipeline.errors import BadInput
from tests.conftest import Ended
from tests.engines.test_plugins import project_with

Assay = Callable[..., Ended]

PATHS = [b"a.md", b"b c.md", b"d%20e.md", b"\xff.md"]
CORPUS = pa.table(
    {
        "tap": pa.array(["o/r"] * len(PATHS)),
        "path": pa.array(PATHS, pa.binary()),
        "class_id": pa.array(["1", "2", "3", "4"]),
    }
)
LENT = Lent([Query("q1", "one"), Query("q2", "two")], {"q1", "q2", "other"}, CORPUS, ())


def engine(path: Path) -> RunFile:
    return RunFile(RunFileOptions(path=str(path)))


def trec(folder: Path, *lines: str) -> RunFile:
    path = folder / "system.run"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return engine(path)


def parquet(folder: Path, **columns: Any) -> RunFile:
    pq.write_table(pa.table(columns), folder / "system.parquet")
    return engine(folder / "system.parquet")


def answers(run: RunFile) -> dict[str, dict[int, float]]:
    return {
        answer.query_id: dict(zip(answer.entries.tolist(), answer.scores.tolist(), strict=True))
        for answer in run.answer(LENT)
    }


def faults(run: RunFile) -> list[str]:
    with pytest.raises(BadInput) as caught:
        list(run.answer(LENT))
    return [str(fault) for fault in caught.value.faults]


def test_a_line_gives_a_hit_and_its_rank_column_does_not_count(tmp_path: Path) -> None:
    run = trec(tmp_path, "q1 Q0 o/r::a.md 1 0.5 x", "", "q1\tQ0\to/r::b%20c.md\t2\t7\tx", "other Q0 o/r::a.md 1 1 x")
    assert answers(run) == {"q1": {0: 0.5, 1: 7.0}, "q2": {}}


def test_what_scores_0_is_no_hit(tmp_path: Path) -> None:
    assert answers(trec(tmp_path, "q2 Q0 o/r::a.md 1 0 x")) == {"q1": {}, "q2": {}}


def test_every_fault_is_named_with_its_line(tmp_path: Path) -> None:
    run = trec(
        tmp_path,
        "q1 Q0 o/r::a.md 1 0.5 x",
        "q1 Q0 o/r::a.md 2 0.4 x",
        "q9 Q0 o/r::a.md 1 0.5 x",
        "q1 Q0 o/r::nowhere.md 1 0.5 x",
        "q1 Q0 o/r::b c.md 1 0.5 x",
        "q2 Q0 o/r::a.md 1 high x",
        "q2 Q0 o/r::a.md 1 nan x",
        "q2 Q0 o/r::a.md 1 -1 x",
        "q2 Q0 o/r::a.md 1 inf x",
        "q2 o/r::a.md 1",
    )
    told = [
        "the query 'q1' has the document 'o/r::a.md' twice",
        "no golden set asks the query 'q9'",
        "the corpus holds no document 'o/r::nowhere.md'",
        "7 columns, not 6",
        "the score 'high' is no number",
        "the score is nan",
        "the score is -1.0",
        "the score is inf",
        "3 columns, not 6",
    ]
    for line, (fault, words) in enumerate(zip(faults(run), told, strict=True), 2):
        assert f"system.run line {line}: " in fault
        assert words in fault


def test_a_score_that_is_no_number_and_one_below_0_are_told_to_mend_the_same_way(tmp_path: Path) -> None:
    told = faults(trec(tmp_path, "q1 Q0 o/r::a.md 1 high x", "q2 Q0 o/r::a.md 1 -1 x"))
    assert len({fault.partition("; ")[2] for fault in told}) == 1


@pytest.mark.parametrize("score", ["1_0", "١٢", "１", "1e1_0", "0x1", "1.", ".5", "+1e-3", "1E2"])
def test_a_score_is_a_number_in_every_language_or_none(tmp_path: Path, score: str) -> None:
    run = trec(tmp_path, f"q1 Q0 o/r::a.md 1 {score} x")
    if score in ("1.", ".5", "+1e-3", "1E2"):
        assert answers(run)["q1"] == {0: float(score)}
    else:
        assert "is no number" in faults(run)[0]


@pytest.mark.parametrize("character", ["\0", "\x0b", "\x1f", "\x7f", "\x85"])
def test_a_control_character_is_refused_in_any_column(tmp_path: Path, character: str) -> None:
    (told,) = faults(trec(tmp_path, f"q1 Q0 o/r::a.md 1 1 x{character}y"))
    assert f"line 1: holds the control character U+{ord(character):04X}" in told


def test_lines_may_end_as_windows_ends_them(tmp_path: Path) -> None:
    assert answers(trec(tmp_path, "q1 Q0 o/r::a.md 1 1 x\r"))["q1"] == {0: 1.0}


def test_a_file_without_rows_is_a_fault(tmp_path: Path) -> None:
    nothing = pa.array([], pa.string())
    for run in (
        trec(tmp_path, "", " "),
        parquet(tmp_path, query_id=nothing, doc_id=nothing, rank=pa.array([], "int64")),
    ):
        assert [fault.partition(": ")[2] for fault in faults(run)] == ["holds no row; write at least one"]


def test_a_path_that_is_there_and_no_file_is_bad_input(tmp_path: Path) -> None:
    assert engine(tmp_path / "none.run").why_not() == "there is no run file none.run"
    with pytest.raises(BadInput, match="is a folder, not a run file; name the run file itself"):
        engine(tmp_path)


def test_what_is_wrong_without_the_corpus_is_told_before_it_is_there(tmp_path: Path) -> None:
    run = trec(
        tmp_path,
        "q1 Q0 o/r::unknown.md 1 1 x",
        "q1 Q0 o/r::unknown.md 1 1 x",
        "q1 Q0 o/r::a.md 1 high x",
        "q9 Q0 o/r::a.md 1 1 x",
    )
    assert [fault.where.rpartition(" ")[2] for fault in run.input_faults({"q1"})] == ["2", "3", "4"]
    assert [fault.where.rpartition(" ")[2] for fault in run.input_faults(None)] == ["2", "3"]


def test_of_very_many_faults_the_first_are_named_and_the_others_counted(tmp_path: Path) -> None:
    told = faults(trec(tmp_path, *["wrong"] * (MOST_FAULTS + 7)))
    assert len(told) == MOST_FAULTS + 1
    assert "7 more faults" in told[-1]


def test_text_that_is_no_utf8_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "system.run").write_bytes(b"q1 Q0 \xff 1 1 x\n")
    assert "byte 6 is no UTF-8" in faults(engine(tmp_path / "system.run"))[0]


def test_parquet_by_score_or_by_rank(tmp_path: Path) -> None:
    ids = {"query_id": ["q1", "q1"], "doc_id": ["o/r::a.md", "o/r::%FF.md"]}
    assert answers(parquet(tmp_path, **ids, score=[0.5, 2.0]))["q1"] == {0: 0.5, 3: 2.0}
    assert answers(parquet(tmp_path, **ids, rank=[1, 4]))["q1"] == {0: 1.0, 3: 0.25}
    assert answers(parquet(tmp_path, **ids, rank=[1, 2], score=[1, 3]))["q1"] == {0: 1.0, 3: 3.0}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"query_id": ["q1"], "doc_id": ["o/r::a.md"]}, ["score or rank is missing"]),
        ({"doc_id": ["o/r::a.md"], "score": ["1"]}, ["score is string", "query_id is missing"]),
        ({"query_id": ["q1"], "doc_id": ["x"], "rank": [1.0]}, ["rank is double"]),
        ({"query_id": ["q1"], "doc_id": ["x"], "rank": [1], "tag": [1]}, ["tag is not known"]),
        ({"query_id": ["q1"], "doc_id": ["o/r::a.md"], "rank": [0]}, ["row 1: the rank is 0"]),
        ({"query_id": ["q1", None], "doc_id": ["o/r::a.md", "x"], "score": [1, 1]}, ["row 2: a value is null"]),
        ({"query_id": ["q1"], "doc_id": ["o/r::a.md"], "score": [math.nan]}, ["row 1: the score is nan"]),
    ],
)
def test_a_wrong_parquet_is_refused_with_the_place(
    tmp_path: Path, columns: dict[str, list[Any]], words: list[str]
) -> None:
    told = faults(parquet(tmp_path, **columns))
    assert [word in fault for word, fault in zip(words, told, strict=True)] == [True] * len(words)


def test_a_document_twice_in_a_parquet_is_told_without_a_word_of_lines(tmp_path: Path) -> None:
    (told,) = faults(parquet(tmp_path, query_id=["q1"] * 2, doc_id=["o/r::a.md"] * 2, rank=[1, 2]))
    assert told.endswith("row 2: the query 'q1' has the document 'o/r::a.md' twice; keep one of them")


def test_a_file_that_is_no_parquet_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "system.parquet").write_text("q1 Q0 o/r::a.md 1 1 x")
    assert "cannot be read as Parquet" in faults(engine(tmp_path / "system.parquet"))[0]


def test_the_content_is_in_the_fingerprint_and_the_path_is_not(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    first = trec(tmp_path, "q1 Q0 o/r::a.md 1 1 x").fingerprint_inputs()
    assert trec(tmp_path / "elsewhere", "q1 Q0 o/r::a.md 1 1 x").fingerprint_inputs() == first
    assert trec(tmp_path, "q1 Q0 o/r::a.md 1 2 x").fingerprint_inputs() != first


@given(st.lists(st.binary(max_size=12), max_size=8, unique=True))
def test_a_document_id_holds_no_space_and_tells_every_path_from_every_other(paths: list[bytes]) -> None:
    ids = [document_id("o/r", path) for path in paths]
    assert all(name.split() == [name] and name.encode() for name in ids)
    assert len(set(ids)) == len(paths)


def test_a_document_id_is_the_identity_where_that_can_be_written() -> None:
    assert document_id("o/r", "skills/学習-é.md".encode()) == "o/r::skills/学習-é.md"
    assert document_id("o/r", b"a b\xff%\n.md") == "o/r::a%20b%FF%25%0A.md"


def as_trec(hits: Path) -> str:
    return "".join(
        f"{row['query_id']} Q0 {document_id(row['tap'], row['path'])} {row['raw_rank']} {row['score']!r} bm25\n"
        for row in pq.read_table(hits).to_pylist()
    )


def without_engine(feed: Path, name: str) -> list[dict[str, Any]]:
    rows = pq.read_table(feed / "metrics.parquet", filters=[("engine", "=", name)]).drop_columns("engine").to_pylist()
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


def test_the_run_file_of_an_engine_scores_what_the_engine_scores(
    examples: Path, stored: Path, tmp_path: Path, assay: Assay
) -> None:
    config = project_with(examples, tmp_path / "project", '[engines.bm25]\n[engines.theirs]\nkind = "run-file"\n')
    (hits,) = stored.glob("store/rank/*/hits.parquet")
    (tmp_path / "their.run").write_text(as_trec(hits))
    ended = assay(
        "run", "--config", config, "--store", stored, "--engines.theirs.path", tmp_path / "their.run", "--json"
    )
    assert ended.exit_code == 0, ended.err
    feed = Path(ended.json["feed"])
    assert without_engine(feed, "theirs") == without_engine(feed, "bm25")
    assert len(without_engine(feed, "bm25")) > 500
    moved = Path((tmp_path / "their.run").rename(tmp_path / "moved.run"))
    again = assay("run", "--config", config, "--store", stored, "--engines.theirs.path", moved, "--json")
    assert again.json["run_id"] == ended.json["run_id"]


def test_a_wrong_run_file_ends_with_2_and_publishes_nothing(
    examples: Path, stored: Path, tmp_path: Path, assay: Assay
) -> None:
    engines = '[engines.theirs]\nkind = "run-file"\npath = "their.run"\n'
    config = project_with(examples, tmp_path / "project", engines)
    (config.parent / "their.run").write_text("q Q0 d 1 1 x\n")
    before = sorted(stored.glob("feed/run=*"))
    read = sorted(stored.glob("store/*/*"))
    ended = assay("run", "--config", config, "--store", stored, "--max-file-bytes", 999_999)
    assert ended.exit_code == 2
    assert sorted(stored.glob("store/*/*")) == read  # before any work
    assert "their.run line 1: no golden set asks the query 'q'" in ended.err
    assert sorted(stored.glob("feed/run=*")) == before
