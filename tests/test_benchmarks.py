"""The side-by-side measurements: their input, how they run, and how they are summed up."""

from __future__ import annotations

import math
import re
import runpy
from pathlib import Path
from statistics import mean

import pyarrow as pa
import pytest

from benchmarks import growth, inputs, running, tables
from benchmarks.contests import CONTESTS, Contender, Contest
from pipeline.engines.text import STOPWORDS, words

PAIR = Contest("a contest", (Contender("ours", "a.py", "t"), Contender("theirs", "b.py", "t")))
RUN = {"cpu": 2.0, "wall": 2.5, "memory": 1_000_000, "import_cpu": 1.0, "compile_cpu": 3.0, "result": [[1, 2], []]}


@pytest.fixture(scope="module")
def few() -> pa.Table:
    rows = [
        {
            "tap": f"acme/{number // 5}",
            "path": f"skills/{number}/SKILL.md".encode(),
            "path_text": f"skills/{number}/SKILL.md",
            "slug": f"skill-{number}",
            "description": "reads a table and draws a chart",
            "class_id": f"{number:064}",
            "body": "\n".join(f"line {line} of entry {number}: plot the columns" for line in range(number + 1)),
        }
        for number in range(20)
    ]
    return pa.Table.from_pylist(rows)


def test_times_that_double_four_times_over_a_doubling_grow_as_the_square() -> None:
    assert tables.exponent([1000, 2000, 4000], [1.0, 4.0, 16.0]) == pytest.approx(2.0)
    assert tables.exponent([1000], [1.0]) is None


def test_the_least_time_of_each_gives_the_ratio() -> None:
    slow = [{**RUN, "cpu": cpu} for cpu in (9.0, 8.0, 30.0)]
    ours, theirs = tables.rows(PAIR, {"ours": [RUN, {**RUN, "cpu": 4.0}], "theirs": slow})
    assert (ours.least, ours.ratio, theirs.least, theirs.median, theirs.ratio) == (2.0, 1.0, 8.0, 9.0, 4.0)


def test_a_contender_whose_runs_take_minutes_is_run_less_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Contender("slow", "with_assay.py", "t", runs=1)
    quick = slow._replace(name="quick", runs=None)
    monkeypatch.setattr(running, "_run", lambda *_: RUN)
    names = [contender.name for contender, _ in running.in_turn([slow, quick], tmp_path, 3, "", tmp_path)]
    assert names == ["slow", "quick", "quick", "quick"]


def test_growth_is_shown_with_the_power_that_it_grows_by() -> None:
    points = [growth.Point(size, size / 100, (size / 100) ** 2, 10**9) for size in (100, 1000)]
    lines = growth.as_markdown("entries", points).splitlines()
    assert lines[-2] == "| 1,000 | 10.00 s | 100.00 s | 1.00 GB |"
    assert lines[-1] == "| grows as | n^1.00 | n^2.00 | |"


def test_the_first_start_stands_apart_from_later_ones() -> None:
    (row,) = tables.rows(PAIR, {"ours": [RUN, {**RUN, "compile_cpu": 0.5}]})
    assert row.start == (4.0, 1.5)


def test_a_contender_that_cannot_run_is_shown_with_its_reason() -> None:
    found = tables.rows(PAIR, {"ours": [{"failed": "no module called x"}], "theirs": [RUN]})
    assert "not run: no module called x" in tables.as_markdown(found)
    assert math.isnan(found[1].ratio)


def test_rankings_are_alike_by_the_share_of_the_first_ten_that_they_have_in_common() -> None:
    assert tables.overlap([[1, 2, 3, 4], [5]], [[4, 3, 9, 8], [5]]) == pytest.approx(mean([0.5, 1.0]))


def test_a_smaller_corpus_is_a_sample_and_a_larger_one_holds_the_real_entries_first(few: pa.Table) -> None:
    small, large = inputs.of_size(few, 7), inputs.of_size(few, 50)
    assert small.num_rows == 7
    assert set(small.column("slug").to_pylist()) < set(few.column("slug").to_pylist())
    assert large.slice(0, 20).to_pylist() == few.to_pylist()
    assert large.num_rows == 50
    assert inputs.of_size(few, 50).equals(large)


def test_entries_that_are_generated_stand_behind_the_real_ones_in_the_order_of_taps_and_paths(few: pa.Table) -> None:
    large = inputs.of_size(few, 1000)
    keys = [(tap.encode(), path) for tap, path in zip(large["tap"].to_pylist(), large["path"].to_pylist(), strict=True)]
    assert keys == sorted(keys)


def test_the_vocabulary_grows_with_the_corpus(few: pa.Table) -> None:
    sizes = [len({word for body in inputs.of_size(few, n)["body"].to_pylist() for word in words(body, "ascii")})
             for n in (20, 200, 2000)]  # fmt: skip
    assert sizes[0] < sizes[1] < sizes[2]


def test_every_contender_is_a_task_of_a_program_that_says_what_it_needs() -> None:
    for contest in CONTESTS.values():
        for contender in contest.contenders:
            program = (running.CONTENDERS / contender.program).read_text(encoding="utf-8")
            assert f'"{contender.task}": ' in program, contender
            needed = re.findall(r'"([\w.-]+)==[\d.]+"', program.partition('"""')[0])
            assert needed or contender.program == "with_assay.py", f"{contender.program} pins nothing"


def test_words_of_the_peer_are_cut_without_the_same_stopwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(running.CONTENDERS))
    program = runpy.run_path(str(running.CONTENDERS / "with_rank_bm25.py"))
    assert program["STOPWORDS"] == frozenset(STOPWORDS)


@pytest.mark.slow
def test_a_contender_runs_in_a_process_of_its_own(few: pa.Table, tmp_path: Path) -> None:
    source = inputs.write(few, ["how to plot a table", "zebra"], tmp_path / "input")
    ours = Contender("assay", "with_assay.py", "ascii")
    broken = Contender("broken", "with_assay.py", "there is no such task")
    found = [(who.name, figures) for who, figures in running.in_turn([ours, broken], source, 2, "uv", tmp_path)]
    assert [name for name, _ in found] == ["assay", "broken", "assay"]
    assert "KeyError" in found[1][1]["failed"]
    assert found[0][1]["result"][0] and not found[0][1]["result"][1]
    assert found[0][1]["cpu"] > 0
