"""Signals of rankings, thresholds on each, and the policies of answering they are held against."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.golden.items import Split
from pipeline.scoring.means import Run
from pipeline.scoring.measures import Undefined
from pipeline.scoring.policies import AbstentionRow, Calibrated, Seen, calibrate, policy_rows
from pipeline.scoring.signals import NO_BOUND, NO_HIT, SIGNALS, signals_of

RUN = Run("c", "body", "set", "d", "engine")

scores = st.lists(st.floats(0.1, 10), max_size=3).map(lambda found: sorted(found, reverse=True))


def seen(
    found: Sequence[float],
    grade: int | None = 3,
    answerable: bool = True,
    reach: float | None = 10.0,
    split: Split | None = "tuning",
    cluster_id: str = "one",
) -> Seen:
    return Seen(split, cluster_id, answerable, grade, signals_of(found, reach))


def rows_of(items: Sequence[Seen], calibrated: Calibrated) -> dict[tuple[str, str], AbstentionRow]:
    return {(row.items, row.policy): row for row in policy_rows(RUN, items, calibrated)}


def test_signals_are_the_first_score_its_share_of_the_most_and_the_gap_to_the_second() -> None:
    assert signals_of([4.0, 3.0, 1.0], 8.0) == (4.0, 0.5, 0.25)
    assert signals_of([4.0], 8.0).gap == 1
    assert signals_of([4.0, 4.0], 4.0) == (4.0, 1.0, 0.0)


def test_a_signal_that_does_not_exist_says_why() -> None:
    assert signals_of([4.0, 3.0], None) == (4.0, Undefined(NO_BOUND), 0.25)
    assert signals_of([], 8.0) == tuple([Undefined(NO_HIT)] * 3)
    assert signals_of([4.0], None).lacks("reached") == NO_BOUND
    assert signals_of([], None).lacks("reached") is None


@given(st.lists(st.tuples(scores, st.none() | st.integers(0, 3), st.booleans()), min_size=1))
def test_each_signal_has_a_threshold_of_its_own_that_answers_what_reaches_it(
    drawn: list[tuple[list[float], int | None, bool]],
) -> None:
    items = [seen(*each) for each in drawn]
    for signal in SIGNALS:
        found = calibrate(signal, items)
        values = [each.signals.of(signal) for each in items]
        assert found.answered == [value is not None and value >= found.threshold for value in values]
        assert (found.reason is None) == math.isfinite(found.threshold)


def test_an_engine_without_a_bound_has_no_threshold_on_the_share_and_answers_whatever_it_finds() -> None:
    items = [seen([3.0], reach=None), seen([9.0], None, False, None), seen([], None, True, None)]
    found = calibrate("reached", items)
    assert found.answered == [True, True, False]
    rows = rows_of(items, found)
    fitted = rows["all", "fitted"]
    assert (fitted.threshold, fitted.threshold_reason) == (None, NO_BOUND)
    assert (fitted.auroc, fitted.auroc_reason, fitted.aurc, fitted.curve) == (None, NO_BOUND, None, [])
    assert fitted.truthfulness == rows["all", "always_answer"].truthfulness


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([seen([3.0], split="holdout")], "no item is of the split `tuning`"),
        ([seen([3.0], None)], "no answer to an item of the split `tuning` is judged"),
        (
            [seen([3.0], None, False)],
            "no item of the split `tuning` has an answer, so nothing can be said of false abstentions",
        ),
        ([seen([], None), seen([3.0], None, False)], "abstaining always is the most truthful"),
    ],
)
def test_a_threshold_that_cannot_be_fitted_says_why(items: list[Seen], reason: str) -> None:
    for signal in SIGNALS:
        row = rows_of(items, calibrate(signal, items))["all", "fitted"]
        assert (row.threshold, row.threshold_reason) == (None, reason)


def test_an_area_without_both_kinds_of_items_says_which_is_missing() -> None:
    with_answer, without = seen([3.0]), seen([2.0], None, False)
    reasons = {}
    for name, items in {"with": [with_answer], "without": [without], "both": [with_answer, without]}.items():
        row = rows_of(items, calibrate("gap", items))["all", "fitted"]
        reasons[name] = (row.auroc, row.auroc_reason, row.n_unanswerable)
    assert reasons == {
        "with": (None, "no item is without an answer", 0),
        "without": (None, "no item has an answer", 1),
        "both": (0.5, None, 1),
    }


def test_rates_and_label_count_clusters_because_items_of_one_are_one_observation() -> None:
    apart = [seen([float(n)], None, False, cluster_id=str(n)) for n in range(1, 61)]
    joined = [each._replace(cluster_id="one") for each in apart]
    wide, narrow = (rows_of(items, calibrate("top_score", items))["all", "always_abstain"] for items in (joined, apart))
    assert (wide.label, wide.false_answer_n, wide.n_unanswerable) == ("insufficient items", 1, 60)
    assert (narrow.label, narrow.false_answer_n, narrow.n_unanswerable) == ("ok", 60, 60)
    assert (narrow.false_answer_low, wide.false_answer_low) == (0.0, 0.0)
    assert wide.false_answer_high is not None and narrow.false_answer_high is not None
    assert wide.false_answer_high > 0.7 > 0.1 > narrow.false_answer_high


def test_abstaining_always_and_answering_always_are_told_apart() -> None:
    never = [seen([], None), seen([3.0], None, False)]
    unknown = [seen([3.0], None), seen([2.0], None, False, split="holdout")]
    found = {}
    for name, items in {"never": never, "unknown": unknown}.items():
        row = rows_of(items, calibrate("gap", items))["all", "fitted"]
        found[name] = (row.threshold, row.coverage)
        assert row.threshold_reason
    assert found == {"never": (None, 0.0), "unknown": (None, 1.0)}
