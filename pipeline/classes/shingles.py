"""From a body to its shingles, in plain Python: the definition. Bodies go through ``kernel.py``, which must agree.

A word is what stands between white space, case-folded; inside it each character of a script that is written without
spaces is a word of its own, and so is what stands between two such. A shingle is five words in a row, or all of them
where there are fewer; a body without a word has none. Shingles are never spelled out: words are hashed, then windows
of word hashes. Nothing else is normalised, as in the digests: a letter and its mark stay as they are, composed or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from pipeline.catalog.scripts import HAN_AND_KANA, is_han_or_kana
from pipeline.classes import kernel

SHINGLE_WORDS = 5

_PRIME = 0x00000100000001B3
_START = 0xCBF29CE484222325
_FACTOR = 0x9E3779B97F4A7C15
_WORD = (1 << 64) - 1


def words(text: str) -> list[str]:
    """Return the words of ``text`` in order, as often as they occur."""
    runs = text.casefold().split()  # no character folds into white space, or is white space and folds
    return runs if text.isascii() else [part for run in runs for part in _parts(run)]


def cut_words(text: str) -> list[str]:
    """Return the words of ``text`` as they are written, in order."""
    return [part for run in text.split() for part in _parts(run)]


def shingles(text: str, length: int = SHINGLE_WORDS) -> list[int]:
    """Return the 64-bit hashes of the shingles of ``text``, in order, as often as they occur."""
    hashes = [_word_hash(word.encode("utf-8")) for word in words(text)]
    if not hashes:
        return []
    return [_window_hash(hashes[at : at + length]) for at in range(max(len(hashes) - length, 0) + 1)]


class Texts(NamedTuple):
    """A column of texts as the kernels read it: row r is ``data[starts[r]:stops[r]]``, UTF-8."""

    data: kernel.Bytes
    starts: kernel.Longs
    stops: kernel.Longs

    def part(self, first: int, end: int) -> Texts:
        """Return the texts of the rows from ``first`` to before ``end``, without copying them."""
        return Texts(self.data, self.starts[first:end], self.stops[first:end])


def texts(column: pa.Array | pa.ChunkedArray) -> Texts:
    """Return a column of strings as ``Texts``. Its texts are not copied where they lie in one piece of 64-bit offsets.

    Arrow holds UTF-8, so no lone surrogate can occur: whoever makes the column must have replaced it.

    Raises:
        ValueError: a text is null.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.cast(pa.large_string()).combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # no chunk at all
            column = pa.array([], pa.large_string())
    if column.null_count:
        raise ValueError("a body is null")
    column = column.cast(pa.large_string())
    if not len(column):
        return Texts(np.zeros(1, np.uint8), np.zeros(0, np.int64), np.zeros(0, np.int64))
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    held = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return Texts(held, np.ascontiguousarray(ends[:-1]), np.ascontiguousarray(ends[1:]))


def chosen(column: pa.Array | pa.ChunkedArray, rows: kernel.Longs) -> pa.Array | pa.ChunkedArray:
    """Return the texts of ``rows``, which ascend. Nothing else is copied, which ``take`` does to texts in chunks."""
    if isinstance(column, pa.Array):
        return column.take(pa.array(rows))
    offsets = np.cumsum([0, *(len(chunk) for chunk in column.chunks)])
    edges = np.searchsorted(rows, offsets).tolist()
    taken = [
        chunk.take(pa.array(rows[first:end] - offset))
        for chunk, offset, first, end in zip(column.chunks, offsets.tolist(), edges, edges[1:], strict=False)
        if end > first
    ]
    return pa.chunked_array(taken, column.type)


class CharacterTables(NamedTuple):
    """What each character is to the shingles, from the Unicode data of the running Python."""

    lower: kernel.Bytes
    """For each byte below 0x80: a space for white space, else itself case-folded."""
    kinds: kernel.Bytes
    """For each code point ``PLAIN``, ``SPACE``, ``SINGLE`` (a word of its own) or ``FOLDS`` (folding changes it)."""
    fold_of: kernel.Ints
    """For each code point that folds, its place in ``fold_at``."""
    fold_at: kernel.Longs
    """Where its case-folded form begins in ``fold_text``; one more than there are forms."""
    fold_text: kernel.Bytes
    """The forms in UTF-8, one behind the other."""


@lru_cache(maxsize=1)
def character_tables() -> CharacterTables:
    """Return the tables of this process; making them takes some 30 ms."""
    lower = np.arange(256, dtype=np.uint8)
    kinds = np.zeros(kernel.CODES, np.uint8)
    fold_of = np.zeros(kernel.CODES, np.int32)
    forms: list[bytes] = []
    for first, last in HAN_AND_KANA:
        kinds[first : last + 1] = kernel.SINGLE
    for start in range(0, 0x110000, 256):
        block = "".join(map(chr, range(start, start + 256)))
        if block.casefold() == block and block.split() == [block]:
            continue
        for code in range(start, start + 256):
            char = chr(code)
            if char.isspace():
                kinds[code] = kernel.SPACE
            elif char.casefold() != char:
                kinds[code] = kernel.FOLDS
                fold_of[code] = len(forms)
                forms.append(char.casefold().encode("utf-8"))
    for code in range(128):
        lower[code] = ord(" ") if chr(code).isspace() else ord(chr(code).casefold())
    fold_at = np.cumsum([0, *map(len, forms)], dtype=np.int64)
    return CharacterTables(lower, kinds, fold_of, fold_at, np.frombuffer(b"".join(forms), np.uint8))


def _parts(run: str) -> list[str]:
    if run.isascii():
        return [run]
    parts: list[str] = []
    for is_single, characters in groupby(run, lambda char: is_han_or_kana(ord(char))):
        part = "".join(characters)
        parts += part if is_single else [part]
    return parts


def _word_hash(word: bytes) -> int:
    """FNV-1a of the bytes, then the finalizer of MurmurHash3, so that sums of word hashes are as good as random."""
    mixed = _START
    for byte in word:
        mixed = (mixed ^ byte) * _PRIME & _WORD
    return _finalized(mixed)


def _window_hash(hashes: Sequence[int]) -> int:
    mixed = 0
    for word in hashes:
        mixed = (mixed * _FACTOR + word) & _WORD
    return _finalized(mixed)


def _finalized(mixed: int) -> int:
    mixed = (mixed ^ mixed >> 33) * 0xFF51AFD7ED558CCD & _WORD
    mixed = (mixed ^ mixed >> 33) * 0xC4CEB9FE1A85EC53 & _WORD
    return mixed ^ mixed >> 33
