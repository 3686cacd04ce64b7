"""All nested subsets of an order ranked at once, each with the bits of an index that was rebuilt for it.

What an engine of words makes of an entry depends on the subset by three numbers only: how many entries there are, how
many hold a word, and how long they are on average. All three are sums over entries. So the postings of the words that
are asked for, sorted by the subset that they first belong to, give every subset's scores in one pass; the rest of the
index is never touched. Where the scores depend on nothing but entry and query, a matrix of them is enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.engines import Answer, Query, okapi
from pipeline.engines import bm25 as plain
from pipeline.engines.bm25 import SHORTEST_PREFIX, Bm25
from pipeline.engines.hybrid import reach_of as fused_reach
from pipeline.engines.lexical import Asked, IndexedTaps, Term, find
from pipeline.engines.okapi import Okapi, OkapiOptions
from pipeline.engines.text import words
from pipeline.falloff import kernel
from pipeline.falloff.orders import Subsets

NOWHERE = -(1 << 40)
"""From here down words have numbers that no entry of the corpus holds, and nothing stands in for."""


class Cell(NamedTuple):
    """The ranking of one query in one subset, best first, mirrors included; see `pipeline.engines.ranking.Ranking`."""

    rows: NDArray[np.int32]
    scores: NDArray[np.float64]
    ranks: NDArray[np.int32]
    """Ranks among classes, from 1; 0 for a later mirror."""


class Rankings(NamedTuple):
    """The rankings of all queries in all subsets of an order. Cell ``step * queries + query``."""

    queries: int
    at: NDArray[np.int64]
    """Where the hits of each cell begin; one more than there are cells."""
    rows: NDArray[np.int32]
    """Rows of the corpus."""
    scores: NDArray[np.float64]
    ranks: NDArray[np.int32]
    """Ranks among classes, from 1; 0 for a later mirror."""
    reach: NDArray[np.float64]
    """The most that each query could reach in each cell; NaN where the engine states no bound."""

    def cell(self, step: int, query: int) -> Cell:
        """Return one ranking; steps and queries count from 0."""
        number = step * self.queries + query
        part = slice(self.at[number], self.at[number + 1])
        return Cell(self.rows[part], self.scores[part], self.ranks[part])


class Curve(Protocol):
    """An engine that can rank all subsets of an order."""

    def rank(self, subsets: Subsets) -> Rankings:
        """Rank every query in every subset."""
        ...


class _Asked(NamedTuple):
    """The words of one query, as they are looked up."""

    terms: tuple[int, ...]
    """Number of each word, in order; -1 - n for word n of those that another may stand in for."""
    words: tuple[int, ...]
    """The same, and a number of its own, `NOWHERE` or lower, for each word that is not looked up."""


class _Replaceable(NamedTuple):
    """A query word that no target holds, so that in some subset another one may stand in for it."""

    term: int
    """Its number; -1 where no entry of the corpus holds it."""
    candidates: tuple[int, ...]
    """Numbers of the words that begin with it, by alphabet."""


class WordCurve:
    """Engines ``bm25``, ``metadata`` and ``bm25-okapi``."""

    def __init__(
        self,
        corpus: IndexedTaps,
        engine: Bm25 | Okapi,
        queries: Sequence[Query],
        class_of: NDArray[np.int64],
        in_targets: NDArray[np.bool_],
    ) -> None:
        """Look up all that any subset can ask for.

        Args:
            corpus: the indexed taps.
            engine: what ranks.
            queries: the questions.
            class_of: a number for the class of each entry, in corpus order.
            in_targets: the entries that are in every subset that will be asked for.

        Raises:
            ValueError: the indices are of other entries.
        """
        if not corpus.entries == class_of.size == in_targets.size:
            raise ValueError(f"{corpus.entries} entries are indexed, and {class_of.size} have a class")
        self._corpus = corpus
        self._options = engine.options
        self._class_of = np.ascontiguousarray(class_of, np.int64)
        self._okapi = engine.options if isinstance(engine, Okapi) else None
        asked = [words(query.text, engine.options.tokenizer) for query in queries]
        terms = corpus.look_up({word for query in asked for word in query})
        prefix = isinstance(engine, Bm25) and engine.options.prefix
        absent = self._without(terms, in_targets) if prefix else []
        longer = _longer(corpus, absent)
        terms |= corpus.look_up(word for found in longer.values() for word in found)
        known = [word for word, term in terms.items() if term.df > 0]
        number = {word: place for place, word in enumerate(known)}
        self._postings = corpus.gather([terms[word] for word in known])
        self._replaceable = [
            _Replaceable(number.get(word, -1), tuple(number[other] for other in longer[word])) for word in absent
        ]
        place = {word: -1 - n for n, word in enumerate(absent)} | {w: n for w, n in number.items() if w not in longer}
        self._asked = [
            _Asked(
                tuple(place[word] for word in self._distinct(query) if word in place),
                tuple(place.get(word, NOWHERE - at) for at, word in enumerate(self._distinct(query))),
            )
            for query in asked
        ]
        self._vocabulary = _numbered(corpus) if self._okapi else []

    def rank(self, subsets: Subsets) -> Rankings:
        """Rank every query in every subset."""
        _same_entries(subsets, self._class_of)
        starts = self._postings.starts
        step_of = np.ascontiguousarray(subsets.step_of)
        row_at, place_of, sizes = kernel.places(step_of, subsets.steps)
        entries, counts = self._postings.entries, self._postings.counts
        at_place, counts, df = kernel.by_step(starts, entries, counts, step_of, place_of, subsets.steps)
        lengths = self._corpus.lengths
        totals = np.zeros(subsets.steps + 1, np.int64)
        np.add.at(totals, step_of, lengths)
        averages = np.cumsum(totals[:-1]) / np.maximum(subsets.entries, 1)
        averages[averages == 0] = 1.0  # no word, so no posting will ask for it
        chosen, chosen_at = self._chosen(df)
        k1, b = self._options.k1, self._options.b
        idf = self._idf(subsets, df)
        found = kernel.rank_words(
            starts, at_place, counts, df, idf, chosen, chosen_at, lengths, averages, k1, b, row_at, place_of, sizes,
            self._class_of,
        )  # fmt: skip
        return Rankings(len(self._asked), *found, self._reach(subsets, df, idf))

    def _distinct(self, query: Sequence[str]) -> Sequence[str]:
        return query if self._okapi else list(dict.fromkeys(query))

    def _without(self, terms: dict[str, Term], in_targets: NDArray[np.bool_]) -> list[str]:
        """Return the words that no target holds, of those long enough for another one to stand in."""
        long = [word for word in terms if len(word) >= SHORTEST_PREFIX]
        postings = self._corpus.gather([terms[word] for word in long])
        held = np.concatenate([[0], np.cumsum(in_targets[postings.entries])])
        counted = held[postings.starts[1:]] - held[postings.starts[:-1]]
        return [word for word, number in zip(long, counted.tolist(), strict=True) if not number]

    def _chosen(self, df: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the words of each cell, and where they begin: with those that stand in for others in its subset."""
        chosen: list[int] = []
        chosen_at = [0]
        fixed = [asked.terms if min(asked.terms, default=0) >= 0 else None for asked in self._asked]
        for of_step in df:
            standing = [_stand_in(word, of_step) for word in self._replaceable]
            for asked, terms in zip(self._asked, fixed, strict=True):
                if terms is None:
                    found = (term if term >= 0 else standing[-1 - term] for term in asked.terms)
                    terms = tuple(dict.fromkeys(term for term in found if term >= 0))
                chosen += terms
                chosen_at.append(len(chosen))
        return np.array(chosen, np.int64), np.array(chosen_at, np.int64)

    def _reach(self, subsets: Subsets, df: NDArray[np.int64], idf: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the most that each query can reach in each subset, added up word by word as on a rebuilt index."""
        k1 = self._options.k1
        nowhere = [plain.most_of(self._nowhere(size), k1) for size in subsets.entries.tolist()]
        most = np.maximum(0.0, idf * (k1 + 1))
        if self._okapi is not None:
            most = np.where(df > 0, most, np.array(nowhere)[:, None])
        most = np.column_stack([most, nowhere])  # the last column is for words that are nowhere
        fixed = [place for place, asked in enumerate(self._asked) if self._is_fixed(asked)]
        reach = np.zeros((df.shape[0], len(self._asked)))
        for column in range(max((len(self._asked[place].words) for place in fixed), default=0)):
            longer = [place for place in fixed if column < len(self._asked[place].words)]
            of_words = [self._asked[place].words[column] for place in longer]
            reach[:, longer] += most[:, [-1 if word <= NOWHERE else word for word in of_words]]
        for place in set(range(len(self._asked))) - set(fixed):
            for step, of_step in enumerate(df):
                used = dict.fromkeys(self._used(word, of_step) for word in self._asked[place].words)
                reach[step, place] = plain.total(most[step, -1 if word < 0 else word] for word in used)
        reach[reach <= 0] = np.nan
        return reach.ravel()

    def _nowhere(self, entries: int) -> float:
        """Return the IDF of a word that no entry of a subset holds."""
        return okapi.idf(entries, 0) if self._okapi is not None else plain.idf(entries, 0)

    def _used(self, word: int, df: NDArray[np.int64]) -> int:
        """Return what is looked up for a word: one that no entry holds is told from all others of its kind."""
        if word <= NOWHERE or word >= 0:
            return word
        found = _stand_in(self._replaceable[-1 - word], df)
        return found if found >= 0 else word

    def _is_fixed(self, asked: _Asked) -> bool:
        return all(word >= 0 or word <= NOWHERE for word in asked.words)

    def _idf(self, subsets: Subsets, df: NDArray[np.int64]) -> NDArray[np.float64]:
        sizes = subsets.entries.tolist()
        if self._okapi is None:
            idf = [
                [plain.idf(size, each) for each in of_step] for size, of_step in zip(sizes, df.tolist(), strict=True)
            ]
        else:
            idf = list(self._floored(self._okapi, subsets, df))
        return np.array(idf, np.float64).reshape(df.shape)

    def _floored(self, options: OkapiOptions, subsets: Subsets, df: NDArray[np.int64]) -> Iterator[list[float]]:
        frequencies = _frequencies(self._corpus, self._vocabulary, subsets)
        for step, (size, of_step) in enumerate(zip(subsets.entries.tolist(), df, strict=True)):
            held = np.flatnonzero(of_step)
            idf = np.zeros(of_step.size)
            by_df = partial(np.bincount, frequencies[:, step])
            idf[held] = okapi.floored(size, of_step[held].tolist(), options.epsilon, by_df)
            yield idf.tolist()


class ScoreCurve:
    """An engine whose scores depend on nothing but entry and query, such as ``dense``."""

    def __init__(
        self, scores: NDArray[np.float64], class_of: NDArray[np.int64], reach: NDArray[np.float64] | None = None
    ) -> None:
        """Take the scores by query and entry, in corpus order; those of 0 and below are no hits.

        ``reach`` is the most that each query could reach; NaN, or without it, no bound is known.
        """
        self.scores = np.ascontiguousarray(scores, np.float64)
        self.reach = np.full(len(self.scores), np.nan) if reach is None else reach
        self._class_of = np.ascontiguousarray(class_of, np.int64)

    @classmethod
    def of(cls, answers: Iterable[Answer], class_of: NDArray[np.int64]) -> ScoreCurve:
        """Take what such an engine answers on the whole corpus, one answer a query."""
        rows, reach = [], []
        for answer in answers:
            scores = np.zeros(class_of.size)
            scores[answer.entries] = answer.scores
            rows.append(scores)
            reach.append(math.nan if answer.reach is None or answer.reach <= 0 else answer.reach)
        return cls(np.array(rows).reshape(len(rows), class_of.size), class_of, np.array(reach, np.float64))

    def of_queries(self, places: Sequence[int]) -> ScoreCurve:
        """Return the curve of some of the queries."""
        return ScoreCurve(self.scores[list(places)], self._class_of, self.reach[list(places)])

    def rank(self, subsets: Subsets) -> Rankings:
        """Rank every query in every subset."""
        _same_entries(subsets, self._class_of)
        found = kernel.rank_scores(self.scores, np.ascontiguousarray(subsets.step_of), subsets.steps, self._class_of)
        return Rankings(self.scores.shape[0], *found, np.tile(self.reach, subsets.steps))


class FusedCurve:
    """Engine ``hybrid`` over the curves of two others."""

    def __init__(self, sources: tuple[Curve, Curve], constant: int, class_of: NDArray[np.int64]) -> None:
        self._sources = sources
        self._constant = constant
        self._class_of = np.ascontiguousarray(class_of, np.int64)

    def rank(self, subsets: Subsets) -> Rankings:
        """Rank every query in every subset."""
        first, second = (source.rank(subsets) for source in self._sources)
        return fuse(first, second, self._constant, self._class_of)


def fuse(first: Rankings, second: Rankings, constant: int, class_of: NDArray[np.int64]) -> Rankings:
    """Fuse the rankings that two engines made of the same subsets, as engine ``hybrid`` does.

    Raises:
        ValueError: the rankings are of other cells.
    """
    if (first.queries, first.at.size) != (second.queries, second.at.size):
        raise ValueError("rankings of the same questions in the same subsets are fused")
    one, two = ((of.at, of.rows, of.ranks) for of in (first, second))
    found = kernel.fuse(*one, *two, constant, np.ascontiguousarray(class_of, np.int64))
    return Rankings(first.queries, *found, np.full(first.at.size - 1, fused_reach(constant, 2)))


def _same_entries(subsets: Subsets, class_of: NDArray[np.int64]) -> None:
    """Raise ValueError where subsets are of another corpus: the kernels do not look."""
    if subsets.step_of.size != class_of.size:
        raise ValueError(f"subsets of {subsets.step_of.size} entries, and a corpus of {class_of.size}")


def _longer(corpus: IndexedTaps, absent: Sequence[str]) -> dict[str, list[str]]:
    """Return, for each word, the longer ones of the corpus that begin with it, by alphabet."""
    encoded = [word.encode("utf-8") for word in absent]
    asked = Asked.of(encoded)
    longer: list[set[bytes]] = [set() for _ in encoded]
    for tap in corpus.taps:
        firsts, ends, exact = find(tap, asked)
        for found, first, end, itself in zip(longer, firsts.tolist(), ends.tolist(), exact.tolist(), strict=True):
            found.update(tap.word(place) for place in range(first + itself, end))
    return {
        word: [other.decode("utf-8") for other in sorted(found)] for word, found in zip(absent, longer, strict=True)
    }


def _stand_in(word: _Replaceable, df: NDArray[np.int64]) -> int:
    """Return the word that is looked up for one that no target holds; -1 where there is none."""
    if word.term >= 0 and df[word.term] > 0:
        return word.term
    best = max(word.candidates, key=lambda term: df[term], default=-1)  # the first by alphabet of several
    return best if best >= 0 and df[best] > 0 else -1


def _numbered(corpus: IndexedTaps) -> list[NDArray[np.int64]]:
    """Number the words of the corpus: for each tap the numbers of its vocabulary."""
    if not corpus.taps:
        return []
    vocabularies = pa.chunked_array([tap.vocabulary() for tap in corpus.taps], pa.large_binary())
    numbers = np.asarray(vocabularies.combine_chunks().dictionary_encode().indices).astype(np.int64)
    return np.split(numbers, np.cumsum([tap.words for tap in corpus.taps])[:-1])


def _frequencies(corpus: IndexedTaps, vocabulary: Sequence[NDArray[np.int64]], subsets: Subsets) -> NDArray[np.int32]:
    """Return for each word of the corpus and each subset how many entries hold it."""
    number = 1 + max((int(words.max(initial=-1)) for words in vocabulary), default=-1)
    df = np.zeros((number, subsets.steps + 1), np.int32)
    step_of = np.ascontiguousarray(subsets.step_of)
    first_row = 0
    for tap, numbers in zip(corpus.taps, vocabulary, strict=True):
        kernel.count_vocabulary(df, np.ascontiguousarray(numbers), tap.starts, tap.documents, first_row, step_of)
        first_row += tap.lengths.size
    return np.cumsum(df, axis=1, dtype=np.int32)
