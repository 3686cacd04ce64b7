"""Engine ``bm25``: Robertson's BM25 with an IDF that is never negative.

The score of an entry is the sum, over the distinct terms of the query in the order in which they first occur, of
``idf * (tf * (k1 + 1)) / (tf + k1 * (1 - b + b * dl / avgdl))`` with ``idf = ln(1 + (N - df + 0.5) / (df + 0.5))``,
each operation in float64 in the order written. N, df and the total length are integers added up over taps, so scores
have the same bits however entries are cut into taps.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pydantic import Field, JsonValue, model_validator

from pipeline.engines import Answer, Query, Replacement
from pipeline.engines.text import Tokenizer, stopwords_digest, words
from pipeline.records import Record

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from pipeline.engines.index import TapIndex

SHORTEST_PREFIX = 4
"""Characters that an unknown query word must have for a longer indexed word to stand in for it."""


class Bm25Options(Record):
    """Options of engine ``bm25``."""

    tokenizer: Tokenizer = Field("unicode", description="How text is cut into words.")
    k1: float = Field(1.2, ge=0, allow_inf_nan=False, description="How slowly repeated words saturate.")
    b: float = Field(0.75, ge=0, le=1, description="How far a long entry is marked down, from 0 to 1.")
    name_weight: int = Field(3, ge=0, le=1000, description="How often a word of the name counts.")
    description_weight: int = Field(2, ge=0, le=1000, description="How often a word of the description counts.")
    body_weight: int = Field(1, ge=0, le=1000, description="How often a word of the body counts.")
    prefix: bool = Field(
        True,
        description="Whether an unknown query word of 4 or more characters becomes the most frequent indexed word that "
        "begins with it.",
    )

    @model_validator(mode="after")
    def _some_weight(self) -> Bm25Options:
        if not (self.name_weight or self.description_weight or self.body_weight):
            raise ValueError("name_weight, description_weight and body_weight are all 0; set one of them above 0")
        return self


class Bm25:
    """The engine: indexes taps, and joins the indexes into a retriever."""

    name: ClassVar[str] = "bm25"
    VERSION: ClassVar[int] = 1
    Options: ClassVar[type[Record]] = Bm25Options

    def __init__(self, options: Bm25Options) -> None:
        self.options = options

    def index_inputs(self) -> dict[str, JsonValue]:
        """Return what the index of a tap depends on: tokenizer, stopwords, Unicode version, weights."""
        return {
            "engine": self.name,
            "version": self.VERSION,
            "tokenizer": self.options.tokenizer,
            "stopwords": stopwords_digest(),
            "unicode": unicodedata.unidata_version,
            "weights": [self.options.name_weight, self.options.description_weight, self.options.body_weight],
        }

    def fingerprint_inputs(self) -> dict[str, JsonValue]:
        """Return what scores depend on: the index, k1, b, and whether prefixes stand in."""
        return {
            "index": self.index_inputs(),
            "k1": self.options.k1,
            "b": self.options.b,
            "prefix": self.options.prefix,
        }

    def index_tap(self, entries: pa.Table) -> bytes:
        """Index the entries of one tap; see `pipeline.engines.index.TapIndex`."""
        from pipeline.engines.index import Weights, index_tap

        slugs, descriptions, bodies = (entries.column(name) for name in ("slug", "description", "body"))
        weights = Weights(self.options.name_weight, self.options.description_weight, self.options.body_weight)
        return index_tap(slugs, descriptions, bodies, self.options.tokenizer, weights).to_bytes()

    def retriever(self, indexes: Sequence[bytes | memoryview | pa.Buffer]) -> Bm25Retriever:
        """Join the indexes of taps, in the order of the corpus, into one corpus."""
        from pipeline.engines.index import TapIndex

        return Bm25Retriever([TapIndex.from_bytes(index) for index in indexes], self.options)


class Term(NamedTuple):
    """A word looked up in every tap."""

    places: NDArray[np.int64]
    """Where it stands in the vocabulary of each tap, -1 where the tap lacks it."""
    df: int
    """How many entries hold it."""


class TermPostings(NamedTuple):
    """The postings of the words that some queries ask for, in corpus order, so that a nested subset is a prefix."""

    starts: NDArray[np.int64]
    """Where the postings of each word begin; one more than there are words."""
    entries: NDArray[np.int32]
    """Rows of the corpus, ascending for each word."""
    counts: NDArray[np.int32]
    """Weighted counts."""


class Bm25Retriever:
    """Indexed taps as one corpus. Their vocabularies are never merged: a word is looked up in each."""

    def __init__(self, taps: Sequence[TapIndex], options: Bm25Options) -> None:
        import numpy as np

        self._taps = taps
        self._options = options
        self._lengths = np.concatenate([np.zeros(0, np.int64), *(tap.lengths for tap in taps)])

    def answer(self, queries: Sequence[Query]) -> Iterator[Answer]:
        """Answer each query, in order."""
        import numpy as np

        from pipeline.engines import kernel

        asked = [words(query.text, self._options.tokenizer) for query in queries]
        terms = self.look_up({word for query in asked for word in query})
        stand_ins = self._stand_ins(word for word, term in terms.items() if term.df == 0)
        terms |= self.look_up(stand_ins.values())
        known = [word for word, term in terms.items() if term.df > 0]
        number = {word: place for place, word in enumerate(known)}
        postings = self.gather([terms[word] for word in known])
        idf = np.array([self._idf(terms[word].df) for word in known], np.float64)
        norms = self._norms()
        for query, query_words in zip(queries, asked, strict=True):
            unknown = [word for word in dict.fromkeys(query_words) if terms[word].df == 0]
            used = dict.fromkeys(stand_ins.get(word, word) for word in query_words)
            chosen = np.array([number[word] for word in used if word in number], np.int64)
            scores = np.zeros(self._lengths.size, np.float64)
            kernel.add_scores(scores, chosen, *postings, idf, norms, self._options.k1)
            entries = np.flatnonzero(scores > 0)
            replaced = tuple(Replacement(word, stand_ins[word]) for word in unknown if word in stand_ins)
            yield Answer(query.query_id, entries, scores[entries], tuple(unknown), replaced, not query_words)

    def look_up(self, asked: Iterable[str]) -> dict[str, Term]:
        """Look up words in every tap. The result is in byte order of the words."""
        import numpy as np

        encoded = sorted({word.encode("utf-8") for word in asked})
        places = np.full((len(encoded), len(self._taps)), -1, np.int64)
        df = np.zeros(len(encoded), np.int64)
        for number, tap in enumerate(self._taps):
            firsts, _, exact = _find(tap, encoded)
            places[exact, number] = firsts[exact]
            df[exact] += tap.starts[firsts[exact] + 1] - tap.starts[firsts[exact]]
        return {word.decode("utf-8"): Term(places[row], int(df[row])) for row, word in enumerate(encoded)}

    def gather(self, terms: Sequence[Term]) -> TermPostings:
        """Bring together the postings of ``terms`` from all taps."""
        import numpy as np

        from pipeline.engines import kernel

        starts = np.zeros(len(terms) + 1, np.int64)
        np.cumsum([term.df for term in terms], out=starts[1:])
        entries, counts = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)
        places = np.array([term.places for term in terms], np.int64).reshape(len(terms), len(self._taps))
        free = starts[:-1].copy()
        first_row = 0
        for number, tap in enumerate(self._taps):
            in_tap = np.ascontiguousarray(places[:, number])
            kernel.gather(tap.starts, tap.documents, tap.counts, in_tap, first_row, free, entries, counts)
            first_row += tap.lengths.size
        return TermPostings(starts, entries, counts)

    def _stand_ins(self, unknown: Iterable[str]) -> dict[str, str]:
        """For each word that no entry holds: the most frequent word that begins with it, the first of several."""
        if not self._options.prefix:
            return {}
        encoded = sorted(word.encode("utf-8") for word in unknown if len(word) >= SHORTEST_PREFIX)
        frequencies: list[Counter[bytes]] = [Counter() for _ in encoded]
        for tap in self._taps:
            firsts, ends, _ = _find(tap, encoded)
            for frequency, first, end in zip(frequencies, firsts.tolist(), ends.tolist(), strict=True):
                for place in range(first, end):
                    frequency[tap.word(place)] += int(tap.starts[place + 1] - tap.starts[place])
        return {
            word.decode("utf-8"): min(frequency, key=lambda longer: (-frequency[longer], longer)).decode("utf-8")
            for word, frequency in zip(encoded, frequencies, strict=True)
            if frequency
        }

    def _idf(self, df: int) -> float:
        return math.log(1.0 + (self._lengths.size - df + 0.5) / (df + 0.5))

    def _norms(self) -> NDArray[np.float64]:
        """``k1 * (1 - b + b * dl / avgdl)`` of every entry."""
        k1, b = self._options.k1, self._options.b
        total = int(self._lengths.sum())
        if total == 0:
            return self._lengths.astype("float64")  # no word, so no posting will ask for it
        average = total / self._lengths.size
        return k1 * (1.0 - b + b * self._lengths / average)


def _find(tap: TapIndex, encoded: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Where each word would stand, the end of those that begin with it, and whether it is there."""
    import numpy as np

    from pipeline.engines import kernel

    asked = np.frombuffer(b"".join(encoded) + b"\0", np.uint8)
    asked_at = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(word) for word in encoded], out=asked_at[1:])
    firsts, ends = kernel.find(tap.text, tap.word_at, asked, asked_at)
    exact = firsts < ends
    lengths = tap.word_at[firsts[exact] + 1] - tap.word_at[firsts[exact]]
    exact[exact] = lengths == np.diff(asked_at)[exact]
    return firsts, ends, exact
