"""The kernel and the index of one tap, against the definition in plain Python."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines import Earlier, index, kernel, lexical
from pipeline.engines.characters import STEADY_MARKS, character_table
from pipeline.engines.index import TapIndex, Weights, index_tap
from pipeline.engines.text import Tokenizer, opened, prepared, words

NASTY = [
    *("c++", "C++", "c#", "F#", "objective-c", "Objective C", "objective", "-c", "c", "f", "o", "++", "#"),
    *(" ", "-", "_", ".", "\n", "\0", "a", "B", "z", "0", "9", "the", "Skill", "abcdefgh", "abcdefghi"),
    *("ABCDEFGHIJKLMNOP", "abcdefghijklmnopq", "abcdefghijklmnopqrstuvwxyz", "words of sixty bytes " * 3, " " * 63),
    *("é", "e\u0301", "É", "ß", "ẞ", "İ", "ı", "Σ", "σ", "ς", "ΑΣ", "\u212a", "ﬁ", "Ǆ", "ü", "ñ", "я", "Я"),
    *("\u0301", "\u0302", "\u0323", "\u0327", "\ufe0f", "\u20e3", "\u093f", "\u0e33", "\u200d", "\u200b", "\u00a0"),
    *("学", "日本語", "テ", "ー", "ﾃ", "ｰ", "゛", "\u3099", "か", "々", "〆", "・", "\U00020000"),
    *("\U0002f800", "한국", "\u1100", "\u1161"),
    *("👍", "👩\u200d💻", "½", "②", "２", "Ａ", "ａ", "—", "…", "\U0010ffff", "\ue000", "\u0378", "ａｂ"),
    *("\U0001e944", "𐐀", "𐐨"),
]  # fmt: skip
nasty_text = st.lists(st.sampled_from(NASTY), max_size=12).map("".join)
any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
texts = st.one_of(nasty_text, any_text, st.builds("".join, st.lists(st.one_of(nasty_text, any_text), max_size=4)))
documents = st.lists(st.tuples(texts, st.one_of(st.none(), texts), texts), max_size=6)
TOKENIZERS: tuple[Tokenizer, ...] = ("unicode", "ascii")
tokenizers = st.sampled_from(TOKENIZERS)
weights_of_parts = st.builds(Weights, st.integers(0, 4), st.integers(0, 4), st.integers(1, 4))

Document = tuple[str, str | None, str]
DEFAULT = Weights()


def build(entries: list[Document], tokenizer: Tokenizer, weights: Weights = DEFAULT) -> TapIndex:
    return index_tap([e[0] for e in entries], [e[1] for e in entries], [e[2] for e in entries], tokenizer, weights)


def by_definition(entries: list[Document], tokenizer: Tokenizer, weights: Weights) -> list[Counter[str]]:
    """Count the words of each document the slow way: as one list, each part repeated as often as the text says."""
    counted = []
    for slug, description, body in entries:
        parts = [(opened(slug), min(weights.name, 1)), (slug, max(weights.name - 1, 0))]
        parts += [(description or "", weights.description), (body, weights.body)]
        counted.append(Counter(word for part, times in parts for word in words(part, tokenizer) * times))
    return counted


def read_back(index: TapIndex) -> list[Counter[str]]:
    counted: list[Counter[str]] = [Counter() for _ in range(index.lengths.size)]
    for place in range(index.words):
        for posting in range(index.starts[place], index.starts[place + 1]):
            counted[index.documents[posting]][index.word(place).decode()] = int(index.counts[posting])
    return counted


@settings(deadline=None, max_examples=600)
@given(documents, tokenizers, weights_of_parts)
def test_the_index_holds_the_words_of_the_definition(
    entries: list[Document], tokenizer: Tokenizer, weights: Weights
) -> None:
    index = build(entries, tokenizer, weights)
    expected = by_definition(entries, tokenizer, weights)
    assert read_back(index) == expected
    assert index.lengths.tolist() == [count.total() for count in expected]


few = st.sampled_from(["", "a note", "review code", "c++ code", "日本語 code", "É"])
similar = st.lists(st.tuples(few, st.one_of(st.none(), few), few | texts), max_size=8)


def as_table(entries: list[Document]) -> pa.Table:
    columns = [[entry[place] for entry in entries] for place in range(3)]
    names = ["slug", "description", "body"]
    return pa.table([pa.array(column, pa.string()) for column in columns], names=names)


@settings(deadline=None, max_examples=400)
@given(similar, similar, st.data(), tokenizers)
def test_an_index_that_takes_over_what_stayed_has_the_bytes_of_one_made_anew(
    before: list[Document], others: list[Document], data: st.DataObject, tokenizer: Tokenizer
) -> None:
    after = data.draw(st.lists(st.sampled_from([*before, *others]), max_size=10)) if before or others else []
    options = lexical.WordOptions(tokenizer=tokenizer)
    whole = lexical.index_tap(options, as_table(after))
    earlier = Earlier(as_table(before), lexical.index_tap(options, as_table(before)))
    updated = lexical.update_tap(options, as_table(after), earlier)
    assert updated.data == whole
    held = [(slug, description or "", body) for slug, description, body in before]
    assert updated.new == sum((slug, description or "", body) not in held for slug, description, body in after)


def test_only_new_entries_are_cut_into_words(monkeypatch: pytest.MonkeyPatch) -> None:
    before: list[Document] = [(f"skill-{number}", None, f"body of {number}") for number in range(50)]
    after = [*before[20:], ("skill-3", None, "another body"), *before[:10]]
    options = lexical.WordOptions()
    earlier = Earlier(as_table(before), lexical.index_tap(options, as_table(before)))
    read: list[str] = []
    index_texts = index.index_tap

    def watched(slugs: pa.Array, descriptions: pa.Array, bodies: pa.Array, *others: Any) -> TapIndex:
        read.extend(bodies.to_pylist())
        return index_texts(slugs, descriptions, bodies, *others)

    monkeypatch.setattr(index, "index_tap", watched)
    assert lexical.update_tap(options, as_table(after), earlier).new == 1
    assert read == ["another body"]


@settings(deadline=None)
@given(documents, tokenizers)
def test_words_are_sorted_and_their_documents_ascend(entries: list[Document], tokenizer: Tokenizer) -> None:
    index = build(entries, tokenizer)
    vocabulary = [index.word(place) for place in range(index.words)]
    assert vocabulary == sorted(set(vocabulary))
    for start, end in zip(index.starts[:-1], index.starts[1:], strict=True):
        assert (np.diff(index.documents[start:end]) > 0).all()
        assert end > start


@settings(deadline=None)
@given(st.text(st.characters(max_codepoint=127), max_size=60))
def test_both_tokenizers_agree_on_ascii_text(text: str) -> None:
    assert build([("", None, text)], "unicode").to_bytes() == build([("", None, text)], "ascii").to_bytes()


@settings(deadline=None)
@given(documents, tokenizers)
def test_an_index_survives_its_bytes(entries: list[Document], tokenizer: Tokenizer) -> None:
    data = build(entries, tokenizer).to_bytes()
    again = TapIndex.from_bytes(data)
    assert again.to_bytes() == data
    assert read_back(again) == read_back(build(entries, tokenizer))


def test_a_mapped_index_is_not_copied(tmp_path: Path) -> None:
    import pyarrow as pa

    place = tmp_path / "tap.index"
    place.write_bytes(build([("a-skill", "what it does", "some text")], "unicode").to_bytes())
    index = TapIndex.from_bytes(pa.memory_map(str(place)).read_buffer())
    assert not index.counts.flags.owndata
    assert not index.counts.flags.writeable
    assert index.word(0) == b"does"


def test_bytes_of_another_layout_are_refused() -> None:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    batch = pa.record_batch([pa.array([1])], names=["text"])
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(ValueError, match="layout"):
        TapIndex.from_bytes(sink.getvalue())


def test_weights_that_are_all_zero_are_refused() -> None:
    with pytest.raises(ValueError, match="every weight is 0"):
        build([], "ascii", Weights(0, 0, 0))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 10])
def test_small_taps_are_indexed(size: int) -> None:
    index = build([(f"skill-{number}", None, "") for number in range(size)], "ascii")
    assert index.lengths.size == size
    assert index.words == min(size, 1)  # «skill»; a digit alone is one ASCII character


def test_a_name_word_counts_three_times_a_description_word_twice_and_a_body_word_once() -> None:
    index = build([("alpha", "beta", "gamma")], "unicode")
    assert read_back(index) == [Counter(alpha=3, beta=2, gamma=1)]


def test_a_language_name_that_only_the_opened_slug_shows_counts_once() -> None:
    index = build([("objective_c", None, "")], "unicode")
    assert read_back(index) == [Counter(objective=2, objectivec=1)]


def test_many_words_that_begin_alike_are_sorted() -> None:
    entries: list[Document] = [("", None, " ".join(f"configuration{number * 7919 % 5000}" for number in range(5000)))]
    index = build(entries, "ascii")
    vocabulary = [index.word(place) for place in range(index.words)]
    assert vocabulary == sorted(set(vocabulary))
    assert len(vocabulary) == 5000


@settings(deadline=None)
@given(
    st.lists(st.text("ab", min_size=2, max_size=4).map(lambda end: end * 30) | st.text("ab", min_size=2), max_size=30)
)
def test_words_are_sorted_however_far_they_are_alike(found: list[str]) -> None:
    alike = [word[:size] for word in found for size in (7, 8, 9, 16, 17, 64, 65, 90)]
    built = build([("", None, " ".join(alike))], "unicode")
    expected = sorted({word.encode() for word in alike} - {b""})
    assert [built.word(place) for place in range(built.words)] == expected


def test_the_table_of_words_grows_past_its_first_size() -> None:
    spread = [f"w{number * 2654435761 % 2**32:x}" for number in range(40_000)]
    entries: list[Document] = [("", None, " ".join(spread[start : start + 100])) for start in range(0, 40_000, 100)]
    assert read_back(build(entries, "ascii")) == by_definition(entries, "ascii", Weights())


@settings(deadline=None, max_examples=300)
@given(texts)
def test_a_text_that_is_said_to_be_steady_is_steady(text: str) -> None:
    assert survey(text) == kernel.CHANGING or prepared(text) == ascii_lower(text)


def test_every_character_that_is_said_to_be_steady_is_steady_beside_every_mark() -> None:
    """Of the second parts of compositions only marks and Jamo occur, and those are never steady."""
    seconds = {
        chr(int(parts[1], 16))
        for code in range(0x110000)
        if len(parts := unicodedata.decomposition(chr(code)).split()) == 2 and not parts[0].startswith("<")
    }
    composing = [char for char in seconds if survey(char) == kernel.READY and not char.isascii()]
    assert composing == []
    assert all(unicodedata.combining(mark) == 0 and prepared(mark) == mark for mark in STEADY_MARKS)


def survey(text: str) -> int:
    column = index._Field.of(index._texts([text]))
    return int(index._survey(column, character_table())[0])


def ascii_lower(text: str) -> str:
    return "".join(char.lower() if char.isascii() else char for char in text)


@settings(deadline=None, max_examples=30)
@given(st.lists(documents, min_size=2, max_size=4), tokenizers)
def test_threads_give_the_same_bytes(taps: list[list[Document]], tokenizer: Tokenizer) -> None:
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda tap: build(tap, tokenizer).to_bytes(), taps))
    assert together == [build(tap, tokenizer).to_bytes() for tap in taps]


SMALL: list[Document] = [
    (
        "objective_c-Tool",
        "Ünïcode & C++",
        "The e\u0301 日本語 c# averylongdoubleword 1\ufe0f\u20e3 ΑΣ averylongwordtoo",
    ),
    ("b", None, "\u0302c++ averylongdoublewore AVERYLONGDOUBLEWORD averylongdoublewore"),
]
SCRIPT = f"""
import numpy as np
from pipeline.engines import kernel
from pipeline.engines.index import Weights, index_tap
kernel._GOLDEN, kernel._PRIME = np.uint64(GOLDEN), np.uint64(PRIME)
slugs, descriptions, bodies = zip(*{SMALL!r})
for tokenizer in ("unicode", "ascii"):
    print(index_tap(slugs, descriptions, bodies, tokenizer, Weights()).to_bytes().hex())
"""


AS_IT_IS = ("kernel._GOLDEN", "kernel._PRIME")


def indexes_without_the_compiler(golden: str, prime: str) -> list[str]:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", SCRIPT.replace("GOLDEN)", f"{golden})").replace("PRIME)", f"{prime})")]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split()


def test_the_same_code_runs_without_the_compiler() -> None:
    expected = [build(SMALL, tokenizer).to_bytes().hex() for tokenizer in TOKENIZERS]
    assert indexes_without_the_compiler(*AS_IT_IS) == expected


def test_words_whose_hashes_are_equal_stay_apart() -> None:
    """With these factors every long word has the same keys, and every word begins its search at the same slot."""
    assert read_back(build(SMALL, "ascii"))[1]["averylongdoublewore"] == 2
    assert indexes_without_the_compiler("0", "0") == indexes_without_the_compiler(*AS_IT_IS)
