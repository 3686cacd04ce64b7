"""Which taps and classes took a query that was lost on the way.

A query is lost where its target is among the first k in the smallest subset and not in the whole corpus. Two questions
are asked of each tap. *Is the query found again once this tap alone is left out?* Where several taps would each have
been enough, no single one is to blame by that. *How often did the tap's joining lose it?* Over all orders, each
joining that loses the query counts 1 and each that brings it back counts -1; the average is the tap's share, and the
shares of a query add up to 1 (Shapley 1953), so a falling curve reads «this tap took 3 queries».
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.falloff.grading import Asked, measure_rankings
from pipeline.falloff.onepass import Curve, Rankings
from pipeline.falloff.orders import Corpus, Order, Subsets, every_unit, subsets, tap_last
from pipeline.falloff.points import Named
from pipeline.falloff.rows import ATTRIBUTION, Attribution
from pipeline.scoring.grade import Grading
from pipeline.scoring.means import GRADINGS

EVERY_CLASS = "*"
K = 10

CurveOf = Callable[[Sequence[int]], Curve]
"""The engine over some of the items, given by their places in the set."""


class Shown(NamedTuple):
    """What is shown of the entries of a corpus, in its order."""

    slugs: Sequence[str]
    class_ids: Sequence[str]


def attribute(
    named: Named, corpus: Corpus, asked: Asked, curve_of: CurveOf, orders: Sequence[Order], shown: Shown, k: int = K
) -> pa.Table:
    """Say of every lost query what each tap took of it: `ATTRIBUTION`; no row where no query is lost.

    Args:
        named: whose curves they are.
        corpus: the whole corpus.
        asked: the golden set.
        curve_of: the engine.
        orders: orders of whole taps, one or more.
        shown: names and classes of the entries.
        k: depth at which an item counts as found.

    Raises:
        ValueError: there is no order, or one of single entries.
    """
    if not orders or any(not order.taps for order in orders):
        raise ValueError("taps are told apart by orders of whole taps, one or more")
    everyone = range(len(asked.query_ids))
    ends = subsets(corpus, orders[0], sorted({int(corpus.in_targets.sum()), corpus.entries}))
    found = _found(asked, curve_of(everyone).rank(ends), ends, k)
    lost = found[0] & ~found[-1]
    places = np.flatnonzero(lost.any(axis=1)).tolist()
    if not places:
        return ATTRIBUTION.from_rows(())
    few = only(asked, places)
    curve = curve_of(places)
    shares = _shares(corpus, few, curve, orders, k)
    whole = curve.rank(ends)
    first_ranks = measure_rankings(few, whole, ends)[1][-1, :, :, 0]
    rows: list[Attribution] = []
    left_out: dict[str, NDArray[np.bool_]] = {}
    for query, place in enumerate(places):
        for grading in np.flatnonzero(lost[place]).tolist():
            above = _above(corpus, whole, ends.steps - 1, query, int(first_ranks[query, grading]))
            taps = {tap for tap, share in shares.items() if share[query, grading] != 0} | set(above)
            for tap in sorted(taps, key=str.encode):
                if tap not in corpus.targets and tap not in left_out:
                    left_out[tap] = _found_without(corpus, few, curve, tap, k)
                share = float(shares[tap][query, grading]) if tap in shares else 0.0
                without = bool(left_out[tap][query, grading]) if tap in left_out else None
                rows += _tap_rows(
                    named, few, query, grading, k, tap, share, len(orders), without, above.get(tap, []), shown
                )
    return ATTRIBUTION.from_rows(rows)


def taken_by_tap(attribution: pa.Table, grading: Grading = "row") -> dict[str, float]:
    """Return how many queries each tap took, of an `ATTRIBUTION` table: most first."""
    taken: Counter[str] = Counter()
    columns = (attribution.column(name).to_pylist() for name in ("grading", "class_id", "tap", "share"))
    for of, class_id, tap, share in zip(*columns, strict=True):
        if of == grading and class_id == EVERY_CLASS:
            taken[tap] += share
    return dict(sorted(taken.items(), key=lambda one: (-one[1], one[0].encode())))


def harm(corpus: Corpus, asked: Asked, curve: Curve, grading: Grading = "row") -> dict[str, float]:
    """Count for each tap its classes that outrank the target of a query in the whole corpus, over all queries.

    It says who is the worst confuser; an order by it starts with the largest. A ranking is 100 classes deep.
    """
    place = GRADINGS.index(grading)
    whole = every_unit(corpus, Order("random", None, np.zeros(corpus.entries, np.int64)))
    rankings = curve.rank(whole)
    first_ranks = measure_rankings(asked, rankings, whole)[1][0, :, :, 0]
    counted: Counter[str] = Counter()
    for query in np.flatnonzero(asked.active[place]).tolist():
        for tap, hits in _above(corpus, rankings, 0, query, int(first_ranks[query, place])).items():
            counted[tap] += len(hits)
    return {tap: float(number) for tap, number in counted.items()}


def only(asked: Asked, places: Sequence[int]) -> Asked:
    """Return the golden set cut to some of its items."""
    return asked._replace(
        query_ids=tuple(asked.query_ids[place] for place in places),
        clusters=tuple(asked.clusters[place] for place in places),
        slots=np.ascontiguousarray(asked.slots[:, places]),
        active=np.ascontiguousarray(asked.active[:, places]),
        reasons=tuple(tuple(reasons[place] for place in places) for reasons in asked.reasons),
        slots_wanted=np.ascontiguousarray(asked.slots_wanted[:, places]),
        others=np.ascontiguousarray(asked.others[:, places]),
    )


class _Above(NamedTuple):
    """A class that outranks a target."""

    rank: int
    row: int


def _found(asked: Asked, rankings: Rankings, of: Subsets, k: int) -> NDArray[np.bool_]:
    """Say by subset, item and grading whether the item is found."""
    first_ranks = measure_rankings(asked, rankings, of)[1][..., 0]
    return np.asarray((first_ranks > 0) & (first_ranks <= k))


def _shares(
    corpus: Corpus, asked: Asked, curve: Curve, orders: Sequence[Order], k: int
) -> Mapping[str, NDArray[np.float64]]:
    """Return what each tap lost of each item, by item and grading, on average over the orders."""
    lost: dict[str, NDArray[np.int64]] = defaultdict(lambda: np.zeros(asked.active.T.shape, np.int64))
    for order in orders:
        steps = every_unit(corpus, order)
        found = _found(asked, curve.rank(steps), steps, k).astype(np.int64)
        joined = np.flatnonzero(np.bincount(order.joins))
        for step, unit in enumerate(joined.tolist()):
            if unit:
                lost[order.taps[unit - 1]] += found[step - 1] - found[step]
    return {tap: of_tap / len(orders) for tap, of_tap in lost.items()}


def _found_without(corpus: Corpus, asked: Asked, curve: Curve, tap: str, k: int) -> NDArray[np.bool_]:
    rest = corpus.entries - int(corpus.sizes[corpus.taps.index(tap)])
    without = subsets(corpus, tap_last(corpus, tap), [rest])
    return np.asarray(_found(asked, curve.rank(without), without, k)[0])


def _above(corpus: Corpus, rankings: Rankings, step: int, query: int, first_rank: int) -> dict[str, list[_Above]]:
    """Return the classes that outrank the target, by the tap of their shown entry, best first."""
    cell = rankings.cell(step, query)
    above: dict[str, list[_Above]] = {}
    for row, rank in zip(cell.rows.tolist(), cell.ranks.tolist(), strict=True):
        if rank == first_rank and first_rank:
            break
        if rank:
            above.setdefault(corpus.taps[corpus.tap_of[row]], []).append(_Above(rank, row))
    return above


def _tap_rows(
    named: Named,
    asked: Asked,
    query: int,
    grading: int,
    k: int,
    tap: str,
    share: float,
    orders: int,
    without: bool | None,
    above: Sequence[_Above],
    shown: Shown,
) -> Iterator[Attribution]:
    def row(class_id: str, rank: int | None, slug: str | None, part: float) -> Attribution:
        return Attribution(
            golden_set=named.golden_set,
            query_id=asked.query_ids[query],
            engine=named.engine,
            grading=GRADINGS[grading],
            k=k,
            tap=tap,
            class_id=class_id,
            rank=rank,
            slug=slug,
            classes_above=len(above),
            share=part,
            orders=orders,
            statistics=named.statistics,
            recovered_without=without,
        )

    yield row(EVERY_CLASS, above[0].rank if above else None, None, share)
    for hit in above:
        yield row(shown.class_ids[hit.row], hit.rank, shown.slugs[hit.row], share / len(above))
