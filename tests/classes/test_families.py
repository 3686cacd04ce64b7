"""Template families, and the words and names by which they are told apart from copies."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.classes.confusable import are_confusable, confusable_pairs
from pipeline.classes.differences import Member, compare, read, template_of
from pipeline.classes.families import FAMILIES, FAMILY_MEMBERS
from tests.classes.near import Row, families, text

TEMPLATE = (
    f"{{title}} helps with {text(0, 30)}. It reads {{input}} and {text(30, 60)} then writes {{output}} in the end"
)


def job(name: str, input_: str, output: str, tap: str = "acme/skills") -> Row:
    title = name.replace("-", " ").title()
    return Row(name, TEMPLATE.format(title=title, input=input_, output=output), tap=tap)


def test_different_jobs_made_from_one_template_are_a_family() -> None:
    rows = [
        job("audit-sharing", "files", "lists"),
        job("plan-budget", "sums of money", "tables"),
        job("send-mail", "addresses", "mail"),
        Row("else", text(500, 600)),
    ]
    found = families(rows)
    (family,) = found.families.to_pylist()
    assert (family["bodies"], family["names"], family["compared"]) == (
        3,
        ["audit-sharing", "plan-budget", "send-mail"],
        2,
    )
    assert family["named"] == 1.0
    assert family["aligned"] == 1.0
    assert "audit sharing / plan budget" in family["evidence"]
    assert family["slots"] == ["audit sharing", "files", "lists"]
    assert sorted(found.members["slug"].to_pylist()) == family["names"]
    assert found.facts() == {
        "families": 1,
        "families_bodies": 3,
        "families_entries": 3,
        "families_largest": 3,
    }


def test_versions_of_one_name_are_no_family() -> None:
    rows = [job("audit-sharing", f"{number} files", f"{number} lists", tap=f"tap/{number}") for number in range(4)]
    assert families(rows).families.num_rows == 0


def test_a_renamed_copy_that_differs_in_other_words_than_its_name_is_no_family() -> None:
    body = text(0, 100)
    rows = [Row("docx", body), Row("docx-official", body.replace("w50", "another word"), tap="other/tap")]
    assert families(rows).families.num_rows == 0


def test_words_put_in_by_one_tap_are_no_slot() -> None:
    """A slot is filled by each in its own way; here all renamed copies have the same words more."""
    body = text(0, 100)
    rows = [Row("ml", body)]
    rows += [Row(f"{name}-ml", f"use this when asked {body}", tap=f"{name}/tap") for name in ("ops", "data", "cloud")]
    assert families([*rows[:2], rows[2]._replace(body=rows[2].body + " x")]).families.num_rows == 0


def test_the_same_other_words_in_all_renamed_copies_are_no_slot() -> None:
    old, new = text(0, 40), text(0, 40).replace("w20", "version two")
    strangers = [Member(f"{new} {end}", frozenset([f"copy{end}"])) for end in ("x", "y", "z")]
    assert not template_of(Member(old, frozenset(["old"])), strangers).is_family


def test_words_that_one_leaves_out_and_another_replaces_are_no_slot() -> None:
    body = text(0, 40)
    left_out, replaced = body.replace("w20 w21 w22 ", ""), body.replace("w20 w21 w22", "other words here")
    strangers = [Member(left_out, frozenset(["one"])), Member(replaced, frozenset(["two"]))]
    found = template_of(Member(body, frozenset(["shown"])), strangers)
    assert (found.is_family, found.slots, found.aligned) == (False, [], 0.0)


def test_one_renamed_member_among_many_versions_makes_no_family() -> None:
    shown = Member("use the alpha tool for all of it", frozenset(["alpha"]))
    versions = [Member(f"use the alpha tool for all of it {number}", frozenset(["alpha"])) for number in range(4)]
    stranger = Member("use the beta tool for all of it", frozenset(["beta"]))
    assert template_of(shown, [stranger]).is_family
    assert not template_of(shown, [stranger, *versions]).is_family


@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_rows_never_matters(chance: random.Random) -> None:
    rows = [job(name, f"{name} things", name[::-1]) for name in ("sql-expert", "css-expert", "go-expert", "qt-expert")]
    one, other = families(rows), families(chance.sample(rows, len(rows)))
    assert FAMILIES.to_bytes(one.families) == FAMILIES.to_bytes(other.families)
    assert FAMILY_MEMBERS.to_bytes(one.members) == FAMILY_MEMBERS.to_bytes(other.members)


def test_no_stub_is_in_a_family() -> None:
    rows = [job(name, name, name)._replace(alias_stub=True) for name in ("sql-expert", "css-expert")]
    assert families(rows).families.num_rows == 0


def differences(ours: str, theirs: str) -> list[str]:
    return [str(difference) for difference in compare(*read([ours, theirs])).differences]


def test_differences_are_the_words_between_shared_ones() -> None:
    assert differences("a b c d e f", "a b x y d e f") == ["c / x y"]
    assert differences("a b c d", "a b c d e") == [" / e"]
    assert differences("a b", "a b") == []
    assert differences("", "a") == [" / a"]
    assert differences("a b", "c d") == ["a b / c d"]


def test_a_single_shared_word_between_differences_is_part_of_them() -> None:
    assert differences("1 2 a and b 3 4", "1 2 c and d 3 4") == ["a and b / c and d"]
    assert differences("1 2 a and the b 3 4", "1 2 c and the d 3 4") == ["a / c", "b / d"]


def test_a_long_difference_is_cut() -> None:
    (shown,) = differences(text(0, 40), "x")
    assert len(shown) == 60 + len(" / x")
    assert shown.startswith("w0 w1")
    assert "…" in shown


@settings(max_examples=200)
@given(st.lists(st.sampled_from("abcd"), max_size=20), st.lists(st.sampled_from("abcd"), max_size=20))
def test_our_words_are_the_shared_ones_and_our_sides_of_the_differences(ours: list[str], theirs: list[str]) -> None:
    found = compare(*read([" ".join(ours), " ".join(theirs)]))
    rebuilt = [word if shared else "" for word, shared in zip(ours, found.shared, strict=True)]
    for difference in found.differences:
        rebuilt[difference.at : difference.at + len(difference.ours)] = difference.ours
    assert rebuilt == ours
    other = sum(len(difference.theirs) for difference in found.differences)
    assert int(found.shared.sum()) + other == len(theirs)


CONFUSABLE = [
    ("coinmarketcal", "coinmarketcap"),
    ("pdf", "pdfs"),
    ("go", "golf"),
    ("agent", "agnt"),
    ("Agent", "agents"),
    ("x", "y"),
]
DISTINCT = [("pdf", "pdf"), ("PDF", "pdf"), ("pdf", "pdf-official"), ("go", "ago-x"), ("abcd", "abdc"), ("css", "sql")]


@pytest.mark.parametrize(("one", "other"), CONFUSABLE)
def test_names_are_confusable(one: str, other: str) -> None:
    assert are_confusable(one, other)
    assert are_confusable(other, one)


@pytest.mark.parametrize(("one", "other"), DISTINCT)
def test_names_are_not_confusable(one: str, other: str) -> None:
    assert not are_confusable(one, other)
    assert not are_confusable(other, one)


@given(st.lists(st.text(alphabet="abA-", max_size=5), max_size=12))
def test_no_pair_of_confusable_names_is_missed(names: list[str]) -> None:
    every = sorted(set(names))
    assert confusable_pairs(names) == [
        (one, other) for place, one in enumerate(every) for other in every[place + 1 :] if are_confusable(one, other)
    ]
