"""One item's measures, and their means over facets of a set: the rows of ``metrics``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from pipeline.golden.items import GoldenItem, Mode
from pipeline.golden.resolve import Resolved
from pipeline.scoring.grade import Grading, Hit, Treatment, grade, judged_wrong, mode_of
from pipeline.scoring.intervals import Interval, effective_number, label, student, wilson
from pipeline.scoring.measures import DEPTH, Graded, Measure, Undefined, Value, mean
from pipeline.scoring.rows import MetricRow

CUTS = (1, 3, 5, 10, 20, 100)
MAIN: tuple[Measure, ...] = (
    *(Measure(family, k) for family in ("recall", "hit", "precision", "ndcg", "ndcg_exp", "judged") for k in CUTS),
    Measure("mrr", 10),
    Measure("mrr", DEPTH),
)
"""The measures that are published under every treatment of duplicates."""
BPREF = Measure("bpref", DEPTH)
DIAGNOSTICS: tuple[Measure, ...] = (
    BPREF,
    Measure("ndcg_condensed", 10),
    Measure("rbp", DEPTH),
    Measure("rbp_residual", DEPTH),
)
"""Measures that say how much hangs on what nobody judged; under the headline treatment alone."""
PUBLISHED = (*MAIN, *DIAGNOSTICS)
"""The measures of the tables."""
GRADINGS: tuple[Grading, ...] = ("row", "name")
TREATMENT: Treatment = "removed"
"""The headline treatment of duplicates."""
COMPARED: tuple[Treatment, ...] = ("irrelevant", "unmodified")
"""The other treatments. Their means are published over all items and over the values of a facet, not for each value."""
NOT_ANSWERABLE = "not answerable"
NO_NAME = "the row has no relevant name"
MISSING = "(none)"
SEVERAL = "(several)"


class ItemScore(NamedTuple):
    """An item, graded."""

    resolved: Resolved
    grading: Grading
    mode: Mode | None
    graded: Graded
    reason: str | None
    """Why it does not count."""
    values: Mapping[Measure, Value]
    compared: Mapping[Treatment, Mapping[Measure, Value]]
    """The values under each of the treatments that are ``COMPARED``."""
    hits: Sequence[Hit]
    """What was graded: the ranked entries, best first, mirrors included."""

    @property
    def item(self) -> GoldenItem:
        """The item."""
        return self.resolved.item

    @property
    def upper_bound(self) -> bool:
        """Whether its values are an upper bound."""
        return self.mode == "name" and self.resolved.ambiguous

    @property
    def target_tap(self) -> str | None:
        """The tap in which its answers lie; ``SEVERAL`` where they lie in more than one, None where it has none."""
        taps = self.resolved.taps
        return SEVERAL if len(taps) > 1 else next(iter(taps), None)


FACETS: Mapping[str, Callable[[ItemScore], str | None]] = {
    "kind": lambda score: score.item.kind,
    "mode": lambda score: score.mode,
    "question_type": lambda score: score.item.question_type,
    "popularity": lambda score: score.item.popularity,
    "dynamism": lambda score: score.item.dynamism,
    "answerable": lambda score: "true" if score.item.answerable else "false",
    "split": lambda score: score.item.split,
    "language": lambda score: score.item.language,
    "target_tap": lambda score: score.target_tap,
}
"""What items are told apart by, beside ``all``."""


def score_item(resolved: Resolved, grading: Grading, hits: Sequence[Hit]) -> ItemScore:
    """Grade one item and compute every published measure. Without a relevant item none has a value.

    Args:
        resolved: the item, and what it names in the corpus.
        grading: whether names decide for every row.
        hits: ranked entries, best first, mirrors included.
    """
    mode = mode_of(resolved.item, grading)
    why_not = None if mode else NO_NAME if resolved.item.answerable else NOT_ANSWERABLE

    def measured(graded: Graded, measures: Sequence[Measure]) -> dict[Measure, Value]:
        return {measure: Undefined(why_not) if why_not else measure(graded) for measure in measures}

    graded = grade(resolved, mode, hits, TREATMENT)
    values = measured(graded, PUBLISHED) | measured(_without_repeats(resolved, mode, hits, graded), [BPREF])
    compared = {treatment: measured(grade(resolved, mode, hits, treatment), MAIN) for treatment in COMPARED}
    return ItemScore(resolved, grading, mode, graded, why_not, values, compared, hits)


def _without_repeats(resolved: Resolved, mode: Mode | None, hits: Sequence[Hit], graded: Graded) -> Graded:
    """Return ``graded`` with the hits unjudged that answer what a better hit answered: nobody judged them wrong."""
    wrong = judged_wrong(resolved, mode)
    order = dict.fromkeys(hit.class_id for hit in hits)
    known = [gain > 0 or class_id in wrong for gain, class_id in zip(graded.gains.tolist(), order, strict=True)]
    return graded._replace(judged=np.array(known, dtype=np.bool_))


class Run(NamedTuple):
    """What the rows of one engine on one golden set share."""

    corpus: str
    class_rule: str
    golden_set: str
    golden_digest: str
    engine: str


class _Cell(NamedTuple):
    """A mean, before it is a row."""

    value: Value
    n: int
    n_items: int
    n_null: int
    n_upper_bound: int
    interval: Interval | None


def metric_rows(run: Run, grading: Grading, scores: Sequence[ItemScore]) -> Iterator[MetricRow]:
    """Yield the means over all items, over each value of each facet, and over the values of each facet.

    The treatments that are ``COMPARED`` have means over all items, and over the values of each facet, but none for each
    value: the table would be three times as long, and what they tell, what duplicates cost, is told of the whole set.
    """
    whole = _cells(scores)
    yield from _rows(run, grading, "all", "*", "micro", whole)
    compared = {treatment: _cells(treated(scores, treatment), MAIN) for treatment in COMPARED}
    for treatment, cells in compared.items():
        yield from _rows(run, grading, "all", "*", "micro", cells, treatment)
    for facet, value_of in FACETS.items():
        parts: dict[str, list[ItemScore]] = {}
        for score in scores:
            parts.setdefault(value_of(score) or MISSING, []).append(score)
        by_value = {value: _cells(part) for value, part in parts.items()}
        for value, cells in by_value.items():
            yield from _rows(run, grading, facet, value, "micro", cells)
        means = [{measure: cell.value for measure, cell in cells.items()} for cells in by_value.values()]
        yield from _rows(run, grading, facet, "*", "macro", _over_values(whole, means))
        for treatment, cells in compared.items():
            means = [_means(treated(part, treatment)) for part in parts.values()]
            yield from _rows(run, grading, facet, "*", "macro", _over_values(cells, means), treatment)


def treated(scores: Sequence[ItemScore], treatment: Treatment) -> list[ItemScore]:
    """Return the items with their values under one of the treatments that are ``COMPARED``."""
    return [score._replace(values=score.compared[treatment]) for score in scores]


def _cells(scores: Sequence[ItemScore], measures: Sequence[Measure] = PUBLISHED) -> dict[Measure, _Cell]:
    return {measure: _cell(measure, scores) for measure in measures}


def _cell(measure: Measure, scores: Sequence[ItemScore]) -> _Cell:
    average = mean(score.values[measure] for score in scores)
    valued = [score for score in scores if not isinstance(score.values[measure], Undefined)]
    values = [value for score in scores if not isinstance(value := score.values[measure], Undefined)]
    clusters = [score.item.cluster_id for score in valued]
    if isinstance(average.value, Undefined):
        interval = None
    elif measure.family == "hit":
        interval = wilson(average.value, effective_number(clusters))
    else:
        interval = student(values, clusters)
    return _Cell(
        average.value,
        len(set(clusters)),
        len(scores),
        average.undefined,
        sum(score.upper_bound for score in valued),
        interval,
    )


def _over_values(whole: Mapping[Measure, _Cell], parts: Sequence[Mapping[Measure, Value]]) -> dict[Measure, _Cell]:
    """Return the means over the facet's values; their counts are those of all items, and they have no interval."""
    return {
        measure: cell._replace(value=mean(part[measure] for part in parts).value, interval=None)
        for measure, cell in whole.items()
    }


