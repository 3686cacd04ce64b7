from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipeline.feedback.readiness import ReadinessRow, readiness
from pipeline.golden.items import GoldenItem, parse_golden_set
from pipeline.golden.resolve import Resolved, ResolvedSet
from pipeline.judgments.resolution import Grades, ResolvedGrade
from pipeline.scoring.agreement import Agreement, Pair

TYPES = ("simple", "set", "comparison", "multi_hop", "false_premise")


def rows(n: int, **fixed: Any) -> list[dict[str, Any]]:
    made = []
    for number in range(n):
        kind = TYPES[number % len(TYPES)]
        row = {"queryId": f"Q{number}", "question": f"{number} " * 9, "questionType": kind, "relevant": ["x"]}
        row["popularity"] = ("head", "torso", "tail")[number % 3]
        if kind == "false_premise":
            del row["relevant"]
        made.append(row | fixed)
    return made


def check(
    given: list[dict[str, Any]],
    grades: Grades | None = None,
    pools: dict[str, list[str]] | None = None,
    judge: Agreement | None = None,
    beside: Sequence[GoldenItem] = (),
) -> dict[str, ReadinessRow]:
    golden = parse_golden_set(Path("set.jsonl"), "\n".join(map(json.dumps, given)).encode())
    resolved = tuple(Resolved(item, (), False, 0, 0, bodies=(("x", "b"),)) for item in golden.items)
    found = readiness(ResolvedSet(golden, resolved), grades or {}, pools or {}, judge=judge, beside=beside)
    return {row.demand: row for row in found}


def test_a_good_set_passes_every_demand_that_is_of_itself() -> None:
    found = check(rows(100))
    of_itself = found.keys() - {"judged@10", "grade_0", "judge"}
    assert {demand: found[demand].verdict for demand in of_itself} == dict.fromkeys(of_itself, "pass")


@pytest.mark.parametrize(
    ("given", "demand", "verdict", "value"),
    [
        (rows(100, questionType="simple", relevant=["x"]), "question_types", "fail", 1),
        (rows(100, popularity="head"), "popularity", "fail", 1),
        (rows(30), "not_answerable", "warn", 6),
        (rows(10), "not_answerable", "fail", 2),
        (rows(30), "clusters", "warn", 30),
        (rows(100, cluster_id="one"), "clusters", "fail", 1),
        (rows(100, split="regression"), "regression", "fail", 1),
        (rows(4), "false_premise", "fail", 0),
    ],
)
def test_a_demand_that_is_not_met_says_so_with_its_number(
    given: list[dict[str, Any]], demand: str, verdict: str, value: float
) -> None:
    found = check(given)[demand]
    assert (found.verdict, found.value) == (verdict, value)


def test_items_without_a_value_are_in_no_share_and_let_nothing_pass() -> None:
    some = rows(25)
    for row in some[:20]:
        del row["popularity"]
        if row["questionType"] != "false_premise":
            del row["questionType"]
    found = check(some)
    types, popularity = found["question_types"], found["popularity"]
    assert (types.verdict, types.n_ids, types.value) == ("warn", 16, 5)
    assert "the largest is 56%, of those that have one; 16 items without" in types.says
    assert (popularity.verdict, popularity.n_ids, popularity.value) == ("warn", 20, 0.4)


def test_items_of_a_value_that_is_too_frequent_are_at_fault() -> None:
    found = check(
        [
            *rows(5),
            *(
                {**row, "queryId": f"X{row['queryId']}", "question": f"x {row['question']}"}
                for row in rows(20, questionType="simple", popularity="head", relevant=["x"])
            ),
        ]
    )
    assert (found["question_types"].verdict, found["question_types"].n_ids) == ("fail", 21)
    assert (found["popularity"].verdict, found["popularity"].n_ids) == ("fail", 22)


