"""Engine ``bm25-okapi``: the scores of ``rank_bm25.BM25Okapi`` 0.2.2, whose IDF is floored.

The score of an entry is the sum, over the words of the query in order and as often as they occur, of
``idf * (tf * (k1 + 1)) / (tf + k1 * (1 - b + b * dl / avgdl))`` with ``idf = ln(N - df + 0.5) - ln(df + 0.5)``; where
that is below 0, for a word in more than half of the entries, it is ``epsilon`` times the mean IDF over the vocabulary.
The mean is an exactly rounded sum, so it has the same bits in any order of entries and taps.

The reach of a query is the same sum with every word at its bound, ``idf * (k1 + 1)``, or 0 where its IDF is below 0;
see `pipeline.engines.bm25`. A word that no entry holds counts there too, with df = 0.

A word in exactly half of the entries scores 0, and where most words are in most entries the mean is below 0, and so are
scores: a corpus of one or two entries answers little or nothing. That is the measure, and is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, JsonValue

from pipeline.engines import Answer, Earlier, Query, Updated
from pipeline.engines.bm25 import most_of, total
from pipeline.engines.lexical import IndexedTaps, WordOptions, index_inputs, index_tap, update_tap
from pipeline.engines.text import words
from pipeline.records import Record

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class OkapiOptions(WordOptions):
    """Options of engine ``bm25-okapi``."""

    k1: float = Field(1.5, ge=0, allow_inf_nan=False, description="How slowly repeated words saturate.")
    b: float = Field(0.75, ge=0, le=1, description="How far a long entry is marked down, from 0 to 1.")
    epsilon: float = Field(
        0.25, ge=0, allow_inf_nan=False, description="Share of the mean IDF that a word in most entries gets."
    )


class Okapi:
    """The engine: indexes taps as ``bm25`` does, and joins the indexes into a retriever."""

    name: ClassVar[str] = "bm25-okapi"
    VERSION: ClassVar[int] = 1
    Options: ClassVar[type[Record]] = OkapiOptions

    def __init__(self, options: OkapiOptions) -> None:
        self.options = options

    def why_not(self) -> str | None:
        """Return None: it can always run."""
        return None

    def index_inputs(self) -> dict[str, JsonValue]:
        """Return what the index of a tap depends on."""
        return index_inputs(self.options)

    def fingerprint_inputs(self) -> dict[str, JsonValue]:
        """Return what scores depend on: the index, k1, b and epsilon."""
        parameters = {"k1": self.options.k1, "b": self.options.b, "epsilon": self.options.epsilon}
        return {"index": self.index_inputs(), **parameters}

    def index_tap(self, entries: pa.Table) -> bytes:
        """Index the entries of one tap."""
        return index_tap(self.options, entries)

    def update_tap(self, entries: pa.Table, earlier: Earlier) -> Updated:
        """Index the entries of one tap, and take those over that stayed as they were."""
        return update_tap(self.options, entries, earlier)

    def retriever(self, indexes: Sequence[bytes | memoryview | pa.Buffer]) -> OkapiRetriever:
        """Join the indexes of taps, in the order of the corpus, into one corpus."""
        return OkapiRetriever(IndexedTaps(indexes), self.options)


class OkapiRetriever:
    """A corpus that answers by Okapi's BM25."""

    def __init__(self, corpus: IndexedTaps, options: OkapiOptions) -> None:
        self._corpus = corpus
        self._options = options

    def answer(self, queries: Sequence[Query]) -> Iterator[Answer]:
        """Answer each query, in order."""
        import numpy as np

        asked = [words(query.text, self._options.tokenizer) for query in queries]
        for query, query_words, (scores, unknown, reach) in zip(queries, asked, self._scored(asked), strict=True):
            entries = np.flatnonzero(scores > 0)
            yield Answer(query.query_id, entries, scores[entries], unknown, (), not query_words, reach)

    def scores(self, query: str) -> NDArray[np.float64]:
        """Return the score of every entry, those of 0 and below included."""
        ((scores, _, _),) = self._scored([words(query, self._options.tokenizer)])
        return scores

    def _scored(self, asked: Sequence[Sequence[str]]) -> Iterator[tuple[NDArray[np.float64], tuple[str, ...], float]]:
        """Yield the scores of every entry, the words that none holds, and the reach, for the words of each query."""
        import numpy as np

        from pipeline.engines import kernel

        terms = self._corpus.look_up({word for query in asked for word in query})
        known = {word: term for word, term in terms.items() if term.df > 0}
        number = {word: place for place, word in enumerate(known)}
        postings = self._corpus.gather(list(known.values()))
        df = [term.df for term in known.values()]
        weights = floored(self._corpus.entries, df, self._options.epsilon, self._corpus.frequencies)
        reaches = {word: most_of(weight, self._options.k1) for word, weight in zip(known, weights, strict=True)}
        nowhere = most_of(idf(self._corpus.entries, 0), self._options.k1)
        norms = self._corpus.norms(self._options.k1, self._options.b)
        for query in asked:
            scores = np.zeros(self._corpus.entries, np.float64)
            chosen = np.array([number[word] for word in query if word in number], np.int64)
            kernel.add_scores(scores, chosen, *postings, np.array(weights, np.float64), norms, self._options.k1)
            unknown = tuple(word for word in dict.fromkeys(query) if word not in number)
            yield scores, unknown, total(reaches.get(word, nowhere) for word in query)


def idf(entries: int, df: int) -> float:
    """Return the IDF of a word that ``df`` of so many entries hold, before it is floored."""
    return math.log(entries - df + 0.5) - math.log(df + 0.5)


def floored(
    entries: int, df: Sequence[int], epsilon: float, words_by_df: Callable[[], NDArray[np.int64]]
) -> list[float]:
    """Return the IDF of words, floored.

    Args:
        entries: entries of the corpus.
        df: how many of them hold each word, 1 or more.
        epsilon: share of the mean IDF that a word in most entries gets.
        words_by_df: gives for each df from 0 on how many words of the corpus have it; called only where it is needed.
    """
    plain = [idf(entries, each) for each in df]
    floor = epsilon * mean_idf(entries, words_by_df()) if min(plain, default=0.0) < 0 else 0.0
    return [floor if each < 0 else each for each in plain]


def mean_idf(entries: int, words_by_df: NDArray[np.int64]) -> float:
    """Return the mean IDF over the vocabulary, before any is floored.

    The sum is exactly rounded, as that of ``math.fsum``: in whole numbers, which a division rounds once.
    """
    counts = [(df, count) for df, count in enumerate(words_by_df.tolist()) if df and count]
    ratios = [(idf(entries, df).as_integer_ratio(), count) for df, count in counts]
    scale = max(below for (_, below), _ in ratios)  # powers of 2, so the largest is a multiple of all
    total: int = sum(count * above * (scale // below) for (above, below), count in ratios)
    words: int = sum(count for _, count in counts)
    return (total / scale) / words
