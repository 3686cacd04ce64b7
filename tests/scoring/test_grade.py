import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.golden.items import Match, Mode, parse_golden_set
from pipeline.golden.resolve import Resolved
from pipeline.scoring.grade import Grading, Hit, Treatment, grade, mode_of
from pipeline.scoring.measures import parse

RANKING = [Hit("A", "x"), Hit("B", "y"), Hit("A", "x"), Hit("C", "x"), Hit("D", "z"), Hit("E", "y")]


def asked(names: list[str], classes: list[str], match: Match = "any", entries: int = 0) -> Resolved:
    row: dict[str, object] = {"query": "q", "relevant": names}
    if classes:
        row |= {"exemplar": [f"t::{name}" for name in classes], "match": match}
    item = parse_golden_set(Path("set.jsonl"), json.dumps(row).encode()).items[0]
    return Resolved(item, tuple(sorted(classes)), False, entries, entries)


BY_NAME = asked(["x", "z"], [], entries=4)
ANY = asked(["x", "z"], ["A", "D"], "any")
ALL = asked(["x", "z"], ["A", "D"], "all", entries=3)


@pytest.mark.parametrize(
    ("resolved", "mode", "expected"),
    [
        (
            BY_NAME,
            "name",
            {
                "recall@3": 0.5,
                "recall@5": 1.0,
                "hit@1": 1.0,
                "mrr@100": 1.0,
                "ndcg@3": 0.6131471927654584,
                "ndcg@5": 0.8772153153380493,
            },
        ),
        (ANY, "exemplar", {"recall@3": 1.0, "ndcg@3": 1.0, "ndcg@5": 1.0}),
        (
            ALL,
            "exemplar",
            {"recall@3": 0.5, "recall@5": 1.0, "ndcg@3": 0.6131471927654584, "ndcg@5": 0.8772153153380493},
        ),
    ],
)
def test_slots_are_filled_as_in_the_worked_example(resolved: Resolved, mode: Mode, expected: dict[str, float]) -> None:
    graded = grade(resolved, mode, RANKING)
    assert len(graded.gains) == 5
    for name, value in expected.items():
        assert parse(name)(graded) == pytest.approx(value, abs=1e-9, rel=0), name


@pytest.mark.parametrize(
    ("treatment", "relevant", "expected"),
    [
        ("removed", 2, {"recall@3": 0.5, "recall@5": 1.0, "ndcg@5": 0.8772153153380493}),
        ("irrelevant", 2, {"recall@3": 0.5, "recall@5": 1.0, "ndcg@5": 0.8503449055347546}),
        ("unmodified", 3, {"recall@3": 2 / 3, "recall@5": 1.0, "ndcg@5": 0.8854598815714874}),
    ],
)
def test_duplicates_are_treated_as_in_the_worked_example(
    treatment: Treatment, relevant: int, expected: dict[str, float]
) -> None:
    graded = grade(ALL, "exemplar", RANKING, treatment)
    assert graded.ideal.sum() == relevant
    for name, value in expected.items():
        assert parse(name)(graded) == pytest.approx(value, abs=1e-9, rel=0), name


def test_a_second_class_of_a_name_keeps_its_rank_and_adds_nothing() -> None:
    graded = grade(BY_NAME, "name", RANKING)
    assert graded.gains.tolist() == [1, 0, 0, 1, 0]
    assert graded.judged.tolist() == [True, False, True, True, False]


def test_a_further_exemplar_of_one_right_answer_keeps_its_rank_and_adds_nothing() -> None:
    graded = grade(ANY, "exemplar", RANKING)
    assert graded.gains.tolist() == [1, 0, 0, 0, 0]
    assert graded.judged.tolist() == [True, False, False, True, False]


def test_a_class_that_merely_shares_the_name_of_an_exemplar_counts_for_nothing() -> None:
    assert not grade(ANY, "exemplar", [Hit("C", "x")]).judged.any()


def test_a_class_is_what_its_best_placed_entry_is_called() -> None:
    renamed = [Hit("A", "other"), Hit("A", "x")]
    assert grade(BY_NAME, "name", renamed).gains.tolist() == [0]
    assert not grade(BY_NAME, "name", renamed, "irrelevant").judged.any()
    assert grade(BY_NAME, "name", renamed, "unmodified").gains.tolist() == [0, 1]


def test_a_mirror_that_stays_is_judged_as_its_class_and_gains_nothing() -> None:
    graded = grade(ALL, "exemplar", RANKING, "irrelevant")
    assert graded.gains.tolist() == [1, 0, 0, 0, 1, 0]
    assert graded.judged.tolist() == [True, False, True, False, True, False]


def test_unmodified_every_entry_of_a_relevant_name_is_an_item() -> None:
    graded = grade(BY_NAME, "name", RANKING, "unmodified")
    assert graded.gains.tolist() == [1, 0, 1, 1, 1, 0]
    assert graded.ideal.size == 4


@pytest.mark.parametrize(
    ("resolved", "grading", "mode"),
    [
        (ANY, "row", "exemplar"),
        (ANY, "name", "name"),
        (BY_NAME, "row", "name"),
        (asked([], ["A"]), "row", "exemplar"),
        (asked([], ["A"]), "name", None),
    ],
)
def test_the_row_decides_how_it_is_graded_but_for_grading_by_name(
    resolved: Resolved, grading: Grading, mode: Mode | None
) -> None:
    assert mode_of(resolved.item, grading) == mode


def test_an_item_that_is_not_graded_has_no_relevant_item() -> None:
    graded = grade(asked([], ["A"]), None, RANKING)
    assert graded.ideal.size == 0
    assert not graded.judged.any()


HITS = st.lists(st.sampled_from("ABCDEFGH"), max_size=20)
"""Classes, of which each has a name of its own."""


@settings(deadline=None)
@given(HITS, st.sets(st.sampled_from("ABCDEFGH"), min_size=1))
def test_names_of_one_class_each_grade_as_those_classes_do(ranking: list[str], wanted: set[str]) -> None:
    classes = sorted(wanted)
    resolved = asked([f"name-{name}" for name in classes], classes, "all")
    hits = [Hit(name, f"name-{name}") for name in ranking]
    named, pinned = grade(resolved, "name", hits), grade(resolved, "exemplar", hits)
    assert all(np.array_equal(one, other) for one, other in zip(named, pinned, strict=True))


@settings(deadline=None)
@given(st.lists(st.builds(Hit, st.sampled_from("ABCD"), st.sampled_from("xyz")), max_size=20))
def test_collapsing_before_grading_changes_nothing(hits: list[Hit]) -> None:
    collapsed = [hit for place, hit in enumerate(hits) if hit.class_id not in {one.class_id for one in hits[:place]}]
    for resolved, mode in ((BY_NAME, "name"), (ALL, "exemplar"), (ANY, "exemplar")):
        graded = grade(resolved, mode, hits)  # type: ignore[arg-type]
        for treatment in ("removed", "irrelevant"):
            again = grade(resolved, mode, collapsed, treatment)  # type: ignore[arg-type]
            assert all(np.array_equal(one, other) for one, other in zip(graded, again, strict=True))
