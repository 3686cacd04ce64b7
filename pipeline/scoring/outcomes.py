"""What became of each item as an answer: graded by judgments, answered or not, the kind of failure, what was expected.

Judgments grade classes 0 to 3 (the grading ``qrels``); the grading of the rows is not mixed with it. Thresholds are
fitted on the items of the split ``tuning`` alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from pipeline.golden.items import GoldenItem, Split
from pipeline.golden.resolve import Resolved
from pipeline.judgments.qrels import Source
from pipeline.judgments.resolution import Grades, ResolvedGrade
from pipeline.records import Record, Table
from pipeline.scoring import DECIDING, Signal
from pipeline.scoring.abstention import Answer, label_of
from pipeline.scoring.answered import Answered
from pipeline.scoring.expectations import BUDGET, NO_CONCEPT, Listed, concepts_of, evaluate, visible
from pipeline.scoring.failures import CUT, FAILURE_CLASSES, RIGHT, Case, FailureClass, failure_class
from pipeline.scoring.means import NOT_ANSWERABLE, PUBLISHED, ItemScore, Run, headline_rows, number, reason
from pipeline.scoring.measures import Graded, Measure, Undefined, Value
from pipeline.scoring.policies import AbstentionRow, Calibrated, Seen, calibrate, policy_rows
from pipeline.scoring.rows import METRICS, MetricRow, MetricValue
from pipeline.scoring.signals import SIGNALS, signals_of

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
    answered: bool = Field(description="Whether the first class was given: `signal` is at least the fitted threshold.")
    threshold: float | None = Field(description="The threshold, fitted on `tuning` items; null: see the reason.")
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
    reached: float | None = Field(
        description="Signal: the top score as a share of the most that the query could reach under this engine."
    )
    reached_reason: str | None = Field(description="Why there is no `reached`.")
    signal: Signal = Field(description="The signal that decides.")
    threshold_reason: str | None = Field(
        description="Why there is no threshold: then whatever has a hit is answered, or, where abstaining always "
        "is the most truthful, nothing."
    )
    answering_taps: list[str] = Field(
        description="Of an item that is `answerable_now`: the taps that hold a class judged 2 or more, sorted."
    )


OUTCOMES = Table("outcomes", OutcomeRow, ("golden_set", "query_id", "engine"))


JUDGED_METRICS = Table("judged_metrics", MetricRow, METRICS.key)
"""Means by judgments, the grading ``qrels``, and means of what whole items expect. Rows as in ``metrics``."""


class Ranked(NamedTuple):
    """A ranking of an item, mirrors removed."""

    score: ItemScore
    """The item, graded as its row says."""
    hits: Sequence[Listed]
    scores: Sequence[float]
    reach: float | None
    """The most that the query could score; None where the engine does not say."""


class Outcomes(NamedTuple):
    """The rows of one engine on one golden set."""

    outcomes: list[OutcomeRow]
    abstention: list[AbstentionRow]
    metrics: list[MetricRow]

    def in_short(self, run: Run, deciding: Signal) -> Answered:
        """Return the same in short, by the signal that decides."""
        policies = {row.policy: row for row in self.abstention if row.signal == deciding and row.items == "all"}
        fitted = policies["fitted"]
        kinds = [row.failure_class for row in self.outcomes]
        return Answered(
            golden_set=run.golden_set,
            engine=run.engine,
            signal=deciding,
            truthfulness=fitted.truthfulness,
            always_answer=policies["always_answer"].truthfulness,
            false_answer_rate=fitted.false_answer_rate,
            n_unanswerable=fitted.n_unanswerable,
            false_abstention_rate=fitted.false_abstention_rate,
            n_answerable=fitted.n_items - fitted.n_unanswerable,
            label=fitted.label,
            failures={kind: kinds.count(kind) for kind in FAILURE_CLASSES if kind in kinds},
            answerable_now=sorted(row.query_id for row in self.outcomes if row.answerable_now),
        )


def outcomes(
    run: Run,
    rankings: Sequence[Ranked],
    grades: Mapping[str, Grades],
    taps: Mapping[str, Collection[str]],
    deciding: Signal = DECIDING,
) -> Outcomes:
    """Return what became of each item, of each policy of answering, and the means by judgments and expectations.

    Args:
        run: what the rows share.
        rankings: one for each item of the set.
        grades: resolved grades of the classes of this corpus, for each of ``SOURCE_FILTERS``.
        taps: those that hold each class that is judged.
        deciding: the signal by which an item counts as answered.
    """
    every = grades["all"]
    seen = [_seen(ranked, every) for ranked in rankings]
    calibrated = {signal: calibrate(signal, seen) for signal in SIGNALS}
    decides = calibrated[deciding]
    rows = [
        _outcome_row(run, ranked, every, each, decides, answered, taps)
        for ranked, each, answered in zip(rankings, seen, decides.answered, strict=True)
    ]
    policies = [row for signal in SIGNALS for row in policy_rows(run, seen, calibrated[signal])]
    return Outcomes(rows, policies, [*_by_judgments(run, rankings, grades), *_expected_means(run, rankings, rows)])


def _seen(ranked: Ranked, grades: Grades) -> Seen:
    item, judged = ranked.score.item, _grade_of_first(ranked, grades)
    signals = signals_of(ranked.scores, ranked.reach)
    return Seen(item.split, item.cluster_id, item.answerable, judged.grade if judged else None, signals)


def _grade_of_first(ranked: Ranked, grades: Grades) -> ResolvedGrade | None:
    of_item = grades.get(ranked.score.item.query_id, {})
    return of_item.get(ranked.hits[0].class_id) if ranked.hits else None


def _outcome_row(
    run: Run,
    ranked: Ranked,
    grades: Grades,
    seen: Seen,
    decides: Calibrated,
    answered: bool,
    taps: Mapping[str, Collection[str]],
) -> OutcomeRow:
    item, resolved = ranked.score.item, ranked.score.resolved
    judged = _grade_of_first(ranked, grades)
    of_item = {class_id: each.grade for class_id, each in grades.get(item.query_id, {}).items()}
    ranking = [hit.class_id for hit in ranked.hits]
    answering = [] if item.answerable else [each for each, grade in of_item.items() if grade >= RIGHT]
    by_rows = item.answerable and not any(class_id in of_item for class_id in ranking[:CUT])
    # Of an item that leaves to judgments what answers it, and has none yet, nothing is known to be wrong.
    unknown = by_rows and item.mode is None and not of_item
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
        top_score=seen.signals.of("top_score"),
        gap=seen.signals.of("gap"),
        answered=answered,
        threshold=None if decides.reason else decides.threshold,
        first_class=ranking[0] if ranking else None,
        grade=judged.grade if judged else None,
        grade_source=judged.source if judged else None,
        answer=label_of(item.answerable, answered, judged.grade if judged else None),
        failure_class=None
        if unknown
        else failure_class(
            Case(
                item.answerable,
                answered,
                ranking,
                _grades_by_row(ranked) if by_rows else of_item,
                _mistaken_for(item, resolved, ranked, of_item),
            )
        ),
        by_rows=by_rows,
        answerable_now=bool(answering),
        not_evaluated=held.not_evaluated,
        irrelevant_concepts=list(found.irrelevant),
        metrics=[
            MetricValue(metric=name, value=number(value), reason=reason(value)) for name, value in expected.items()
        ],
        reached=seen.signals.of("reached"),
        reached_reason=reason(seen.signals.reached),
        signal=decides.signal,
        threshold_reason=decides.reason,
        answering_taps=sorted({tap for class_id in answering for tap in taps[class_id]}),
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
