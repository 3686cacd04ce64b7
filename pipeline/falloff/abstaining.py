"""What abstaining is worth as the catalogue grows: the figures of the table ``abstention``, at each size of a curve.

Each subset is a corpus, so the threshold on the deciding signal is fitted in it anew, on the items of the split
``tuning`` alone; a ranking without a hit abstains by itself. Items count as they do in ``abstention``, less those
whose answer is not among the targets: in a small subset they would have none.

What is a mean over items has the bands of every measure; where it leaves out what nobody judged, which items those are
hangs on the order, and the means of the orders are averaged. AUROC is a mean over pairs, of one item with an answer and
one without: in each draw a pair counts as often as both of its clusters were drawn.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.falloff.grading import ABSENT, Asked, Curves, Firsts
from pipeline.falloff.points import (
    PERCENTILES,
    Columns,
    Estimates,
    Named,
    Part,
    cluster_draws,
    cluster_numbers,
    clusters_of,
    estimates,
    mean_over,
    mean_over_orders,
    over_draws,
    parts_of,
    percentiles,
    point_rows,
)
from pipeline.falloff.rows import FALLOFF
from pipeline.golden.items import GoldenItem
from pipeline.judgments.resolution import Grades
from pipeline.scoring import Signal
from pipeline.scoring.abstention import VALUES, Answer, Point, at_threshold, auroc, fit, half_wins
from pipeline.scoring.means import GRADINGS, TREATMENT
from pipeline.scoring.signals import NO_BOUND

NO_JUDGED = "no answer is judged"
NO_ITEM = "no item counts"
NO_ANSWERABLE = "no item has an answer"
NO_UNANSWERABLE = "every item has an answer"
NO_PAIR = "items with an answer and without are both needed"
OF_ITEMS: Mapping[str, str] = {
    "truthfulness": NO_JUDGED,
    "truthfulness_low": NO_ITEM,
    "truthfulness_high": NO_ITEM,
    "truthfulness_abstain_credit": NO_JUDGED,
    "truthfulness_always_answer": NO_JUDGED,
    "coverage": NO_ITEM,
    "false_abstention_rate": NO_ANSWERABLE,
    "false_answer_rate": NO_UNANSWERABLE,
}
"""Measures that are means over items, and why they have no value where they have none."""
OF_PAIRS: Mapping[str, Signal] = {"auroc": "top_score", "auroc_reached": "reached", "auroc_gap": "gap"}
"""Measures over pairs of items, and the signal that each is of."""
ABSTAINING = (*OF_ITEMS, *OF_PAIRS)
"""Names of the measures, as the columns of ``abstention`` are called."""


class Judged(NamedTuple):
    """What is known of the items of a set, to say whether they were to be answered."""

    answerable: NDArray[np.bool_]
    tuning: NDArray[np.bool_]
    """Whether thresholds may be fitted on it."""
    counts: NDArray[np.bool_]
    """Whether it counts: what it asks for is not outside of the targets."""
    grades: NDArray[np.int8]
    """Grade of each class, by item and number of the class; -1: unjudged."""


def judged(items: Sequence[GoldenItem], asked: Asked, class_ids: Sequence[str], grades: Grades) -> Judged:
    """Look up the grades of all classes.

    Args:
        items: the items, in the order of ``asked``.
        asked: the golden set.
        class_ids: class of each entry.
        grades: resolved grades by item and class.
    """
    number = dict(zip(class_ids, asked.class_of.tolist(), strict=True))
    known = np.full((len(items), max(number.values(), default=-1) + 1), -1, np.int8)
    for place, item in enumerate(items):
        for class_id, resolved in grades.get(item.query_id, {}).items():
            if class_id in number:
                known[place, number[class_id]] = resolved.grade
    return Judged(
        np.array([item.answerable for item in items], np.bool_),
        np.array([item.split == "tuning" for item in items], np.bool_),
        np.array([why != ABSENT for why in asked.reasons[GRADINGS.index("row")]], np.bool_),
        known,
    )


def abstention_points(
    named: Named, asked: Asked, known: Judged, curves: Curves, deciding: Signal = "top_score", seed: int = 0
) -> pa.Table:
    """Return what abstaining is worth at each size, as rows of `FALLOFF`, graded by judgments.

    Args:
        named: whose curves they are.
        asked: the golden set.
        known: what is known of its items.
        curves: what was ranked.
        deciding: the signal that the threshold is on; where the engine lacks it, every hit is an answer.
        seed: of the draws of clusters.
    """
    signals = _signals(curves.firsts)
    lacking = _lacking(signals)
    columns = Columns(
        ["qrels"] * len(ABSTAINING),
        [TREATMENT] * len(ABSTAINING),
        ABSTAINING,
        pa.nulls(len(ABSTAINING), pa.int64()).to_pylist(),
        [int((~known.counts).sum())] * len(ABSTAINING),
        [*OF_ITEMS.values(), *(NO_BOUND if signal in lacking else NO_PAIR for signal in OF_PAIRS.values())],
    )
    values, pairs = _measured(known, curves.firsts, signals, lacking, deciding)
    parts = [
        point_rows(
            named, curves, part, columns, _estimates(asked, known, values, pairs, part, seed), len(known.counts), seed
        )
        for part in parts_of(curves)
    ]
    return FALLOFF.sort(pa.concat_tables(parts))


class _Pairs(NamedTuple):
    """AUROC by one signal."""

    values: NDArray[np.float64]
    """Of each order at each size, (O, S)."""
    signals: NDArray[np.float64]
    """The signal, (O, S, Q); minus infinity where there is no hit."""
    lacking: bool
    """Whether there are hits without it, so that there is no value."""


def _signals(firsts: Firsts) -> dict[Signal, NDArray[np.float64]]:
    """Return each signal, (O, S, Q); NaN where there is no hit, or no bound."""
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.where(np.isnan(firsts.seconds), 1.0, (firsts.scores - firsts.seconds) / firsts.scores)
        gap = np.where(np.isnan(firsts.scores), np.nan, gap)
        return {"top_score": firsts.scores, "reached": firsts.scores / firsts.reach, "gap": gap}


def _lacking(signals: Mapping[Signal, NDArray[np.float64]]) -> set[Signal]:
    """Return the signals that have no value though there is a hit."""
    return {signal for signal, of in signals.items() if (np.isnan(of) & ~np.isnan(signals["top_score"])).any()}


def _measured(
    known: Judged,
    firsts: Firsts,
    signals: Mapping[Signal, NDArray[np.float64]],
    lacking: Collection[Signal],
    deciding: Signal,
) -> tuple[NDArray[np.float64], list[_Pairs]]:
    """Return the value of each item in each subset, (O, S, Q, C), and what is over pairs."""
    at = np.arange(firsts.classes.shape[2])
    grades = np.where(
        firsts.classes < 0, -1, known.grades[at, np.maximum(firsts.classes, 0)] if known.grades.size else -1
    )
    counting = np.flatnonzero(known.counts).tolist()
    tuning = [place for place in counting if known.tuning[place]]
    answerable = known.answerable.tolist()
    values = np.full((*firsts.classes.shape, len(OF_ITEMS)), np.nan)
    pairs = {signal: np.full(firsts.classes.shape[:2], np.nan) for signal in OF_PAIRS.values()}
    shown: Signal = "top_score" if deciding in lacking else deciding
    for cell in np.ndindex(*firsts.classes.shape[:2]):
        grade = grades[cell].tolist()
        by_signal = {
            signal: {
                place: Point(
                    None if math.isnan(value[place]) else value[place], answerable[place], _grade(grade[place])
                )
                for place in counting
            }
            for signal, value in ((signal, of[cell].tolist()) for signal, of in signals.items())
        }
        values[cell][counting] = [*_of_items(by_signal[shown], [] if deciding in lacking else tuning)]
        for signal, found in pairs.items():
            area = None if signal in lacking else auroc(by_signal[signal].values())
            found[cell] = math.nan if area is None else area
    return values, [
        _Pairs(found, np.where(np.isnan(signals[signal]), -np.inf, signals[signal]), signal in lacking)
        for signal, found in pairs.items()
    ]


def _grade(grade: int) -> int | None:
    return None if grade < 0 else grade


def _of_items(points: Mapping[int, Point], tuning: Iterable[int]) -> Iterator[tuple[float, ...]]:
    """Yield for each item what it adds to each measure in one subset."""
    fitted = fit([points[place] for place in tuning])
    every = [*points.values()]
    labels = always = at_threshold(every, -math.inf).labels
    if fitted is not None:
        labels = at_threshold(every, fitted).labels
    for point, label, answer in zip(every, labels, always, strict=True):
        answered = label != "missing"
        unjudged = label == "unjudged"
        yield (
            _worth(label),
            -1.0 if unjudged else _worth(label),
            1.0 if unjudged else _worth(label),
            _worth(label) if point.answerable or answered else 1.0,
            _worth(answer),
            float(answered),
            float(not answered) if point.answerable else math.nan,
            math.nan if point.answerable else float(answered),
        )


def _worth(label: Answer) -> float:
    return math.nan if label == "unjudged" else VALUES[label]


def _estimates(
    asked: Asked, known: Judged, values: NDArray[np.float64], pairs: Sequence[_Pairs], part: Part, seed: int
) -> Estimates:
    of_items = _over_orders(asked, values[part.places], part, seed)
    of_pairs = [_of_pairs(asked, known, each, part, seed) for each in pairs]
    return Estimates(
        *(np.concatenate([first, *(each[field] for each in of_pairs)], axis=-1) for field, first in enumerate(of_items))
    )


def _over_orders(asked: Asked, values: NDArray[np.float64], part: Part, seed: int) -> Estimates:
    """Return the means of items. Which answers are judged hangs on the order, so the mean of each comes first."""
    of_orders = mean_over(values, 2)
    found = estimates(mean_over_orders(values), of_orders, part, asked.clusters, seed)
    orders, steps, items, _ = values.shape
    if orders == 1:
        return found
    known = ~np.isnan(values)
    n = clusters_of(known.reshape(orders * steps, items, -1), asked.clusters).reshape(orders, steps, -1)
    weights = cluster_draws(asked.clusters, seed)
    places = [place for place, name in enumerate(OF_ITEMS) if OF_ITEMS[name] == NO_JUDGED]
    for step in range(steps):
        drawn = over_draws(values[:, step][..., places].transpose(1, 2, 0).reshape(items, -1), asked.clusters, weights)
        found.queries[:, step, places] = percentiles(_known_mean(drawn.reshape(len(drawn), len(places), orders)).T)
    return found._replace(
        values=mean_over_orders(of_orders),
        n=n.min(axis=0),
        n_null=items - known.sum(axis=2).min(axis=0),
        orders=percentiles(of_orders.reshape(orders, -1).T).reshape(2, steps, -1),
    )


def _known_mean(drawn: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over orders in each draw, of those that have a value; NaN where none has."""
    known = ~np.isnan(drawn)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, drawn, 0.0).sum(axis=2) / known.sum(axis=2))


