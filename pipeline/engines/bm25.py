"""Engine ``bm25``: Robertson's BM25 with an IDF that is never negative. Engine ``metadata``: the same without bodies.

The score of an entry is the sum, over the distinct terms of the query in the order in which they first occur, of
``idf * (tf * (k1 + 1)) / (tf + k1 * (1 - b + b * dl / avgdl))`` with ``idf = ln(1 + (N - df + 0.5) / (df + 0.5))``,
each operation in float64 in the order written. N, df and the total length are integers added up over taps, so scores
have the same bits however entries are cut into taps.

The reach of a query is the sum, over the same terms in the same order, of ``idf * (k1 + 1)``: the second factor of a
term grows with tf towards ``k1 + 1`` and never passes it, because ``k1 (1 - b + b * dl / avgdl)`` is not negative. It
is the upper bound of a term's contribution in Turtle and Flood 1995 and in Broder et al. 2003, taken without regard to
the lists at hand. A term that no entry holds counts with df = 0: an entry that held it would score by it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, JsonValue

from pipeline.engines import Answer, Earlier, Query, Replacement, Updated
from pipeline.engines.lexical import (
    Asked,
    IndexedTaps,
    NameOptions,
    WordOptions,
    find,
    index_inputs,
    index_tap,
    update_tap,
)
from pipeline.engines.text import words
from pipeline.records import Record

if TYPE_CHECKING:
    import pyarrow as pa

SHORTEST_PREFIX = 4
"""Characters that an unknown query word must have for a longer indexed word to stand in for it."""


class MetadataOptions(NameOptions):
    """Options of engine ``metadata``."""

    k1: float = Field(1.2, ge=0, allow_inf_nan=False, description="How slowly repeated words saturate.")
    b: float = Field(0.75, ge=0, le=1, description="How far a long entry is marked down, from 0 to 1.")
    prefix: bool = Field(
        True,
        description="Whether an unknown query word of 4 or more characters becomes the most frequent indexed word that "
        "begins with it.",
    )


class Bm25Options(MetadataOptions, WordOptions):
    """Options of engine ``bm25``."""


class Bm25:
    """The engine: indexes taps, and joins the indexes into a retriever."""

    name: ClassVar[str] = "bm25"
    VERSION: ClassVar[int] = 1
    Options: ClassVar[type[Record]] = Bm25Options

    def __init__(self, options: MetadataOptions) -> None:
        self.options = options

    def why_not(self) -> str | None:
        """Return None: it can always run."""
        return None

    def index_inputs(self) -> dict[str, JsonValue]:
        """Return what the index of a tap depends on."""
        return index_inputs(self.options)

    def fingerprint_inputs(self) -> dict[str, JsonValue]:
        """Return what scores depend on: the index, k1, b, and whether prefixes stand in."""
        return {
            "index": self.index_inputs(),
            "k1": self.options.k1,
            "b": self.options.b,
            "prefix": self.options.prefix,
        }

    def index_tap(self, entries: pa.Table) -> bytes:
        """Index the entries of one tap."""
        return index_tap(self.options, entries)

    def update_tap(self, entries: pa.Table, earlier: Earlier) -> Updated:
        """Index the entries of one tap, and take those over that stayed as they were."""
        return update_tap(self.options, entries, earlier)

    def retriever(self, indexes: Sequence[bytes | memoryview | pa.Buffer]) -> Bm25Retriever:
        """Join the indexes of taps, in the order of the corpus, into one corpus."""
        return Bm25Retriever(IndexedTaps(indexes), self.options)


class Metadata(Bm25):
    """The floor that every engine must beat: ``bm25`` over names and descriptions."""

    name: ClassVar[str] = "metadata"
    Options: ClassVar[type[Record]] = MetadataOptions


class Bm25Retriever:
    """A corpus that answers by BM25."""

    def __init__(self, corpus: IndexedTaps, options: MetadataOptions) -> None:
        self._corpus = corpus
        self._options = options

    def answer(self, queries: Sequence[Query]) -> Iterator[Answer]:
        """Answer each query, in order."""
        import numpy as np

        from pipeline.engines import kernel

        asked = [words(query.text, self._options.tokenizer) for query in queries]
        terms = self._corpus.look_up({word for query in asked for word in query})
        stand_ins = self._stand_ins(word for word, term in terms.items() if term.df == 0)
        terms |= self._corpus.look_up(stand_ins.values())
        known = [word for word, term in terms.items() if term.df > 0]
        number = {word: place for place, word in enumerate(known)}
        postings = self._corpus.gather([terms[word] for word in known])
        weights = np.array([idf(self._corpus.entries, terms[word].df) for word in known], np.float64)
        norms = self._corpus.norms(self._options.k1, self._options.b)
        for query, query_words in zip(queries, asked, strict=True):
            unknown = [word for word in dict.fromkeys(query_words) if terms[word].df == 0]
            used = dict.fromkeys(stand_ins.get(word, word) for word in query_words)
            chosen = np.array([number[word] for word in used if word in number], np.int64)
            scores = np.zeros(self._corpus.entries, np.float64)
            kernel.add_scores(scores, chosen, *postings, weights, norms, self._options.k1)
            entries = np.flatnonzero(scores > 0)
            replaced = tuple(Replacement(word, stand_ins[word]) for word in unknown if word in stand_ins)
            reach = total(most_of(idf(self._corpus.entries, terms[word].df), self._options.k1) for word in used)
            yield Answer(query.query_id, entries, scores[entries], tuple(unknown), replaced, not query_words, reach)

    def _stand_ins(self, unknown: Iterable[str]) -> dict[str, str]:
        """For each word that no entry holds: the most frequent word that begins with it, the first of several."""
        if not self._options.prefix:
            return {}
        encoded = sorted(word.encode("utf-8") for word in unknown if len(word) >= SHORTEST_PREFIX)
        frequencies: list[Counter[bytes]] = [Counter() for _ in encoded]
        asked = Asked.of(encoded)
        for tap in self._corpus.taps:
            firsts, ends, _ = find(tap, asked)
            for frequency, first, end in zip(frequencies, firsts.tolist(), ends.tolist(), strict=True):
                for place in range(first, end):
                    frequency[tap.word(place)] += int(tap.starts[place + 1] - tap.starts[place])
        return {
            word.decode("utf-8"): min(frequency, key=lambda longer: (-frequency[longer], longer)).decode("utf-8")
            for word, frequency in zip(encoded, frequencies, strict=True)
            if frequency
        }


def idf(entries: int, df: int) -> float:
    """Return the IDF of a word that ``df`` of so many entries hold."""
    return math.log(1.0 + (entries - df + 0.5) / (df + 0.5))


def most_of(weight: float, k1: float) -> float:
    """Return what a word of this IDF adds to a score at most."""
    return max(0.0, weight * (k1 + 1))


def total(of_words: Iterable[float]) -> float:
    """Return the sum, each added to those before it: `sum` rounds by another rule from Python 3.12 on."""
    reach = 0.0
    for of_word in of_words:
        reach += of_word
    return reach
