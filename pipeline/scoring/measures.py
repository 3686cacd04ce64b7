"""Measures of one ranking: a few lines each, over the gains along it.

A measure is a value with a canonical name: ``recall@10``, ``ndcg_exp@5``, ``recall@5(rel>=2)``. What it cannot say it
says with a reason, never with 0 or NaN. Sums are exact (``math.fsum``), so that no processor rounds them otherwise.

Sources: Järvelin and Kekäläinen 2002 (DCG, linear gain), Burges et al. 2005 (gain ``2^g - 1``), Buckley and Voorhees
2004 with trec_eval's bound (bpref), Sakai 2007 (condensed lists), Moffat and Zobel 2008 (RBP and its residual).
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.errors import BadInput, Fault

Gains = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

DEPTH = 100
"""Cut of a measure that is given none: no ranking goes deeper."""
PERSISTENCE = 0.8
"""Chance that RBP's reader goes on to the next rank."""
HIGHEST_GRADE = 3.0
"""Grade that is a gain of 1 in graded RBP."""
MOST_TIE_ORDERS = 100_000
"""Orders of tied hits that are still all looked at."""

NO_RELEVANT = "no relevant item"
NOTHING_RETURNED = "nothing returned"
NO_JUDGED_ZERO = "nothing is judged not relevant"


class Graded(NamedTuple):
    """A ranking of an item, graded. ``gains`` and ``judged`` are as long as the ranking."""

    gains: Gains
    """What each hit is worth, from rank 1: its grade, or 0 where it is unjudged or adds nothing."""
    judged: Flags
    """Whether something is known of the hit."""
    ideal: Gains
    """The grade of everything that is judged for the item, found or not, zeros too, in any order."""


class Undefined(NamedTuple):
    """A value that does not exist, and why."""

    reason: str


Value = float | Undefined
Formula = Callable[[Graded, int, float], Value]


class Measure(NamedTuple):
    """A measure with its cut and, where it needs one, the least grade that is relevant."""

    family: str
    cut: int
    threshold: int = 1

    def __str__(self) -> str:
        return f"{self.family}@{self.cut}" + (f"(rel>={self.threshold})" if self.threshold != 1 else "")

    def __call__(self, graded: Graded) -> Value:
        """Return the value for one ranking, a float64."""
        return MEASURES[self.family](graded, self.cut, float(self.threshold))


def recall(graded: Graded, cut: int, threshold: float) -> Value:
    """Relevant items found in the first ``cut`` hits / relevant items."""
    relevant = _relevant(graded, threshold)
    return _found(graded, cut, threshold) / relevant if relevant else Undefined(NO_RELEVANT)


def hit(graded: Graded, cut: int, threshold: float) -> Value:
    """1 where one of the first ``cut`` hits is relevant, else 0."""
    if not _relevant(graded, threshold):
        return Undefined(NO_RELEVANT)
    return float(_found(graded, cut, threshold) > 0)


def precision(graded: Graded, cut: int, threshold: float) -> Value:
    """Relevant items found in the first ``cut`` hits / ``cut``, however short the ranking."""
    return _found(graded, cut, threshold) / cut if _relevant(graded, threshold) else Undefined(NO_RELEVANT)


def mrr(graded: Graded, cut: int, threshold: float) -> Value:
    """1 / rank of the first relevant hit, 0 where none is among the first ``cut``."""
    if not _relevant(graded, threshold):
        return Undefined(NO_RELEVANT)
    ranks = np.flatnonzero(graded.gains[:cut] >= threshold)
    return 1.0 / (int(ranks[0]) + 1) if ranks.size else 0.0


def ndcg(graded: Graded, cut: int, threshold: float) -> Value:
    """DCG / ideal DCG, with DCG = sum of grade / log2(rank + 1) over the first ``cut`` ranks.

    The ideal is over all relevant items of the item, best first, cut alike; never over what was retrieved.
    """
    ideal = _dcg(np.sort(graded.ideal)[::-1], cut)
    return _dcg(graded.gains, cut) / ideal if ideal else Undefined(NO_RELEVANT)


