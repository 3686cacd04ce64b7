"""Words and shingles: the definition, and that the kernel reads every text as it does."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.catalog.digests import normalised
from pipeline.classes import kernel
from pipeline.classes.shingles import character_tables, chosen, shingles, texts, words
from pipeline.classes.similarity import shingle_sets

EXAMPLES: list[tuple[str, list[str]]] = [
    ("", []),
    (" \t\n\u00a0\u3000\u2028 ", []),
    ("The  Quick\nfox", ["the", "quick", "fox"]),
    ("one\u00a0two\u2003three\x1ffour\u0085five", ["one", "two", "three", "four", "five"]),
    ("zero\u200bwidth is\ufeffno space", ["zero\u200bwidth", "is\ufeffno", "space"]),
    ("Straße ΣΊΣΥΦΟΣ İ \u212a", ["strasse", "σίσυφοσ", "i\u0307", "k"]),
    ("日本語のテスト", ["日", "本", "語", "の", "テ", "ス", "ト"]),
    ("use日本GPT-4。", ["use", "日", "本", "gpt-4。"]),
    ("Cafe\u0301 Café", ["cafe\u0301", "café"]),
    ("한국어 문서", ["한국어", "문서"]),
    ("𝒜 😀 \U00020000x", ["𝒜", "😀", "\U00020000", "x"]),
    ("nul\0inside", ["nul\0inside"]),
]

# Every kind of character that the kernel tells apart, and whatever else there is but surrogates, which UTF-8 has not.
SOME_TEXT = st.lists(
    st.sampled_from(
        [" ", "\n", "\u00a0", "\u2003", "\x1c", "a", "B", "É", "ß", "İ", "ﬃ", "日", "ー", "\u0301", "😀", "K"]
    )
    | st.characters(exclude_categories=["Cs"]),
    max_size=40,
).map("".join)


def sets_of(*bodies: str) -> list[list[int]]:
    elements, starts = shingle_sets(pa.array(bodies, pa.string()))
    return [elements[starts[row] : starts[row + 1]].tolist() for row in range(len(bodies))]


@pytest.mark.parametrize(("text", "expected"), EXAMPLES)
def test_a_text_has_these_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(SOME_TEXT)
def test_words_do_not_depend_on_white_space_that_the_body_digest_leaves_out(text: str) -> None:
    assert words(text) == words(normalised(text))


def test_a_text_shorter_than_a_shingle_is_one_shingle_of_all_its_words() -> None:
    assert [len(shingles(" ".join("abcdefg"[:count]))) for count in range(8)] == [0, 1, 1, 1, 1, 1, 2, 3]


def test_the_order_of_words_counts() -> None:
    assert shingles("a b c") != shingles("c b a")


@settings(max_examples=300)
@given(st.lists(SOME_TEXT, max_size=4))
def test_the_kernel_agrees_with_the_definition(bodies: list[str]) -> None:
    assert sets_of(*bodies) == [sorted(set(shingles(body))) for body in bodies]


def test_the_kernel_knows_every_character_that_is_more_than_itself() -> None:
    characters = [chr(code) for code in range(0x110000)]
    spaces = {ord(char) for char in characters if char.isspace()}
    folding = {ord(char) for char in characters if char.casefold() != char}
    kinds = character_tables().kinds
    assert set(np.flatnonzero(kinds == kernel.SPACE)) == spaces
    assert set(np.flatnonzero(kinds == kernel.FOLDS)) == folding
    bodies = [f"x{chr(code)}y" for code in sorted(spaces | folding | {0, 0x7F, 0x80, 0xFFFF, 0x10000, 0x10FFFF})]
    assert sets_of(*bodies) == [sorted(set(shingles(body))) for body in bodies]


def test_a_slice_of_a_column_is_read_where_it_lies() -> None:
    column = pa.array(["one two", "", "three four five", "six"], pa.large_string())
    read = texts(column.slice(1, 2))
    assert [bytes(read.data[start:stop]) for start, stop in zip(read.starts, read.stops, strict=True)] == [
        b"",
        b"three four five",
    ]
    assert texts(column).data.ctypes.data == column.buffers()[2].address


def test_rows_are_chosen_across_chunks() -> None:
    column = pa.chunked_array([["a", "b"], [], ["c"], ["d", "e"]], pa.string())
    assert chosen(column, np.array([1, 2, 4])).to_pylist() == ["b", "c", "e"]
    assert chosen(column, np.array([], np.int64)).to_pylist() == []


def test_a_missing_body_is_an_error() -> None:
    with pytest.raises(ValueError, match="null"):
        texts(pa.array(["a", None]))


def test_a_lone_surrogate_cannot_get_into_a_column() -> None:
    with pytest.raises(UnicodeEncodeError):
        pa.array(["\ud800"], pa.string())


SMALL = ["Straße 日本語 a b c d e f", "", "a b c d e f g h", "A b c d e f g i", "x"]
SCRIPT = f"""
import numpy as np, pyarrow as pa
from pipeline.classes.candidates import Bands, band_keys, candidate_groups, candidate_pairs
from pipeline.classes.differences import compare, read
from pipeline.classes.linking import link
from pipeline.classes.signatures import Scheme, sign
from pipeline.classes.similarity import components, join
bodies = pa.array({SMALL!r})
signed = sign(bodies, Scheme(permutations=8))
keys = band_keys(signed.signatures, Bands(4, 2))
print(signed.signatures.tolist(), signed.signed.tolist(), keys.tolist())
print(candidate_pairs(keys, signed.signed).tolist(), candidate_groups(keys, signed.signed).tolist())
print([column.tolist() for column in join(bodies, signed.signed, 0.5)], components(bodies, signed.signed, 0.5).tolist())
print(link(bodies, np.zeros((5, 1), np.uint64), signed.signed, np.arange(5), 0.5))
print(compare(*read(["a b c d x y e f", "a b c d z e f g"])))
"""


def test_the_same_code_runs_without_the_compiler() -> None:
    with_it, without = (
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONWARNINGS": "error", **more},
        ).stdout
        for more in ({}, {"NUMBA_DISABLE_JIT": "1"})
    )
    assert with_it == without
    assert with_it.count("\n") >= 5
