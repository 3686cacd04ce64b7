"""The most that a query could reach: no entry passes it, and it says nothing where an engine has no bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines import Answer, IndexEngine, Lent, Query
from pipeline.engines.bm25 import Bm25, Bm25Options, Metadata, MetadataOptions
from pipeline.engines.hybrid import Hybrid, HybridOptions
from pipeline.engines.okapi import Okapi, OkapiOptions
from pipeline.engines.ranking import HITS, rank_answers
from tests.engines.test_bm25 import Document, corpora, queries, table
from tests.engines.test_hybrid import hit
from tests.engines.test_ranking import corpus

engines = st.one_of(
    st.builds(
        lambda k1, prefix: Bm25(Bm25Options(k1=k1, prefix=prefix)), st.sampled_from([0.0, 0.9, 2.0]), st.booleans()
    ),
    st.builds(lambda b: Metadata(MetadataOptions(b=b)), st.sampled_from([0.0, 0.75, 1.0])),
    st.builds(lambda k1: Okapi(OkapiOptions(k1=k1)), st.sampled_from([0.0, 1.5])),
)


def ask(engine: IndexEngine, entries: Sequence[Document], query: str) -> Answer:
    (answer,) = engine.retriever([engine.index_tap(table(entries))]).answer([Query("q", query)])
    return answer


@settings(deadline=None)
@given(engines, corpora, queries)
def test_no_entry_passes_the_reach_of_a_query(engine: Any, entries: list[Document], query: str) -> None:
    answer = ask(engine, entries, query)
    assert answer.reach is not None
    assert answer.reach * (1 + 1e-12) >= answer.scores.max(initial=0.0)


def test_an_entry_of_nothing_but_the_word_comes_near_the_reach() -> None:
    others: list[Document] = [("other", None, "delta gamma")] * 9
    scores = [ask(Bm25(Bm25Options()), [("x", None, "alpha " * n), *others], "alpha") for n in (1, 10, 1000)]
    shares = [float(answer.scores[0]) / float(answer.reach or 0) for answer in scores]
    assert shares == sorted(shares)
    assert shares[0] < 0.7
    assert 0.9 < shares[-1] < 1


def test_a_word_that_no_entry_holds_can_be_reached_too() -> None:
    entries: list[Document] = [("x", None, "alpha"), ("y", None, "beta")]
    rare, common = math.log(1 + 2.5 / 0.5), math.log(1 + 1.5 / 1.5)
    assert ask(Bm25(Bm25Options()), entries, "alpha zzzz").reach == pytest.approx(2.2 * (rare + common), abs=1e-12)
    assert ask(Bm25(Bm25Options()), entries, "alpha alpha").reach == pytest.approx(2.2 * common, abs=1e-12)
    three = [*entries, ("z", None, "gamma")]
    wanted = 2.5 * (2 * (math.log(2.5) - math.log(1.5)) + math.log(3.5) - math.log(0.5))
    assert ask(Okapi(OkapiOptions()), three, "alpha alpha zzzz").reach == pytest.approx(wanted, abs=1e-12)


def test_a_fusion_reaches_its_most_where_both_engines_agree() -> None:
    entries = pa.table({"tap": ["o/r"], "path": pa.array([b"a"], pa.binary())})
    first = pa.Table.from_pylist([hit(1, "x", b"a")], HITS.schema)
    engine = Hybrid(HybridOptions(of=["one", "two"], constant=7))
    (answer,) = engine.answer(Lent([Query("q", "")], {"q"}, entries, [first, first]))
    assert answer.scores.tolist() == [answer.reach] == [2 / 8]


@pytest.mark.parametrize(
    ("stated", "kept"), [(None, None), (0.0, None), (-1.0, None), (math.inf, None), (math.nan, None), (2.5, 2.5)]
)
def test_a_bound_that_is_none_is_null(stated: float | None, kept: float | None) -> None:
    answer = Answer("q", np.array([0], np.int64), np.array([1.0]), reach=stated)
    assert rank_answers([answer], corpus(["x"])).queries["reach"].to_pylist() == [kept]
