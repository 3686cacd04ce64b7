"""Assay itself, in the environment of the project."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from measuring import Entries, Ready, Shown, Work, distinct, main, subsets, turned

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from pipeline.engines.text import Tokenizer
    from pipeline.falloff.onepass import Rankings, WordCurve
    from pipeline.falloff.orders import Subsets


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
        signed = sign(pa.array(distinct(entries.table.column("body").to_pylist()), pa.large_string()))

        def work() -> Shown:
            pairs = candidate_pairs(band_keys(signed.signatures), signed.signed)
            return lambda: len(pairs)

        return work

    return ready


def falloff(tokenizer: Tokenizer) -> Ready:
    """All nested subsets in one pass over the postings of the questions' words."""
    from pipeline.engines import index, kernel
    from pipeline.falloff import kernel as one_pass

    del index, kernel, one_pass

    def ready(entries: Entries) -> Work:
        taps = taps_of(entries.table)

        def work() -> Shown:
            curve, nested = curve_of(entries, taps, tokenizer)
            ranked = curve.rank(nested)
            return lambda: last_of(ranked, nested.steps)

        return work

    return ready


def again(tokenizer: Tokenizer) -> Ready:
    """The subsets of another order, from the postings of the first."""
    from pipeline.engines import index, kernel
    from pipeline.falloff import kernel as one_pass

    del index, kernel, one_pass

    def ready(entries: Entries) -> Work:
        curve, nested = curve_of(entries, taps_of(entries.table), tokenizer)
        curve.rank(nested)

        def work() -> Shown:
            ranked = curve.rank(nested_of(entries, backwards=True))
            return lambda: ranked.queries

        return work

    return ready


def several(orders: int, tokenizer: Tokenizer) -> Ready:
    """All nested subsets of several orders, from text."""
    from pipeline.engines import index, kernel
    from pipeline.falloff import kernel as one_pass

    del index, kernel, one_pass

    def ready(entries: Entries) -> Work:
        taps = taps_of(entries.table)

        def work() -> Shown:
            curve, _ = curve_of(entries, taps, tokenizer)
            hits = [curve.rank(nested_of(entries, seed=seed)).at[-1] for seed in range(orders)]
            return lambda: len(hits)

        return work

    return ready


def curve_of(entries: Entries, taps: list[pa.Table], tokenizer: Tokenizer) -> tuple[WordCurve, Subsets]:
    """Index the taps, and look up what the questions ask for."""
    import numpy as np

    from pipeline.engines import Query
    from pipeline.engines.bm25 import Bm25, Bm25Options
    from pipeline.engines.lexical import IndexedTaps
    from pipeline.falloff.onepass import WordCurve

    engine = Bm25(Bm25Options(tokenizer=tokenizer))
    corpus = IndexedTaps([engine.index_tap(tap) for tap in taps])
    queries = [Query(f"{number:04}", text) for number, text in enumerate(entries.queries)]
    nested = nested_of(entries, backwards=False)
    in_every_subset = np.arange(corpus.entries) < nested.entries[0]
    return WordCurve(corpus, engine, queries, classes_of(entries), in_every_subset), nested


def classes_of(entries: Entries) -> NDArray[np.int64]:
    """Number the content classes of the entries."""
    import numpy as np

    column = entries.table.column("class_id").combine_chunks()
    return np.asarray(column.dictionary_encode().indices).astype(np.int64)


def nested_of(entries: Entries, *, backwards: bool = False, seed: int | None = None) -> Subsets:
    """Return the nested subsets of the order of the entries, of that in which the rest joins backwards, or as drawn."""
    import numpy as np

    from pipeline.falloff.orders import Order, Subsets

    count = entries.table.num_rows
    sizes = np.array(subsets(count), np.int64)
    step_of = np.searchsorted(sizes, np.arange(count), side="right").astype(np.int32)
    if backwards:
        step_of[turned(range(count))] = step_of.copy()
    if seed is not None:
        np.random.default_rng(seed).shuffle(step_of[sizes[0] :])
    nothing = np.zeros(sizes.size, np.int64)  # classes and taps of a subset stand in tables alone
    return Subsets(cast(Order, None), sizes, step_of, sizes, nothing, nothing)


def last_of(ranked: Rankings, steps: int) -> list[list[int]]:
    """Return the entries of each query in the whole corpus, best first, mirrors left out."""
    cells = (ranked.cell(steps - 1, query) for query in range(ranked.queries))
    return [cell.rows[cell.ranks > 0].tolist() for cell in cells]


if __name__ == "__main__":
    main(
        {
            "ascii": partial(ranking, "ascii"),
            "unicode": partial(ranking, "unicode"),
            "falloff": partial(falloff, "ascii"),
            "again": partial(again, "ascii"),
            **{f"orders {orders}": partial(several, orders, "ascii") for orders in (1, 5, 20, 100)},
            "minhash": minhash,
            "lsh": lsh,
        },
        ["numba", "numpy", "pyarrow"],
        strings=False,
    )
