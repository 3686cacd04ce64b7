"""Near-duplicate clusters: what is joined, what is not, and what is said of a cluster."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.classes import linking
from pipeline.classes.bodies import distinct_bodies
from pipeline.classes.candidates import Bands
from pipeline.classes.clusters import CLUSTERS, MEMBERS, NEAR_PAIRS, NearDuplicateOptions, check_candidates
from pipeline.classes.linking import NEAR, link
from pipeline.classes.signatures import sign
from pipeline.classes.similarity import join
from tests.classes.near import Row, company, digest, entries, near, text

EVERYTHING = NearDuplicateOptions(bands=Bands(128, 1))
"""Every minimum a band: whatever shares a shingle is a candidate, so that small examples do not hang on chance."""


def test_bodies_that_are_alike_are_one_cluster_and_others_are_none() -> None:
    found = near([Row("a", text(0, 100)), Row("b", text(0, 101)), Row("c", text(500, 600))])
    assert company(found) == {frozenset("ab")}


def test_an_exact_copy_alone_makes_no_cluster() -> None:
    found = near([Row("a", text(0, 100)), Row("b", text(0, 100), tap="other/tap")])
    assert found.facts()["clusters"] == 0
    assert found.members.num_rows == 0


def test_bodies_that_differ_in_case_only_are_joined() -> None:
    found = near([Row("a", text(0, 9)), Row("b", text(0, 9).upper())])
    assert found.clusters["lowest_similarity"].to_pylist() == [1.0]


def test_bodies_shorter_than_a_shingle_are_joined_only_where_all_words_are_the_same() -> None:
    found = near([Row("a", "see this"), Row("b", "See this"), Row("c", "see that"), Row("d", "see")], EVERYTHING)
    assert company(found) == {frozenset("ab")}


def test_no_empty_body_and_no_stub_joins_anything() -> None:
    stub = "See [the other](x.md)."
    rows = [
        Row("a", ""),
        Row("b", " \n"),
        Row("c", stub, alias_stub=True),
        Row("d", stub.upper(), alias_stub=True),
        Row("e", stub.lower()),
    ]
    assert near(rows, EVERYTHING).facts()["clusters"] == 0


def test_a_body_is_a_stub_only_where_every_entry_of_it_is_one() -> None:
    rows = [Row("a", "see  this", alias_stub=True), Row("b", "see this"), Row("c", "SEE THIS", alias_stub=True)]
    bodies = distinct_bodies(entries(rows))
    assert dict(zip(bodies["body_sha256"].to_pylist(), bodies["eligible"].to_pylist(), strict=True)) == {
        digest("see this"): True,
        digest("SEE THIS"): False,
    }


def test_a_chained_cluster_says_so() -> None:
    """Each is like the next at 0.83, the first and the last share 0.66."""
    found = near([Row("a", text(0, 104)), Row("b", text(10, 114)), Row("c", text(20, 124))], EVERYTHING)
    (cluster,) = found.clusters.to_pylist()
    assert (cluster["bodies"], cluster["chained"], cluster["lowest_similarity"]) == (3, True, 80 / 120)


def test_a_cluster_whose_bodies_are_all_alike_is_not_chained() -> None:
    (cluster,) = near([Row("a", text(0, 104)), Row("b", text(5, 109))], EVERYTHING).clusters.to_pylist()
    assert (cluster["chained"], cluster["lowest_similarity"]) == (False, 95 / 105)


def test_a_verified_pair_does_not_drag_along_what_shares_only_its_candidates() -> None:
    """All four are candidates of each other; two are alike at 0.9, and nothing else reaches the threshold."""
    rows = [Row("a", text(0, 104)), Row("b", text(5, 109)), Row("c", text(40, 144)), Row("d", text(70, 174))]
    found = near(rows, EVERYTHING)
    assert found.unverified == {"unverified_clusters": 1, "unverified_bodies": 4}
    assert company(found) == {frozenset("ab")}


def test_the_representative_has_most_entries_then_the_first_place() -> None:
    rows = [
        Row("few", text(0, 104), tap="a/a"),
        Row("many", text(1, 105), tap="z/z", path="2"),
        Row("many", text(1, 105), tap="z/z", path="1"),
        Row("tie", text(2, 106), tap="b/b"),
    ]
    (cluster,) = near(rows, EVERYTHING).clusters.to_pylist()
    assert (cluster["tap"], cluster["path"], cluster["slug"]) == ("z/z", b"1", "many")
    (without,) = near([*rows[:2], rows[3]], EVERYTHING).clusters.to_pylist()
    assert without["slug"] == "few"


def test_the_facts_of_a_cluster_count_entries_taps_names_renames_and_locale_copies() -> None:
    rows = [
        Row("one", text(0, 104), tap="a/a", path="x"),
        Row("one", text(0, 104), tap="a/a", path="y"),
        Row("uno", text(0, 104), tap="b/b", path="z"),
        Row("one", text(1, 105), tap="c/c", path="docs/fr/x", locale="fr"),
        Row("else", text(900, 990)),
    ]
    found = near(rows, EVERYTHING)
    (cluster,) = found.clusters.to_pylist()
    facts = {name: cluster[name] for name in ("bodies", "entries", "taps", "names", "renamed", "locale_copies")}
    assert facts == {
        "bodies": 2,
        "entries": 4,
        "taps": 3,
        "names": ["one", "uno"],
        "renamed": 1,
        "locale_copies": 1,
    }
    assert {(each["slug"], each["entries"], each["similarity"]) for each in found.members.to_pylist()} == {
        ("one", 3, 1.0),
        ("one", 1, 99 / 101),
    }


def test_confusable_names_veto_a_merge() -> None:
    found = near([Row("coinmarketcal", text(0, 104)), Row("coinmarketcap", text(1, 105))], EVERYTHING)
    (cluster,) = found.clusters.to_pylist()
    assert (cluster["reading"], cluster["confusable"]) == ("vetoed", ["coinmarketcal / coinmarketcap"])


def test_bodies_that_share_a_name_are_not_vetoed_for_another_one() -> None:
    rows = [Row("agent", text(0, 104)), Row("agents", text(0, 104), path="2"), Row("agent", text(1, 105), path="3")]
    (cluster,) = near(rows, EVERYTHING).clusters.to_pylist()
    assert (cluster["reading"], cluster["confusable"]) == ("copies", [])


def test_members_made_from_one_template_read_as_a_family() -> None:
    rows = [Row(f"{job}-expert", f"{text(0, 60)} be a {job} expert and {text(60, 120)}") for job in ("sql", "css")]
    (cluster,) = near(rows, EVERYTHING).clusters.to_pylist()
    assert cluster["reading"] == "family"
    assert cluster["evidence"] in (["sql / css"], ["css / sql"])


def test_near_pairs_are_the_nearest_on_each_side() -> None:
    rows = [Row(f"{shift:02}", text(shift, shift + 104)) for shift in (0, 5, 11, 18, 26)]
    found = near(rows, NearDuplicateOptions(bands=Bands(128, 1), pairs_kept=2))
    pairs = {
        (each["side"], *sorted((each["left_slug"], each["right_slug"])), each["similarity"])
        for each in found.pairs.to_pylist()
    }
    assert pairs == {
        ("above", "18", "26", 92 / 108),  # shifts of up to 11 words are above
        ("above", "00", "11", 89 / 111),
        ("below", "05", "18", 87 / 113),
        ("below", "11", "26", 85 / 115),
    }


def test_a_pair_that_is_joined_through_a_third_after_it_was_compared_is_listed_once() -> None:
    rows = [
        Row(f"{chain} {shift}", text(1000 * chain + shift, 1000 * chain + shift + 104))
        for chain in range(8)
        for shift in (0, 8, 16)
    ]
    pairs = near(rows, EVERYTHING).pairs.to_pylist()
    below = [pair["left_slug"] for pair in pairs if pair["side"] == "below"]
    assert len(below) == 8


def test_in_a_cluster_of_too_many_bodies_not_all_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "MEMBERS_COMPARED", 2)
    rows = [Row("a", text(0, 104)), Row("b", text(5, 109)), Row("c", text(10, 114))]
    (cluster,) = near(rows, EVERYTHING).clusters.to_pylist()
    assert (cluster["bodies"], cluster["lowest_similarity"], cluster["chained"]) == (3, None, None)


def test_an_empty_corpus_has_no_clusters() -> None:
    found = near([])
    assert (found.clusters.schema, found.members.schema, found.pairs.schema) == (
        CLUSTERS.schema,
        MEMBERS.schema,
        NEAR_PAIRS.schema,
    )
    assert found.facts()["bodies"] == 0


# Ranges of words, so that any two bodies may be alike, chained or apart; few slugs and taps, so that they collide.
ROWS = st.lists(
    st.builds(
        lambda first, length, slug, tap, stub: Row(slug, text(first, first + length), tap=tap, alias_stub=stub),
        st.integers(0, 30),
        st.integers(0, 40),
        st.sampled_from(["pdf", "pdfs", "w1-tool", "w2-tool"]),
        st.sampled_from(["a/a", "b/b"]),
        st.integers(0, 5).map(lambda number: number == 0),
    ),
    max_size=12,
).map(lambda rows: [row._replace(path=str(number)) for number, row in enumerate(rows)])


@settings(max_examples=30, deadline=None)
@given(ROWS, st.randoms(use_true_random=False), st.integers(1, 3))
def test_the_order_of_rows_and_the_number_of_threads_never_matter(
    rows: list[Row], chance: random.Random, threads: int
) -> None:
    shuffled = chance.sample(rows, len(rows))
    first, second = near(rows, EVERYTHING), near(shuffled, EVERYTHING, threads)
    for table, one, other in zip((CLUSTERS, MEMBERS, NEAR_PAIRS), first, second, strict=False):
        assert table.to_bytes(one) == table.to_bytes(other)
    assert first.unverified == second.unverified


@settings(max_examples=30, deadline=None)
@given(ROWS)
def test_with_every_candidate_the_clusters_are_those_of_the_exact_join(rows: list[Row]) -> None:
    table = entries(rows)
    bodies = distinct_bodies(table)
    signed = sign(bodies["body"])
    check = check_candidates(bodies, signed, near(rows, EVERYTHING), EVERYTHING)
    assert check.bodies_astray == 0
    assert check.found == check.pairs <= check.candidates
    assert check.recall in (None, 1.0)


@settings(max_examples=30, deadline=None)
@given(ROWS)
def test_with_every_candidate_the_near_pairs_are_those_of_the_exact_join(rows: list[Row]) -> None:
    bodies = distinct_bodies(entries(rows))
    digests, eligible = bodies["body_sha256"].to_pylist(), bodies["eligible"].to_numpy()
    exact = join(bodies["body"], eligible, 0.8 - NEAR)
    expected = [
        (similarity, digests[left], digests[right])
        for (left, right), similarity in zip(exact.rows.tolist(), exact.similarity.tolist(), strict=True)
        if similarity <= 0.8 + NEAR
    ]
    pairs = near(rows, EVERYTHING).pairs.to_pylist()
    assert sorted((pair["similarity"], pair["left_body"], pair["right_body"]) for pair in pairs) == sorted(expected)
    assert all((pair["side"] == "above") == (pair["similarity"] >= 0.8) for pair in pairs)


def test_the_check_finds_what_the_candidates_missed() -> None:
    rows = [Row("a", text(0, 104)), Row("b", text(5, 109)), Row("c", text(500, 604)), Row("d", text(500, 604) + " x")]
    blind = NearDuplicateOptions(bands=Bands(1, 128))  # only equal signatures are candidates
    table = entries(rows)
    bodies = distinct_bodies(table)
    check = check_candidates(bodies, sign(bodies["body"]), near(rows, blind), blind)
    assert (check.eligible, check.pairs, check.found, check.bodies_joined) == (4, 2, check.found, 4)
    assert check.bodies_astray == 4 - 2 * check.found
    assert check.recall == check.found / 2 < 1


def test_groups_of_candidates_are_linked_alike_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = pa.array([text(shift * 7, shift * 7 + 50 + shift % 3) for shift in range(40)])
    arguments = (np.arange(40, dtype=np.uint64)[:, None] // np.uint64(4), np.ones(40, np.bool_), np.arange(40), 0.6)
    whole = link(bodies, *arguments)
    monkeypatch.setattr(linking, "BYTES_AT_ONCE", 1)
    cut = link(bodies, *arguments, threads=2)
    assert len(whole.lowest) > 3
    assert str(whole) == str(cut)


@pytest.mark.parametrize("threshold", [0.0, 1.5])
def test_a_threshold_that_is_none_is_an_error(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold"):
        near([Row("a", "b")], NearDuplicateOptions(threshold=threshold))
