# /// script
# requires-python = "==3.11.*"
# dependencies = ["rank-bm25==0.2.2", "numpy==2.4.6", "pyarrow==25.0.1"]
# ///
"""rank_bm25: `BM25Okapi`, with words cut as Assay does, and with `str.split` as its documentation has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from measuring import DEPTH, Entries, Ready, Shown, Work, main

STOPPED = "the a an and or of to for in on with is are be this that it as at by from your you can will if when how"
STOPWORDS = frozenset(STOPPED.split())


def words() -> Ready:
    """Runs of two or more of ``[a-z0-9]``, in lower case, without stopwords: one pass of a regular expression."""
    import re

    pattern = re.compile("[a-z0-9]{2,}")
    return _ranking(lambda text: [word for word in pattern.findall(text.lower()) if word not in STOPWORDS])


def split() -> Ready:
    """``split`` at white space, and nothing else."""
    return _ranking(str.split)


def _ranking(cut: Callable[[str], Sequence[str]]) -> Ready:
    import numpy as np
    from rank_bm25 import BM25Okapi

    def ready(entries: Entries) -> Work:
        def work() -> Shown:
            ranker = BM25Okapi([cut(text) for text in entries.texts])
            found = []
            for query in entries.queries:
                scores = ranker.get_scores(cut(query))
                best = np.argsort(scores)[::-1][:DEPTH]
                found.append(best[scores[best] > 0])
            return lambda: [best.tolist() for best in found]

        return work

    return ready


if __name__ == "__main__":
    main({"words": words, "split": split}, ["rank-bm25", "numpy"])
