"""The points of falloff curves: means at each size, with the spread over orders and the spread over queries.

The two spreads are drawn apart, since they answer two questions. *Over orders*: what would another order of the same
taps have shown? The 2.5th to 97.5th percentile of the orders' means; it has no width where all orders hold the same
entries, which they do at both ends. *Over queries*: what would other questions of the same kind have shown? The same
percentiles over 2,000 draws of as many clusters of items as there are, with replacement, of the items' means over
orders. Draw ``d``, place ``p`` takes cluster ``r mod C``, ``r`` being number ``d * C + p`` of PCG64's 64-bit numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.falloff import Statistics, kernel
from pipeline.falloff.grading import ABSENT, MEASURES, TREATMENTS, Asked, Curves
from pipeline.falloff.orders import Order
from pipeline.falloff.rows import FALLOFF
from pipeline.scoring.intervals import label
from pipeline.scoring.means import GRADINGS, MAIN
from pipeline.scoring.measures import Measure

DRAWS = 2000
PERCENTILES = (2.5, 97.5)
NO_VALUE = "no item has a value"


class Named(NamedTuple):
    """Whose curve it is."""

    golden_set: str
    golden_digest: str
    engine: str
    statistics: Statistics = "subset"
    """What the weights of words are taken from."""


class Column(NamedTuple):
    """A measure under a grading and a treatment, each by its place."""

    grading: int
    treatment: int
    measure: int


COLUMNS = tuple(
    Column(grading, treatment, measure)
    for grading in range(len(GRADINGS))
    for treatment in range(len(TREATMENTS))
    for measure in range(len(MEASURES) if treatment == 0 else len(MAIN))
)
"""What is published: the diagnostics under the headline treatment alone."""


def points(named: Named, asked: Asked, curves: Curves, seed: int = 0) -> pa.Table:
    """Return the points of one engine's curves in orders of one kind: `FALLOFF`.

    Orders that were drawn have a row each, without bands, and one for all of them (``seed`` null), with both.

    Args:
        named: whose curves they are.
        asked: the golden set.
        curves: what was measured.
        seed: of the draws of clusters.
    """
    one = [_Part(order, place) for place, order in enumerate(curves.orders)]
    drawn = curves.orders[0].seed is not None
    rows = [_rows(named, asked, curves, _of_order(curves, part.place), part.order, seed) for part in one]
    if drawn:
        pooled = curves.orders[0]._replace(seed=None)
        rows.append(_rows(named, asked, curves, _over_orders(curves), pooled, seed))
    return FALLOFF.sort(pa.concat_tables(rows))


def cluster_draws(clusters: Sequence[str], seed: int, draws: int = DRAWS) -> NDArray[np.int32]:
    """Draw clusters with replacement: how often each cluster, in order of first appearance, is in each draw."""
    number = len(set(clusters))
    taken = (np.random.PCG64(seed).random_raw(draws * number) % np.uint64(max(number, 1))).astype(np.int64)
    taken += np.repeat(np.arange(draws) * number, number)
    return np.bincount(taken, minlength=draws * number).reshape(draws, number).astype(np.int32)


def over_draws(values: NDArray[np.float64], clusters: Sequence[str], weights: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the mean of each column in each draw; NaN where no item of a draw has a value.

    Args:
        values: by item and column; NaN where undefined.
        clusters: cluster of each item.
        weights: as `cluster_draws` gives them.
    """
    known = ~np.isnan(values)
    number = cluster_numbers(clusters)
    sums, counts = np.zeros((2, weights.shape[1], values.shape[1]))
    np.add.at(sums, number, np.where(known, values, 0.0))
    np.add.at(counts, number, known)
    totals = np.zeros((weights.shape[0], values.shape[1]))
    kernel.weigh(weights, sums, totals)
    # Columns in which the same items have a value share their numbers of items, which are whole and so exact.
    patterns, pattern_of = np.unique(counts, axis=1, return_inverse=True)
    drawn = (weights @ patterns)[:, pattern_of.reshape(-1)]
    with np.errstate(invalid="ignore"):
        means: NDArray[np.float64] = totals / drawn
    return means


