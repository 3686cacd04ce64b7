"""The ranking rule, against sorting and collapsing the slow way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines import Answer, Replacement
from pipeline.engines.ranking import CUTS, DEPTH, HITS, RANKED_QUERIES, order, rank_answers


def answer(scores: dict[int, float], query_id: str = "q", **facts: object) -> Answer:
    rows = sorted(scores)
    values = [scores[row] for row in rows]
    return Answer(query_id, np.array(rows, np.int64), np.array(values, np.float64), **facts)  # type: ignore[arg-type]


def corpus(classes: list[str]) -> pa.Table:
    size = range(len(classes))
    return pa.table(
        {
            "tap": ["owner/tap" for _ in size],
            "path": pa.array([b"skill-%04d\xff.md" % row for row in size], pa.binary()),
            "path_text": [f"skill-{row:04}\\xff.md" for row in size],
            "slug": [f"skill-{row}" for row in size],
            "class_id": classes,
        }
    )


hits = st.dictionaries(st.integers(0, 1500), st.sampled_from([0.5, 1.0, 1.5, 2.0, 2.5]), max_size=40)


def drawn(size: int, seed: int, levels: int) -> dict[int, float]:
    return dict(enumerate((np.random.default_rng(seed).integers(1, levels, size) / 4).tolist()))


long_hits = st.builds(
    drawn,
    st.integers(100, 1500),
    st.integers(0, 9),
    st.integers(2, 400),
)
class_counts = st.sampled_from([1, 5, 99, 100, 101, 130, 1500])


@settings(deadline=None, max_examples=200)
@given(hits | long_hits, class_counts)
def test_a_ranking_is_sorted_collapsed_and_then_cut(scores: dict[int, float], classes: int) -> None:
    codes = np.array([row * 7 % classes for row in range(1501)])
    ranking = order(answer(scores), codes)
    best = sorted(scores, key=lambda row: (-scores[row], row))
    seen: dict[int, int] = {}
    for row in best:
        seen.setdefault(int(codes[row]), row)
    firsts = list(seen.values())
    ranked = ranking.entries[ranking.ranks > 0].tolist()
    assert ranked == firsts[:DEPTH]
    deepest = best.index(ranked[-1]) + 1 if ranked else 0
    assert ranking.entries.tolist() == best[: max(deepest, DEPTH if len(firsts) < DEPTH else 0)]
    assert ranking.scores.tolist() == [scores[row] for row in ranking.entries.tolist()]
    assert ranking.ranks[ranking.ranks > 0].tolist() == list(range(1, len(ranked) + 1))
    assert ranking.tied == {cut: len(firsts) > cut and scores[firsts[cut - 1]] == scores[firsts[cut]] for cut in CUTS}


def test_equal_scores_stand_in_the_order_of_the_corpus() -> None:
    ranking = order(answer({3: 1.0, 1: 1.0, 2: 2.0}), np.arange(4))
    assert ranking.entries.tolist() == [2, 1, 3]
    assert ranking.tied == {1: False, 10: False, 100: False}


def test_a_tie_is_seen_between_classes_and_not_between_mirrors() -> None:
    assert order(answer({0: 1.0, 1: 1.0}), np.array([0, 0])).tied[1] is False
    assert order(answer({0: 1.0, 1: 1.0}), np.array([0, 1])).tied[1] is True


def test_a_mirror_keeps_no_rank_and_the_rest_move_up() -> None:
    table = rank_answers([answer({0: 3.0, 1: 2.0, 2: 1.0})], corpus(["a", "a", "b"])).hits
    assert table.column("rank").to_pylist() == [1, None, 2]
    assert table.column("raw_rank").to_pylist() == [1, 2, 3]
    assert table.column("class_id").to_pylist() == ["a", "a", "b"]


def test_mirrors_behind_the_last_class_are_kept_down_to_rank_100() -> None:
    table = rank_answers([answer({0: 3.0, 1: 2.0, 2: 1.0})], corpus(["a", "b", "a"])).hits
    assert table.column("slug").to_pylist() == ["skill-0", "skill-1", "skill-2"]
    many = order(answer({row: 200.0 - row for row in range(150)}), np.zeros(150, np.int64))
    assert (many.entries.size, many.ranks.tolist().count(0)) == (DEPTH, DEPTH - 1)


def test_mirrors_behind_the_100th_class_are_left_out() -> None:
    many = order(answer({row: 200.0 - row for row in range(130)}), np.minimum(np.arange(130), DEPTH - 1))
    assert many.entries.tolist() == list(range(DEPTH))


def test_a_hit_shows_its_entry() -> None:
    table = rank_answers([answer({1: 0.25})], corpus(["a", "b"])).hits
    (hit,) = table.to_pylist()
    assert hit == {
        "query_id": "q",
        "raw_rank": 1,
        "rank": 1,
        "tap": "owner/tap",
        "path": b"skill-0001\xff.md",
        "path_text": "skill-0001\\xff.md",
        "slug": "skill-1",
        "class_id": "b",
        "score": 0.25,
    }


def test_a_query_without_hits_is_an_abstention() -> None:
    hits, queries = rank_answers([answer({}, unknown_words=("zz",), empty_query=False)], corpus(["a"]))
    assert hits.num_rows == 0
    (described,) = queries.to_pylist()
    assert (described["hits"], described["classes"], described["unknown_words"]) == (0, 0, ["zz"])


def test_what_the_engine_reports_of_a_query_is_kept() -> None:
    facts = {"unknown_words": ("skil",), "replaced_words": (Replacement("skil", "skill"),), "empty_query": False}
    (described,) = rank_answers([answer({0: 1.0}, "q", **facts)], corpus(["a"])).queries.to_pylist()
    assert described["replaced_words"] == [{"word": "skil", "by": "skill"}]
    assert described["hits"] == described["classes"] == 1


@pytest.mark.parametrize("answers", [[], [answer({})]])
def test_an_empty_corpus_gives_tables_without_hits(answers: list[Answer]) -> None:
    hits, queries = rank_answers(answers, corpus([]).slice(0, 0))
    assert hits.schema.names == HITS.schema.names
    assert hits.num_rows == 0
    assert queries.num_rows == len(answers)


def test_the_order_of_queries_changes_no_byte() -> None:
    answers = [answer({0: 1.0, 1: 2.0}, "a"), answer({1: 1.0}, "b"), answer({}, "c")]
    forward, backward = (rank_answers(some, corpus(["x", "y"])) for some in (answers, answers[::-1]))
    assert HITS.to_bytes(forward.hits) == HITS.to_bytes(backward.hits)
    assert RANKED_QUERIES.to_bytes(forward.queries) == RANKED_QUERIES.to_bytes(backward.queries)
