"""The inverted index of one tap: sorted words, their postings, the lengths of documents.

Nothing in it depends on other taps, and all statistics are integers, so any list of taps, or the first few of it, can
be asked as one corpus by adding up (``lexical.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_lowercase, digits
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.engines import kernel
from pipeline.engines.characters import CharacterTable, character_table
from pipeline.engines.text import LANGUAGES, STOPWORDS, Tokenizer, prepared

FORMAT = "assay-tap-index-1"
"""The layout of the bytes, written into them."""


class Weights(NamedTuple):
    """How often a word of each part of an entry counts. Whole numbers from 0 on."""

    name: int = 3
    description: int = 2
    body: int = 1


@dataclass(frozen=True, eq=False)
class TapIndex:
    """One tap's postings by word (compressed columns). Arrays may be read-only views of a file."""

    text: kernel.Bytes
    """The words in byte order, UTF-8, one behind the other."""
    word_at: kernel.Longs
    """Where each word begins in ``text``; one more than there are words."""
    starts: kernel.Longs
    """Where the postings of each word begin; one more than there are words."""
    documents: kernel.Ints
    """The document of each posting, counted from 0 in this tap, ascending for each word."""
    counts: kernel.Ints
    """How often the document holds the word, weighted."""
    lengths: kernel.Longs
    """The length of each document in weighted words."""

    @property
    def words(self) -> int:
        """How many distinct words there are."""
        return self.starts.size - 1

    def word(self, place: int) -> bytes:
        """Return the word at a place of the sorted vocabulary."""
        return self.text[self.word_at[place] : self.word_at[place + 1]].tobytes()

    def vocabulary(self) -> pa.LargeBinaryArray:
        """Return the words, in byte order."""
        return _binary(self.text, self.word_at)

    def find(self, asked: kernel.Bytes, asked_at: kernel.Longs) -> tuple[kernel.Longs, kernel.Longs, NDArray[np.bool_]]:
        """Find words, laid out as ``text`` and ``word_at`` are.

        Returns where each would stand, the end of those that begin with it, and whether it is there.
        """
        firsts, ends = kernel.find(self.text, self.word_at, asked, asked_at)
        exact = firsts < ends
        exact[exact] = np.diff(self.word_at)[firsts[exact]] == np.diff(asked_at)[exact]
        return firsts, ends, exact

    def to_bytes(self) -> bytes:
        """Return the index as an Arrow file of one row, uncompressed so that it can be mapped into memory."""
        lists = {name: _list_of_one(getattr(self, name)) for name in _ARRAYS}
        batch = pa.record_batch(list(lists.values()), names=list(lists)).replace_schema_metadata({"format": FORMAT})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]

    @classmethod
    def from_bytes(cls, data: bytes | memoryview | pa.Buffer) -> TapIndex:
        """Read an index without copying it. ``data`` may be a mapped file.

        Raises:
            ValueError: the bytes have another layout.
        """
        reader = pa.ipc.open_file(data if isinstance(data, pa.Buffer) else pa.py_buffer(data))
        found = (reader.schema.metadata or {}).get(b"format", b"").decode()
        if found != FORMAT:
            raise ValueError(f"not an index of a tap in the layout {FORMAT!r}, but {found!r}")
        batch = reader.get_batch(0)
        return cls(**{name: batch.column(name).values.to_numpy(zero_copy_only=True) for name in _ARRAYS})


_ARRAYS = ("text", "word_at", "starts", "documents", "counts", "lengths")


@np.errstate(over="ignore")  # without the compiler, hashes overflow aloud
def index_tap(
    slugs: Sequence[str] | pa.Array,
    descriptions: Sequence[str | None] | pa.Array,
    bodies: Sequence[str] | pa.Array,
    tokenizer: Tokenizer,
    weights: Weights,
) -> TapIndex:
    """Index the entries of one tap, given column by column; a missing description is an empty one.

    The text of an entry is slug, slug opened, description, then slug, description and body; so a word of the name
    counts once opened and ``weights.name - 1`` times as written.

    Raises:
        ValueError: every weight is 0.
    """
    slug, description, body = (_texts(column) for column in (slugs, descriptions, bodies))
    opened = pc.replace_substring_regex(slug, pattern="[-_]+", replacement=" ")
    table = character_table()
    weighed = (
        (slug, weights.name - 1),
        (opened, min(weights.name, 1)),
        (description, weights.description),
        (body, weights.body),
    )
    used = [(_Field.of(column), weight) for column, weight in weighed if weight > 0]
    if not used:
        raise ValueError("every weight is 0")
    fields = _Fields([column for column, _ in used], table)
    return _sorted(_count(fields, np.array([weight for _, weight in used], np.int64), _lower(tokenizer), table))