def ndcg_exp(graded: Graded, cut: int, threshold: float) -> Value:
    """As ``ndcg``, with a gain of 2^grade - 1."""
    return ndcg(graded._replace(gains=np.exp2(graded.gains) - 1, ideal=np.exp2(graded.ideal) - 1), cut, threshold)


def judged(graded: Graded, cut: int, threshold: float) -> Value:
    """Judged hits / hits returned, among the first ``cut``."""
    known = graded.judged[:cut]
    return int(known.sum()) / known.size if known.size else Undefined(NOTHING_RETURNED)


def bpref(graded: Graded, cut: int, threshold: float) -> Value:
    """1/R sum over relevant hits r of 1 - min(n(r), R) / min(R, N).

    R relevant and N not relevant items are judged; n(r) of the latter stand above r. As trec_eval bounds it.
    """
    relevant = _relevant(graded, threshold)
    others = graded.ideal.size - relevant
    if not relevant or not others:
        return Undefined(NO_JUDGED_ZERO if relevant else NO_RELEVANT)
    is_relevant = graded.gains[:cut] >= threshold
    above = np.cumsum(graded.judged[:cut] & ~is_relevant)[is_relevant]
    return math.fsum(1 - np.minimum(above, relevant) / min(relevant, others)) / relevant


def ndcg_condensed(graded: Graded, cut: int, threshold: float) -> Value:
    """``ndcg`` of the ranking without its unjudged hits."""
    return ndcg(_condensed(graded), cut, threshold)


def mrr_condensed(graded: Graded, cut: int, threshold: float) -> Value:
    """``mrr`` of the ranking without its unjudged hits."""
    return mrr(_condensed(graded), cut, threshold)


def rbp(graded: Graded, cut: int, threshold: float) -> Value:
    """(1 - p) sum of p^(rank - 1) over the relevant of the first ``cut`` hits, p = 0.8."""
    return _rbp(graded.gains[:cut] >= threshold) if _relevant(graded, threshold) else Undefined(NO_RELEVANT)


def rbp_graded(graded: Graded, cut: int, threshold: float) -> Value:
    """As ``rbp``, where each hit counts as its grade / 3."""
    return _rbp(graded.gains[:cut] / HIGHEST_GRADE) if _relevant(graded, 1.0) else Undefined(NO_RELEVANT)


def rbp_residual(graded: Graded, cut: int, threshold: float) -> Value:
    """What ``rbp`` could gain if everything unjudged, in the first ``cut`` hits or below them, were relevant."""
    unjudged = ~graded.judged[:cut]
    return _rbp(unjudged) + PERSISTENCE**unjudged.size


MEASURES: Mapping[str, Formula] = {
    "recall": recall,
    "hit": hit,
    "precision": precision,
    "mrr": mrr,
    "ndcg": ndcg,
    "ndcg_exp": ndcg_exp,
    "judged": judged,
    "bpref": bpref,
    "ndcg_condensed": ndcg_condensed,
    "mrr_condensed": mrr_condensed,
    "rbp": rbp,
    "rbp_graded": rbp_graded,
    "rbp_residual": rbp_residual,
}
"""Every measure: its formula over a graded ranking, a cut and the least relevant grade."""

WITH_THRESHOLD = frozenset({"recall", "hit", "precision", "mrr", "bpref", "mrr_condensed", "rbp"})
"""Measures that ask whether a grade is relevant; the others take grades as they are."""

ALIASES: Mapping[str, str] = {"rr": "mrr", "rr_condensed": "mrr_condensed"}

_NAME = re.compile(r"(?P<family>[a-z_]+)(@(?P<cut>[1-9][0-9]{0,8}))?(\(rel>=(?P<threshold>[1-9][0-9]?)\))?")


