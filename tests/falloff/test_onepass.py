"""Every subset of an order is ranked as an index rebuilt for it ranks, bit for bit."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines import Answer, Lent, Query
from pipeline.engines.bm25 import Bm25, Bm25Options, Metadata, MetadataOptions
from pipeline.engines.hybrid import Hybrid, HybridOptions
from pipeline.engines.lexical import IndexedTaps
from pipeline.engines.okapi import Okapi, OkapiOptions
from pipeline.engines.ranking import Ranking, rank_answers
from pipeline.falloff import orders
from pipeline.falloff.onepass import Cell, FusedCurve, ScoreCurve, WordCurve
from tests.falloff.corpora import VOCABULARY, Entry, Small, questions, ranked, rebuilt, smalls

ENGINES: Sequence[Bm25 | Okapi] = [
    Bm25(Bm25Options()),
    Bm25(Bm25Options(prefix=False, b=0.3)),
    Metadata(MetadataOptions()),
    Okapi(OkapiOptions()),
]


def curve(small: Small, engine: Bm25 | Okapi, queries: list[Query]) -> WordCurve:
    corpus = small.corpus
    return WordCurve(IndexedTaps(small.indexes(engine)), engine, queries, corpus.class_of, corpus.in_targets)


def some_subsets(small: Small) -> list[orders.Subsets]:
    corpus = small.corpus
    taps = [orders.every_unit(corpus, order) for order in orders.random_orders(corpus, 1).drawn]
    nominal = orders.sizes_by_factor(corpus, 4).nominal
    return [*taps, *(orders.subsets(corpus, order, nominal) for order in orders.entry_orders(corpus, 1).drawn)]


def same(cell: Cell, ranking: Ranking) -> None:
    assert cell.rows.tolist() == ranking.entries.tolist()
    assert cell.scores.tolist() == ranking.scores.tolist()
    assert cell.ranks.tolist() == ranking.ranks.tolist()


@settings(deadline=None, max_examples=25)
@given(smalls, questions, st.sampled_from(ENGINES))
def test_every_subset_is_ranked_as_by_an_index_rebuilt_for_it(
    small: Small, queries: list[Query], engine: Bm25 | Okapi
) -> None:
    one_pass = curve(small, engine, queries)
    for subsets in some_subsets(small):
        rankings = one_pass.rank(subsets)
        for step in range(subsets.steps):
            rows = np.flatnonzero(subsets.step_of <= step).tolist()
            for query, ranking in enumerate(rebuilt(small, engine, rows, queries)):
                same(rankings.cell(step, query), ranking)
            answers = engine.retriever(small.indexes(engine, rows)).answer(queries)
            reach = [answer.reach or math.nan for answer in answers]
            np.testing.assert_array_equal(rankings.reach.reshape(subsets.steps, -1)[step], reach)


@settings(deadline=None, max_examples=8)
@given(smalls, st.integers(0, 10**6))
def test_scores_that_no_subset_changes_are_ranked_among_the_entries_of_each(small: Small, seed: int) -> None:
    corpus = small.corpus
    # Few different scores, so that many tie; some are no hits.
    scores = np.random.default_rng(seed).integers(-1, 4, (2, corpus.entries)) / 4
    for subsets in some_subsets(small):
        whole = [Answer("q", np.flatnonzero(of > 0), of[of > 0]) for of in scores]
        rankings = ScoreCurve.of(whole, corpus.class_of).rank(subsets)
        for step in range(subsets.steps):
            rows = np.flatnonzero(subsets.step_of <= step)
            for query in range(2):
                hits = np.flatnonzero(scores[query, rows] > 0)
                answer = Answer("q", hits, scores[query, rows][hits])
                same(rankings.cell(step, query), ranked(answer, corpus.class_of[rows], rows))


@settings(deadline=None, max_examples=8)
@given(smalls, questions)
def test_a_fused_curve_is_what_the_engine_hybrid_makes_of_both(small: Small, queries: list[Query]) -> None:
    corpus = small.corpus
    engines = (Bm25(Bm25Options()), Okapi(OkapiOptions()))
    curves = tuple(curve(small, engine, queries) for engine in engines)
    hybrid = Hybrid(HybridOptions(of=["one", "two"]))
    for subsets in some_subsets(small)[:1]:
        rankings = FusedCurve((curves[0], curves[1]), 60, corpus.class_of).rank(subsets)
        for step in range(subsets.steps):
            rows = np.flatnonzero(subsets.step_of <= step)
            entries = small.listed(rows.tolist())
            hits = [
                rank_answers(e.retriever(small.indexes(e, rows.tolist())).answer(queries), entries).hits
                for e in engines
            ]
            answers = hybrid.answer(Lent(queries, frozenset(), entries, hits))
            for query, answer in enumerate(answers):
                same(rankings.cell(step, query), ranked(answer, corpus.class_of[rows], rows))
                assert rankings.reach[step * len(queries) + query] == answer.reach


def crowded(seed: int) -> Small:
    """More classes than a ranking holds in most subsets; every fifth entry is a mirror, and scores tie often."""
    random_ = random.Random(seed)
    taps = [f"t/{place}" for place in range(9)]
    bodies: list[str] = []
    for number in range(9 * 45):
        known = random_.choice(bodies) if bodies and number % 5 == 0 else ""
        bodies.append(known or " ".join([*random_.choices(VOCABULARY, k=random_.randrange(1, 7)), f"w{number}"]))
    entries = [
        Entry(taps[n // 45], b"%03d" % n, random_.choice(["alpha", "gamma", "x"]), body)
        for n, body in enumerate(bodies)
    ]
    return Small(tuple(taps), tuple(entries), frozenset(taps[:2]))


CROWD = [
    Query(f"q{number}", text) for number, text in enumerate(("alpha", "beta gammas", "zeta delt alpha beta", "w7"))
]


@settings(deadline=None, max_examples=4)
@given(st.integers(0, 10**9), st.sampled_from(ENGINES))
def test_rankings_that_are_full_are_ranked_as_by_an_index_rebuilt_too(seed: int, engine: Bm25 | Okapi) -> None:
    """What a larger subset is ranked by leaves out what cannot be among the first 100 classes; nothing else is lost."""
    small = crowded(seed)
    one_pass = curve(small, engine, CROWD)
    for subsets in some_subsets(small):
        rankings = one_pass.rank(subsets)
        assert rankings.ranks.max() == 100
        for step in range(subsets.steps):
            rows = np.flatnonzero(subsets.step_of <= step).tolist()
            for query, ranking in enumerate(rebuilt(small, engine, rows, CROWD)):
                same(rankings.cell(step, query), ranking)


def test_full_rankings_by_scores_that_no_subset_changes() -> None:
    small = crowded(0)
    scores = np.random.default_rng(0).integers(-1, 40, (2, small.corpus.entries)) / 40
    for subsets in some_subsets(small):
        rankings = ScoreCurve(scores, small.corpus.class_of).rank(subsets)
        for step in range(subsets.steps):
            rows = np.flatnonzero(subsets.step_of <= step)
            for query in range(2):
                hits = np.flatnonzero(scores[query, rows] > 0)
                answer = Answer("q", hits, scores[query, rows][hits])
                same(rankings.cell(step, query), ranked(answer, small.corpus.class_of[rows], rows))


def test_more_mirrors_than_are_looked_at_first_do_not_cut_a_ranking_short() -> None:
    """400 mirrors of the best class stand before 120 other classes."""
    small = Small(
        ("t/0",),
        tuple(
            [Entry("t/0", b"a%03d" % n, "x", "alpha alpha") for n in range(400)]
            + [Entry("t/0", b"b%03d" % n, "x", f"alpha w{n:03}") for n in range(120)]
        ),
        frozenset({"t/0"}),
    )
    queries = [Query("q", "alpha")]
    order = orders.Order("random", 0, np.zeros(520, np.int64))
    cell = curve(small, ENGINES[0], queries).rank(orders.every_unit(small.corpus, order)).cell(0, 0)
    (ranking,) = rebuilt(small, ENGINES[0], range(520), queries)
    same(cell, ranking)
    assert cell.rows.size == 499


def test_a_ranking_deeper_than_what_was_set_aside_for_it_is_kept_whole() -> None:
    small = Small(
        ("t/0",),
        tuple(
            [Entry("t/0", b"a%05d" % n, "x", "alpha alpha") for n in range(2000)]
            + [Entry("t/0", b"b", "x", "alpha beta")]
        ),
        frozenset({"t/0"}),
    )
    order = orders.Order("random", 0, np.zeros(2001, np.int64))
    cell = curve(small, ENGINES[0], [Query("q", "alpha")]).rank(orders.every_unit(small.corpus, order)).cell(0, 0)
    assert cell.rows.size == 2001
    assert cell.ranks[[0, 1, 2000]].tolist() == [1, 0, 2]
