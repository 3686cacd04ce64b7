"""What became of each item as an answer: graded by judgments, answered or not, the kind of failure, what was expected.

Judgments grade classes 0 to 3 (the grading ``qrels``); the grading of the rows is not mixed with it. Thresholds are
fitted on the items of the split ``tuning`` alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field

from pipeline.golden.items import GoldenItem, Split
from pipeline.golden.resolve import Resolved
from pipeline.judgments.qrels import Source
from pipeline.judgments.resolution import Grades, ResolvedGrade
from pipeline.records import Record, Table
from pipeline.scoring.abstention import Answer, Point, Policy, at_threshold, auroc, fit, label_of, risk_coverage
from pipeline.scoring.expectations import BUDGET, NO_CONCEPT, Listed, concepts_of, evaluate, visible
from pipeline.scoring.failures import CUT, Case, FailureClass, failure_class
from pipeline.scoring.intervals import Label, label
from pipeline.scoring.means import NOT_ANSWERABLE, PUBLISHED, ItemScore, Run, headline_rows, number, reason
from pipeline.scoring.measures import Graded, Measure, Undefined, Value
from pipeline.scoring.rows import METRICS, MetricRow, MetricValue

SOURCE_FILTERS: Mapping[str, tuple[Source, ...]] = {
    "all": ("human", "provenance", "llm"),
    "human+provenance": ("human", "provenance"),
}
"""Judgments that count, by the name of the filter."""
NOT_JUDGED = "no class is judged relevant"
MUST_PASS, SHOULD_RATE = "must_pass", "should_rate"
CONCEPT_RECALL, INTRUSIONS = f"required_concept_recall@{CUT}", f"irrelevant_concepts@{CUT}"
VISIBLE = f"visible@{BUDGET}"
MEASURED = (*map(str, PUBLISHED), MUST_PASS, SHOULD_RATE, CONCEPT_RECALL, VISIBLE)
"""Names of the measures that lie between 0 and 1, and so can have a floor."""

Signal = Literal["top_score", "gap"]
SIGNALS: tuple[Signal, ...] = ("top_score", "gap")
DECIDING: Signal = "top_score"
"""The signal by which an item counts as answered."""
PolicyName = Literal["fitted", "always_answer", "always_abstain"]


class OutcomeRow(Record):
    """What became of an item under an engine, as an answer."""

    golden_set: str = Field(description="Name of the set.")
    query_id: str = Field(description="Id of the item.")
    engine: str = Field(description="Name of the engine.")
    split: Split | None = Field(description="What the item may be used for.")
    answerable: bool = Field(description="Whether the corpus holds an answer.")
    top_score: float | None = Field(description="Signal: the score of the first class; null where there is none.")
    gap: float | None = Field(
        description="Signal: first score minus second, as a share of the first; 1 without a second, null without a hit."
    )
    answered: bool = Field(description="Whether the first class was given: its score is at least the fitted threshold.")
    threshold: float | None = Field(description="The threshold, fitted on `tuning` items; null: all that has a hit.")
    first_class: str | None = Field(description="The class that is the answer.")
    grade: int | None = Field(description="Its grade by the judgments, 0 to 3; null: unjudged.")
    grade_source: Source | None = Field(description="Who judged it.")
    answer: Answer = Field(description="What the answer is worth: perfect, acceptable, incorrect, missing, unjudged.")
    failure_class: FailureClass | None = Field(description="What kind of failure it is; null: none.")
    by_rows: bool = Field(description="Nothing of the first hits is judged, so the row decided the kind of failure.")
    answerable_now: bool = Field(
        description="Alarm: the item has no answer by its row, and a class of this corpus is judged 2 or more."
    )
    not_evaluated: int = Field(description="Assertions without a check.")
    irrelevant_concepts: list[str] = Field(description="Concepts of the first ten hits that the row calls irrelevant.")
    metrics: list[MetricValue] = Field(description="What was expected of the item, as measures.")


OUTCOMES = Table("outcomes", OutcomeRow, ("golden_set", "query_id", "engine"))


class RiskPoint(Record):
    """A point of the risk-coverage curve."""

    coverage: float = Field(description="Share of the items that are answered.")
    selective_risk: float = Field(description="Share of errors among them.")
    generalised_risk: float = Field(description="Share of all items that are answered in error.")


class AbstentionRow(Record):
    """What a policy of answering does to the items of a set under an engine."""

    golden_set: str = Field(description="Name of the set.")
    engine: str = Field(description="Name of the engine.")
    signal: Signal = Field(description="What the threshold is on.")
    items: str = Field(description="Which items: `all`, or those of a split.")
    policy: PolicyName = Field(description="The fitted threshold, or one of the two trivial policies.")
    threshold: float | None = Field(description="The fitted threshold; null: infinite, or nothing to fit on.")
    n_tuning: int = Field(description="Items of the split `tuning` that it was fitted on.")
    n_items: int = Field(description="Items.")
    n_unjudged: int = Field(description="Answers that nobody judged: left out of truthfulness.")
    truthfulness: float | None = Field(description="Mean of 1, 0.5, -1, and 0 for abstaining; null: none is judged.")
    truthfulness_low: float | None = Field(description="The same if every unjudged answer were incorrect.")
    truthfulness_high: float | None = Field(description="The same if every unjudged answer were perfect.")
    truthfulness_abstain_credit: float | None = Field(description="With 1 for abstaining where there is no answer.")
    coverage: float | None = Field(description="Share of the items that are answered.")
    false_abstention_rate: float | None = Field(description="Share of the answerable items that it abstains from.")
    false_abstention_low: float | None = Field(description="Lower bound of its 95% interval, by Wilson.")
    false_abstention_high: float | None = Field(description="Upper bound.")
    false_answer_rate: float | None = Field(description="Share of the items without an answer that it answers.")
    false_answer_low: float | None = Field(description="Lower bound of its 95% interval, by Wilson.")
    false_answer_high: float | None = Field(description="Upper bound.")
    precision: float | None = Field(description="Share of the abstentions that are right.")
    recall: float | None = Field(description="Share of the items without an answer that it abstains from.")
    f1: float | None = Field(description="Harmonic mean of the two.")
    auroc: float | None = Field(description="Chance that an answerable item has the higher signal.")
    aurc: float | None = Field(description="Mean of the selective risk; of the signal alone.")
    excess_aurc: float | None = Field(description="What of it the best order of the items would spare.")
    label: Label = Field(description="What the number of items without an answer allows to say.")
    curve: list[RiskPoint] = Field(description="Risk against coverage; for the fitted threshold alone.")


ABSTENTION = Table("abstention", AbstentionRow, ("golden_set", "engine", "signal", "items", "policy"))


JUDGED_METRICS = Table("judged_metrics", MetricRow, METRICS.key)
"""Means by judgments, the grading ``qrels``, and means of what whole items expect. Rows as in ``metrics``."""


class Ranked(NamedTuple):
    """A ranking of an item, mirrors removed."""

    score: ItemScore
    """The item, graded as its row says."""
    hits: Sequence[Listed]
    scores: Sequence[float]


class Outcomes(NamedTuple):
    """The rows of one engine on one golden set."""

    outcomes: list[OutcomeRow]
    abstention: list[AbstentionRow]
    metrics: list[MetricRow]


def outcomes(run: Run, rankings: Sequence[Ranked], grades: Mapping[str, Grades]) -> Outcomes:
    """Return what became of each item, of each policy of answering, and the means by judgments and expectations.

    Args:
        run: what the rows share.
        rankings: one for each item of the set.
        grades: resolved grades of the classes of this corpus, for each of ``SOURCE_FILTERS``.
    """
    every = grades["all"]
    points = {signal: [_point(ranked, every, signal) for ranked in rankings] for signal in SIGNALS}
    tuning = [ranked.score.item.split == "tuning" for ranked in rankings]
    thresholds = {
        signal: fit([point for point, fits in zip(points[signal], tuning, strict=True) if fits]) for signal in SIGNALS
    }
    rows = [_outcome_row(run, ranked, every, thresholds[DECIDING]) for ranked in rankings]
    abstained = [
        row for signal in SIGNALS for row in _abstention(run, rankings, points[signal], signal, thresholds[signal])
    ]
    return Outcomes(rows, abstained, [*_by_judgments(run, rankings, grades), *_expected_means(run, rankings, rows)])


def _point(ranked: Ranked, grades: Grades, signal: Signal) -> Point:
    item = ranked.score.item
    judged = _grade_of_first(ranked, grades)
    value = (ranked.scores[0] if ranked.scores else None) if signal == "top_score" else _gap(ranked.scores)
    return Point(value, item.answerable, judged.grade if judged else None)


def _gap(scores: Sequence[float]) -> float | None:
    if not scores:
        return None
    return (scores[0] - scores[1]) / scores[0] if len(scores) > 1 else 1.0


def _grade_of_first(ranked: Ranked, grades: Grades) -> ResolvedGrade | None:
    of_item = grades.get(ranked.score.item.query_id, {})
    return of_item.get(ranked.hits[0].class_id) if ranked.hits else None


def _outcome_row(run: Run, ranked: Ranked, grades: Grades, threshold: float | None) -> OutcomeRow:
    item, resolved = ranked.score.item, ranked.score.resolved
    answered = bool(ranked.scores) and (threshold is None or ranked.scores[0] >= threshold)
    judged = _grade_of_first(ranked, grades)
    of_item = {class_id: each.grade for class_id, each in grades.get(item.query_id, {}).items()}
    ranking = [hit.class_id for hit in ranked.hits]
    by_rows = item.answerable and not any(class_id in of_item for class_id in ranking[:CUT])
    held = evaluate(item.assertions, resolved, ranked.hits, not answered)
    found = concepts_of(item, resolved, ranked.hits)
    expected: dict[str, Value] = {
        MUST_PASS: held.must_pass,
        SHOULD_RATE: held.should_rate,
        CONCEPT_RECALL: found.required_recall,
        INTRUSIONS: float(len(found.irrelevant)) if item.golden_concepts else Undefined(NO_CONCEPT),
        VISIBLE: _visible(ranked),
    }
    return OutcomeRow(
        golden_set=run.golden_set,
        query_id=item.query_id,
        engine=run.engine,
        split=item.split,
        answerable=item.answerable,
        top_score=ranked.scores[0] if ranked.scores else None,
        gap=_gap(ranked.scores),
        answered=answered,
        threshold=None if threshold is None or math.isinf(threshold) else threshold,
        first_class=ranking[0] if ranking else None,
        grade=judged.grade if judged else None,
        grade_source=judged.source if judged else None,
        answer=label_of(item.answerable, answered, judged.grade if judged else None),
        failure_class=failure_class(
            Case(
                item.answerable,
                answered,
                ranking,
                _grades_by_row(ranked) if by_rows else of_item,
                _mistaken_for(item, resolved, ranked, of_item),
            )
        ),
        by_rows=by_rows,
        answerable_now=not item.answerable and any(grade >= 2 for grade in of_item.values()),
        not_evaluated=held.not_evaluated,
        irrelevant_concepts=list(found.irrelevant),
        metrics=[
            MetricValue(metric=name, value=number(value), reason=reason(value)) for name, value in expected.items()
        ],
    )


def _visible(ranked: Ranked) -> Value:
    if ranked.score.reason is not None:
        return Undefined(ranked.score.reason)
    return visible(ranked.hits, [gain > 0 for gain in ranked.score.graded.gains.tolist()])


def _grades_by_row(ranked: Ranked) -> dict[str, int]:
    """Return the grades of the hits by relevance to the row: 3 or 0."""
    gains = ranked.score.graded.gains.tolist()
    return {hit.class_id: 3 if gain > 0 else 0 for hit, gain in zip(ranked.hits, gains, strict=True)}


def _mistaken_for(item: GoldenItem, resolved: Resolved, ranked: Ranked, grades: Mapping[str, int]) -> frozenset[str]:
    """Return the first hit where it only shares a name with what is right, or mentions an irrelevant concept."""
    wrong = {concept.concept_id for concept in item.golden_concepts if concept.grade == "irrelevant"}
    right = {*resolved.classes, *(class_id for class_id, grade in grades.items() if grade >= 2)}
    if not resolved.classes:
        right |= {*resolved.candidates}
    return frozenset(
        hit.class_id
        for hit in ranked.hits[:1]
        if hit.class_id not in right
        and (hit.slug in resolved.names or wrong & resolved.concepts.get(hit.class_id, frozenset()))
    )


def _abstention(
    run: Run, rankings: Sequence[Ranked], points: Sequence[Point], signal: Signal, threshold: float | None
) -> Iterator[AbstentionRow]:
    splits = [ranked.score.item.split for ranked in rankings]
    for items in ("all", *sorted({split for split in splits if split})):
        chosen = [point for point, split in zip(points, splits, strict=True) if items in ("all", split)]
        fitted = -math.inf if threshold is None else threshold
        policies: dict[PolicyName, float] = {"fitted": fitted, "always_answer": -math.inf, "always_abstain": math.inf}
        for name, at in policies.items():
            yield _policy_row(run, signal, items, name, chosen, at_threshold(chosen, at), splits.count("tuning"))


def _policy_row(
    run: Run, signal: Signal, items: str, name: PolicyName, points: Sequence[Point], policy: Policy, n_tuning: int
) -> AbstentionRow:
    truth = policy.truthfulness
    curve = risk_coverage(points)
    abstained, answered = policy.false_abstention_interval(), policy.false_answer_interval()
    shown = zip(curve.coverage, curve.selective_risk, curve.generalised_risk, strict=True) if curve else ()
    return AbstentionRow(
        golden_set=run.golden_set,
        engine=run.engine,
        signal=signal,
        items=items,
        policy=name,
        threshold=policy.threshold if name == "fitted" and math.isfinite(policy.threshold) else None,
        n_tuning=n_tuning,
        n_items=len(points),
        n_unjudged=policy.labels.count("unjudged"),
        truthfulness=truth.value,
        truthfulness_low=truth.low,
        truthfulness_high=truth.high,
        truthfulness_abstain_credit=policy.credit,
        coverage=policy.coverage,
        false_abstention_rate=policy.false_abstention_rate,
        false_abstention_low=abstained.low if abstained else None,
        false_abstention_high=abstained.high if abstained else None,
        false_answer_rate=policy.false_answer_rate,
        false_answer_low=answered.low if answered else None,
        false_answer_high=answered.high if answered else None,
        precision=policy.precision,
        recall=policy.recall,
        f1=policy.f1,
        auroc=auroc(points),
        aurc=curve.area if curve else None,
        excess_aurc=curve.excess_area if curve else None,
        label=label(sum(not point.answerable for point in points)),
        curve=[
            RiskPoint(coverage=coverage, selective_risk=selective, generalised_risk=generalised)
            for coverage, selective, generalised in shown
        ]
        if name == "fitted"
        else [],
    )


def _by_judgments(run: Run, rankings: Sequence[Ranked], grades: Mapping[str, Grades]) -> Iterator[MetricRow]:
    """Yield the means of every measure over judged grades, once for each filter of sources."""
    for name in SOURCE_FILTERS:
        values: dict[Measure, list[Value]] = {measure: [] for measure in PUBLISHED}
        for ranked in rankings:
            graded = _graded(ranked, grades[name].get(ranked.score.item.query_id, {}))
            why_not = NOT_ANSWERABLE if not ranked.score.item.answerable else NOT_JUDGED
            scored = ranked.score.item.answerable and bool((graded.ideal > 0).any())
            for measure in PUBLISHED:
                values[measure].append(measure(graded) if scored else Undefined(why_not))
        items = [ranked.score.item for ranked in rankings]
        by_name = {str(measure): (measure.cut, found) for measure, found in values.items()}
        yield from headline_rows(run, "qrels", name, by_name, items)


def _graded(ranked: Ranked, grades: Mapping[str, ResolvedGrade]) -> Graded:
    gains = [grades[hit.class_id].grade if hit.class_id in grades else 0 for hit in ranked.hits]
    return Graded(
        np.array(gains, dtype=np.float64),
        np.array([hit.class_id in grades for hit in ranked.hits], dtype=np.bool_),
        np.array(sorted(each.grade for each in grades.values()), dtype=np.float64),
    )


def _expected_means(run: Run, rankings: Sequence[Ranked], rows: Sequence[OutcomeRow]) -> Iterator[MetricRow]:
    """Yield the means of what was expected of the items."""
    values: dict[str, tuple[int | None, list[Value]]] = {}
    for row in rows:
        for each in row.metrics:
            cut = 10 if each.metric.endswith("@10") else None
            value: Value = Undefined(each.reason or "") if each.value is None else each.value
            values.setdefault(each.metric, (cut, []))[1].append(value)
    yield from headline_rows(run, "row", "all", values, [ranked.score.item for ranked in rankings])
