"""Where two bodies differ, word by word, as a person reads it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.classes.wordings import GAP, WORDS_COMPARED, Words, marked, worded

ALL = 10**6
SOME_WORDS = st.lists(st.sampled_from(["a", "b", "c", "dd", "Ee", "猫", "[-x-]"]), max_size=24)


def plain(left: str, right: str, context: int = 2, run: int = 6) -> str:
    return marked(worded(left, right, context, run))


def said(words: list[Words], side: str) -> str:
    return "".join("".join(each.text.split()) for each in words if each.side in ("both", side)).casefold()


@settings(deadline=None)  # the first call may compile
@given(SOME_WORDS, SOME_WORDS)
def test_with_room_enough_both_texts_can_be_read_off(left: list[str], right: list[str]) -> None:
    words = worded(" ".join(left), " ".join(right), context=ALL, run=ALL)
    if not any(each.side != "both" for each in words):
        assert [word.casefold() for word in left] == [word.casefold() for word in right]
        assert words == []
    else:
        assert said(words, "left") == "".join(left).casefold()
        assert said(words, "right") == "".join(right).casefold()


@settings(deadline=None)  # the first call may compile
@given(SOME_WORDS, SOME_WORDS)
def test_whoever_is_left_the_same_words_are_found_on_one_side(left: list[str], right: list[str]) -> None:
    words = worded(" ".join(left), " ".join(right))
    assert {side for side, _ in words} <= {"both", "left", "right"}
    assert all(text for _, text in words)
    assert all(before.side != after.side for before, after in pairwise(words))


@settings(deadline=None)  # the first call may compile
@given(SOME_WORDS)
def test_a_text_does_not_differ_from_itself_in_other_case_and_space(text: list[str]) -> None:
    assert worded(" ".join(text), "\n\t".join(text).upper()) == []


def test_each_difference_stands_between_some_shared_words() -> None:
    left = "run npm install and then wait for the build to end before you push"
    right = left.replace("npm", "pnpm").replace("push", "merge")
    assert plain(left, right) == "run [-npm-] {+pnpm+} install and … before you [-push-] {+merge+}"


def test_words_that_only_one_text_has_stand_alone() -> None:
    assert plain("one two three four", "one two three four five") == "… three four {+five+}"
    assert plain("zero one two three four", "one two three four") == "[-zero-] one two …"


def test_two_differences_at_the_very_start_lose_no_word_between_them() -> None:
    words = worded("b c d e f g h i x", "a b c d e f g h i y", context=2)
    assert marked(words) == "{+a+} b c … h i [-x-] {+y+}"


def test_a_long_difference_shows_both_its_ends_and_how_much_lies_between() -> None:
    added = " ".join(f"w{number}" for number in range(20))
    assert plain("start end", f"start {added} end") == "start {+w0 w1 w2 … 14 words … w17 w18 w19+} end"


def test_text_behind_what_is_compared_is_not_said_to_be_the_same() -> None:
    long = " ".join(f"w{number}" for number in range(2 * WORDS_COMPARED))
    assert plain(f"x {long}", f"y {long}").endswith(GAP)
    hidden = plain(f"x {long} one", f"y {long} other")
    assert hidden.startswith("[-x-] {+y+}") and hidden.endswith(GAP)


def test_a_text_that_goes_on_behind_a_difference_at_the_end_of_what_is_compared_says_so() -> None:
    left, right = ([first, *map(str, range(8)), last, "more", "words"] for first, last in (("x", "p"), ("y", "q")))
    words = worded(" ".join(left), " ".join(right), context=1, compared=10)
    assert marked(words) == f"[-x-] {{+y+}} 0 … 7 [-p-] {{+q+}} {GAP}"


def test_a_difference_behind_a_long_shared_start_is_found() -> None:
    long = " ".join(f"w{number}" for number in range(2 * WORDS_COMPARED))
    assert plain(f"{long} one", f"{long} other").endswith("[-one-] {+other+}")


def test_scripts_without_spaces_are_compared_by_character_and_put_together_again() -> None:
    assert plain("先讀完整 SKILL.md 再動手", "先看完整 SKILL.md 再動手") == "先 [-讀-] {+看+} 完整 …"


@pytest.mark.parametrize("limit", [1, 10, 200])
def test_a_limit_holds(limit: int) -> None:
    text = marked(worded("a " * 50 + "x", "b " * 50 + "y", run=ALL), limit)
    assert len(text) <= limit and text.endswith(GAP)
