"""The duplicate tax: what a measure loses because later mirrors keep their rank, and which taps' mirrors cost it.

The tax of an item is its value with later mirrors removed, minus its value with later mirrors irrelevant. A right
answer loses by the mirrors above it, and by how many they are, whichever they are; so what it loses is shared equally
among them. That is the Shapley value of each mirror. Recall and nDCG are sums over right answers, and share what each
of them loses; hit and MRR look at the first right answer alone, and share what that one loses. The tax of a tap is what
its mirrors cost, as a mean over the items that count, so that the taxes of all taps add up to the tax of the set.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from pipeline.records import Record, Table
from pipeline.scoring.grade import Grading
from pipeline.scoring.means import CUTS, ItemScore, Run, number, reason
from pipeline.scoring.measures import DEPTH, Graded, Measure, Undefined, mean

SUMS = ("recall", "ndcg")
"""Measures that are a sum over right answers."""
FIRSTS = ("hit", "mrr")
"""Measures of the first right answer."""
TAXED: tuple[Measure, ...] = (
    *(Measure(family, k) for family in ("recall", "hit", "ndcg") for k in CUTS),
    Measure("mrr", 10),
    Measure("mrr", DEPTH),
)
EVERY_TAP = "*"


class TaxRow(Record):
    """What duplicates cost a measure, in all or by the mirrors of one tap."""

    golden_set: str = Field(description="Name of the set.")
    engine: str = Field(description="Name of the engine.")
    grading: Grading = Field(description="`row`: as the row says, the headline; `name`: by name.")
    metric: str = Field(description="Canonical name of the measure.")
    tap: str = Field(description="Tap whose mirrors stand above right answers; `*`: all of them.")
    value: float | None = Field(
        description="The tax: the mean with later mirrors removed, minus the mean with them irrelevant; of a tap, the "
        "share that its mirrors cost. The taps add up to `*`. Null where no item has a value."
    )
    reason: str | None = Field(description="Why it is null.")
    n_items: int = Field(description="Items that the mean is over.")
    mirrors: int = Field(description="Later mirrors of the tap above the last right answer of an item, over all items.")


DUPLICATE_TAX = Table("duplicate_tax", TaxRow, ("golden_set", "engine", "grading", "metric", "tap"))


class _Answer(NamedTuple):
    """A right answer of an item, with the mirrors above it."""

    rank: int
    """Rank with later mirrors removed."""
    mirrors: Counter[str]
    """Later mirrors above it, by tap."""

    @property
    def raw_rank(self) -> int:
        """Rank with later mirrors kept."""
        return self.rank + self.mirrors.total()


class _Item(NamedTuple):
    score: ItemScore
    answers: Sequence[_Answer]


def tax_rows(
    run: Run, grading: Grading, scores: Sequence[ItemScore], taps: Mapping[str, Sequence[str]]
) -> Iterator[TaxRow]:
    """Yield the tax of each measure: in all, and of each tap that has a mirror above a right answer.

    Args:
        run: what the rows share.
        grading: how the scores were graded.
        scores: the items.
        taps: tap of each ranked entry, by the id of the item.
    """
    items = [
        _Item(score, _answers(score, taps.get(score.item.query_id, ()))) for score in scores if score.reason is None
    ]
    mirrors: Counter[str] = Counter()
    for item in items:
        if item.answers:
            mirrors.update(item.answers[-1].mirrors)
    for measure in TAXED:
        whole = _tax(measure, [item.score for item in items])
        shares = _shares(measure, items)
        for tap in (EVERY_TAP, *sorted(mirrors)):
            value = whole if tap == EVERY_TAP else math.fsum(shares.get(tap, ())) / len(items)
            yield TaxRow(
                golden_set=run.golden_set,
                engine=run.engine,
                grading=grading,
                metric=str(measure),
                tap=tap,
                value=number(value),
                reason=reason(value),
                n_items=len(items),
                mirrors=mirrors.total() if tap == EVERY_TAP else mirrors[tap],
            )


def _tax(measure: Measure, scores: Sequence[ItemScore]) -> float | Undefined:
    removed = mean(score.values[measure] for score in scores).value
    irrelevant = mean(score.compared["irrelevant"][measure] for score in scores).value
    if isinstance(removed, Undefined):
        return removed
    return irrelevant if isinstance(irrelevant, Undefined) else removed - irrelevant


def _answers(score: ItemScore, taps: Sequence[str]) -> list[_Answer]:
    """Return the right answers of an item, best first."""
    gains = iter(score.graded.gains.tolist())
    seen: set[str] = set()
    above: Counter[str] = Counter()
    answers = []
    for hit, tap in zip(score.hits, taps, strict=True):
        if hit.class_id in seen:
            above[tap] += 1
            continue
        seen.add(hit.class_id)
        if next(gains) > 0:
            answers.append(_Answer(len(seen), Counter(above)))
    return answers


def _shares(measure: Measure, items: Sequence[_Item]) -> dict[str, list[float]]:
    """Return what the mirrors of each tap cost, in parts to be added up."""
    shares: dict[str, list[float]] = {}
    for item in items:
        for answer in item.answers if measure.family in SUMS else item.answers[:1]:
            loss = _worth(measure, item.score.graded, answer.rank) - _worth(measure, item.score.graded, answer.raw_rank)
            for tap, mirrors in answer.mirrors.items() if loss else ():
                shares.setdefault(tap, []).append(loss * mirrors / answer.mirrors.total())
    return shares


def _worth(measure: Measure, graded: Graded, rank: int) -> float:
    """Return the measure of a ranking whose only right answer stands at ``rank``."""
    gains = np.zeros(rank)
    gains[-1] = 1.0
    value = measure(Graded(gains, gains > 0, graded.ideal))
    assert not isinstance(value, Undefined), "an item with a right answer has a value"
    return value
