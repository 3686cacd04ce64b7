"""A refused pair of bodies is joined by no similarity of its own; what is left of its cluster stays together."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pipeline.classes.bodies import distinct_bodies
from pipeline.classes.clusters import NearDuplicateOptions, NearDuplicates, check_candidates, near_duplicates
from pipeline.classes.signatures import sign

WORDS = [f"word{number}" for number in range(120)]
TEXTS = {
    "a": WORDS,
    "b": [*WORDS[:-1], "other"],
    "c": ["first", *WORDS[1:]],
    "z": [f"far{number}" for number in range(120)],
}


def found(names: str, *refused: str) -> tuple[set[str], NearDuplicates, int]:
    """Cluster the bodies called by letters, with pairs of letters refused; return the clusters as letters too."""
    rows = [
        {
            "tap": "t",
            "path": name.encode(),
            "path_text": name,
            "slug": "same",
            "locale": None,
            "body": " ".join(TEXTS[name]),
            "body_sha256": name * 64,
            "empty_body": False,
            "alias_stub": False,
        }
        for name in names
    ]
    fields = {"path": pa.binary(), "empty_body": pa.bool_(), "alias_stub": pa.bool_()}
    schema = pa.schema([(name, fields.get(name, pa.string())) for name in rows[0]])
    entries = pa.Table.from_pylist(rows, schema=schema)
    bodies = distinct_bodies(entries)
    signed = sign(bodies["body"])
    options = NearDuplicateOptions(refused=frozenset((pair[0] * 64, pair[1] * 64) for pair in refused))
    made = near_duplicates(bodies, signed, entries, options)
    clusters: dict[str, str] = {}
    for row in made.members.to_pylist():
        clusters[row["cluster_id"]] = clusters.get(row["cluster_id"], "") + row["path_text"]
    return set(clusters.values()), made, check_candidates(bodies, signed, made, options).bodies_astray


@pytest.mark.parametrize(
    ("names", "refused", "clusters"),
    [
        ("abz", (), {"ab"}),
        ("abz", ("ab",), set()),
        ("abcz", ("ab",), {"abc"}),  # tied through the third, which nobody refused
        ("abcz", ("ab", "ac"), {"bc"}),
        ("abcz", ("ab", "ac", "bc"), set()),
        ("abcz", ("az",), {"abc"}),
    ],
)
def test_a_refused_pair_is_not_joined_by_its_own_similarity(
    names: str, refused: tuple[str, ...], clusters: set[str]
) -> None:
    assert found(names, *refused)[0] == clusters


def test_a_cluster_with_a_refused_pair_inside_is_never_read_as_one_skill() -> None:
    assert found("abcz")[1].clusters["reading"].to_pylist() == ["copies"]
    assert found("abcz", "ab")[1].clusters["reading"].to_pylist() == ["vetoed"]
    assert found("abcz", "az")[1].clusters["reading"].to_pylist() == ["copies"]


def test_a_refused_pair_is_no_open_question_and_no_error_of_the_candidates() -> None:
    _, made, astray = found("abcz", "ab", "ac", "bc")
    assert made.pairs.num_rows == 0
    assert astray == 0
