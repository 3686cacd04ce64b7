"""What a word is, by the definition in plain Python."""

from __future__ import annotations

import unicodedata

import pytest

from pipeline.catalog.scripts import is_han_or_kana
from pipeline.engines.text import (
    LANGUAGES,
    STOPWORDS,
    Tokenizer,
    opened,
    prepared,
    stopwords_digest,
    words,
)

EVERY_CHARACTER = [chr(code) for code in range(0x110000)]

EXAMPLES: list[tuple[str, list[str], list[str]]] = [
    # text, unicode, ascii
    ("", [], []),
    ("The way of a Python", ["way", "python"], ["way", "python"]),
    ("snake_case kebab-case", ["snake", "case", "kebab", "case"], ["snake", "case", "kebab", "case"]),
    ("x 7 42", ["42"], ["42"]),
    (
        "C++ and c#, F#; Objective-C",
        ["cpp", "csharp", "fsharp", "objectivec"],
        ["cpp", "csharp", "fsharp", "objectivec"],
    ),
    ("an objective c skill", ["objectivec", "skill"], ["objectivec", "skill"]),
    ("c++11 xc++ c++x", ["11", "xc"], ["11", "xc"]),
    ("c++++", ["cpp"], ["cpp"]),
    ("objective-c++", ["objectivec"], ["objectivec"]),
    ("objective-cc objective\nc", ["objective", "cc", "objective"], ["objective", "cc", "objective"]),
    ("objective--c", ["objective"], ["objective"]),
    ("c#c# (f#)", ["csharp", "fsharp"], ["csharp", "fsharp"]),
    ("éc++ c++é 学c++", ["éc", "é", "学"], []),
    ("x\u0302c++ c#\u0302", ["x\u0302", "cpp", "csharp", "\u0302"], ["cpp", "csharp"]),
    ("café cafe\u0301", ["café", "café"], ["caf", "caf"]),
    ("é ö", ["é", "ö"], []),
    ("日本語 学 テスト", ["日本", "本語", "学", "テス", "スト"], []),
    ("用python写の", ["用", "python", "写の"], ["python"]),
    ("コーヒー・ﾃｽﾄ", ["コー", "ーヒ", "ヒー", "ﾃｽ", "ｽﾄ"], []),
    ("か\u309ak", ["か\u309a"], []),
    ("\U00020000\U00020001\U00020002", ["\U00020000\U00020001", "\U00020001\U00020002"], []),
    ("ΟΔΟΣ ΣΟΦΙΑ", ["οδος", "σοφια"], []),
    ("\u212aelvin İstanbul Straße", ["kelvin", "i\u0307stanbul", "straße"], ["kelvin", "stanbul", "stra"]),
    ("👩\u200d💻 ok", ["ok"], ["ok"]),
    ("½ ２ ③", ["½", "２", "③"], []),
]


@pytest.mark.parametrize(("text", "unicode", "ascii"), EXAMPLES)
def test_examples_give_their_words(text: str, unicode: list[str], ascii: list[str]) -> None:
    assert words(text, "unicode") == unicode
    assert words(text, "ascii") == ascii


@pytest.mark.parametrize("tokenizer", ["unicode", "ascii"])
def test_stopwords_are_dropped_whatever_their_case(tokenizer: Tokenizer) -> None:
    assert words(" ".join(STOPWORDS).upper(), tokenizer) == []


def test_a_slug_is_opened_at_hyphens_and_underscores() -> None:
    assert opened("objective__c-dev.v2") == "objective c dev.v2"


def test_letters_and_digits_of_the_pattern_are_those_of_unicode() -> None:
    """The pattern for words relies on it."""
    assert all(char.isalnum() == (unicodedata.category(char)[0] in "LN") for char in EVERY_CHARACTER)


def test_no_mark_lies_where_the_pattern_does_not_look() -> None:
    marks = [ord(char) for char in EVERY_CHARACTER if unicodedata.category(char)[0] == "M"]
    assert all(0x300 <= mark < 0x20000 or 0xE0000 <= mark < 0xE1000 for mark in marks)


def test_every_han_or_kana_letter_by_name_becomes_bigrams_and_no_other_script_does() -> None:
    names = (
        "CJK ", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "HENTAIGANA ", "HANGZHOU ", "IDEOGRAPHIC NUMBER ",
        "IDEOGRAPHIC ITERATION", "IDEOGRAPHIC CLOSING", "VERTICAL KANA ", "VERTICAL IDEOGRAPHIC ", "MASU ",
        "COMBINING KATAKANA-HIRAGANA ", "OLD CHINESE ITERATION MARK", "VIETNAMESE ALTERNATE ",
    )  # fmt: skip
    for char in EVERY_CHARACTER:
        if unicodedata.category(char)[0] in "LNM":
            name = unicodedata.name(char, "")
            assert is_han_or_kana(ord(char)) == name.startswith(names), name


def test_each_language_word_is_a_word_that_stays() -> None:
    assert all(words(word, "ascii") == [word] for _, word in LANGUAGES)


def test_preparing_lowers_whole_texts() -> None:
    assert prepared("ΑΣ") == "ας"
    assert prepared("ΑΣΑ") == "ασα"


def test_the_digest_of_stopwords_is_known() -> None:
    """It is part of fingerprints; a change of the list must be seen."""
    assert stopwords_digest()[:12] == "a82fc911a0f5"
