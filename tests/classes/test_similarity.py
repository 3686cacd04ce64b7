"""Candidates and the exact join, held against sets of Python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.classes.candidates import BANDS, Bands, band_keys, candidate_groups, candidate_pairs
from pipeline.classes.shingles import shingles
from pipeline.classes.signatures import sign
from pipeline.classes.similarity import components, components_of, jaccard, join

# Texts of few words share many shingles; long ones begin alike.
WORDS = st.lists(st.sampled_from("abc"), max_size=14).map(" ".join)
TAILED = st.tuples(st.integers(0, 30), st.integers(0, 6)).map(
    lambda cut: " ".join([*(f"w{number}" for number in range(cut[0])), *(f"t{cut[1]}" for _ in range(cut[1]))])
)
BODIES = st.lists(WORDS | TAILED, max_size=12)


def exact(left: str, right: str) -> float:
    ours, theirs = set(shingles(left)), set(shingles(right))
    return len(ours & theirs) / len(ours | theirs) if ours and theirs else 0.0


@settings(max_examples=200)
@given(BODIES, st.sampled_from([0.1, 0.3, 0.5, 0.75, 0.8, 1.0]))
def test_the_join_finds_every_pair_at_the_threshold_and_no_other(bodies: list[str], threshold: float) -> None:
    expected = {
        (left, right): similarity
        for right in range(len(bodies))
        for left in range(right)
        if (similarity := exact(bodies[left], bodies[right])) >= threshold
    }
    found = join(pa.array(bodies, pa.string()), np.ones(len(bodies), np.bool_), threshold)
    assert dict(zip(map(tuple, found.rows.tolist()), found.similarity.tolist(), strict=True)) == expected
    assert found.rows.tolist() == sorted(found.rows.tolist())


@settings(max_examples=100)
@given(BODIES, st.sampled_from([0.2, 0.5, 0.8]))
def test_components_are_those_of_the_pairs(bodies: list[str], threshold: float) -> None:
    column, eligible = pa.array(bodies, pa.string()), np.ones(len(bodies), np.bool_)
    pairs = join(column, eligible, threshold).rows
    assert components(column, eligible, threshold).tolist() == components_of(pairs, len(bodies)).tolist()


def test_a_pair_just_at_the_threshold_is_in_and_just_below_it_is_out() -> None:
    words = [f"w{number}" for number in range(13)]
    bodies = pa.array([" ".join(words[:12]), " ".join(words)])  # 8 of 9 shingles
    both = np.ones(2, np.bool_)
    assert join(bodies, both, 8 / 9).rows.tolist() == [[0, 1]]
    assert join(bodies, both, np.nextafter(8 / 9, 1)).rows.tolist() == []


def test_rows_that_are_not_eligible_join_nothing() -> None:
    bodies = pa.array(["a b", "a b", "a b", "", ""])
    eligible = np.array([True, False, True, True, True])
    assert join(bodies, eligible, 0.5).rows.tolist() == [[0, 2]]
    assert components(bodies, eligible, 0.5).tolist() == [0, 1, 0, 3, 4]
    keys = band_keys(sign(bodies).signatures)
    assert candidate_pairs(keys, eligible & sign(bodies).signed).tolist() == [[0, 2]]


@pytest.mark.parametrize("threshold", [0.0, -0.1, 1.1])
def test_a_threshold_that_is_none_is_an_error(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        join(pa.array(["a"]), np.ones(1, np.bool_), threshold)


@given(BODIES)
def test_jaccard_is_that_of_the_sets(bodies: list[str]) -> None:
    pairs = np.array([(left, right) for left in range(len(bodies)) for right in range(left)], np.int64).reshape(-1, 2)
    expected = [exact(bodies[left], bodies[right]) for left, right in pairs.tolist()]
    assert jaccard(pa.array(bodies, pa.string()), pairs).tolist() == expected


@given(st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), max_size=12))
def test_candidates_share_a_band_and_none_is_missed(minima: list[list[int]]) -> None:
    signatures = np.array(minima, np.uint32).reshape(-1, 4)
    expected = [
        [left, right]
        for left in range(len(minima))
        for right in range(left + 1, len(minima))
        if minima[left][:2] == minima[right][:2] or minima[left][2:] == minima[right][2:]
    ]
    keys, every = band_keys(signatures, Bands(2, 2)), np.ones(len(minima), np.bool_)
    pairs = candidate_pairs(keys, every)
    assert pairs.tolist() == expected
    assert candidate_groups(keys, every).tolist() == components_of(pairs, len(minima)).tolist()


def test_more_rows_than_a_signature_has_are_an_error() -> None:
    with pytest.raises(ValueError, match="16 bands of 8 rows"):
        band_keys(np.zeros((1, 64), np.uint32))


def test_the_bands_find_99_of_100_pairs_at_the_threshold() -> None:
    assert BANDS.chance(0.8) > 0.94
    assert Bands(9, 13).chance(0.8) < 0.5