def cluster_numbers(clusters: Sequence[str]) -> NDArray[np.int64]:
    """Number the clusters in order of first appearance."""
    number = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    return np.array([number[cluster] for cluster in clusters], np.int64)


def mean_over(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return means over one axis, of exactly rounded sums as ``pipeline.scoring`` takes them; NaN is left out."""
    shape = values.shape
    flat = np.ascontiguousarray(values).reshape(
        int(np.prod(shape[:axis])), shape[axis], int(np.prod(shape[axis + 1 :]))
    )
    averages = np.empty((flat.shape[0], flat.shape[2]))
    numbers = np.empty(averages.shape, np.int64)
    kernel.means(flat, averages, numbers)
    return averages.reshape(shape[:axis] + shape[axis + 1 :])


def mean_over_orders(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return means over the first axis. Where all orders agree it is what they agree on, to the bit."""
    means = mean_over(values, 0)
    return np.fmin(np.fmax(means, np.fmin.reduce(values, axis=0)), np.fmax.reduce(values, axis=0))


class _Part(NamedTuple):
    order: Order
    place: int


class _Cells(NamedTuple):
    """What rows are made of: S sizes, Q items, C columns."""

    items: NDArray[np.float64]
    """(S, Q, G, T, M)."""
    sizes: NDArray[np.int64]
    """Entries, classes and taps: (3, S)."""
    orders: int
    band: NDArray[np.float64] | None
    """Percentiles over orders, (2, S, C)."""
    bands_of_queries: bool


def _of_order(curves: Curves, place: int) -> _Cells:
    sizes = np.stack([curves.entries[place], curves.classes[place], curves.taps[place]])
    return _Cells(curves.values[place], sizes, 1, None, curves.orders[place].seed is None)


def _over_orders(curves: Curves) -> _Cells:
    number = len(curves.orders)
    middle = (number - 1) // 2
    sizes = np.stack([np.sort(of, axis=0)[middle] for of in (curves.entries, curves.classes, curves.taps)])
    band = None
    if number > 1:
        means = _columns(mean_over(curves.values, 2))
        band = np.percentile(means, PERCENTILES, axis=0)
    return _Cells(mean_over_orders(curves.values), sizes, number, band, True)


def _columns(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what is published of ``(..., G, T, M)``: ``(..., C)``."""
    grading, treatment, measure = np.array(COLUMNS).T
    return values[..., grading, treatment, measure]


def _rows(named: Named, asked: Asked, curves: Curves, cells: _Cells, order: Order, seed: int) -> pa.Table:
    steps, columns = curves.nominal.size, len(COLUMNS)
    items = _columns(cells.items)
    known = ~np.isnan(items)
    values = mean_over(items, 1)
    gap = _gap(cells.items)
    query = _query_band(items, asked.clusters, seed) if cells.bands_of_queries else np.full((2, steps, columns), np.nan)
    band = cells.band if cells.band is not None else np.full((2, steps, columns), np.nan)
    absent = [sum(why == ABSENT for why in reasons) for reasons in asked.reasons]
    n = _clusters(known, asked.clusters)

    def by_step(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.repeat(numbers, columns)

    def by_column(texts: Sequence[object]) -> pa.Array:
        return pa.array(texts).take(pa.array(np.tile(np.arange(columns), steps)))

    def numbers(values: NDArray[np.float64]) -> pa.Array:
        return pa.array(np.ascontiguousarray(values).reshape(-1), mask=np.isnan(values).reshape(-1))

    size = steps * columns
    found: dict[str, Sequence[object] | pa.Array] = {
        "golden_set": _same(named.golden_set, size),
        "golden_digest": _same(named.golden_digest, size),
        "engine": _same(named.engine, size),
        "regime": _same(order.regime, size),
        "order_kind": _same(order.kind, size),
        "statistics": _same(named.statistics, size),
        "seed": pa.nulls(size, pa.int64()) if order.seed is None else np.full(size, order.seed),
        "step": by_step(np.arange(1, steps + 1)),
        "nominal": by_step(curves.nominal),
        "entries": by_step(cells.sizes[0]),
        "classes": by_step(cells.sizes[1]),
        "taps": by_step(cells.sizes[2]),
        "grading": by_column([GRADINGS[column.grading] for column in COLUMNS]),
        "treatment": by_column([TREATMENTS[column.treatment] for column in COLUMNS]),
        "metric": by_column([str(MEASURES[column.measure]) for column in COLUMNS]),
        "k": by_column([MEASURES[column.measure].cut for column in COLUMNS]),
        "value": numbers(values),
        "reason": pa.array([NO_VALUE if missing else None for missing in np.isnan(values).reshape(-1)], pa.string()),
        "n": n.reshape(-1),
        "n_items": np.full(size, len(asked.query_ids)),
        "n_null": (known.shape[1] - known.sum(axis=1)).reshape(-1),
        "n_absent": by_column([absent[column.grading] for column in COLUMNS]),
        "label": pa.array([label(number) for number in n.reshape(-1).tolist()]),
        "judged_at_k": numbers(values[:, _JUDGED]),
        "gap": numbers(gap),
        "orders": np.full(size, cells.orders),
        "order_low": numbers(band[0]),
        "order_high": numbers(band[1]),
        "query_low": numbers(query[0]),
        "query_high": numbers(query[1]),
        "bootstrap_seed": np.full(size, seed),
    }
    return pa.Table.from_pydict(found, schema=FALLOFF.schema)


def _same(text: str, size: int) -> pa.Array:
    return pa.array([text]).take(pa.array(np.zeros(size, np.int64)))


def _gap(items: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return by name minus as pinned, over the items that have both, in the columns by name."""
    row, name = GRADINGS.index("row"), GRADINGS.index("name")
    difference = np.full(items.shape, np.nan)
    difference[:, :, name] = items[:, :, name] - items[:, :, row]
    return mean_over(_columns(difference), 1)


def _query_band(items: NDArray[np.float64], clusters: Sequence[str], seed: int) -> NDArray[np.float64]:
    weights = cluster_draws(clusters, seed)
    bands = []
    for of_step in items:
        drawn = np.ascontiguousarray(over_draws(of_step, clusters, weights).T)
        bands.append(percentiles(drawn))
    return np.stack(bands, axis=1)


def percentiles(drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return both percentiles of each row, without its NaN; NaN where nothing else is there."""
    found = np.full((2, drawn.shape[0]), np.nan)
    whole = ~np.isnan(drawn).any(axis=1)
    if whole.any():
        found[:, whole] = np.percentile(drawn[whole], PERCENTILES, axis=1)
    for row in np.flatnonzero(~whole):
        some = drawn[row][~np.isnan(drawn[row])]
        if some.size:
            found[:, row] = np.percentile(some, PERCENTILES)
    return found


def _clusters(known: NDArray[np.bool_], clusters: Sequence[str]) -> NDArray[np.int64]:
    """Count the clusters of the items that have a value: (S, Q, C) to (S, C)."""
    number = cluster_numbers(clusters)
    member = np.zeros((number.size, int(number.max(initial=-1)) + 1), np.float32)
    member[np.arange(number.size), number] = 1.0
    met = np.swapaxes(known, 1, 2).astype(np.float32) @ member
    return np.asarray((met > 0).sum(axis=2), np.int64)


_JUDGED = np.array(
    [
        COLUMNS.index(column._replace(measure=MEASURES.index(Measure("judged", MEASURES[column.measure].cut))))
        for column in COLUMNS
    ]
)
"""For each column, where judged@k of the same cut stands."""