def _of_pairs(asked: Asked, known: Judged, pairs: _Pairs, part: Part, seed: int) -> Estimates:
    """Return the estimates of one measure over pairs of items: one column."""
    of_orders, signals = pairs.values[part.places], pairs.signals[part.places]
    orders, steps = of_orders.shape
    high, low = (np.flatnonzero(known.counts & which) for which in (known.answerable, ~known.answerable))
    number = cluster_numbers(asked.clusters)
    clusters = 0 if pairs.lacking else min(np.unique(number[which]).size for which in (high, low))
    nothing = np.full((steps, 1), np.nan)
    queries = np.full((2, steps, 1), np.nan)
    won = [
        sum((half_wins(of[step, high], of[step, low]) for of in signals), np.zeros((high.size, low.size), np.int64))
        for step in range(steps)
    ]
    if part.pooled and clusters:
        weights = cluster_draws(asked.clusters, seed)[:, number].astype(np.float64)
        # Whole numbers, so that no order of adding them up changes a bit.
        drawn = weights[:, high].sum(axis=1) * weights[:, low].sum(axis=1) * 2 * orders
        for step, of_step in enumerate(won):
            halves = ((weights[:, high] @ of_step.astype(np.float64)) * weights[:, low]).sum(axis=1)
            with np.errstate(invalid="ignore"):
                queries[:, step] = percentiles((halves / np.where(drawn > 0, drawn, np.nan))[None, :])
    values = nothing if not clusters else np.array([[of_step.sum() / (2 * orders * of_step.size)] for of_step in won])
    counted = high.size + low.size if clusters else 0
    return Estimates(
        values,
        np.full((steps, 1), clusters),
        np.full((steps, 1), len(known.counts) - counted),
        nothing,
        nothing,
        np.percentile(of_orders, PERCENTILES, axis=0)[..., None] if orders > 1 else np.full((2, steps, 1), np.nan),
        queries,
    )
