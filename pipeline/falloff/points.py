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
from pipeline.scoring.grade import Grading, Treatment
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
    absent = [sum(why == ABSENT for why in reasons) for reasons in asked.reasons]
    columns = Columns(
        [GRADINGS[column.grading] for column in COLUMNS],
        [TREATMENTS[column.treatment] for column in COLUMNS],
        [str(MEASURES[column.measure]) for column in COLUMNS],
        [MEASURES[column.measure].cut for column in COLUMNS],
        [absent[column.grading] for column in COLUMNS],
        [NO_VALUE] * len(COLUMNS),
    )
    rows = [
        point_rows(named, curves, part, columns, _estimates(asked, curves, part, seed), len(asked.query_ids), seed)
        for part in parts_of(curves)
    ]
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


class Part(NamedTuple):
    """The part of curves that rows are made of: one order, or all of them."""

    order: Order
    """The order; of all orders the first, without its seed."""
    places: slice
    """Which of the orders they are."""
    pooled: bool
    """Whether it is over all orders of its kind, so that it has a band over queries."""

    def sizes(self, curves: Curves) -> NDArray[np.int64]:
        """Return entries, classes and taps at each size, of several orders their lower median: (3, S)."""
        of_part = [of[self.places] for of in (curves.entries, curves.classes, curves.taps)]
        return np.stack([np.sort(of, axis=0)[(len(of) - 1) // 2] for of in of_part])


def parts_of(curves: Curves) -> list[Part]:
    """Return what has rows: each order, and where orders were drawn, all of them together."""
    drawn = curves.orders[0].seed is not None
    one = [Part(order, slice(place, place + 1), not drawn) for place, order in enumerate(curves.orders)]
    return [*one, Part(curves.orders[0]._replace(seed=None), slice(None), True)] if drawn else one


class Columns(NamedTuple):
    """What is measured at each size: C columns."""

    gradings: Sequence[Grading]
    treatments: Sequence[Treatment]
    metrics: Sequence[str]
    cuts: Sequence[int | None]
    absent: Sequence[int]
    """Items that are left out of every point."""
    reasons: Sequence[str]
    """Why a column has no value where it has none."""


class Estimates(NamedTuple):
    """What was found, by size and column, (S, C); NaN where there is nothing."""

    values: NDArray[np.float64]
    n: NDArray[np.int64]
    """Clusters of the items that have a value."""
    n_null: NDArray[np.int64]
    """Items that have none."""
    judged: NDArray[np.float64]
    gap: NDArray[np.float64]
    orders: NDArray[np.float64]
    """Percentiles over orders, (2, S, C)."""
    queries: NDArray[np.float64]
    """Percentiles over clusters of items, (2, S, C)."""


def _columns(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what is published of ``(..., G, T, M)``: ``(..., C)``."""
    grading, treatment, measure = np.array(COLUMNS).T
    return values[..., grading, treatment, measure]


def _estimates(asked: Asked, curves: Curves, part: Part, seed: int) -> Estimates:
    values = curves.values[part.places]
    of_items = mean_over_orders(values)
    items = _columns(of_items)
    of_orders = _columns(mean_over(values, 2)) if len(values) > 1 else _NO_ORDERS
    found = estimates(items, of_orders, part, asked.clusters, seed)
    return found._replace(judged=found.values[:, _JUDGED], gap=_gap(of_items))


def estimates(
    items: NDArray[np.float64], of_orders: NDArray[np.float64], part: Part, clusters: Sequence[str], seed: int
) -> Estimates:
    """Return the means of items, with both bands.

    Args:
        items: the value of each item, the mean over orders: (S, Q, C); NaN where undefined.
        of_orders: the mean of each of several orders, (O, S, C); of one order nothing.
        part: what it is of.
        clusters: cluster of each item.
        seed: of the draws of clusters.
    """
    known = ~np.isnan(items)
    values = mean_over(items, 1)
    nothing = np.full((2, *values.shape), np.nan)
    return Estimates(
        values,
        clusters_of(known, clusters),
        known.shape[1] - known.sum(axis=1),
        nothing[0],
        nothing[0],
        np.percentile(of_orders, PERCENTILES, axis=0) if len(of_orders) > 1 else nothing,
        _query_band(items, clusters, seed) if part.pooled else nothing,
    )


def point_rows(
    named: Named, curves: Curves, part: Part, columns: Columns, found: Estimates, n_items: int, seed: int
) -> pa.Table:
    """Return the rows of `FALLOFF` that estimates make, a row a size and column."""
    steps, width = found.values.shape
    sizes = part.sizes(curves)

    def by_step(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.repeat(numbers, width)

    def by_column(texts: Sequence[object]) -> pa.Array:
        return pa.array(texts).take(pa.array(np.tile(np.arange(width), steps)))

    def numbers(values: NDArray[np.float64]) -> pa.Array:
        return pa.array(np.ascontiguousarray(values).reshape(-1), mask=np.isnan(values).reshape(-1))

    size = steps * width
    order = part.order
    missing = np.isnan(found.values)
    rows: dict[str, Sequence[object] | pa.Array] = {
        "golden_set": _same(named.golden_set, size),
        "golden_digest": _same(named.golden_digest, size),
        "engine": _same(named.engine, size),
        "regime": _same(order.regime, size),
        "order_kind": _same(order.kind, size),
        "statistics": _same(named.statistics, size),
        "seed": pa.nulls(size, pa.int64()) if order.seed is None else np.full(size, order.seed),
        "step": by_step(np.arange(1, steps + 1)),
        "nominal": by_step(curves.nominal),
        "entries": by_step(sizes[0]),
        "classes": by_step(sizes[1]),
        "taps": by_step(sizes[2]),
        "grading": by_column(columns.gradings),
        "treatment": by_column(columns.treatments),
        "metric": by_column(columns.metrics),
        "k": by_column(columns.cuts),
        "value": numbers(found.values),
        "reason": pa.array(
            [columns.reasons[column] if no else None for of_step in missing for column, no in enumerate(of_step)],
            pa.string(),
        ),
        "n": found.n.reshape(-1),
        "n_items": np.full(size, n_items),
        "n_null": found.n_null.reshape(-1),
        "n_absent": by_column(columns.absent),
        "label": pa.array([label(number) for number in found.n.reshape(-1).tolist()]),
        "judged_at_k": numbers(found.judged),
        "gap": numbers(found.gap),
        "orders": np.full(size, len(curves.orders[part.places])),
        "order_low": numbers(found.orders[0]),
        "order_high": numbers(found.orders[1]),
        "query_low": numbers(found.queries[0]),
        "query_high": numbers(found.queries[1]),
        "bootstrap_seed": np.full(size, seed),
    }
    return pa.Table.from_pydict(rows, schema=FALLOFF.schema)


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


def clusters_of(known: NDArray[np.bool_], clusters: Sequence[str]) -> NDArray[np.int64]:
    """Count the clusters of the items that have a value: (S, Q, C) to (S, C)."""
    number = cluster_numbers(clusters)
    member = np.zeros((number.size, int(number.max(initial=-1)) + 1), np.float32)
    member[np.arange(number.size), number] = 1.0
    met = np.swapaxes(known, 1, 2).astype(np.float32) @ member
    return np.asarray((met > 0).sum(axis=2), np.int64)


_NO_ORDERS = np.empty(0)
_JUDGED = np.array(
    [
        COLUMNS.index(column._replace(measure=MEASURES.index(Measure("judged", MEASURES[column.measure].cut))))
        for column in COLUMNS
    ]
)
"""For each column, where judged@k of the same cut stands."""
