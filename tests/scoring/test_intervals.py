import math
from statistics import mean, stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pipeline.scoring.intervals import clustered_error, effective_number, label, student, wilson

VALUES = st.lists(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), min_size=2, max_size=30)


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [
        (8, 50, 0.08337420678033404, 0.2851421606303499),
        (17, 50, 0.2243694922250009, 0.478461739497674),
        (0, 10, 0.0, 0.2775327998628892),
    ],
)
def test_wilson_has_the_values_of_the_worked_example(hits: int, n: int, low: float, high: float) -> None:
    assert wilson(hits / n, n) == pytest.approx((low, high), abs=1e-9, rel=0)


@settings(deadline=None)
@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_agrees_with_scipy(trial: tuple[int, int]) -> None:
    hits, n = trial
    theirs = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits / n, n) == pytest.approx((theirs.low, theirs.high), abs=1e-9, rel=0)


def test_without_a_trial_there_is_no_interval() -> None:
    assert wilson(0.0, effective_number([])) is None


def test_the_clustered_error_is_that_of_the_worked_example() -> None:
    values, clusters = [1, 1, 0, 0, 0, 1, 1, 1], list("xxxyyzzz")
    assert clustered_error(values, clusters) == pytest.approx(0.21079277442550065, abs=1e-9, rel=0)


@settings(deadline=None)
@given(VALUES)
def test_independent_items_have_the_plain_t_interval(values: list[float]) -> None:
    found = student(values, range(len(values)))
    half = stats.t.ppf(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    expected = (max(0.0, mean(values) - half), min(1.0, mean(values) + half))
    assert found == pytest.approx(expected, abs=1e-9, rel=0)


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 3), min_size=2, max_size=10))
def test_clusters_of_one_size_have_the_t_interval_of_their_means(groups: list[tuple[float, float, float]]) -> None:
    values = [value for group in groups for value in group]
    clusters = [place for place, group in enumerate(groups) for _ in group]
    means = [mean(group) for group in groups]
    assert student(values, clusters) == pytest.approx(student(means, range(len(means))), abs=1e-9, rel=0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from("abcd")), min_size=1, max_size=20))
def test_an_interval_holds_its_mean_and_lies_between_0_and_1(items: list[tuple[float, str]]) -> None:
    values, clusters = [value for value, _ in items], [cluster for _, cluster in items]
    found = student(values, clusters)
    assert (found is None) == (len(set(clusters)) < 2)
    if found:
        assert 0 <= found.low <= mean(values) + 1e-12
        assert mean(values) - 1e-12 <= found.high <= 1


def test_clusters_of_one_size_count_in_full_and_others_less() -> None:
    assert effective_number(list("aabbcc")) == 3
    assert effective_number(list("abc")) == 3
    assert effective_number(list("aaaaaaaabc")) < 2


@pytest.mark.parametrize(
    ("n", "changed", "expected"),
    [
        (31, 9, "low confidence"),
        (12, 7, "insufficient items"),
        (24, 3, "insufficient items"),
        (64, 22, "ok"),
        (0, 0, "no items"),
        (19, None, "insufficient items"),
        (20, None, "low confidence"),
        (49, None, "low confidence"),
        (50, None, "ok"),
        (50, 5, "insufficient items"),
        (50, 6, "ok"),
    ],
)
def test_the_label_follows_from_the_counts(n: int, changed: int | None, expected: str) -> None:
    assert label(n, changed) == expected
