"""What is held against other packages, what is drawn for it, and what a difference does to a night."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.checks import CheckRow, Sample, minhash, okapi
from pipeline.checks.peers import check_all
from pipeline.checks.sampling import drawn
from pipeline.engines import Engine, Query
from pipeline.engines.bm25 import Bm25, Bm25Options, Metadata, MetadataOptions
from pipeline.engines.okapi import Okapi, OkapiOptions, OkapiRetriever
from pipeline.errors import CheckFailed
from tests.conftest import Ended, feed_bytes
from tests.engines.test_bm25 import Document, corpora, queries

Assay = Callable[..., Ended]


def sample(entries: Sequence[Document], *questions: str) -> Sample:
    columns = {
        "tap": [f"acme/{row // 3}" for row in range(len(entries))],
        "path_text": [f"{row}.md" for row in range(len(entries))],
        **{name: [entry[place] for entry in entries] for place, name in enumerate(("slug", "description", "body"))},
    }
    table = pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})
    return Sample(table, [Query(f"q{place}", text) for place, text in enumerate(questions)])


ENTRIES: list[Document] = [
    ("alpha-beta", "gamma", "delta alpha"),
    ("beta", None, "alpha beta beta"),
    ("x", None, "c++"),
]


class WrongK1(Okapi):
    """An engine that scores by another k1 than it says."""

    def retriever(self, indexes: Sequence[bytes | memoryview | pa.Buffer]) -> OkapiRetriever:
        return Okapi(self.options.model_copy(update={"k1": self.options.k1 + 1e-6})).retriever(indexes)


@settings(deadline=None, max_examples=30)
@given(corpora)
def test_signatures_of_any_bodies_pass(entries: list[Document]) -> None:
    row = only(sample(entries), {}, "signatures")
    assert row.passed in (True, None) and (row.passed is None) == (row.values == 0)


def test_a_signature_that_differs_is_refused_with_its_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    def off_by_one(bodies: list[str]) -> np.ndarray[tuple[int, int], np.dtype[np.uint32]]:
        signed = by_peer(bodies)
        signed[1, 5] += 1
        return signed

    by_peer = minhash._theirs
    monkeypatch.setattr(minhash, "_theirs", off_by_one)
    with pytest.raises(CheckFailed, match=r"the signature of acme/0::1.md differs; .* find out whether datasketch"):
        check_all(sample(ENTRIES), {})


@settings(deadline=None, max_examples=30)
@given(corpora, st.lists(queries, max_size=3), st.sampled_from(["unicode", "ascii"]), st.integers(0, 2))
def test_scores_of_any_entries_pass(entries: list[Document], asked: list[str], tokenizer: str, weight: int) -> None:
    engine = Okapi(OkapiOptions.model_validate({"tokenizer": tokenizer, "body_weight": weight}))
    row = only(sample(entries, *asked), {"bm25-okapi": engine})
    assert row.passed in (True, None)
    assert (row.worst_difference is None) == (row.values == 0) == (row.passed is None)


def test_a_score_that_differs_is_refused_with_its_question_and_its_entry() -> None:
    asked = sample(ENTRIES, "nothing of it", "gamma")
    with pytest.raises(CheckFailed, match=r"question q1 \('gamma'\) the entry acme/0::0.md has the score") as caught:
        check_all(asked, {"wrong": WrongK1(OkapiOptions()), "right": Okapi(OkapiOptions())})
    (line,) = str(caught.value).splitlines()
    assert "okapi-scores of wrong" in line and "rank-bm25" in line
    assert caught.value.exit_code == 1


def test_a_score_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(okapi, "_ours", lambda engine, entries, sample: np.full((1, entries.num_rows), np.nan))
    with pytest.raises(CheckFailed, match="has the score nan"):
        check_all(sample(ENTRIES, "gamma"), {"bm25-okapi": Okapi(OkapiOptions())})


def only(sample: Sample, engines: Mapping[str, Engine], check: str = "okapi-scores") -> CheckRow:
    (row,) = [row for row in check_all(sample, engines) if row.check == check]
    return row


def test_without_an_engine_of_the_kind_the_index_of_bm25_is_checked() -> None:
    engines: dict[str, Engine] = {
        "mine": Bm25(Bm25Options(tokenizer="ascii")),
        "metadata": Metadata(MetadataOptions()),
    }
    row = only(sample(ENTRIES, "gamma"), engines)
    assert (row.subject, row.entries, row.values, row.passed) == ("index of mine", 3, 3, True)
    assert okapi.subjects(engines)["index of mine"].options.tokenizer == "ascii"
    assert okapi.subjects({**engines, "o": Okapi(OkapiOptions())}).keys() == {"o"}
    assert [row.check for row in check_all(sample(ENTRIES, "gamma"), {"metadata": engines["metadata"]})] == [
        "signatures"
    ]


def test_what_the_package_has_no_number_for_is_told_and_not_passed() -> None:
    row = only(sample(ENTRIES, "gamma"), {"bm25-okapi": Okapi(OkapiOptions(k1=0.0))})
    assert (row.values, row.passed) == (1, True)
    assert "2 not compared" in row.detail
    assert only(sample([], "gamma"), {"bm25-okapi": Okapi(OkapiOptions())}).passed is None
    assert only(sample(ENTRIES), {"bm25-okapi": Okapi(OkapiOptions())}).passed is None


def test_giants_do_not_make_the_night_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(okapi, "MOST_BYTES", 40)
    assert only(sample(ENTRIES, "gamma"), {"o": Okapi(OkapiOptions())}).entries == 3
    assert only(sample(ENTRIES, "gamma"), {"o": Okapi(OkapiOptions(body_weight=2))}).entries == 1


names = st.lists(st.binary(max_size=4), unique=True, max_size=30)


@given(names, st.randoms(), st.integers(0, 10))
def test_what_is_drawn_depends_on_no_order(found: list[bytes], shuffle: random.Random, size: int) -> None:
    chosen = {found[place] for place in drawn(found, "a", size)}
    assert len(chosen) == min(size, len(found))
    other = list(found)
    shuffle.shuffle(other)
    assert {other[place] for place in drawn(other, "a", size)} == chosen


def test_another_corpus_draws_others() -> None:
    entries = [str(row).encode() for row in range(1000)]
    assert len({*drawn(entries, "a", 200)} & {*drawn(entries, "b", 200)}) < 80


def test_a_night_in_which_a_check_fails_publishes_nothing_and_is_checked_again(
    stored: Path, finished: Path, examples: Path, assay: Assay, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(stored / "feed")
    shutil.rmtree(stored / "store" / "checks")
    options = ("run", "--config", examples / "config" / "assay.toml", "--store", stored)
    with monkeypatch.context() as broken:
        theirs = okapi._theirs
        broken.setattr(okapi, "_theirs", lambda *given: theirs(*given) + 2e-9)
        for _ in range(2):
            ended = assay(*options)
            assert ended.exit_code == 1
            assert "assay: the check okapi-scores of index of bm25 fails, so nothing is published" in ended.err
            assert feed_bytes(stored) == {}
    assert assay(*options).exit_code == 0
    assert feed_bytes(stored) == feed_bytes(finished)


def test_the_outcome_is_published_and_shown(finished: Path, stored: Path, examples: Path, assay: Assay) -> None:
    (run,) = (finished / "feed").glob("run=*")
    row, signatures = pq.read_table(run / "checks.parquet").to_pylist()
    assert (signatures["check"], signatures["passed"], signatures["values"]) == ("signatures", True, 40 * 128)
    assert (row["check"], row["subject"], row["passed"]) == ("okapi-scores", "index of bm25", True)
    assert row["entries"] == 200 and row["values"] == 200 * 32 and row["worst_difference"] < 1e-9
    assert row["peer"] in (run / "report.html").read_text()
    ended = assay("run", "--config", examples / "config" / "assay.toml", "--store", stored)
    assert f"okapi-scores of index of bm25 with {row['peer']}" in ended.out
