"""Whether to answer: labels, thresholds, risk and coverage; the worked examples E9 and E11, and properties."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.scoring.abstention import (
    VALUES,
    Answer,
    Point,
    at_threshold,
    auroc,
    fit,
    label_of,
    risk_coverage,
    truthfulness,
)
from tests.worked import EXAMPLES, close

POINTS = st.lists(
    st.builds(Point, st.none() | st.integers(0, 5).map(float), st.booleans(), st.none() | st.integers(0, 3)), min_size=1
)


@pytest.mark.parametrize(
    ("answerable", "answered", "grade", "label"),
    [
        (True, True, 3, "perfect"),
        (True, True, 2, "acceptable"),
        (True, True, 1, "incorrect"),
        (True, True, 0, "incorrect"),
        (True, True, None, "unjudged"),
        (True, False, 3, "missing"),
        (False, False, None, "missing"),
        (False, True, None, "incorrect"),
        (False, True, 3, "incorrect"),
    ],
)
def test_an_answer_has_the_label_of_its_case(answerable: bool, answered: bool, grade: int | None, label: str) -> None:
    assert label_of(answerable, answered, grade) == label


def test_unjudged_answers_are_left_out_and_bound_the_value() -> None:
    found = truthfulness(["perfect", "unjudged", "missing"])
    assert found == (0.5, 0.0, close(2 / 3), 2)
    assert truthfulness(["unjudged"]) == (None, -1.0, 1.0, 0)


@given(POINTS)
def test_always_abstaining_scores_nothing(points: list[Point]) -> None:
    policy = at_threshold(points, math.inf)
    assert policy.truthfulness.value == 0
    assert policy.coverage == 0


@given(POINTS, st.none() | st.sampled_from([0.0, 0.05, 0.5]))
def test_the_fitted_threshold_is_the_best_of_all_that_are_tried(points: list[Point], most: float | None) -> None:
    best, unavoidable = None, at_threshold(points, -math.inf).false_abstention_rate or 0.0
    for threshold in [*sorted({point.signal for point in points if point.signal is not None}), math.inf]:
        policy = at_threshold(points, threshold)
        value, abstained = policy.truthfulness.value, policy.false_abstention_rate or 0.0
        allowed = most is None or abstained <= max(most, unavoidable)
        if value is not None and allowed and (best is None or value > best[0]):
            best = (value, threshold)
    nothing = all(point.signal is None for point in points)
    # Without an item that has an answer nothing can be said of false abstentions, so no bound can be kept.
    nothing |= most is not None and not any(point.answerable for point in points)
    assert fit(points, most) == (None if best is None or nothing else best[1])


@given(POINTS)
def test_the_fitted_threshold_is_at_least_as_truthful_as_answering_always(points: list[Point]) -> None:
    threshold = fit(points)
    if threshold is None:
        judged = [point for point in points if not point.answerable or point.grade is not None]
        assert all(point.signal is None for point in judged) or not any(point.answerable for point in points)
        return
    always, fitted = at_threshold(points, -math.inf), at_threshold(points, threshold)
    if always.truthfulness.value is not None and fitted.truthfulness.value is not None:
        assert fitted.truthfulness.value >= always.truthfulness.value
    allowed = max(0.05, always.false_abstention_rate or 0)
    assert (fitted.false_abstention_rate or 0) <= allowed


def test_of_equal_thresholds_the_lower_is_taken() -> None:
    points = [Point(3.0, True, 3), Point(2.0, True, 2), Point(1.0, False, None), Point(0.5, True, None)]
    assert fit(points, None) in (2.0, 3.0)
    assert fit([Point(2.0, False, None), Point(1.0, False, None)], None) == math.inf
    assert fit([Point(2.0, True, None), Point(1.0, True, 3)]) == 1.0


@given(POINTS, st.randoms())
def test_the_order_of_items_changes_nothing(points: list[Point], random: Any) -> None:
    shuffled = list(points)
    random.shuffle(shuffled)
    assert risk_coverage(shuffled) == risk_coverage(points)
    assert (auroc(shuffled), fit(shuffled)) == (auroc(points), fit(points))


def test_truthfulness_of_the_worked_example() -> None:
    example = EXAMPLES["E9_crag_truthfulness"]
    labels, expected = example["input"]["labels"], example["expected"]
    assert dict(VALUES) == example["input"]["weights"]
    assert truthfulness(labels).value == close(expected["score_four_level"])
    binary: list[Answer] = ["perfect" if label == "acceptable" else label for label in labels]
    assert truthfulness(binary).value == close(expected["score_three_level"])
    share = {label: binary.count(label) / len(binary) for label in ("perfect", "missing", "incorrect")}
    assert share["perfect"] == close(expected["accuracy"])
    assert share["missing"] == close(expected["missing"])
    assert share["incorrect"] == close(expected["hallucination"])
    assert share["perfect"] - share["incorrect"] == close(expected["check_three_level"])
    types = example["input"]["questionType"]
    means = []
    for name, wanted in expected["by_questionType"].items():
        of_type = truthfulness([label for label, kind in zip(labels, types, strict=True) if kind == name])
        assert (of_type.n, of_type.value) == (wanted["n"], close(wanted["mean"]))
        means.append(of_type.value or 0.0)
    assert math.fsum(means) / len(means) == close(expected["macro_over_types"])


def test_abstention_of_the_worked_example() -> None:
    example = EXAMPLES["E11_abstention"]
    given_, expected = example["input"], example["expected"]
    points = [
        Point(score, bool(answerable), 3 if correct else 0)
        for score, answerable, correct in zip(
            given_["top1_score"], given_["answerable"], given_["top1_correct"], strict=True
        )
    ]
    curve = risk_coverage(points)
    assert curve is not None
    for name in ("coverage", "selective_risk", "generalised_risk"):
        assert list(getattr(curve, name)) == [close(value) for value in expected[name]]
    assert curve.area == close(expected["aurc"])
    assert curve.optimal_area == close(expected["optimal_aurc"])
    assert curve.excess_area == close(expected["excess_aurc"])
    assert curve.generalised_area == close(expected["augrc_mean"])
    assert auroc(points) == close(expected["auroc_answerable_vs_score"])
    lowest, bounded = fit(points, None), fit(points)
    # Two thresholds are the best without a bound. The example names the higher; ties go to the lower one here.
    best = expected["best_threshold_without_bound"]
    assert lowest is not None
    assert lowest < best
    assert at_threshold(points, lowest).truthfulness.value == at_threshold(points, best).truthfulness.value
    assert bounded == expected["best_threshold_false_abstention_at_most_0.05"]
    assert bounded is not None
    for threshold, name in (
        (-math.inf, "at_threshold_none"),
        (math.inf, "at_threshold_inf"),
        (best, "at_best_threshold_without_bound"),
        (bounded, "at_that_threshold"),
    ):
        policy = at_threshold(points, threshold)
        assert policy.truthfulness.value == close(expected[name]["truthfulness_strict"])
        assert policy.credit == close(expected[name]["truthfulness_with_unanswerable_credit"])
        counts = policy[3:]
        assert counts == tuple(expected[name][f"abstain_{each}"] for each in ("tp", "fp", "fn", "tn"))
    for threshold in (5.0, 9.3):
        policy, wanted = at_threshold(points, threshold), expected[f"at_threshold_{threshold}"]
        assert policy.precision == close(wanted["abstention_precision"])
        assert policy.recall == close(wanted["abstention_recall"])
        assert policy.false_abstention_rate == close(wanted["false_abstention_rate_on_answerable"])
        assert policy.false_answer_rate == close(wanted["false_answer_rate_on_unanswerable"])
        assert policy.f1 == close(wanted["f1"])
