"""Models of falloff curves, and the figures that are read off them.

A curve is what all orders of a kind reach: at each nominal size the mean y, over x = log2 of the median number of
entries; of nominal sizes with one median the last counts, whose subsets are the closest to it. Three models are fitted
by least squares, ``a + b x`` (log-linear), ``1 / (1 + exp(-(a + b x)))`` (logistic) and ``2^(a + b x)`` (power); each
again on the smaller two thirds of the sizes, and the one with the least error on the largest third is chosen; where
several have the same, the one of them with the least error over all sizes. What a model says is cut to [0, 1], and
beyond twice the largest size it says nothing. A size that the model does not reach and the points do is taken from the
straight lines between them.

Intervals are the 2.5th to 97.5th percentile over 2,000 draws with replacement of both the clusters of items and the
orders; the chosen model is fitted anew to each. A draw in which a size is not reached counts as beyond all sizes, so a
bound that is missing says «not reached».
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.errors import BadInput, Fault
from pipeline.falloff.grading import MEASURES, Asked, Curves
from pipeline.falloff.points import (
    COLUMNS,
    DRAWS,
    PERCENTILES,
    Column,
    Named,
    cluster_draws,
    cluster_numbers,
    mean_over,
    mean_over_orders,
    over_draws,
)
from pipeline.falloff.rows import (
    BELOW,
    FALLOFF_FITS,
    FALLOFF_SUMMARIES,
    FalloffFit,
    FalloffSummary,
    ModelName,
    Summary,
)
from pipeline.scoring.grade import Grading
from pipeline.scoring.intervals import FEWEST
from pipeline.scoring.means import GRADINGS, TREATMENT

Array = NDArray[np.float64]

FITTED = ("recall@10", "hit@1", "mrr@100", "ndcg@10")
"""Measures that models are fitted to, under the headline treatment and both gradings; those with a floor are too."""
FITTABLE = frozenset(map(str, MEASURES))
"""Measures that have a curve."""
FEWEST_SIZES = 5
"""Different sizes that a fit needs, so that the smaller ones determine it and two can be held out."""
BEYOND = 2
"""How many times the largest size a model may speak of."""
NOT_REACHED = "not reached"
_STEPS = 40
_SAME = 1e-9
"""Numbers between 0 and 1 that are closer than this are the same: what is between them comes of rounding."""
_LEAST = 1e-3
"""Values are held this far from 0 and 1 where a first guess takes their logarithm."""


class Model(NamedTuple):
    """A curve in x with two parameters. Arrays hold one fit a row."""

    value: Callable[[Array], Array]
    """y of ``a + b x``."""
    slope: Callable[[Array], Array]
    """dy / d(a + b x), from y."""
    inverse: Callable[[Array], Array]
    """``a + b x`` of y."""
    straight: bool = False
    """Whether y is ``a + b x`` itself, so that the straight line through the points is the fit."""


def _logistic(line: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-np.clip(line, -500.0, 500.0)))


def _logit(value: Array) -> Array:
    return np.log(value / (1.0 - value))


MODELS: Mapping[ModelName, Model] = {
    "log-linear": Model(lambda line: line, np.ones_like, lambda value: value, straight=True),
    "logistic": Model(_logistic, lambda value: value * (1.0 - value), _logit),
    "power": Model(lambda line: np.exp2(np.clip(line, -500.0, 500.0)), lambda value: value * math.log(2.0), np.log2),
}


class Fitted(NamedTuple):
    """The models of one engine's curves, and what is read off them."""

    fits: pa.Table
    """`FALLOFF_FITS`."""
    summaries: pa.Table
    """`FALLOFF_SUMMARIES`."""


class _Curve(NamedTuple):
    """One measure of one engine over the sizes, and in each draw."""

    column: Column
    x: Array
    y: Array
    drawn: Array
    """(draws, sizes)."""
    why_not: str | None
    """Why no model is fitted to it."""

    @property
    def name(self) -> tuple[Grading, str]:
        return GRADINGS[self.column.grading], str(MEASURES[self.column.measure])


