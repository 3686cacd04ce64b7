# /// script
# requires-python = "==3.11.*"
# dependencies = [
#   "bm25s==0.3.16", "llvmlite==0.50.0", "numba==0.68.1", "numpy==2.4.6", "orjson==3.13.0", "pyarrow==25.0.1",
#   "PyStemmer==3.1.0", "scipy==1.17.1", "tqdm==4.67.3",
# ]
# ///
"""bm25s: its own tokenizer without a stemmer, numbers for words, the numba back end, and SciPy to build its matrix.

Of the forms that its documentation has this is the fastest: an index of 7,885 entries takes 1.03 s of CPU so, 1.13 s
with `csc_backend="numpy"`, 2.04 s from arrays of numbers in place of lists; questions take 0.01 s, 0.05 s with numpy.
"""

from __future__ import annotations

from typing import Any

from measuring import DEPTH, Entries, Ready, Shown, Work, main, subsets, turned


def function() -> Ready:
    """Words cut by the function `bm25s.tokenize`."""
    import bm25s

    ranker = bm25s.BM25(backend="numba", csc_backend="scipy")
    ranker.compile(activate_numba=True)  # once: each ranker compiles for itself

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            ranker.index(bm25s.tokenize(entries.texts, stopwords="en", show_progress=False), show_progress=False)
            asked = bm25s.tokenize(entries.queries, stopwords="en", show_progress=False)
            depth = min(DEPTH, len(entries.texts))
            rows, scores = ranker.retrieve(asked, k=depth, n_threads=1, show_progress=False)
            return lambda: [best[score > 0].tolist() for best, score in zip(rows, scores, strict=True)]

        return work

    return ready


def tokenizer() -> Ready:
    """Words cut by the class `Tokenizer`, which hands on numbers and no words."""
    import bm25s
    from bm25s.tokenization import Tokenizer

    ranker = bm25s.BM25(backend="numba", csc_backend="scipy")
    ranker.compile(activate_numba=True)

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            cutter = Tokenizer(stopwords="en", stemmer=None)
            ranker.index(cutter.tokenize(entries.texts, return_as="tuple", show_progress=False), show_progress=False)
            asked = cutter.tokenize(entries.queries, update_vocab=False, show_progress=False)
            depth = min(DEPTH, len(entries.texts))
            rows, scores = ranker.retrieve(asked, k=depth, n_threads=1, show_progress=False)
            return lambda: [best[score > 0].tolist() for best, score in zip(rows, scores, strict=True)]

        return work

    return ready


def falloff() -> Ready:
    """Nested subsets, each with an index of its own; the texts are cut once for all of them."""
    ranker = _compiled()

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            ids, vocabulary, asked = _cut(entries)
            best = [_best(ranker, ids[:size], vocabulary, asked) for size in subsets(len(ids))]
            return lambda: best[-1]

        return work

    return ready


def rebuilt() -> Ready:
    """Nested subsets, each from its texts anew."""
    ranker = _compiled()

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            best: list[list[int]] = []
            for size in subsets(len(entries.texts)):
                best = _best(ranker, *_cut(entries._replace(texts=entries.texts[:size])))
            return lambda: best

        return work

    return ready


def again() -> Ready:
    """The subsets of another order, from texts that are cut already."""
    ranker = _compiled()

    def ready(entries: Entries) -> Work:
        ids, vocabulary, asked = _cut(entries)
        ids = turned(ids)

        def work() -> Shown:
            best = [_best(ranker, ids[:size], vocabulary, asked) for size in subsets(len(ids))]
            return lambda: len(best)

        return work

    return ready


def _compiled() -> Any:
    import bm25s

    ranker = bm25s.BM25(backend="numba", csc_backend="scipy")
    ranker.compile(activate_numba=True)
    return ranker


def _cut(entries: Entries) -> tuple[list[list[int]], dict[str, int], Any]:
    """Cut entries and questions once: the numbers of each entry's words, the vocabulary, and the questions."""
    from bm25s.tokenization import Tokenizer

    cutter = Tokenizer(stopwords="en", stemmer=None)
    ids, vocabulary = cutter.tokenize(entries.texts, return_as="tuple", show_progress=False)
    return ids, vocabulary, cutter.tokenize(entries.queries, update_vocab=False, show_progress=False)


def _best(ranker: Any, ids: list[list[int]], vocabulary: dict[str, int], asked: Any) -> list[list[int]]:
    ranker.index((ids, vocabulary), show_progress=False)
    rows, scores = ranker.retrieve(asked, k=min(DEPTH, len(ids)), n_threads=1, show_progress=False)
    return [best[score > 0].tolist() for best, score in zip(rows, scores, strict=True)]


if __name__ == "__main__":
    main(
        {"function": function, "tokenizer": tokenizer, "falloff": falloff, "rebuilt": rebuilt, "again": again},
        ["bm25s", "numba", "numpy", "scipy"],
    )
