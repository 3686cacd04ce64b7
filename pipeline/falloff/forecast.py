"""What a tap would change if it were admitted: the corpus measured without it and with it, item by item.

The change is exact for the items that there are; its interval says what other items of the same kind would have shown,
by the draws of clusters that the points use. A tap is said to hurt or to help where the interval lies on one side of 0,
and there are 20 clusters or more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.errors import BadInput, Fault
from pipeline.falloff.grading import MEASURES, Asked, measure_rankings
from pipeline.falloff.onepass import Curve
from pipeline.falloff.orders import Corpus, subsets, tap_last
from pipeline.falloff.points import NO_VALUE, Named, cluster_draws, mean_over, over_draws, percentiles
from pipeline.falloff.rows import FORECASTS, Forecast, Outlook
from pipeline.scoring.intervals import FEWEST
from pipeline.scoring.means import GRADINGS

K = 10
NO_QUALITY = frozenset({"judged", "rbp_residual"})
"""Families of measures that say how much is known of a ranking, not how good it is."""


def forecast(
    named: Named, corpus: Corpus, asked: Asked, curve: Curve, tap: str, *, k: int = K, seed: int = 0
) -> pa.Table:
    """Return what admitting ``tap`` changes: `FORECASTS`, every measure under both gradings.

    Args:
        named: whose forecast it is.
        corpus: the corpus with the tap in it.
        asked: the golden set, over that corpus.
        curve: the engine, over that corpus.
        tap: the tap; no target.
        k: depth at which an item counts as found.
        seed: of the draws of clusters.

    Raises:
        BadInput: the tap is not in the corpus, is a target, or has no entry.
    """
    entries = _entries(corpus, tap)
    ends = subsets(corpus, tap_last(corpus, tap), [corpus.entries - entries, corpus.entries])
    values, first_ranks = measure_rankings(asked, curve.rank(ends), ends)
    found = (first_ranks[..., 0] > 0) & (first_ranks[..., 0] <= k)
    weights = cluster_draws(asked.clusters, seed)
    here = corpus.tap_of == corpus.taps.index(tap)
    mirrors = int(np.isin(corpus.class_of[here], corpus.class_of[~here]).sum())
    rows = [
        row
        for grading in range(len(GRADINGS))
        for row in _rows(named, asked, tap, grading, values[:, :, grading, 0], found[:, :, grading], weights)
    ]
    return FORECASTS.from_rows(row.model_copy(update={"entries": entries, "mirrors": mirrors}) for row in rows)


def _entries(corpus: Corpus, tap: str) -> int:
    where = f"forecast of tap {tap}"
    if tap not in corpus.taps:
        raise BadInput([Fault(where, "it is not in the corpus", "name a tap that was read")])
    if tap in corpus.targets:
        raise BadInput([Fault(where, "it is a target, which every subset holds", "name a tap that may be left out")])
    entries = int(corpus.sizes[corpus.taps.index(tap)])
    if not entries:
        raise BadInput([Fault(where, "it has no entry, so it changes nothing", "name a tap with entries")])
    return entries


def _rows(
    named: Named,
    asked: Asked,
    tap: str,
    grading: int,
    values: NDArray[np.float64],
    found: NDArray[np.bool_],
    weights: NDArray[np.int32],
) -> Iterator[Forecast]:
    difference = values[1] - values[0]
    low, high = percentiles(np.ascontiguousarray(over_draws(difference, asked.clusters, weights).T))
    changes, means = mean_over(difference, 0), mean_over(values, 1)
    taken, brought = found[0] & ~found[1], found[1] & ~found[0]
    for place, measure in enumerate(MEASURES):
        clusters = {asked.clusters[item] for item in np.flatnonzero(~np.isnan(difference[:, place]))}
        change, few = _number(changes[place]), len(clusters) < FEWEST
        tells = measure.family not in NO_QUALITY
        reason = NO_VALUE if change is None else None if tells else "it says how much is known, not how good it is"
        if change is not None and few:
            reason = f"insufficient items: {len(clusters)} clusters, fewer than {FEWEST}"
        yield Forecast(
            golden_set=named.golden_set,
            engine=named.engine,
            tap=tap,
            grading=GRADINGS[grading],
            metric=str(measure),
            before=_number(means[0, place]),
            after=_number(means[1, place]),
            change=change,
            low=_number(low[place]),
            high=_number(high[place]),
            outlook=_outlook(low[place], high[place]) if tells and not few else "no change shown" if tells else None,
            taken=[asked.query_ids[item] for item in np.flatnonzero(taken)],
            brought=[asked.query_ids[item] for item in np.flatnonzero(brought)],
            entries=0,
            mirrors=0,
            reason=reason,
        )


def _outlook(low: float, high: float) -> Outlook:
    return "hurts" if high < 0 else "helps" if low > 0 else "no change shown"


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