def fit_curves(
    named: Named, asked: Asked, curves: Curves, *, seed: int = 0, floors: Mapping[str, float] | None = None
) -> Fitted:
    """Fit every model to the curves of one engine, and read sizes off the best.

    Args:
        named: whose curves they are.
        asked: the golden set.
        curves: what was measured, in all orders of one kind.
        seed: of the draws of clusters; the orders are drawn with the next seed.
        floors: values, by measure, of which it is told at what size the curve falls below them.
    """
    fits: list[FalloffFit] = []
    summaries: list[FalloffSummary] = []
    floors = floors or {}
    for curve in _curves(asked, curves, seed, {*FITTED, *floors}):
        found = {name: _fit_row(named, curves, curve, name) for name in MODELS}
        best = min((fit for fit in found.values() if fit.held_out_error is not None), key=_errors, default=None)
        fits += [fit.model_copy(update={"chosen": fit is best}) for fit in found.values()]
        summaries += _summaries(named, curves, curve, best.model if best else None, floors.get(curve.name[1]))
    return Fitted(FALLOFF_FITS.from_rows(fits), FALLOFF_SUMMARIES.from_rows(summaries))


def crossings(first: Named, second: Named, asked: Asked, curves: tuple[Curves, Curves], *, seed: int = 0) -> pa.Table:
    """Say at what size the curves of two engines on the same subsets cross: `FALLOFF_SUMMARIES`.

    It is where their difference first changes its sign, on straight lines in log2 of the size between the points; where
    the curves are one for a while in between, it is where they become one.

    Raises:
        ValueError: the engines were not measured on the same subsets.
    """
    orders = [[(order.kind, order.seed) for order in of.orders] for of in curves]
    if orders[0] != orders[1] or not np.array_equal(curves[0].entries, curves[1].entries):
        raise ValueError("two engines are compared on the same subsets")
    rows = []
    for one, other in zip(_curves(asked, curves[0], seed), _curves(asked, curves[1], seed), strict=True):
        if one.why_not:
            rows.append(_row(first, curves[0], one, "engine crossing", second.engine, None, None, one.why_not))
            continue
        value = _crossing(one.x, (one.y - other.y)[None, :])[0]
        drawn = _crossing(one.x, one.drawn - other.drawn)
        rows.append(_row(first, curves[0], one, "engine crossing", second.engine, float(value), drawn, NOT_REACHED))
    return FALLOFF_SUMMARIES.from_rows(rows)


def predict(fit: FalloffFit, entries: int) -> float:
    """Return what a fitted model says of a corpus of so many entries, within 0 and 1.

    Raises:
        BadInput: there is no fit, or the size lies outside of what the model may speak of.
    """
    where = f"forecast of {fit.metric} at {entries} entries"
    if fit.a is None or fit.b is None:
        raise BadInput([Fault(where, f"there is no model: {fit.reason}", "measure more sizes or ask more questions")])
    if not fit.smallest <= entries <= BEYOND * fit.largest:
        least, most = fit.smallest, BEYOND * fit.largest
        raise BadInput(
            [Fault(where, f"the curve reaches from {fit.smallest} to {fit.largest}", f"ask for {least} to {most}")]
        )
    line = np.array([fit.a + fit.b * math.log2(entries)])
    return float(np.clip(MODELS[fit.model].value(line), 0.0, 1.0)[0])


def fit(model: Model, x: Array, y: Array) -> tuple[Array, Array]:
    """Fit ``a`` and ``b`` to each row of ``y`` by least squares: Gauss-Newton, damped where a step does not help.

    Args:
        model: what is fitted.
        x: (sizes), two or more that differ.
        y: (fits, sizes).
    """
    middle = float(x.mean())
    centred = x - middle
    a, b = _line(centred, y if model.straight else model.inverse(np.clip(y, _LEAST, 1.0 - _LEAST)))
    damping = np.full(y.shape[0], 1e-3)

    def errors(a: Array, b: Array) -> Array:
        return np.asarray(((y - model.value(a[:, None] + b[:, None] * centred)) ** 2).sum(axis=1))

    error = errors(a, b)
    for _ in range(0 if model.straight else _STEPS):
        value = model.value(a[:, None] + b[:, None] * centred)
        slope = model.slope(value)
        left = y - value
        aa, ab, bb = (slope**2).sum(axis=1), (slope**2 * centred).sum(axis=1), (slope**2 * centred**2).sum(axis=1)
        ra, rb = (slope * left).sum(axis=1), (slope * left * centred).sum(axis=1)
        aa, bb = aa * (1.0 + damping) + 1e-30, bb * (1.0 + damping) + 1e-30
        whole = aa * bb - ab**2
        with np.errstate(divide="ignore", invalid="ignore"):
            to_a, to_b = a + (bb * ra - ab * rb) / whole, b + (aa * rb - ab * ra) / whole
        new = errors(np.nan_to_num(to_a), np.nan_to_num(to_b))
        better = (new < error) & np.isfinite(to_a) & np.isfinite(to_b)
        a, b, error = np.where(better, to_a, a), np.where(better, to_b, b), np.where(better, new, error)
        damping = np.clip(np.where(better, damping / 10.0, damping * 10.0), 1e-12, 1e12)
    return a - b * middle, b


