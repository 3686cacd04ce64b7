"""Who is measured at what. A contest more is a row more here and a task more in a contender's program."""

from __future__ import annotations

from typing import NamedTuple


class Contender(NamedTuple):
    """A library doing a task in one of its ways."""

    name: str
    program: str
    """File in ``contenders/``."""
    task: str
    largest: int | None = None
    """Entries above which it is not run, because it would take too long; None where it always is."""
    runs: int | None = None
    """Runs at most, because each takes minutes; None where it is run as often as the others."""


class Contest(NamedTuple):
    """Contenders at the same work. The first is the one that the others are compared with."""

    title: str
    contenders: tuple[Contender, ...]


CONTESTS: dict[str, Contest] = {
    "ranking": Contest(
        "From text to ranked lists: 100 entries for each question, tokenizing of entries and questions counted",
        (
            Contender("assay, `ascii`", "with_assay.py", "ascii"),
            Contender("assay, `unicode`", "with_assay.py", "unicode"),
            Contender("bm25s, `tokenize`", "with_bm25s.py", "function"),
            Contender("bm25s, `Tokenizer`", "with_bm25s.py", "tokenizer"),
            Contender("rank_bm25, words", "with_rank_bm25.py", "words", largest=20_000),
            Contender("rank_bm25, `split`", "with_rank_bm25.py", "split", largest=20_000),
        ),
    ),
    "falloff": Contest(
        "A falloff curve: ranked lists of 20 nested subsets, from text, tokenizing counted",
        (
            Contender("assay, one pass", "with_assay.py", "falloff"),
            Contender("bm25s, 20 rebuilds", "with_bm25s.py", "rebuilt"),
            Contender("bm25s, 20 indexes of texts cut once", "with_bm25s.py", "falloff"),
            Contender("rank_bm25, 20 rebuilds", "with_rank_bm25.py", "rebuilt", 20_000, runs=1),
            Contender("rank_bm25, 20 indexes of texts cut once", "with_rank_bm25.py", "falloff", 20_000, runs=1),
        ),
    ),
    "order": Contest(
        "One order more: ranked lists of 20 nested subsets of another order, tokenizing apart",
        (
            Contender("assay, one pass", "with_assay.py", "again"),
            Contender("bm25s, 20 indexes", "with_bm25s.py", "again"),
            Contender("rank_bm25, 20 indexes", "with_rank_bm25.py", "again", largest=20_000, runs=1),
        ),
    ),
    "minhash": Contest(
        "From text to MinHash signatures: 128 permutations over shingles of five words",
        (
            Contender("assay", "with_assay.py", "minhash"),
            Contender("daft, `minhash`", "with_daft.py", "expression"),
            Contender("gaoya, insertion", "with_gaoya.py", "insert"),
            Contender("rensa, `RMinHash`", "with_rensa.py", "matrix"),
            Contender("datasketch, `bulk`, xxhash", "with_datasketch.py", "bulk"),
            Contender("datasketch, `update`", "with_datasketch.py", "update", largest=5_000),
        ),
    ),
    "lsh": Contest(
        "From signatures of distinct bodies to all pairs that share a band: 16 bands of 8 rows",
        (
            Contender("assay", "with_assay.py", "lsh"),
            Contender("datasketch, `MinHashLSH`", "with_datasketch.py", "lsh"),
        ),
    ),
}
