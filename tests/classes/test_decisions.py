"""What people decide about near-duplicates: read strictly, put together, and what it does to content classes."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path

import pytest

from pipeline.classes.decisions import EMPTY, ClusterDecisions, parse_cluster_decisions
from pipeline.classes.digests import ClassRule
from pipeline.classes.group import group
from pipeline.errors import BadInput
from tests.classes.test_group import Row, table

A, B, C, D = ("class:" + letter * 64 for letter in "abcd")
PATH = Path("clusters.jsonl")


def row(same: bool, *bodies: str, **fields: object) -> dict[str, object]:
    return {"same": same, "bodies": list(bodies), "by": "kim", **fields}


def read(*rows: dict[str, object]) -> ClusterDecisions:
    return parse_cluster_decisions(PATH, "\n".join(map(json.dumps, rows)).encode())


def faults(*rows: dict[str, object]) -> list[str]:
    with pytest.raises(BadInput) as caught:
        read(*rows)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("written", "place", "what"),
    [
        (row(True, A), "bodies", "at least 2"),
        (row(True, A, "abc"), "bodies 2", "64 hex digits"),
        (row(True, A, A), "bodies", "twice"),
        (row(True, A, "class:" + EMPTY), "bodies", "empty body"),
        (row(True, A, B) | {"same": "yes"}, "same", "boolean"),
        (row(True, A, B) | {"by": " "}, "by", "blank"),
        (row(True, A, B) | {"why": "x"}, "why", "unknown field"),
        ({"same": True, "bodies": [A, B]}, "by", "is missing"),
    ],
)
def test_what_is_wrong_in_a_decision_is_named_with_line_and_field(
    written: dict[str, object], place: str, what: str
) -> None:
    (fault,) = faults(written)
    assert fault.startswith(f"clusters.jsonl line 1 {place}: ") and what in fault


def test_decisions_that_contradict_each_other_are_refused_even_through_a_third_row() -> None:
    (fault,) = faults(row(True, A, B), row(False, A, C), row(True, B, C))
    assert fault.startswith("clusters.jsonl line 2 bodies: parts class:aaaa")


def test_sets_that_share_a_body_are_one_whatever_the_order_of_the_rows() -> None:
    rows = [row(True, A, B), row(True, C, D), row(True, B, C)]
    united = {read(*order).confirmed for order in permutations(rows)}
    assert united == {(("a" * 64, "b" * 64, "c" * 64, "d" * 64),)}


def test_a_refused_set_parts_each_two_of_its_bodies() -> None:
    pairs = read(row(False, C, A, B)).refused
    assert pairs == {("a" * 64, "b" * 64), ("a" * 64, "c" * 64), ("b" * 64, "c" * 64)}


def test_bodies_that_a_person_confirmed_are_one_class_under_every_rule() -> None:
    facts = table([Row("t", "1", "one"), Row("t", "2", "two"), Row("u", "1", "one"), Row("u", "2", "other")])
    apart = group(facts)
    one, two = (f"class:{body}" for body in apart.entries["body_sha256"].to_pylist()[:2])
    rules: tuple[ClassRule, ...] = ("body", "entry", "raw")
    for rule in rules:
        joined = group(facts, rule, read(row(True, one, two)))
        ids = joined.entries["class_id"].to_pylist()
        assert ids[0] == ids[1] == ids[2] != ids[3]
        assert joined.entries["mirror_kind"].to_pylist() == [None, "intra_tap", "cross_tap", None]
    assert apart.classes.num_rows == 3


def test_a_decision_about_bodies_that_are_not_there_changes_nothing() -> None:
    facts = table([Row("t", "1", "one"), Row("t", "2", "two")])
    assert group(facts, "body", read(row(True, A, B))).entries == group(facts).entries
