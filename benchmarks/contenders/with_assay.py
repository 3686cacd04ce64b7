"""Assay itself, in the environment of the project."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from measuring import Entries, Ready, Shown, Work, distinct, main

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.engines.text import Tokenizer


def ranking(tokenizer: Tokenizer) -> Ready:
    """Engine `bm25` as the night calls it: an index a tap, the answers, and the ranked lists with copies collapsed."""
    from pipeline.engines import Query, index, kernel
    from pipeline.engines.bm25 import Bm25, Bm25Options
    from pipeline.engines.ranking import rank_answers

    del index, kernel  # they are imported at first use

    def ready(entries: Entries) -> Work:
        taps = taps_of(entries.table)

        def work() -> Shown:
            engine = Bm25(Bm25Options(tokenizer=tokenizer))
            indexes = [engine.index_tap(tap) for tap in taps]
            queries = [Query(f"{number:04}", text) for number, text in enumerate(entries.queries)]
            ranked = rank_answers(engine.retriever(indexes).answer(queries), entries.table)
            return lambda: rows_of(ranked.hits, entries.table, len(queries))

        return work

    return ready


def taps_of(table: pa.Table) -> list[pa.Table]:
    """Cut the entries into taps, as catalogues hold them."""
    taps = table.column("tap").to_pylist()
    firsts = [0, *(row for row in range(1, len(taps)) if taps[row] != taps[row - 1]), len(taps)]
    return [table.slice(start, stop - start) for start, stop in pairwise(firsts)]


KEY = ("tap", "path")


def rows_of(hits: pa.Table, entries: pa.Table, queries: int) -> list[list[int]]:
    """Return the entries of each query by their rows, best first, mirrors left out."""
    row_of = {key: row for row, key in enumerate(zip(*(entries.column(n).to_pylist() for n in KEY), strict=True))}
    found: list[list[int]] = [[] for _ in range(queries)]
    for query, rank, *key in zip(*(hits.column(n).to_pylist() for n in ("query_id", "rank", *KEY)), strict=True):
        if rank is not None:
            found[int(query)].append(row_of[tuple(key)])
    return found


def minhash() -> Ready:
    """Signatures of all bodies: 128 permutations over shingles of five words."""
    from pipeline.classes import kernel
    from pipeline.classes.signatures import sign

    del kernel

    def ready(entries: Entries) -> Work:
        bodies = entries.table.column("body")

        def work() -> Shown:
            signed = sign(bodies)
            return lambda: len(signed.signatures)

        return work

    return ready


def lsh() -> Ready:
    """All pairs of bodies that share a band, from their signatures: 16 bands of 8 rows."""
    import pyarrow as pa

    from pipeline.classes.candidates import band_keys, candidate_pairs
    from pipeline.classes.signatures import sign

    def ready(entries: Entries) -> Work:
        signed = sign(pa.array(distinct(entries.bodies), pa.large_string()))

        def work() -> Shown:
            pairs = candidate_pairs(band_keys(signed.signatures), signed.signed)
            return lambda: len(pairs)

        return work

    return ready


if __name__ == "__main__":
    main(
        {"ascii": partial(ranking, "ascii"), "unicode": partial(ranking, "unicode"), "minhash": minhash, "lsh": lsh},
        ["numba", "numpy", "pyarrow"],
    )