NEW = -1
"""The source of a document that no earlier index holds."""


def join(earlier: TapIndex, fresh: TapIndex, sources: kernel.Longs) -> TapIndex:
    """Return the index of documents that are taken from two indexes: the same as if all had been indexed at once.

    Args:
        earlier: where documents come from that were indexed before; those that nothing names fall away.
        fresh: the index of the documents whose source is ``NEW``, in their order.
        sources: for each document its number in ``earlier``, or ``NEW``.
    """
    firsts, _, exact = earlier.find(fresh.text, fresh.word_at)
    number = np.where(exact, firsts, earlier.words + np.cumsum(~exact) - 1)
    sizes = np.diff(fresh.word_at)
    word_at = np.concatenate((earlier.word_at, earlier.word_at[-1] + np.cumsum(sizes[~exact])))
    text = np.concatenate((earlier.text, fresh.text[np.repeat(~exact, sizes)]))

    before, behind = _by_document(earlier), _by_document(fresh)
    words = np.concatenate((before.words, number[behind.words].astype(np.int32)))
    counts = np.concatenate((before.counts, behind.counts))
    is_new = sources == NEW
    rows = np.where(is_new, earlier.lengths.size + np.cumsum(is_new) - 1, sources)
    starts = np.concatenate((before.starts[:-1], before.starts[-1] + behind.starts[:-1]))[rows]
    held = np.concatenate((np.diff(before.starts), np.diff(behind.starts)))[rows]
    postings_at = np.concatenate(([0], np.cumsum(held))).astype(np.int64)
    taken = np.repeat(starts - postings_at[:-1], held) + np.arange(postings_at[-1])
    lengths = np.concatenate((earlier.lengths, fresh.lengths))[rows]
    return _sorted(_Counted(text, word_at, postings_at, words[taken], counts[taken], lengths))


class _ByDocument(NamedTuple):
    starts: kernel.Longs
    """Where the postings of each document begin; one more than there are documents."""
    words: kernel.Ints
    counts: kernel.Ints


def _by_document(index: TapIndex) -> _ByDocument:
    held = np.bincount(index.documents, minlength=index.lengths.size)
    starts = np.concatenate(([0], np.cumsum(held))).astype(np.int64)
    words, counts = np.empty(index.documents.size, np.int32), np.empty(index.documents.size, np.int32)
    numbers = np.arange(held.size)
    kernel.turn(index.starts, index.documents, index.counts, numbers, starts[:-1].copy(), words, counts)
    return _ByDocument(starts, words, counts)


class _Field(NamedTuple):
    data: kernel.Bytes
    starts: kernel.Longs
    stops: kernel.Longs

    @classmethod
    def of(cls, column: pa.LargeStringArray) -> _Field:
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
        return cls(_bytes(data), np.ascontiguousarray(ends[:-1]), np.ascontiguousarray(ends[1:]))


class _Fields:
    """Texts where they are: the columns, those texts that had to be prepared before they can be cut, the reserved.

    The reserved words are a document before the first.
    """

    def __init__(self, columns: Sequence[_Field], table: CharacterTable) -> None:
        changed = [(row, place) for place, column in enumerate(columns) for row in _changing(column, table)]
        prepared_texts = _Field.of(_texts([prepared(_text(columns[place], row)) for row, place in changed]))
        _survey(prepared_texts, table)
        reserved = _Field(_RESERVED, np.zeros(1, np.int64), np.zeros(1, np.int64))
        nothing = [reserved] * (kernel.COLUMNS - len(columns) - 2)
        self.columns = tuple(part.data for part in (*columns, *nothing, prepared_texts, reserved))
        shape = (columns[0].starts.size + 1, len(columns))
        self.column_of, self.starts, self.stops = (np.zeros(shape, np.int64) for _ in range(3))
        self.column_of[0, 0], self.stops[0, 0] = kernel.COLUMNS - 1, _RESERVED.size
        for place, column in enumerate(columns):
            self.column_of[1:, place] = place
            self.starts[1:, place] = column.starts
            self.stops[1:, place] = column.stops
        for number, (row, place) in enumerate(changed):
            self.column_of[row + 1, place] = kernel.COLUMNS - 2
            self.starts[row + 1, place] = prepared_texts.starts[number]
            self.stops[row + 1, place] = prepared_texts.stops[number]

    @property
    def bytes(self) -> int:
        """How many bytes of text there are."""
        return int((self.stops - self.starts).sum())