def _means(scores: Sequence[ItemScore]) -> dict[Measure, Value]:
    return {measure: mean(score.values[measure] for score in scores).value for measure in MAIN}


def _rows(
    run: Run,
    grading: Grading,
    facet: str,
    facet_value: str,
    aggregate: Literal["micro", "macro"],
    cells: Mapping[Measure, _Cell],
    treatment: Treatment = TREATMENT,
) -> Iterator[MetricRow]:
    for measure, cell in cells.items():
        yield MetricRow(
            **run._asdict(),
            grading=grading,
            treatment=treatment,
            source_filter="all",
            k=measure.cut,
            facet=facet,
            facet_value=facet_value,
            aggregate=aggregate,
            metric=str(measure),
            value=number(cell.value),
            reason=reason(cell.value),
            n=cell.n,
            n_items=cell.n_items,
            n_null=cell.n_null,
            n_upper_bound=cell.n_upper_bound,
            ci_low=cell.interval.low if cell.interval else None,
            ci_high=cell.interval.high if cell.interval else None,
            label=label(cell.n),
            judged_at_k=number(cells[Measure("judged", measure.cut)].value),
        )


def headline_rows(
    run: Run,
    grading: Grading,
    source_filter: str,
    values: Mapping[str, tuple[int | None, Sequence[Value]]],
    items: Sequence[GoldenItem],
) -> Iterator[MetricRow]:
    """Yield the means of measures over all items, given the cut and the values of each by its name.

    Args:
        run: what the rows share.
        grading: what the values are graded by.
        source_filter: the judgments that count.
        values: for each measure its cut, and a value for each item.
        items: the items, in the same order.
    """
    for name, (cut, found) in values.items():
        average = mean(found)
        defined = [value for value in found if not isinstance(value, Undefined)]
        clusters = [
            item.cluster_id for item, value in zip(items, found, strict=True) if not isinstance(value, Undefined)
        ]
        is_share = all(value in (0.0, 1.0) for value in defined)
        if isinstance(average.value, Undefined) or any(value > 1 for value in defined):
            interval = None  # a count has no bounds to stay within
        elif is_share:
            interval = wilson(average.value, effective_number(clusters))
        else:
            interval = student(defined, clusters)
        judged = mean(values[f"judged@{cut}"][1]).value if f"judged@{cut}" in values else None
        yield MetricRow(
            **run._asdict(),
            grading=grading,
            treatment=TREATMENT,
            source_filter=source_filter,
            k=cut,
            facet="all",
            facet_value="*",
            aggregate="micro",
            metric=name,
            value=number(average.value),
            reason=reason(average.value),
            n=len(set(clusters)),
            n_items=len(items),
            n_null=average.undefined,
            n_upper_bound=0,
            ci_low=interval.low if interval else None,
            ci_high=interval.high if interval else None,
            label=label(len(set(clusters))),
            judged_at_k=None if judged is None else number(judged),
        )


def number(value: Value) -> float | None:
    """Return a value as a column holds it."""
    return None if isinstance(value, Undefined) else value


def reason(value: Value) -> str | None:
    """Return why a value is null; None where it is not."""
    return value.reason if isinstance(value, Undefined) else None
