import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.errors import BadInput
from pipeline.scoring.measures import (
    MEASURES,
    MOST_TIE_ORDERS,
    Graded,
    Measure,
    Undefined,
    Value,
    mean,
    over_ties,
    parse,
)


def close(expected: float) -> object:
    return pytest.approx(expected, rel=0, abs=1e-9)


def judge(qrels: Mapping[str, int], ranking: Sequence[str]) -> Graded:
    """Grade a ranking of documents by judgments of each: what is in no judgment is unjudged."""
    return Graded(
        np.array([qrels.get(document, 0) for document in ranking], dtype=np.float64),
        np.array([document in qrels for document in ranking], dtype=np.bool_),
        np.array(list(qrels.values()), dtype=np.float64),
    )


def value(name: str, graded: Graded) -> float:
    found = parse(name)(graded)
    assert not isinstance(found, Undefined), found.reason
    return found


GRADED_QUERY = judge({"a": 3, "b": 2, "c": 1, "d": 0, "e": 0, "f": 2}, ["d", "a", "u", "c", "b", "e"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("recall@5", 0.75),
        ("recall@5(rel>=2)", 2 / 3),
        ("hit@1", 0.0),
        ("hit@5", 1.0),
        ("rr", 0.5),
        ("rr(rel>=2)", 0.5),
        ("ndcg@5", 0.5440758561341078),
        ("ndcg_exp@5", 0.5550664967545571),
        ("ndcg_condensed@5", 0.5716507264214418),
        ("rr_condensed", 0.5),
        ("bpref", 0.375),
        ("bpref(rel>=2)", 1 / 3),
        ("judged@5", 0.8),
        ("judged@10", 5 / 6),
        ("rbp", 0.34432),
        ("rbp_graded", 0.24874666666666667),
        ("rbp_residual", 0.3901440000000001),
    ],
)
def test_a_graded_query_has_the_values_of_the_worked_example(name: str, expected: float) -> None:
    assert value(name, GRADED_QUERY) == close(expected)


def test_bpref_has_the_value_that_trec_eval_published() -> None:
    qrels = {f"r{n}": 1 for n in range(1, 7)} | {f"n{n}": 0 for n in range(1, 5)}
    assert value("bpref", judge(qrels, ["n1", "r1", "r2", "r3", "r4"])) == close(0.5)


def test_bpref_without_a_judged_zero_is_undefined() -> None:
    found = parse("bpref")(judge({"r1": 1, "r2": 1}, ["u1", "r1", "u2"]))
    assert found == Undefined("nothing is judged not relevant")


TIED = judge({"b": 1}, ["a", "b", "c"])


@pytest.mark.parametrize(("order", "rank"), [("abc", 2), ("cba", 2)])
def test_the_order_of_ties_decides_what_is_first(order: str, rank: int) -> None:
    graded = judge({"b": 1}, list(order))
    assert (value("hit@1", graded), value("rr", graded)) == (0.0, 1 / rank)


def test_ties_can_be_averaged_over_their_orders() -> None:
    scores = [1.0, 1.0, 1.0]
    assert over_ties(parse("hit@1"), TIED, scores) == pytest.approx((1 / 3, 0.0, 1.0), rel=0, abs=1e-9)
    assert over_ties(parse("rr"), TIED, scores) == pytest.approx((0.611111111111111, 1 / 3, 1.0), rel=0, abs=1e-9)
    assert over_ties(parse("ndcg@3"), TIED, scores) == pytest.approx((0.7103099178571526, 0.5, 1.0), rel=0, abs=1e-9)


