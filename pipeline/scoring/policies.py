"""What each policy of answering does to a set: a threshold fitted on a signal, and the two trivial ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from pipeline.golden.items import Split
from pipeline.records import Record, Table
from pipeline.scoring import Signal
from pipeline.scoring.abstention import Point, Policy, at_threshold, auroc, fit, risk_coverage
from pipeline.scoring.intervals import Interval, Label, effective_number, label, wilson
from pipeline.scoring.means import Run
from pipeline.scoring.signals import Signals

PolicyName = Literal["fitted", "always_answer", "always_abstain"]

NO_TUNING = "no item is of the split `tuning`"
ALL_WITHOUT = "no item of the split `tuning` has an answer, so nothing can be said of false abstentions"
NOTHING_JUDGED = "no answer to an item of the split `tuning` is judged"
BEST_TO_ABSTAIN = "abstaining always is the most truthful"
NO_ANSWERABLE = "no item has an answer"
ALL_ANSWERABLE = "no item is without an answer"


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
    threshold: float | None = Field(description="The fitted threshold; null: with the reason, or a trivial policy.")
    n_tuning: int = Field(description="Items of the split `tuning` that it was fitted on.")
    n_items: int = Field(description="Items.")
    n_unjudged: int = Field(description="Answers that nobody judged: left out of truthfulness.")
    truthfulness: float | None = Field(description="Mean of 1, 0.5, -1, and 0 for abstaining; null: none is judged.")
    truthfulness_low: float | None = Field(description="The same if every unjudged answer were incorrect.")
    truthfulness_high: float | None = Field(description="The same if every unjudged answer were perfect.")
    truthfulness_abstain_credit: float | None = Field(description="With 1 for abstaining where there is no answer.")
    coverage: float | None = Field(description="Share of the items that are answered.")
    false_abstention_rate: float | None = Field(
        description="Share of the answerable items that it abstains from; null: no item has an answer."
    )
    false_abstention_low: float | None = Field(description="Lower bound of its 95% interval, by Wilson over clusters.")
    false_abstention_high: float | None = Field(description="Upper bound.")
    false_answer_rate: float | None = Field(
        description="Share of the items without an answer that it answers; null: there is none."
    )
    false_answer_low: float | None = Field(description="Lower bound of its 95% interval, by Wilson over clusters.")
    false_answer_high: float | None = Field(description="Upper bound.")
    precision: float | None = Field(description="Share of the abstentions that are right; null: it never abstains.")
    recall: float | None = Field(description="Share of the items without an answer that it abstains from.")
    f1: float | None = Field(description="Harmonic mean of the two.")
    auroc: float | None = Field(
        description="Chance that an answerable item has a higher signal than one without an answer; of the signal "
        "alone."
    )
    aurc: float | None = Field(description="Mean of the selective risk; of the signal alone.")
    excess_aurc: float | None = Field(description="What of it the best order of the items would spare.")
    label: Label = Field(description="What the number of clusters of items without an answer allows to say.")
    curve: list[RiskPoint] = Field(description="Risk against coverage; for the fitted threshold alone.")
    n_unanswerable: int = Field(description="Items without an answer, of those in `n_items`.")
    false_answer_n: int = Field(description="Clusters of the items without an answer; the interval is over them.")
    false_abstention_n: int = Field(description="Clusters of the answerable items; the interval is over them.")
    threshold_reason: str | None = Field(
        description="Why there is no fitted threshold: then whatever has a hit is answered, or, where abstaining "
        "always is the most truthful, nothing."
    )
    auroc_reason: str | None = Field(description="Why there is no `auroc`.")


ABSTENTION = Table("abstention", AbstentionRow, ("golden_set", "engine", "signal", "items", "policy"))


class Seen(NamedTuple):
    """An item as a policy of answering sees it."""

    split: Split | None
    cluster_id: str
    answerable: bool
    grade: int | None
    """Grade of its first class; None: unjudged, or there is none."""
    signals: Signals


class Calibrated(NamedTuple):
    """A threshold on a signal, fitted on the items of the split ``tuning``."""

    signal: Signal
    threshold: float
    """An item is answered where its signal is at least this; minus infinity: wherever there is a hit."""
    reason: str | None
    """Why the threshold is infinite."""
    lacking: str | None
    """Why the signal has no value under this engine; then every hit is an answer."""
    points: Sequence[Point]
    """The items, in the order given."""

    @property
    def answered(self) -> list[bool]:
        """Whether each item is answered."""
        return [point.signal is not None and point.signal >= self.threshold for point in self.points]


def calibrate(signal: Signal, items: Sequence[Seen]) -> Calibrated:
    """Fit a threshold on a signal."""
    lacking = next((why for each in items for why in [each.signals.lacks(signal)] if why), None)
    shown: Signal = "top_score" if lacking else signal
    points = [Point(each.signals.of(shown), each.answerable, each.grade) for each in items]
    tuning = [point for point, each in zip(points, items, strict=True) if each.split == "tuning"]
    threshold = None if lacking else fit(tuning)
    if threshold is None:
        return Calibrated(signal, -math.inf, lacking or _nothing_to_fit_on(tuning), lacking, points)
    return Calibrated(signal, threshold, None if math.isfinite(threshold) else BEST_TO_ABSTAIN, lacking, points)


def _nothing_to_fit_on(tuning: Sequence[Point]) -> str:
    if not tuning:
        return NO_TUNING
    return NOTHING_JUDGED if any(point.answerable for point in tuning) else ALL_WITHOUT


def policy_rows(run: Run, seen: Sequence[Seen], calibrated: Calibrated) -> Iterator[AbstentionRow]:
    """Yield what each policy does to all items and to those of each split.

    Args:
        run: what the rows share.
        seen: the items of ``calibrated``, in their order.
        calibrated: a signal with its threshold.
    """
    splits = [each.split for each in seen]
    policies: dict[PolicyName, float] = {
        "fitted": calibrated.threshold,
        "always_answer": -math.inf,
        "always_abstain": math.inf,
    }
    for items in ("all", *sorted({split for split in splits if split})):
        places = [place for place, split in enumerate(splits) if items in ("all", split)]
        chosen = [calibrated.points[place] for place in places]
        clusters = [seen[place].cluster_id for place in places]
        for name, threshold in policies.items():
            policy = at_threshold(chosen, threshold)
            yield _policy_row(run, calibrated, items, name, Chosen(chosen, clusters), policy, splits.count("tuning"))


class Chosen(NamedTuple):
    """Some of the items, with the cluster of each."""

    points: Sequence[Point]
    clusters: Sequence[str]

    def clusters_of(self, answerable: bool) -> list[str]:
        """Return the clusters of the items that have an answer, or of those that have none, one for each item."""
        both = zip(self.points, self.clusters, strict=True)
        return [cluster for point, cluster in both if point.answerable == answerable]


def _interval(rate: float | None, clusters: Sequence[str]) -> Interval | None:
    return None if rate is None else wilson(rate, effective_number(clusters))


def _policy_row(
    run: Run,
    calibrated: Calibrated,
    items: str,
    name: PolicyName,
    chosen: Chosen,
    policy: Policy,
    n_tuning: int,
) -> AbstentionRow:
    points = chosen.points
    truth = policy.truthfulness
    curve = None if calibrated.lacking else risk_coverage(points)
    told = None if calibrated.lacking else auroc(points)
    without, answerable = chosen.clusters_of(False), chosen.clusters_of(True)
    answered = _interval(policy.false_answer_rate, without)
    abstained = _interval(policy.false_abstention_rate, answerable)
    shown = zip(curve.coverage, curve.selective_risk, curve.generalised_risk, strict=True) if curve else ()
    unanswerable = len(without)
    return AbstentionRow(
        golden_set=run.golden_set,
        engine=run.engine,
        signal=calibrated.signal,
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
        auroc=told,
        aurc=curve.area if curve else None,
        excess_aurc=curve.excess_area if curve else None,
        label=label(len(set(without))),
        curve=[
            RiskPoint(coverage=coverage, selective_risk=selective, generalised_risk=generalised)
            for coverage, selective, generalised in shown
        ]
        if name == "fitted"
        else [],
        n_unanswerable=unanswerable,
        false_answer_n=len(set(without)),
        false_abstention_n=len(set(answerable)),
        threshold_reason=calibrated.reason if name == "fitted" else None,
        auroc_reason=None
        if told is not None
        else calibrated.lacking or (ALL_ANSWERABLE if not unanswerable else NO_ANSWERABLE),
    )
