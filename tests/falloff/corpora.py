"""Small corpora for falloff tests, and what an index rebuilt for a subset says of them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeline.engines import Answer, IndexEngine, Query
from pipeline.engines.ranking import Ranking, order
from pipeline.falloff.orders import Corpus, corpus_of

VOCABULARY = ["alpha", "alphabet", "alphas", "beta", "betamax", "gamma", "gammas", "delta", "epsilon", "zeta"]
ASKED = [*VOCABULARY, "alph", "bet", "betam", "gamm", "delt", "nothing"]


class Entry(NamedTuple):
    """An entry of a small corpus; its class is its body."""

    tap: str
    path: bytes
    slug: str
    body: str


class Small(NamedTuple):
    """A small corpus: entries in ``(tap, path)`` order."""

    taps: tuple[str, ...]
    entries: tuple[Entry, ...]
    targets: frozenset[str]

    @property
    def corpus(self) -> Corpus:
        return corpus_of(self.taps, [e.tap for e in self.entries], [e.body for e in self.entries], self.targets)

    def table(self, rows: Sequence[int]) -> pa.Table:
        """The columns that an index is made of."""
        chosen = [self.entries[row] for row in rows]
        return pa.table(
            {
                "slug": pa.array([entry.slug for entry in chosen], pa.string()),
                "description": pa.nulls(len(chosen), pa.string()),
                "body": pa.array([entry.body for entry in chosen], pa.string()),
            }
        )

    def listed(self, rows: Sequence[int]) -> pa.Table:
        """The entries at ``rows`` as a ranking and a golden set read them."""
        chosen = [self.entries[row] for row in rows]
        return pa.table(
            {
                "tap": pa.array([entry.tap for entry in chosen], pa.string()),
                "path": pa.array([entry.path for entry in chosen], pa.binary()),
                "path_text": pa.array([entry.path.decode() for entry in chosen], pa.string()),
                "slug": pa.array([entry.slug for entry in chosen], pa.string()),
                "class_id": pa.array([entry.body for entry in chosen], pa.string()),
                "body_sha256": pa.array([hashlib.sha256(entry.body.encode()).hexdigest() for entry in chosen]),
                "empty_body": pa.array([False] * len(chosen), pa.bool_()),
            }
        )

    def indexes(self, engine: IndexEngine, rows: Sequence[int] | None = None) -> list[bytes]:
        """The index of each tap, over the entries at ``rows``."""
        kept = range(len(self.entries)) if rows is None else rows
        return [
            engine.index_tap(self.table([row for row in kept if self.entries[row].tap == tap])) for tap in self.taps
        ]


def rebuilt(small: Small, engine: IndexEngine, rows: Sequence[int], queries: Sequence[Query]) -> list[Ranking]:
    """Rank by an index of the entries at ``rows`` alone. Rows in the result are those of the whole corpus."""
    codes = small.corpus.class_of[list(rows)]
    answers = engine.retriever(small.indexes(engine, rows)).answer(queries)
    return [ranked(answer, codes, np.array(rows, np.int64)) for answer in answers]


def ranked(answer: Answer, codes: NDArray[np.int64], rows: NDArray[np.int64]) -> Ranking:
    ranking = order(answer, codes)
    return ranking._replace(entries=rows[ranking.entries])


def drawn(seed: int, taps: int = 6, most: int = 12) -> Small:
    """A random small corpus; some taps are empty, some entries are mirrors, some of the others have no word."""
    random_ = random.Random(seed)
    names = tuple(f"t/{place}" for place in range(taps))
    entries = []
    for tap in names:
        for place in range(random_.randrange(most) if tap != "t/0" else 3):
            words = random_.choices(VOCABULARY, k=random_.randrange(5))
            entries.append(Entry(tap, b"%03d" % place, random_.choice(["alpha-beta", "gamma", "x"]), " ".join(words)))
    return Small(names, tuple(entries), frozenset({"t/0", random_.choice(names)}))


smalls = st.builds(drawn, st.integers(0, 10**9), st.integers(1, 8))
questions = st.lists(st.lists(st.sampled_from(ASKED), max_size=5).map(" ".join), min_size=1, max_size=4).map(
    lambda texts: [Query(f"q{place}", text) for place, text in enumerate(texts)]
)