def test_without_ties_there_is_one_order() -> None:
    spread = over_ties(parse("ndcg@5"), GRADED_QUERY, [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    assert spread == (value("ndcg@5", GRADED_QUERY),) * 3


def test_ties_of_too_many_orders_have_no_average() -> None:
    many = judge({f"d{n}": n % 4 for n in range(16)}, [f"d{n}" for n in range(16)])
    assert isinstance(over_ties(parse("rr"), many, [1.0] * 16), Undefined)
    assert math.factorial(16) // math.factorial(4) ** 4 > MOST_TIE_ORDERS


SET = {
    "q1": judge({"a": 3, "b": 1, "x": 0}, ["a", "x", "b"]),
    "q2": judge({"c": 2}, ["z", "c"]),
    "q3": judge({"d": 1, "e": 1}, ["d", "y", "e"]),
    "q4": judge({"g": 3}, ["h", "i", "j"]),
}


@pytest.mark.parametrize(
    ("name", "each", "average"),
    [
        ("recall@3", [1.0, 1.0, 1.0, 0.0], 0.75),
        ("hit@1", [1.0, 0.0, 1.0, 0.0], 0.5),
        ("rr@3", [1.0, 0.5, 1.0, 0.0], 0.625),
        ("ndcg@3", [0.9639404333166532, 0.6309297535714575, 0.9197207891481876, 0.0], 0.6286477440090745),
        ("ndcg_exp@3", [0.9828422279067397, 0.6309297535714574, 0.9197207891481876, 0.0], 0.6333731926565962),
        ("judged@3", [1.0, 0.5, 2 / 3, 0.0], 0.5416666666666666),
        ("bpref", [0.5, None, None, None], 0.5),
    ],
)
def test_a_set_has_the_values_and_means_of_the_worked_example(
    name: str, each: list[float | None], average: float
) -> None:
    found = [parse(name)(graded) for graded in SET.values()]
    assert [None if isinstance(one, Undefined) else one for one in found] == [
        None if one is None else close(one) for one in each
    ]
    total = mean(found)
    assert total.value == close(average)
    assert (total.values, total.undefined) == (4 - each.count(None), each.count(None))


def test_a_mean_of_nothing_is_undefined() -> None:
    assert mean([Undefined("x")]) == (Undefined("no item has a value"), 0, 1)


RELEVANCE = ("recall@5", "hit@5", "precision@5", "mrr", "ndcg@5", "ndcg_exp@5", "bpref", "ndcg_condensed@5")


@pytest.mark.parametrize("name", [*RELEVANCE, "mrr_condensed", "rbp", "rbp_graded"])
def test_without_a_relevant_item_a_measure_is_undefined(name: str) -> None:
    assert parse(name)(judge({"a": 0}, ["a"])) == Undefined("no relevant item")


@pytest.mark.parametrize("name", RELEVANCE)
def test_an_item_that_returned_nothing_scores_zero(name: str) -> None:
    assert value(name, judge({"a": 1, "b": 0}, [])) == 0.0


def test_nothing_returned_has_no_judged_share() -> None:
    assert parse("judged@5")(judge({"a": 1}, [])) == Undefined("nothing returned")


def test_precision_divides_by_the_cut_however_short_the_ranking() -> None:
    assert value("precision@10", judge({"a": 1, "b": 1}, ["a", "b"])) == 0.2


def test_the_ideal_is_over_what_is_relevant_not_over_what_was_found() -> None:
    assert value("ndcg@2", judge({"a": 1, "b": 3}, ["a"])) == pytest.approx(1 / (3 + 1 / math.log2(3)))


@pytest.mark.parametrize("name", ["recall@0", "recal@5", "recall@", "recall@5 ", "recall@-1", "", "recall@5(rel>=0)"])
def test_a_name_that_is_no_measure_is_bad_input(name: str) -> None:
    with pytest.raises(BadInput, match="none of this name"):
        parse(name)


@pytest.mark.parametrize("name", ["ndcg@5(rel>=2)", "judged@5(rel>=1)"])
def test_a_measure_of_grades_takes_no_threshold(name: str) -> None:
    with pytest.raises(BadInput, match="takes grades as they are"):
        parse(name)


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("mrr", "mrr@100"),
        ("rr@10", "mrr@10"),
        ("recall@5(rel>=2)", "recall@5(rel>=2)"),
        ("recall@5(rel>=1)", "recall@5"),
        ("ndcg_exp@20", "ndcg_exp@20"),
    ],
)
def test_a_measure_has_one_canonical_name(name: str, canonical: str) -> None:
    assert str(parse(name)) == canonical


@pytest.mark.parametrize("family", MEASURES)
def test_every_measure_is_found_by_its_name(family: str) -> None:
    assert parse(str(Measure(family, 7))) == Measure(family, 7)


JUDGMENTS = st.dictionaries(st.sampled_from([f"d{n}" for n in range(30)]), st.integers(0, 3), min_size=1)
RANKINGS = st.lists(st.sampled_from([f"d{n}" for n in range(30)]), unique=True, min_size=1)
ORACLE = {
    "recall@5": "recall_5",
    "recall@10": "recall_10",
    "precision@5": "P_5",
    "precision@20": "P_20",
    "hit@1": "success_1",
    "hit@10": "success_10",
    "ndcg@5": "ndcg_cut_5",
    "ndcg@10": "ndcg_cut_10",
    "mrr": "recip_rank",
    "bpref": "bpref",
}
ASKED = {"recall.5,10", "P.5,20", "success.1,10", "ndcg_cut.5,10", "recip_rank", "bpref"}


@settings(deadline=None, max_examples=300)
@given(JUDGMENTS, RANKINGS, st.sampled_from([1, 2, 3]))
def test_trec_eval_agrees_on_random_runs(qrels: dict[str, int], ranking: list[str], threshold: int) -> None:
    run = {document: float(len(ranking) - place) for place, document in enumerate(ranking)}
    theirs = pytrec_eval.RelevanceEvaluator({"q": qrels}, ASKED, relevance_level=threshold).evaluate({"q": run})["q"]
    graded = judge(qrels, ranking)
    for name, oracle in ORACLE.items():
        graded_only = name.startswith("ndcg")
        ours = parse(name)._replace(threshold=1 if graded_only else threshold)(graded)
        if isinstance(ours, Undefined):
            relevant = sum(grade >= (1 if graded_only else threshold) for grade in qrels.values())
            assert relevant == 0 or (name == "bpref" and relevant == len(qrels))
        else:
            assert ours == close(theirs[oracle]), name


@settings(deadline=None)
@given(JUDGMENTS, RANKINGS, st.sampled_from(sorted(MEASURES)), st.integers(1, 40))
def test_a_value_lies_between_0_and_1_or_says_why_there_is_none(
    qrels: dict[str, int], ranking: list[str], family: str, cut: int
) -> None:
    found: Value = Measure(family, cut)(judge(qrels, ranking))
    assert found.reason if isinstance(found, Undefined) else 0.0 <= found <= 1.0 + 1e-12


@settings(deadline=None)
@given(JUDGMENTS, RANKINGS, st.sampled_from(["recall", "hit", "precision", "mrr", "ndcg", "ndcg_exp", "judged"]))
def test_what_stands_below_the_cut_changes_nothing(qrels: dict[str, int], ranking: list[str], family: str) -> None:
    cut = max(1, len(ranking) // 2)
    assert Measure(family, cut)(judge(qrels, ranking)) == Measure(family, cut)(judge(qrels, ranking[:cut]))
