"""The ranking rule, the same for every engine.

A hit scores above 0. Hits are ordered by score, highest first, then by ``(tap, path)``. Of each content class the first
hit stays; later ones, its mirrors, lose their rank, and the rest move up. Only then is the ranking cut, at 100 classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipeline.engines import Answer
from pipeline.records import Record, Table

if TYPE_CHECKING:
    import pyarrow as pa

DEPTH = 100
"""Classes that a ranking holds at most."""
CUTS = (1, 10, 100)
"""Ranks at which ties that straddle them are reported."""


class Hit(Record):
    """One hit of a ranking, down to the first hit of its 100th class; mirrors in between are kept, without a rank.

    Of a ranking with fewer classes, the first 100 hits, or more down to the first hit of its last class.
    """

    query_id: str = Field(description="The query.")
    raw_rank: int = Field(description="Rank among all hits, from 1.")
    rank: int | None = Field(description="Rank among classes, from 1 to 100; null for a mirror of a hit above.")
    tap: str = Field(description="Name of the entry's tap.")
    path: bytes = Field(description="Path of the entry in its tap, as bytes.")
    path_text: str = Field(description="The path as text.")
    slug: str = Field(description="The entry's name as a slug.")
    class_id: str = Field(description="The entry's content class.")
    score: float = Field(description="The engine's score, above 0. Scores of different engines do not compare.")


class Replaced(Record):
    """A query word that no entry holds, and the word that stood in for it."""

    word: str = Field(description="The word that was asked for.")
    by: str = Field(description="The indexed word that begins with it.")


class RankedQuery(Record):
    """What is known of a ranking as a whole."""

    query_id: str = Field(description="The query.")
    hits: int = Field(description="Entries that scored above 0, mirrors included, at any depth.")
    classes: int = Field(description="Classes ranked, at most 100; 0 is an abstention.")
    unknown_words: list[str] = Field(description="Query words that no entry holds.")
    replaced_words: list[Replaced] = Field(description="Those of them for which a longer word stood in.")
    empty_query: bool = Field(description="Whether no word was left of the query.")
    reach: float | None = Field(
        description="The most that any entry could score for the query; null: the engine states no bound, or no word "
        "was left."
    )
    tied_at_1: bool = Field(description="Whether the classes at ranks 1 and 2 have the same score.")
    tied_at_10: bool = Field(description="Whether the classes at ranks 10 and 11 have the same score.")
    tied_at_100: bool = Field(description="Whether the class at rank 100 has the score of the next one.")


HITS = Table("hits", Hit, ("query_id", "raw_rank"))
RANKED_QUERIES = Table("ranked_queries", RankedQuery, ("query_id",))


class Ranking(NamedTuple):
    """The ordered hits of one query."""

    entries: NDArray[np.int64]
    """Rows of the corpus, best first, as deep as ``Hit`` says."""
    scores: NDArray[np.float64]
    """Their scores."""
    ranks: NDArray[np.int64]
    """Their ranks among classes, from 1; 0 for a mirror."""
    tied: dict[int, bool]
    """For each of `CUTS`, whether a tie straddles it."""


class Rankings(NamedTuple):
    """The rankings of many queries as tables."""

    hits: pa.Table
    """`HITS`."""
    queries: pa.Table
    """`RANKED_QUERIES`."""


def rank_answers(answers: Iterable[Answer], entries: pa.Table) -> Rankings:
    """Rank what an engine answered.

    Args:
        answers: one a query; the ids of the queries differ.
        entries: the corpus in ``(tap, path)`` order, with the columns tap, path, path_text, slug and class_id.
    """
    codes = np.asarray(entries.column("class_id").combine_chunks().dictionary_encode().indices)
    rankings: list[tuple[str, Ranking]] = []
    queries: list[RankedQuery] = []
    for answer in answers:
        ranking = order(answer, codes)
        rankings.append((answer.query_id, ranking))
        queries.append(_described(answer, ranking))
    return Rankings(_hits(rankings, entries), RANKED_QUERIES.from_rows(queries))


def order(answer: Answer, class_codes: NDArray[np.integer]) -> Ranking:
    """Order the hits of one query and collapse them to classes.

    Args:
        answer: scores of entries, in corpus order.
        class_codes: a number for each entry of the corpus, equal for entries of one class.
    """
    ranking = Ranking(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64), dict.fromkeys(CUTS, False))
    for best in _ever_more(answer):
        # Rows ascend in `best`, so a stable sort by score leaves equal scores in (tap, path) order.
        best = best[np.argsort(-answer.scores[best], kind="stable")]
        rows, scores = answer.entries[best], answer.scores[best]
        _, firsts = np.unique(class_codes[rows], return_index=True)
        firsts.sort()
        if firsts.size <= DEPTH and best.size < answer.entries.size:
            continue
        kept = firsts[:DEPTH]
        ranks = np.zeros(max(int(kept[-1]) + 1, min(best.size, DEPTH)), np.int64)
        ranks[kept] = np.arange(1, kept.size + 1)
        tied = {cut: firsts.size > cut and bool(scores[firsts[cut - 1]] == scores[firsts[cut]]) for cut in CUTS}
        ranking = Ranking(rows[: ranks.size], scores[: ranks.size], ranks, tied)
        break
    return ranking


def _ever_more(answer: Answer) -> Iterator[NDArray[np.int64]]:
    """Yield the places of the best hits, in corpus order and with all that tie with the last of them; then more."""
    size = 4 * DEPTH
    while size < answer.scores.size:
        last = np.partition(answer.scores, answer.scores.size - size)[answer.scores.size - size]
        yield np.flatnonzero(answer.scores >= last)
        size *= 4
    if answer.scores.size:
        yield np.arange(answer.scores.size)


def _described(answer: Answer, ranking: Ranking) -> RankedQuery:
    return RankedQuery(
        query_id=answer.query_id,
        hits=answer.entries.size,
        classes=int(np.count_nonzero(ranking.ranks)),
        unknown_words=list(answer.unknown_words),
        replaced_words=[Replaced(word=word, by=by) for word, by in answer.replaced_words],
        empty_query=answer.empty_query,
        reach=_bound(answer.reach),
        tied_at_1=ranking.tied[1],
        tied_at_10=ranking.tied[10],
        tied_at_100=ranking.tied[100],
    )


def _bound(reach: float | None) -> float | None:
    return float(reach) if reach is not None and 0 < reach < math.inf else None


def _hits(rankings: list[tuple[str, Ranking]], entries: pa.Table) -> pa.Table:
    import pyarrow as pa

    nothing = np.zeros(0, np.int64)
    rows = np.concatenate([nothing, *(ranking.entries for _, ranking in rankings)])
    ranks = np.concatenate([nothing, *(ranking.ranks for _, ranking in rankings)])
    columns: dict[str, pa.Array] = {
        "query_id": pa.array([query_id for query_id, ranking in rankings for _ in range(ranking.ranks.size)]),
        "raw_rank": pa.array(
            np.concatenate([nothing, *(np.arange(1, ranking.ranks.size + 1) for _, ranking in rankings)])
        ),
        "rank": pa.array(ranks, mask=ranks == 0),
        "score": pa.array(np.concatenate([np.zeros(0), *(ranking.scores for _, ranking in rankings)])),
    }
    shown = entries.select(["tap", "path", "path_text", "slug", "class_id"]).combine_chunks().take(pa.array(rows))
    columns |= {name: shown.column(name).combine_chunks() for name in shown.column_names}
    return HITS.from_columns({name: columns[name] for name in HITS.schema.names})
