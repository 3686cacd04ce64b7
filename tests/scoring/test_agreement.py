"""How far a judge agrees with people: the worked example E10, and what validates a judge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from pipeline.judgments.resolution import ResolvedGrade
from pipeline.scoring.agreement import Agreement, Pair, agreement
from tests.worked import EXAMPLES, close

PAIRS = st.lists(st.builds(Pair, st.sampled_from("abcd"), st.integers(0, 3), st.integers(0, 3)), min_size=2)


def judged(*grades: tuple[int, int], queries: int = 1) -> Agreement:
    return Agreement(tuple(Pair(str(n % queries), human, judge) for n, (human, judge) in enumerate(grades)))


def test_kappa_of_the_worked_example() -> None:
    example = EXAMPLES["E10_kappa_small"]
    given_, expected = example["input"], example["expected"]
    found = judged(*zip(given_["human"], given_["llm"], strict=True))
    assert [list(row) for row in found.confusion] == expected["confusion_rows_human_cols_llm"]
    assert found.observed == close(expected["observed_agreement"])
    assert found.expected == close(expected["expected_agreement"])
    assert found.kappa == close(expected["kappa"])
    assert found.linear == close(expected["kappa_linear"])
    assert found.quadratic == close(expected["kappa_quadratic"])
    assert found.binary == close(expected["kappa_binary_grade>=2"])
    assert found.tau_b == close(expected["kendall_tau_b"])
    assert found.bias == close(expected["mean_signed_error_llm_minus_human"])


@given(PAIRS)
def test_tau_is_that_of_scipy(pairs: list[Pair]) -> None:
    found = Agreement(tuple(pairs)).tau_b
    oracle = kendalltau([pair.human for pair in pairs], [pair.judge for pair in pairs]).statistic
    assert found == pytest.approx(oracle, abs=1e-9) if found is not None else oracle != oracle


@given(PAIRS)
def test_a_kappa_lies_in_its_interval_and_is_one_only_without_a_difference(pairs: list[Pair]) -> None:
    found = Agreement(tuple(pairs))
    assert (found.quadratic == 1) == (found.quadratic is not None and all(pair[1] == pair[2] for pair in pairs))
    if found.interval is not None:
        assert found.quadratic is not None
        assert -1 <= found.interval.low <= found.quadratic + 1e-12
        assert found.quadratic - 1e-12 <= found.interval.high <= 1


def test_without_pairs_or_with_one_grade_alone_there_is_no_number() -> None:
    nothing = judged()
    assert (nothing.observed, nothing.expected, nothing.kappa, nothing.bias, nothing.interval) == (None,) * 5
    alike = judged((2, 2), (2, 2), queries=2)
    assert (alike.observed, alike.quadratic, alike.tau_b, alike.interval) == (1, None, None, None)


def test_a_judge_is_validated_by_a_hundred_pairs_and_a_kappa_that_is_surely_not_low() -> None:
    good = [(grade, grade) for grade in range(4)] * 25
    assert judged(*good, queries=25).validated
    assert not judged(*good[:-1], queries=25).validated
    assert not judged(*((human, 3 - judge) for human, judge in good), queries=25).validated


def test_only_what_both_graded_is_compared() -> None:
    human = {"Q": {"a": ResolvedGrade(3, "human", "1"), "b": ResolvedGrade(0, "human", "2")}}
    judge = {"Q": {"b": ResolvedGrade(1, "llm", "3")}, "other": {"a": ResolvedGrade(1, "llm", "4")}}
    assert agreement(human, judge).pairs == (Pair("Q", 0, 1),)