def _line(x: Array, y: Array) -> tuple[Array, Array]:
    """Fit straight lines; ``x`` is centred."""
    return y.mean(axis=1), (y * x).sum(axis=1) / (x**2).sum()


def _curves(asked: Asked, curves: Curves, seed: int, measures: Container[str] = FITTED) -> Iterator[_Curve]:
    """Yield the curve of each of the measures, which models are fitted to."""
    orders = curves.entries.shape[0]
    sizes = np.sort(curves.entries, axis=0)[(orders - 1) // 2]
    kept = np.flatnonzero(np.diff(sizes, append=np.inf))
    x, steps = np.log2(sizes[kept]), kept.size
    weights = cluster_draws(asked.clusters, seed)
    of_orders = cluster_draws([str(place) for place in range(orders)], seed + 1)
    for column in COLUMNS:
        if column.treatment != 0 or str(MEASURES[column.measure]) not in measures:
            continue
        values = curves.values[..., column.grading, 0, column.measure][:, kept]
        scored = ~np.isnan(values).any(axis=(0, 1))
        clusters = np.unique(cluster_numbers(asked.clusters)[scored]).size
        why_not = None
        if clusters < FEWEST:
            why_not = f"insufficient items: {clusters} clusters, fewer than {FEWEST}"
        elif steps < FEWEST_SIZES:
            why_not = f"{steps} different sizes, fewer than {FEWEST_SIZES}"
        if why_not:
            yield _Curve(column, x, np.zeros(steps), np.zeros((DRAWS, steps)), why_not)
            continue
        y = mean_over(mean_over_orders(values[:, :, scored]), 1)
        by_item = np.moveaxis(values, 2, 0).reshape(values.shape[2], orders * steps)
        drawn = over_draws(by_item, asked.clusters, weights).reshape(DRAWS, orders, steps)
        yield _Curve(column, x, y, (drawn * of_orders[:, :, None]).sum(axis=1) / orders, None)


def _errors(fit: FalloffFit) -> tuple[float, ...]:
    """Return what models are chosen by. What differs by less than ``_SAME`` is rounding."""
    return tuple(round((error or 0.0) / _SAME) for error in (fit.held_out_error, fit.error))


def _fit_row(named: Named, curves: Curves, curve: _Curve, name: ModelName) -> FalloffFit:
    grading, metric = curve.name
    held_out = max(1, curve.x.size // 3) if curve.why_not is None else 0
    found: dict[str, float | None] = dict.fromkeys(("a", "b", "error", "held_out_error"))
    if curve.why_not is None:
        model, y = MODELS[name], curve.y[None, :]
        a, b = fit(model, curve.x, y)
        before = slice(None, -held_out)
        early = fit(model, curve.x[before], y[:, before])
        left = curve.y - _said(model, (a, b), curve.x)[0]
        beyond = (curve.y - _said(model, early, curve.x)[0])[-held_out:]
        found = {"a": float(a[0]), "b": float(b[0]), "error": _root_mean(left), "held_out_error": _root_mean(beyond)}
    return FalloffFit(
        golden_set=named.golden_set,
        engine=named.engine,
        order_kind=curves.orders[0].kind,
        statistics=named.statistics,
        grading=grading,
        treatment=TREATMENT,
        metric=metric,
        model=name,
        **found,
        held_out=held_out,
        chosen=False,
        smallest=int(curves.entries.min()),
        largest=int(curves.entries.max()),
        reason=curve.why_not,
    )


def _said(model: Model, parameters: tuple[Array, Array], x: Array) -> Array:
    a, b = parameters
    return np.clip(model.value(a[:, None] + b[:, None] * x), 0.0, 1.0)


def _root_mean(left: Array) -> float:
    return math.sqrt(math.fsum((left**2).tolist()) / left.size)


def _summaries(
    named: Named, curves: Curves, curve: _Curve, best: ModelName | None, floor: float | None
) -> Iterator[FalloffSummary]:
    asked: list[tuple[Summary, str]] = [("loss per doubling", ""), ("half size", "")]
    if floor is not None:
        asked.append(("floor crossing", str(floor)))
    if best is None:
        for summary, against in asked:
            yield _row(named, curves, curve, summary, against, None, None, curve.why_not or "no model")
        return
    both = np.vstack([curve.y[None, :], curve.drawn])
    _, slope = fit(MODELS["log-linear"], curve.x, both)
    yield _row(named, curves, curve, "loss per doubling", "", -float(slope[0]), -slope[1:], None)
    model = MODELS[best]
    a, b = fit(model, curve.x, both)
    start = np.clip(model.value(a + b * curve.x[0]), 0.0, 1.0)
    half = _falls_to(model, (a, b), start / 2.0, curve.x, both)
    yield _row(named, curves, curve, "half size", "", float(half[0]), half[1:], NOT_REACHED)
    if floor is not None:
        crossed = np.where(start < floor, np.nan, _falls_to(model, (a, b), np.full(start.size, floor), curve.x, both))
        reason = BELOW if math.isnan(float(crossed[0])) else NOT_REACHED
        drawn = np.where(np.isnan(crossed[1:]), 2.0 ** curve.x[0], crossed[1:])
        yield _row(named, curves, curve, "floor crossing", str(floor), float(crossed[0]), drawn, reason)


def _falls_to(model: Model, parameters: tuple[Array, Array], value: Array, x: Array, y: Array) -> Array:
    """Return the size at which a curve falls to a value; infinity where it does not, or only beyond what is said."""
    a, b = parameters
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        at = (model.inverse(value) - a) / b
        reached = (b < 0) & (value > 0) & (at >= x[0]) & (at <= x[-1] + math.log2(BEYOND))
    measured = np.where(y[:, 0] > value, _crossing(x, y - value[:, None]), np.inf)
    return np.where(reached, np.exp2(np.where(reached, at, 0.0)), measured)


def _crossing(x: Array, difference: Array) -> Array:
    """Return the size at which each row first changes its sign; infinity where none does."""
    signs = np.where(np.abs(difference) < _SAME, 0.0, np.sign(difference))
    found = np.full(difference.shape[0], np.inf)
    settled = np.zeros(difference.shape[0], np.int64)  # the last point of each row that has a sign
    rows = np.arange(difference.shape[0])
    for place in range(1, x.size):
        before, after = signs[rows, settled], signs[:, place]
        changed = np.flatnonzero(np.isinf(found) & (before * after < 0))
        start, end = settled[changed], difference[changed, place]
        left = difference[changed, start]
        share = np.where(start == place - 1, left / (left - end), 1.0)
        found[changed] = np.exp2(x[start] + share * (x[start + 1] - x[start]))
        settled[after != 0] = place
    return found


def _row(
    named: Named,
    curves: Curves,
    curve: _Curve,
    summary: Summary,
    against: str,
    value: float | None,
    drawn: Array | None,
    reason: str | None,
) -> FalloffSummary:
    grading, metric = curve.name
    low, high = (math.inf, math.inf) if drawn is None else np.percentile(drawn, PERCENTILES, method="inverted_cdf")
    reached = None if drawn is None or summary == "loss per doubling" else float(np.isfinite(drawn).mean())
    known = value is not None and math.isfinite(value)
    return FalloffSummary(
        golden_set=named.golden_set,
        engine=named.engine,
        order_kind=curves.orders[0].kind,
        statistics=named.statistics,
        grading=grading,
        treatment=TREATMENT,
        metric=metric,
        summary=summary,
        against=against,
        value=value if known else None,
        low=float(low) if math.isfinite(low) else None,
        high=float(high) if math.isfinite(high) else None,
        reached=reached,
        reason=None if known else reason,
    )