def parse(name: str) -> Measure:
    """Return the measure called ``name``, such as ``ndcg@10``; without a cut it is cut at 100.

    Raises:
        BadInput: there is no such measure, it takes no threshold, or the cut lies below 1.
    """
    found = _NAME.fullmatch(name)
    family = ALIASES.get(found["family"], found["family"]) if found else ""
    if found is None or family not in MEASURES:
        known = ", ".join(MEASURES)
        raise BadInput(
            [Fault(f"measure {name!r}", "there is none of this name", f"write one of {known}, like ndcg@10")]
        )
    if found["threshold"] and family not in WITH_THRESHOLD:
        raise BadInput([Fault(f"measure {name!r}", "takes grades as they are", "leave out (rel>=...)")])
    return Measure(family, int(found["cut"] or DEPTH), int(found["threshold"] or 1))


class Mean(NamedTuple):
    """A mean over items. Undefined values are counted, and left out."""

    value: Value
    values: int
    """Values that were averaged."""
    undefined: int


def mean(values: Iterable[Value]) -> Mean:
    """Return the mean of the defined ``values``; in any order it is the same."""
    values = list(values)
    defined = [value for value in values if not isinstance(value, Undefined)]
    average: Value = math.fsum(defined) / len(defined) if defined else Undefined("no item has a value")
    return Mean(average, len(defined), len(values) - len(defined))


class TieSpread(NamedTuple):
    """What a measure would be over all orders of tied hits, each as likely."""

    mean: float
    low: float
    high: float


def over_ties(measure: Measure, graded: Graded, scores: Sequence[float]) -> TieSpread | Undefined:
    """Return mean and range of ``measure`` over all orders of hits of equal score.

    Args:
        measure: what to compute.
        graded: a ranking whose gains belong to its hits (grades by judgment), not to the order in which they stand.
        scores: score of each hit, falling.

    Returns:
        Undefined where there are more than ``MOST_TIE_ORDERS`` orders, or where the measure is undefined.
    """
    hits = list(zip(graded.gains.tolist(), graded.judged.tolist(), strict=True))
    groups = [
        [hit for hit, _ in group]
        for _, group in itertools.groupby(zip(hits, scores, strict=True), key=lambda pair: pair[1])
    ]
    if math.prod(_orders(group) for group in groups) > MOST_TIE_ORDERS:
        return Undefined(f"more than {MOST_TIE_ORDERS} orders of tied hits")
    values = []
    for order in itertools.product(*(list(_distinct_orders(group)) for group in groups)):
        line = list(itertools.chain.from_iterable(order))
        gains = np.array([gain for gain, _ in line], dtype=np.float64)
        value = measure(Graded(gains, np.array([known for _, known in line], dtype=np.bool_), graded.ideal))
        if isinstance(value, Undefined):
            return value
        values.append(value)
    return TieSpread(math.fsum(values) / len(values), min(values), max(values))


Hit = tuple[float, bool]


def _orders(group: Sequence[Hit]) -> int:
    alike = math.prod(math.factorial(group.count(hit)) for hit in set(group))
    return math.factorial(len(group)) // alike


def _distinct_orders(group: Sequence[Hit]) -> Iterator[tuple[Hit, ...]]:
    """Yield the orders of a group that look different; each stands for equally many orders of its hits."""
    if not group:
        yield ()
    for first in sorted(set(group)):
        rest = list(group)
        rest.remove(first)
        for order in _distinct_orders(rest):
            yield (first, *order)


def _relevant(graded: Graded, threshold: float) -> int:
    return int((graded.ideal >= threshold).sum())


def _found(graded: Graded, cut: int, threshold: float) -> int:
    return int((graded.gains[:cut] >= threshold).sum())


def _dcg(gains: Gains, cut: int) -> float:
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains[:cut].tolist(), start=1) if gain)


def _condensed(graded: Graded) -> Graded:
    return graded._replace(gains=graded.gains[graded.judged], judged=graded.judged[graded.judged])


def _rbp(weights: Gains | Flags) -> float:
    return (1 - PERSISTENCE) * math.fsum(weight * PERSISTENCE**place for place, weight in enumerate(weights.tolist()))
