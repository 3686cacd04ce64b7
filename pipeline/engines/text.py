"""From text to words, in plain Python: the definition, and what queries go through.

Documents go through ``kernel.py``, which must give the same words, and does so some forty times faster.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from pipeline.catalog.scripts import HAN_AND_KANA

Tokenizer = Literal["unicode", "ascii"]

_STOPPED = "the a an and or of to for in on with is are be this that it as at by from your you can will if when how"
STOPWORDS: tuple[str, ...] = tuple(_STOPPED.split())
"""Words that are never indexed and never asked for."""

LANGUAGES: tuple[tuple[str, str], ...] = (
    ("c++", "cpp"),
    ("c#", "csharp"),
    ("f#", "fsharp"),
    ("objective-c", "objectivec"),
    ("objective c", "objectivec"),
)
"""Names that separators would tear apart, and the word that each becomes where no letter or digit touches it."""

_LANGUAGE = re.compile(r"(?<![^\W_])(?:c\+\+|c#|f#|objective[- ]c)(?![^\W_])")
_ASCII_WORD = re.compile("[a-z0-9]{2,}")
_OPENED = re.compile("[-_]+")


def prepared(text: str) -> str:
    """Return ``text`` in NFC and then lower case, the whole of it at once: a final sigma depends on its neighbours."""
    return unicodedata.normalize("NFC", text).lower()


def opened(slug: str) -> str:
    """Return ``slug`` with each run of ``-`` and ``_`` a space."""
    return _OPENED.sub(" ", slug)


def words(text: str, tokenizer: Tokenizer) -> list[str]:
    """Return the words of ``text`` in order, as often as they occur.

    A word is a run of letters, digits and marks (Unicode L, N, M); inside it each run of Han, Hiragana and Katakana
    becomes its bigrams, a single one stays. ``ascii`` takes runs of ``[a-z0-9]`` instead. Words of one ASCII character
    and ``STOPWORDS`` are dropped. A name of ``LANGUAGES`` is a word of its own, whatever marks stand beside it.
    """
    text = _LANGUAGE.sub(lambda match: f" {_language_words()[match[0]]} ", prepared(text))
    if text.isascii() or tokenizer == "ascii":
        found = _ASCII_WORD.findall(text)
    else:
        found = [word for run in _unicode_runs().finditer(text) for word in _of_run(run)]
    stopwords = _stopwords()
    return [word for word in found if word not in stopwords]


def stopwords_digest() -> str:
    """Return the SHA-256 (hex) of the stopwords and language names, for fingerprints."""
    lines = [*sorted(STOPWORDS), *(f"{name}\t{word}" for name, word in LANGUAGES)]
    return hashlib.sha256("\n".join(lines).encode("utf-8")).hexdigest()


def _of_run(run: re.Match[str]) -> Sequence[str]:
    text = run[0]
    if run.lastgroup == "other":
        return [] if len(text) == 1 and text.isascii() else [text]
    return [text] if len(text) == 1 else [text[at : at + 2] for at in range(len(text) - 1)]


@lru_cache(maxsize=1)
def _stopwords() -> frozenset[str]:
    return frozenset(STOPWORDS)


@lru_cache(maxsize=1)
def _language_words() -> dict[str, str]:
    return dict(LANGUAGES)


@lru_cache(maxsize=1)
def _unicode_runs() -> re.Pattern[str]:
    # `re` knows letters and digits ([^\W_] is exactly L and N) but no marks, so those are spelled out. They lie in the
    # first two planes and in the one for tags.
    marks = "".join(
        chr(code)
        for codes in (range(0x300, 0x20000), range(0xE0000, 0xE1000))
        for code in codes
        if unicodedata.category(chr(code)).startswith("M")
    )
    bigrams = "".join(f"{chr(first)}-{chr(last)}" for first, last in HAN_AND_KANA)
    member = rf"(?:[^\W_]|[{marks}])"
    return re.compile(rf"(?P<bigrams>(?:(?=[{bigrams}]){member})+)|(?P<other>(?:(?![{bigrams}]){member})+)")