def _texts(column: Sequence[str | None] | pa.Array | pa.ChunkedArray) -> pa.LargeStringArray:
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()  # which copies even one
    texts = column.cast(pa.large_string()) if isinstance(column, pa.Array) else pa.array(column, pa.large_string())
    return texts.fill_null("") if texts.null_count else texts


def _bytes(buffer: pa.Buffer | None) -> kernel.Bytes:
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(1, np.uint8)


def _text(column: _Field, row: int) -> str:
    return column.data[column.starts[row] : column.stops[row]].tobytes().decode("utf-8")


def _changing(column: _Field, table: CharacterTable) -> list[int]:
    return np.flatnonzero(_survey(column, table) == kernel.CHANGING).tolist()


def _survey(column: _Field, table: CharacterTable) -> kernel.Bytes:
    """Fill the table with all that the texts hold, and say which of them must be prepared."""
    verdicts = np.zeros(column.starts.size, np.uint8)
    while True:
        wanted = np.zeros(table.filled.size, np.uint8)
        kernel.survey(column.data, column.starts, column.stops, table.kinds, table.filled, wanted, verdicts)
        if not wanted.any():
            return verdicts
        table.fill(wanted)


def _lower(tokenizer: Tokenizer) -> kernel.Bytes:
    """What each byte is to the tokenizer; see `kernel.count_words`."""
    lower = np.zeros(256, np.uint8)
    for byte in b"abcdefghijklmnopqrstuvwxyz0123456789":
        lower[byte] = byte
        lower[ord(chr(byte).upper())] = byte
    if tokenizer == "unicode":
        lower[0x80:] = np.arange(0x80, 0x100)
    return lower


class _Counted(NamedTuple):
    """Postings by document, and the words in the order in which they were met. As `kernel.count_words` leaves them."""

    text: kernel.Bytes
    word_at: kernel.Longs
    postings_at: kernel.Longs
    posting_word: kernel.Ints
    posting_count: kernel.Ints
    lengths: kernel.Longs


_STOPWORDS = tuple(dict.fromkeys((*STOPWORDS, *ascii_lowercase, *digits)))  # words of one character are dropped too
_LANGUAGE_WORDS = tuple(dict.fromkeys(word for _, word in LANGUAGES))  # in the order of `kernel._language`
_RESERVED = np.frombuffer(" ".join((*_STOPWORDS, *_LANGUAGE_WORDS)).encode("ascii"), np.uint8)


def _count(fields: _Fields, weights: kernel.Longs, lower: kernel.Bytes, table: CharacterTable) -> _Counted:
    # The arrays have room for the worst, which costs nothing: memory that is never touched is never taken.
    size = fields.bytes
    documents = fields.starts.shape[0]
    room = size // 2 + 1
    longest = int((fields.stops - fields.starts).max(initial=0)) + kernel.PADDING
    lowered, edges = np.empty(longest, np.uint8), np.empty(longest, np.int32)
    slots = np.empty(1 << max(2 * room, 1 << 13).bit_length(), np.int32)
    keys, mores = np.empty(room, np.uint64), np.empty(room, np.uint64)
    text = np.empty(2 * size, np.uint8)
    word_at = np.empty(room + 1, np.int64)
    count = np.empty(room, np.int32)
    met = np.empty(room, np.int32)
    postings_at = np.empty(documents + 1, np.int64)
    posting_word = np.empty(room, np.int32)
    posting_count = np.empty(room, np.int32)
    lengths = np.empty(documents, np.int64)
    words, postings = kernel.count_words(
        fields.columns, fields.column_of, fields.starts, fields.stops, weights, lower, table.kinds, len(_STOPWORDS),
        lowered, edges, slots, keys, mores, text, word_at, count, met, postings_at, posting_word, posting_count,
        lengths,
    )  # fmt: skip
    text, word_at = text[: word_at[words]], word_at[: words + 1]
    # The first document was the reserved words: each is there once, but is no word of the tap's.
    first = postings_at[1]
    return _Counted(
        text, word_at, postings_at[1:] - first, posting_word[first:postings], posting_count[first:postings], lengths[1:]
    )