@pytest.mark.parametrize(
    "demand", ["question_types", "popularity", "provenance", "duplicates", "regression", "concepts"]
)
def test_what_passes_lists_nothing_at_fault(demand: str) -> None:
    row = check(rows(100))[demand]
    assert (row.verdict, row.ids, row.n_ids) == ("pass", [], 0)


def test_counts_of_one_are_in_the_singular() -> None:
    found = check(rows(5, cluster_id="one"))
    assert (found["not_answerable"].says, found["false_premise"].says, found["clusters"].says) == (
        "1 item",
        "1 item",
        "1 cluster",
    )


def test_judgments_are_demanded_over_what_all_engines_show() -> None:
    pools = {"Q0": ["a", "b"], "Q1": ["a"], "Q2": [], "Q3": []}
    one = ResolvedGrade(3, "human", "1")
    partly = check(rows(5), {"Q0": {"a": one}, "Q1": {"a": one}}, pools)
    assert (partly["judged@10"].verdict, partly["judged@10"].value, partly["judged@10"].ids) == ("fail", 2 / 3, ["Q0"])
    assert partly["grade_0"].n_ids == 4
    zero = one._replace(grade=0)
    whole = check(
        rows(5), {"Q0": {"a": one, "b": zero}, "Q1": {"a": zero}, "Q2": {"c": zero}, "Q3": {"c": zero}}, pools
    )
    assert (whole["judged@10"].verdict, whole["grade_0"].verdict) == ("pass", "pass")


def test_what_one_engine_shows_is_not_the_pool_of_two() -> None:
    golden = parse_golden_set(Path("set.jsonl"), json.dumps(rows(1)[0]).encode())
    resolved = ResolvedSet(golden, (Resolved(golden.items[0], (), False, 0, 0),))
    grades = {"Q0": {"a": ResolvedGrade(3, "human", "1")}}
    verdicts = []
    for configurations in (1, 2):
        found = {row.demand: row for row in readiness(resolved, grades, {"Q0": ["a"]}, configurations=configurations)}
        verdicts.append(found["judged@10"].verdict)
    assert verdicts == ["warn", "pass"]


def test_an_item_without_an_answer_that_has_one_now_is_an_alarm() -> None:
    grade = ResolvedGrade(2, "human", "1")
    found = check(rows(5), {"Q4": {"new": grade}, "Q0": {"a": grade}})["answerable_now"]
    assert (found.verdict, found.ids) == ("fail", ["Q4"])
    assert check(rows(5), {"Q4": {"new": grade._replace(grade=1)}})["answerable_now"].verdict == "pass"


def test_a_judge_is_validated_by_what_people_graded_too() -> None:
    assert check(rows(5))["judge"].says == "no judge is pinned: judgments of models count nowhere"
    pairs = tuple(Pair(str(n % 25), n % 4, n % 4) for n in range(100))
    good, few = (check(rows(5), judge=Agreement(said))["judge"] for said in (pairs, pairs[:8]))
    assert (good.verdict, good.value, few.verdict, few.value) == ("pass", 1, "fail", 1)
    assert few.says == "kappa 1.00 (1.00 to 1.00) over 8 pairs that people graded too: `judge_unvalidated`"


def test_questions_that_are_nearly_one_are_named() -> None:
    long = "how do I move a commit of mine to another branch without losing anything at all please"
    given = rows(3)
    given[0]["question"], given[2]["question"] = long, long.replace("please", "pleas")
    found = check(given)["duplicates"]
    assert (found.verdict, found.ids) == ("fail", ["Q0", "Q2"])


def test_the_set_that_failures_went_to_is_counted_with_the_one_that_they_came_from() -> None:
    promoted = [{**row, "split": "regression"} for row in rows(2)]
    own = check(promoted)["regression"]
    assert (own.verdict, own.value, own.n_ids) == ("fail", 1.0, 2)
    beside = parse_golden_set(Path("set.jsonl"), "\n".join(map(json.dumps, rows(6))).encode()).items
    both = check(promoted, beside=beside)["regression"]
    assert (both.verdict, both.value, both.ids) == ("pass", 0.25, [])
