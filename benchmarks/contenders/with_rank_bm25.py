# /// script
# requires-python = "==3.11.*"
# dependencies = ["rank-bm25==0.2.2", "numpy==2.4.6", "pyarrow==25.0.1"]
# ///
"""rank_bm25: `BM25Okapi`, with words cut as Assay does, and with `str.split` as its documentation has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from measuring import DEPTH, Entries, Ready, Shown, Work, main, subsets, turned

STOPPED = "the a an and or of to for in on with is are be this that it as at by from your you can will if when how"
STOPWORDS = frozenset(STOPPED.split())


Cut = Callable[[str], Sequence[str]]


def words() -> Ready:
    """Runs of two or more of ``[a-z0-9]``, in lower case, without stopwords: one pass of a regular expression."""
    return _ranking(_cut())


def _cut() -> Cut:
    import re

    pattern = re.compile("[a-z0-9]{2,}")
    return lambda text: [word for word in pattern.findall(text.lower()) if word not in STOPWORDS]


def falloff() -> Ready:
    """Nested subsets, each with an index of its own; the texts are cut once for all of them."""
    cut = _cut()

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            texts, asked = [cut(text) for text in entries.texts], [cut(query) for query in entries.queries]
            best = [_best(texts[:size], asked) for size in subsets(len(texts))]
            return lambda: best[-1]

        return work

    return ready


def rebuilt() -> Ready:
    """Nested subsets, each from its texts anew."""
    cut = _cut()

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            asked = [cut(query) for query in entries.queries]
            best: list[list[int]] = []
            for size in subsets(len(entries.texts)):
                best = _best([cut(text) for text in entries.texts[:size]], asked)
            return lambda: best

        return work

    return ready


def again() -> Ready:
    """The subsets of another order, from texts that are cut already."""
    cut = _cut()

    def ready(entries: Entries) -> Work:
        texts, asked = turned([cut(text) for text in entries.texts]), [cut(query) for query in entries.queries]

        def work() -> Shown:
            best = [_best(texts[:size], asked) for size in subsets(len(texts))]
            return lambda: len(best)

        return work

    return ready


def _best(texts: Sequence[Sequence[str]], asked: Sequence[Sequence[str]]) -> list[list[int]]:
    import numpy as np
    from rank_bm25 import BM25Okapi

    ranker = BM25Okapi(texts)
    found = []
    for query in asked:
        scores = ranker.get_scores(query)
        best = np.argsort(scores)[::-1][:DEPTH]
        found.append(best[scores[best] > 0].tolist())
    return found


def split() -> Ready:
    """``split`` at white space, and nothing else."""
    return _ranking(str.split)


def _ranking(cut: Cut) -> Ready:
    import rank_bm25

    del rank_bm25  # it is imported at first use

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            best = _best([cut(text) for text in entries.texts], [cut(query) for query in entries.queries])
            return lambda: best

        return work

    return ready


if __name__ == "__main__":
    main(
        {"words": words, "split": split, "falloff": falloff, "rebuilt": rebuilt, "again": again}, ["rank-bm25", "numpy"]
    )
