"""Scores of engine bm25-okapi, against the package whose scores it promises."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from pipeline.catalog.entries import catalogue
from pipeline.engines import Query
from pipeline.engines.bm25 import Bm25, Bm25Options, Metadata, MetadataOptions
from pipeline.engines.okapi import Okapi, OkapiOptions, OkapiRetriever
from pipeline.engines.text import opened, words
from pipeline.store import Store
from pipeline.taps.snapshot import SnapshotOptions, read_files, snapshot
from pipeline.taps.taplist import read_tap_list
from tests.engines.test_bm25 import Document, corpora, queries, table

DEFAULT = OkapiOptions()
options = st.builds(
    OkapiOptions,
    tokenizer=st.sampled_from(["unicode", "ascii"]),
    k1=st.sampled_from([0.5, 1.5, 2.0]),
    b=st.sampled_from([0.0, 0.75, 0.9]),  # at 1 the package divides 0 by 0 for an empty entry
    epsilon=st.sampled_from([0.0, 0.25, 1.0]),
    body_weight=st.integers(0, 2),
)


def asked(taps: Sequence[Sequence[Document]], options: OkapiOptions = DEFAULT) -> OkapiRetriever:
    engine = Okapi(options)
    return engine.retriever([engine.index_tap(table(tap)) for tap in taps])


def words_of(document: Document, options: OkapiOptions) -> list[str]:
    slug, description, body = document
    weighed = (
        (opened(slug), min(options.name_weight, 1)),
        (slug, options.name_weight - 1),
        (description or "", options.description_weight),
        (body, options.body_weight),
    )
    return [word for text, weight in weighed for word in words(text, options.tokenizer) * weight]


def theirs(entries: Sequence[Document], query: str, options: OkapiOptions = DEFAULT) -> NDArray[np.float64]:
    """The scores of the package, or none where it divides by zero: without entries, or without a word in any."""
    documents = [words_of(entry, options) for entry in entries]
    if not any(documents):
        return np.zeros(len(entries))
    peer = BM25Okapi(documents, k1=options.k1, b=options.b, epsilon=options.epsilon)
    scores: NDArray[np.float64] = peer.get_scores(words(query, options.tokenizer))
    return scores


@settings(deadline=None, max_examples=300)
@given(corpora, queries, options)
def test_scores_are_those_of_the_package(entries: list[Document], query: str, options: OkapiOptions) -> None:
    np.testing.assert_allclose(asked([entries], options).scores(query), theirs(entries, query, options), 1e-9, 1e-9)


@pytest.mark.parametrize("size", [1, 2, 3, 10])
@pytest.mark.parametrize("query", ["alpha", "beta", "gamma", "alpha beta beta", "rare gamma"])
def test_scores_of_a_small_corpus_are_those_of_the_package(size: int, query: str) -> None:
    """Every entry holds alpha, half of them beta, the first gamma: an IDF below 0, of 0, and above 0."""
    entries: list[Document] = [
        ("alpha", None, "beta alpha" * (row % 2) + " gamma word" * (row == 0)) for row in range(size)
    ]
    scores = asked([entries]).scores(query)
    np.testing.assert_allclose(scores, theirs(entries, query), 1e-9, 1e-9)


def test_two_entries_answer_nothing_and_three_do() -> None:
    """The known trap: a word in half of the entries weighs nothing, so two entries cannot be told apart."""
    pair: list[Document] = [("alpha", None, ""), ("beta", None, "")]
    (answer,) = asked([pair]).answer([Query("q", "alpha")])
    assert answer.entries.size == 0
    (answer,) = asked([[*pair, ("gamma", None, "")]]).answer([Query("q", "alpha")])
    assert answer.entries.tolist() == [0]


def test_a_word_counts_as_often_as_it_is_asked_for() -> None:
    entries: list[Document] = [("alpha", None, ""), ("beta", None, ""), ("gamma", None, "")]
    once, twice = (asked([entries]).scores(query) for query in ("alpha", "alpha alpha"))
    assert twice[0] == 2 * once[0] > 0


@settings(deadline=None, max_examples=200)
@given(corpora, st.lists(st.integers(0, 10), max_size=4), queries, st.randoms())
def test_scores_have_the_same_bits_in_any_order_of_taps(
    entries: list[Document], cuts: list[int], query: str, shuffle: random.Random
) -> None:
    edges = [0, *sorted(cuts), len(entries)]
    taps = [range(min(start, len(entries)), min(end, len(entries))) for start, end in pairwise(edges)]
    taps = [*taps, range(taps[-1].stop, len(entries))]
    whole = asked([entries]).scores(query)
    shuffle.shuffle(taps)
    rows = [row for tap in taps for row in tap]
    cut = asked([[entries[row] for row in tap] for tap in taps]).scores(query)
    assert cut.tolist() == whole[rows].tolist()


@pytest.mark.parametrize("taps", [[], [[]], [[("x", None, "")]]])
def test_a_corpus_without_a_word_answers_nothing(taps: list[list[Document]]) -> None:
    (answer,) = asked(taps).answer([Query("q", "alpha")])
    assert (answer.entries.size, answer.unknown_words, answer.empty_query) == (0, ("alpha",), False)


def test_an_index_is_shared_where_words_and_weights_agree() -> None:
    assert Okapi(DEFAULT).index_inputs() == Bm25(Bm25Options()).index_inputs()
    assert Okapi(OkapiOptions(body_weight=2)).index_inputs() != Bm25(Bm25Options()).index_inputs()
    assert Metadata(MetadataOptions()).index_inputs() != Bm25(Bm25Options()).index_inputs()


def test_metadata_does_not_see_bodies() -> None:
    engine = Metadata(MetadataOptions())
    tap: pa.Table = table([("alpha", "beta", "gamma")])
    retriever = engine.retriever([engine.index_tap(tap)])
    found = [answer.entries.size for answer in retriever.answer([Query(word, word) for word in ("beta", "gamma")])]
    assert found == [1, 0]


@pytest.mark.corpora
@pytest.mark.slow
def test_scores_of_2000_real_entries_are_those_of_the_package(registries: Path, tmp_path: Path) -> None:
    store = Store(tmp_path)
    taps: list[list[Document]] = []
    for tap in read_tap_list(registries / "taps.toml").taps:
        if sum(map(len, taps)) >= 2000:
            break
        files = read_files(store, snapshot(store, tap, registries, SnapshotOptions()).artifact)
        columns = catalogue(tap.name, files).entries.select(["slug", "description", "body"]).to_pydict()
        taps.append(list(zip(*columns.values(), strict=True)))
    entries = [entry for tap in taps for entry in tap][:2000]
    cut = [tap[: max(0, 2000 - sum(map(len, taps[:number])))] for number, tap in enumerate(taps)]
    assert len(entries) == sum(map(len, cut)) == 2000
    peer = BM25Okapi([words_of(entry, DEFAULT) for entry in entries])
    ours = asked(cut)
    questions = [entry[1] or entry[0] for entry in entries[::100]]
    for question in [*questions, "use the skill when tests tests fail", "写作 代码 rules"]:
        np.testing.assert_allclose(
            ours.scores(question), peer.get_scores(words(question, "unicode")), 1e-9, 1e-9, err_msg=question
        )