def _sorted(counted: _Counted) -> TapIndex:
    held_by = np.bincount(counted.posting_word, minlength=counted.word_at.size - 1)
    order = _byte_order(counted.text, counted.word_at)
    order = order[held_by[order] > 0]  # stopwords, and language names that nobody uses
    place = np.zeros(held_by.size, np.int64)
    place[order] = np.arange(order.size)
    starts = np.concatenate(([0], np.cumsum(held_by[order]))).astype(np.int64)
    documents = np.empty(counted.posting_word.size, np.int32)
    counts = np.empty(counted.posting_word.size, np.int32)
    kernel.turn(
        counted.postings_at, counted.posting_word, counted.posting_count, place, starts[:-1].copy(), documents, counts
    )
    words = _binary(counted.text, counted.word_at).take(pa.array(order))
    _, word_at, text = words.buffers()
    return TapIndex(
        text=np.frombuffer(text, np.uint8) if order.size else np.zeros(0, np.uint8),
        word_at=np.frombuffer(word_at, np.int64)[: order.size + 1] if order.size else np.zeros(1, np.int64),
        starts=starts,
        documents=documents,
        counts=counts,
        lengths=counted.lengths,
    )


def _byte_order(text: kernel.Bytes, word_at: kernel.Longs) -> kernel.Longs:
    """Return the numbers of the words in byte order: eight bytes at a time, each time of those that are still equal."""
    order, tied = _by_eight_bytes(text, word_at, np.arange(word_at.size - 1), np.zeros(word_at.size - 1, np.int64), 0)
    at = 8
    while tied.any() and at < _SORTED_BY_EIGHTS:
        places = np.flatnonzero(tied)
        # Equal ones stand side by side: a group ends where the one behind it is tied to it no more.
        group = np.cumsum(tied[places] == _FIRST)
        order[places], tied[places] = _by_eight_bytes(text, word_at, order[places], group, at)
        at += 8
    rest = np.flatnonzero(tied)
    words = {number: text[word_at[number] : word_at[number + 1]].tobytes() for number in order[rest].tolist()}
    order[rest] = sorted(words, key=words.__getitem__)
    return order


_SORTED_BY_EIGHTS = 64
"""Bytes of a word that are compared so. Few words are longer and equal that far; one that is a megabyte long would take
as many rounds as it has bytes."""
_FIRST, _LATER = 1, 2
"""Of words that are equal so far: the first of them, and the others."""


def _by_eight_bytes(
    text: kernel.Bytes, word_at: kernel.Longs, words: kernel.Longs, group: kernel.Longs, at: int
) -> tuple[kernel.Longs, kernel.Bytes]:
    """Order words, within their groups, by the eight bytes from ``at`` on; say which of them are equal even so.

    No word holds a NUL, so bytes behind the end of a word may stand as 0: two that are equal so and end there are one
    word, which is there once.
    """
    keys = kernel.eights(text, word_at, words, at)
    order = np.lexsort((keys, group)) if at else np.argsort(keys)
    ordered, groups = keys[order], group[order]
    same = (ordered[1:] == ordered[:-1]) & (groups[1:] == groups[:-1])
    before, behind = np.insert(same, 0, False), np.append(same, False)
    tied = np.where(before, np.uint8(_LATER), np.where(behind, np.uint8(_FIRST), np.uint8(0)))
    return words[order], tied


def _binary(text: kernel.Bytes, word_at: kernel.Longs) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(np.ascontiguousarray(word_at)), pa.py_buffer(np.ascontiguousarray(text))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), word_at.size - 1, buffers)


def _list_of_one(array: kernel.Bytes | kernel.Ints | kernel.Longs) -> pa.LargeListArray:
    return pa.LargeListArray.from_arrays(pa.array([0, array.size], pa.int64()), pa.array(array))
