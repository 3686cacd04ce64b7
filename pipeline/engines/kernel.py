"""The machine loops: documents to postings, words to places, postings to scores.

All of them run as plain Python too (``NUMBA_DISABLE_JIT=1``). Signatures are written out, so that each loop is compiled
once, for arrays that may be read-only. Unsigned constants are spelled ``U64(…)``: numba turns a mix of signed and
unsigned 64-bit integers into floats.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numba import types
from numpy.typing import NDArray

from pipeline.machine import compiled as _compiled
from pipeline.machine import input_of as _input
from pipeline.machine import output_of as _output
from pipeline.machine import results_of as _results
from pipeline.machine import several_of as _several

Scalar: TypeAlias = Any
"""A whole number of the machine; of the interpreter without the compiler."""
Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Keys: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float64]

SEPARATOR, LETTER, MARK, BIGRAM = 0, 1, 2, 3
"""What a character is to the tokenizer; ``LETTER`` stands for digits too, ``BIGRAM`` for Han, Hiragana, Katakana."""
KIND = 3
"""The bits of a character table's entry that hold the kind."""
CHANGES = 4
"""The bit of a character whose text must be normalised and lower-cased before it is cut into words."""
TOUCHES = 8
"""The bit of a letter or digit, beside which a language name is none."""
BLOCK = 8
"""Character tables are filled in blocks of ``2 ** BLOCK`` code points."""
UNKNOWN, READY, CHANGING = 0, 1, 2
"""Verdicts of `survey` on a text: not surveyed, good as it is, to be prepared first."""

U64 = np.uint64
_LONG = U64(0xFF << 56)
_GOLDEN = U64(0x9E3779B97F4A7C15)
_PRIME = U64(0xD6E8FEB86659FD93)
_ZERO, _ONE, _SEVEN, _EIGHT = U64(0), U64(1), U64(7), U64(8)
_ONES = U64(0x0101010101010101)
_HIGHS = U64(0x8080808080808080)
_HIGH = U64(0x80)
_PLACES = U64(0x0001020304050607)
_OBJECTIV = U64(int.from_bytes(b"objectiv", "little"))
_GATHER = U64(0x0102040810204080)
_DE_BRUIJN = U64(0x03F79D71B4CB0A89)
_PLACE_OF = np.argsort([0x03F79D71B4CB0A89 << place >> 58 & 63 for place in range(64)])
_FIRST_OF = np.array([(1 << 8 * min(size, 8)) - 1 for size in range(17)], np.uint64)
_SECOND_OF = np.array([(1 << 8 * max(size - 8, 0)) - 1 for size in range(17)], np.uint64)
_FIRST_SLOTS = 13
COLUMNS = 6
"""Arrays of text that `count_words` reads: of four parts of an entry, of texts that were prepared, of the reserved."""
PADDING = 80
"""Bytes that `count_words` may read behind the end of a text."""
_OBJECTIVE_C = tuple(b"objective c")


_BYTES, _INTS, _LONGS, _KEYS, _FLOATS = (
    _input(kind) for kind in (types.uint8, types.int32, types.int64, types.uint64, types.float64)
)


@_compiled()
def _width(lead: Scalar) -> int:
    """Bytes of the character that starts with this byte."""
    if lead < 0xC0:
        return 1
    if lead < 0xE0:
        return 2
    return 3 if lead < 0xF0 else 4


@_compiled()
def _code(data: Bytes, at: Scalar, end: Scalar) -> Scalar:
    """The code point at ``at``; one that is cut off by ``end`` reads as U+0000."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead
    if at + _width(lead) > end:
        return 0
    second = np.int64(data[at + 1]) & 0x3F if lead >= 0xC0 else 0
    if lead < 0xE0:
        return (lead & 0x1F) << 6 | second
    third = np.int64(data[at + 2]) & 0x3F
    if lead < 0xF0:
        return (lead & 0x0F) << 12 | second << 6 | third
    return (lead & 0x07) << 18 | second << 12 | third << 6 | np.int64(data[at + 3]) & 0x3F


@_compiled()
def _eight(data: Bytes, at: Scalar) -> Scalar:
    """The eight bytes from ``at`` on as a number, the first of them lowest. The compiler makes one load of it."""
    place = U64(at)
    return (
        U64(data[place])
        | U64(data[place + U64(1)]) << U64(8)
        | U64(data[place + U64(2)]) << U64(16)
        | U64(data[place + U64(3)]) << U64(24)
        | U64(data[place + U64(4)]) << U64(32)
        | U64(data[place + U64(5)]) << U64(40)
        | U64(data[place + U64(6)]) << U64(48)
        | U64(data[place + U64(7)]) << U64(56)
    )


@_compiled()
def _first(flags: Scalar) -> Scalar:
    """The first of eight bytes whose highest bit is set in ``flags``, which has no other bit and is not 0."""
    return np.int64((((flags & (~flags + _ONE)) >> _SEVEN) * _PLACES) >> U64(56))


@_compiled()
def _survey(text: Bytes, kinds: Bytes, filled: Bytes, wanted: Bytes) -> int:
    verdict = READY
    at = 0
    while at < text.size:
        if at + 8 <= text.size:
            beyond = _eight(text, at) & _HIGHS
            if beyond == 0:
                at += 8
                continue
            at += _first(beyond)
        elif text[at] < 0x80:
            at += 1
            continue
        code = _code(text, at, text.size)
        if filled[code >> BLOCK] == 0:
            wanted[code >> BLOCK] = 1
            verdict = UNKNOWN
        elif kinds[code] & CHANGES and verdict == READY:
            verdict = CHANGING
        at += _width(text[at])
    return verdict


@_compiled(types.void(_BYTES, _LONGS, _LONGS, _BYTES, _BYTES, _output(types.uint8), _output(types.uint8)))
def survey(
    data: Bytes, starts: Longs, stops: Longs, kinds: Bytes, filled: Bytes, wanted: Bytes, verdicts: Bytes
) -> None:
    """Find the texts that hold a character which normalising or lower-casing may change, and the blocks to fill.

    Only texts whose verdict is ``UNKNOWN`` are read. One with a character of a block that is not ``filled`` stays so,
    and the block is noted in ``wanted``.
    """
    for row in range(starts.size):
        if verdicts[row] != UNKNOWN:
            continue
        text = data[starts[row] : stops[row]]
        verdicts[row] = READY
        every = np.uint8(0)
        for at in range(text.size):
            every |= text[at]
        if every >= 0x80:  # most texts are ASCII
            verdicts[row] = _survey(text, kinds, filled, wanted)


@_compiled()
def _touches(data: Bytes, at: Scalar, start: Scalar, end: Scalar, kinds: Bytes) -> Scalar:
    """Say whether a letter or digit stands at ``at``, or, where a character only ends there, does."""
    if at < start or at >= end:
        return False
    while at > start and data[at] & 0xC0 == 0x80:
        at -= 1
    return kinds[_code(data, at, end)] & TOUCHES != 0


@_compiled()
def _language(data: Bytes, at: Scalar, start: Scalar, end: Scalar, kinds: Bytes) -> int:
    """The language name at ``at``: its length in bytes times 256 plus its number from 1 on, or 0."""
    first = data[at] | 0x20
    found, length = 0, 2
    if at + 1 < end:
        if data[at + 1] == 0x23:  # c# f#
            found = 2 if first == 0x63 else 3 if first == 0x66 else 0
        elif first == 0x63:
            if data[at + 1] == 0x2B and at + 2 < end and data[at + 2] == 0x2B:
                found, length = 1, 3
        elif first == 0x6F and at + 11 <= end and (data[at + 9] == 0x2D or data[at + 9] == 0x20):
            found, length = 4, 11
            for step in range(11):
                if step != 9 and data[at + step] | 0x20 != _OBJECTIVE_C[step]:
                    found = 0
                    break
    if found == 0 or _touches(data, at - 1, start, end, kinds) or _touches(data, at + length, start, end, kinds):
        return 0
    return length << 8 | found


@_compiled()
def _slot(key: Scalar, more: Scalar, shift: Scalar) -> Scalar:
    return ((key ^ more * _PRIME) * _GOLDEN) >> shift


@_compiled()
def _key(lowered: Bytes, at: Scalar, size: Scalar) -> tuple[Scalar, Scalar]:
    """What a word is found by: its bytes themselves, up to 16, else two hashes, the second one from ``_LONG`` on.

    No word holds a NUL, so that what is behind the end may stand as 0.
    """
    if size <= 8:
        return _part(lowered, at, size), _ZERO
    if size <= 16:
        return _eight(lowered, at), _part(lowered, at + 8, size - 8)
    key = more = _ZERO
    for step in range(0, size, 8):
        part = _part(lowered, at + step, size - step)
        key = (key ^ part) * _GOLDEN
        key ^= key >> U64(29)
        more = (more ^ part) * _PRIME
        more ^= more >> U64(31)
    return key, more | _LONG


@_compiled()
def _find_runs(lowered: Bytes, size: Scalar, edges: Ints) -> Scalar:
    """Write where each run of bytes other than 0 begins and ends; return how many such places there are."""
    number = 0
    carry = _ZERO
    for block in range(0, size + 1, 64):
        bits = _ZERO
        for part in range(8):
            eight = _eight(lowered, block + 8 * part)
            letters = ((eight - _ONES) & ~eight & _HIGHS) ^ _HIGHS  # exact: no byte is 1
            bits |= (((letters >> _SEVEN) * _GATHER) >> U64(56)) << U64(8 * part)
        turns = bits ^ (bits << _ONE | carry)
        carry = bits >> U64(63)
        while turns:
            turn = turns & (~turns + _ONE)
            edges[number] = block + _PLACE_OF[(turn * _DE_BRUIJN) >> U64(58)]
            number += 1
            turns ^= turn
    return number


@_compiled()
def _part(lowered: Bytes, at: Scalar, size: Scalar) -> Scalar:
    """The ``size`` bytes from ``at`` on, at most eight, as a number."""
    eight = _eight(lowered, at)
    return eight if size >= 8 else eight & ((_ONE << U64(8 * size)) - _ONE)


@_compiled(
    _results(types.int64, types.int64)(
        _several(_BYTES, COLUMNS),
        _input(types.int64, 2),
        _input(types.int64, 2),
        _input(types.int64, 2),
        _LONGS,
        _BYTES,
        _BYTES,
        types.int64,
        _output(types.uint8),
        _output(types.int32),
        _output(types.int32),
        _output(types.uint64),
        _output(types.uint64),
        _output(types.uint8),
        _output(types.int64),
        _output(types.int32),
        _output(types.int32),
        _output(types.int64),
        _output(types.int32),
        _output(types.int32),
        _output(types.int64),
    )
)
def count_words(
    columns: tuple[Bytes, ...],
    column_of: Longs,
    starts: Longs,
    stops: Longs,
    weights: Longs,
    lower: Bytes,
    kinds: Bytes,
    stopwords: int,
    lowered: Bytes,
    edges: Ints,
    table: Ints,
    keys: Keys,
    mores: Keys,
    text: Bytes,
    word_at: Longs,
    count: Ints,
    met: Ints,
    postings_at: Longs,
    posting_word: Ints,
    posting_count: Ints,
    lengths: Longs,
) -> tuple[int, int]:
    """Cut documents into words and count them. Returns the numbers of words and postings.

    Field f of document d is ``columns[column_of[d, f]][starts[d, f]:stops[d, f]]``, UTF-8, and weighs ``weights[f]``.
    ``lower`` gives for each byte 0 where it separates, itself in lower case where it is part of a word, and the byte
    itself from 0x80 on where the character decides.

    The first words to be met must be so many ``stopwords``, which are not counted, then the words of the language
    names. ``lowered`` is for the field at hand, with ``PADDING`` more bytes than the longest one has. ``table`` holds
    word numbers plus one by hash, ``keys`` and ``mores`` what each word is found by, ``word_at`` where the bytes of
    each begin in ``text``. Postings come by document; ``postings_at`` says where each one's begin. ``lengths`` are in
    weighted words. ``count`` and ``met`` are for the document at hand. Two bytes of input give at most one word and
    four bytes of vocabulary; the arrays must have room for that, ``table`` for twice as many words. What they hold at
    first does not matter.
    """
    words = 0
    postings = 0
    mask = (1 << _FIRST_SLOTS) - 1
    shift = U64(64 - _FIRST_SLOTS)
    for empty in range(mask + 1):
        table[empty] = 0
    word_at[0] = 0
    postings_at[0] = 0
    for document in range(starts.shape[0]):
        met_here = 0
        for field in range(starts.shape[1]):
            column = columns[column_of[document, field]]
            raw = column[starts[document, field] : stops[document, field]]
            weight = weights[field]
            for step in range(raw.size):
                lowered[step] = lower[raw[step]]
            for step in range(raw.size, raw.size + PADDING):
                lowered[step] = 0
            behind = raw.size
            bounds = _find_runs(lowered, behind, edges)
            bound = 0
            at: Scalar = 0
            limit: Scalar = 0
            run = 0  # characters of a run of bigrams that lie behind, the last of them at run_from
            run_from = 0
            while bound < bounds or at < limit or run > 0:
                # 1. The next word is raw[from_:at]. Most are runs of up to 16 bytes of ASCII.
                number: Scalar = np.int64(-1)
                from_ = at
                size = 0
                key = more = _ZERO
                if at >= limit and run == 0:
                    from_, limit = np.int64(edges[bound]), np.int64(edges[bound + 1])
                    bound += 2
                    if from_ < at:
                        continue  # the end of `objective-c`
                    at = from_
                    size = limit - from_
                    if size <= 16:
                        key = _eight(lowered, at) & _FIRST_OF[size]
                        more = _eight(lowered, at + 8) & _SECOND_OF[size]
                    follower = raw[limit] if limit < behind else 0
                    if (
                        size > 16
                        or (key | more) & _HIGHS
                        or key == _OBJECTIV
                        or (size == 1 and (follower == 0x23 or follower == 0x2B))
                    ):
                        size = 0
                if size > 0:
                    at = limit
                else:
                    if run > 0:
                        from_ = run_from
                        if at < behind and raw[at] >= 0x80 and kinds[_code(raw, at, behind)] & KIND == BIGRAM:
                            run_from = at
                            run += 1
                            at += _width(raw[at])
                        else:
                            single = run == 1
                            run = 0
                            if not single:
                                continue
                    else:
                        maybe_language = True  # where a word begins, and behind a mark: neither letter nor digit
                        while at < behind:
                            byte = lowered[at]
                            if byte == 0:
                                break
                            if byte < 0x80:
                                if maybe_language:
                                    maybe_language = False
                                    follower = raw[at + 1] if at + 1 < behind else 0
                                    if (
                                        follower == 0x23
                                        or follower == 0x2B
                                        or (byte == 0x6F and follower | 0x20 == 0x62)
                                    ):
                                        language = _language(raw, at, 0, behind, kinds)
                                        if language > 0:
                                            if at == from_:
                                                number = stopwords + (language & 0xFF) - 1
                                                at += language >> 8
                                            break
                                at += 1
                            else:
                                kind = kinds[_code(raw, at, behind)] & KIND
                                if kind in (SEPARATOR, BIGRAM):
                                    if at == from_:
                                        run = 1 if kind == BIGRAM else 0
                                        run_from = at
                                        at += _width(byte)
                                        from_ = at
                                    break
                                maybe_language = kind == MARK
                                at += _width(byte)
                        if number < 0 and (at == from_ or at == from_ + 1):
                            continue  # nothing, or one ASCII character
                    if number < 0:
                        size = at - from_
                        key, more = _key(lowered, from_, size)

                # 2. Its number.
                if number < 0:
                    slot = _slot(key, more, shift)
                    while True:
                        number = np.int64(table[slot]) - 1
                        if number < 0:
                            break
                        if keys[U64(number)] == key and mores[U64(number)] == more:
                            if more < _LONG:
                                break
                            known = word_at[number]
                            if word_at[number + 1] - known == size:
                                step = 0
                                while step < size and text[known + step] == lowered[from_ + step]:
                                    step += 1
                                if step == size:
                                    break
                        slot = (slot + _ONE) & U64(mask)
                    if number < 0:
                        number = np.int64(words)
                        words += 1
                        keys[number] = key
                        mores[number] = more
                        count[number] = 0
                        table[slot] = words
                        known = word_at[number]
                        for step in range(size):
                            text[known + step] = lowered[from_ + step]
                        word_at[words] = known + size
                        if 2 * words > mask:  # twice the slots
                            mask = 2 * mask + 1
                            shift -= _ONE
                            for empty in range(mask + 1):
                                table[empty] = 0
                            for earlier in range(words):
                                slot = _slot(keys[earlier], mores[earlier], shift)
                                while table[slot] != 0:
                                    slot = (slot + _ONE) & U64(mask)
                                table[slot] = earlier + 1

                # 3. Count it. Nothing here depends on what the word is, which nobody could foretell.
                met[U64(met_here)] = number
                met_here += count[U64(number)] == 0
                count[U64(number)] += weight

        length = 0
        for step in range(met_here):
            word = met[step]
            if word >= stopwords:
                posting_word[postings] = word
                posting_count[postings] = count[word]
                postings += 1
                length += count[word]
            count[word] = 0
        postings_at[document + 1] = postings
        lengths[document] = length
    return words, postings


@_compiled(_output(types.uint64)(_BYTES, _LONGS, _LONGS, types.int64))
def eights(text: Bytes, word_at: Longs, words: Longs, at: int) -> Keys:
    """Return the eight bytes of each word from ``at`` on as a number that sorts as they do; 0 behind its end."""
    found = np.empty(words.size, np.uint64)
    for number in range(words.size):
        start = word_at[words[number]] + at
        packed = _ZERO
        for place in range(start, start + 8):
            packed = packed << _EIGHT | U64(text[place] if place < word_at[words[number] + 1] else 0)
        found[number] = packed
    return found


@_compiled()
def _compare(left: Bytes, start: Scalar, end: Scalar, right: Bytes, from_: Scalar, to: Scalar) -> Scalar:
    """Below, at or above zero as the left bytes come before, equal or come after the right ones."""
    for step in range(min(end - start, to - from_)):
        if left[start + step] != right[from_ + step]:
            return np.int64(left[start + step]) - np.int64(right[from_ + step])
    return (end - start) - (to - from_)


@_compiled(types.void(_LONGS, _INTS, _INTS, _LONGS, _output(types.int64), _output(types.int32), _output(types.int32)))
def turn(
    postings_at: Longs,
    posting_word: Ints,
    posting_count: Ints,
    place: Longs,
    free: Longs,
    document_of: Ints,
    count_of: Ints,
) -> None:
    """Turn the postings of documents into those of words, documents ascending.

    ``place`` says where each word stands in the sorted vocabulary; ``free`` where the next posting of each word in that
    order goes, and is moved on.
    """
    for document in range(postings_at.size - 1):
        for posting in range(postings_at[document], postings_at[document + 1]):
            word = place[posting_word[posting]]
            to = free[word]
            free[word] = to + 1
            document_of[to] = document
            count_of[to] = posting_count[posting]


@_compiled(_results(_output(types.int64), _output(types.int64))(_BYTES, _LONGS, _BYTES, _LONGS))
def find(text: Bytes, word_at: Longs, asked: Bytes, asked_at: Longs) -> tuple[Longs, Longs]:
    """Find words in the sorted vocabulary by halving.

    Returns for each word asked for the first place that is not before it, and the end of the words that begin with it.
    It is indexed where the two differ and the word at the first place is as long.
    """
    firsts = np.empty(asked_at.size - 1, np.int64)
    ends = np.empty(asked_at.size - 1, np.int64)
    for question in range(firsts.size):
        start, stop = asked_at[question], asked_at[question + 1]
        low, high = 0, word_at.size - 1
        while low < high:
            middle = (low + high) // 2
            if _compare(text, word_at[middle], word_at[middle + 1], asked, start, stop) < 0:
                low = middle + 1
            else:
                high = middle
        firsts[question] = low
        high, stride = low, 1
        while high < word_at.size - 1:  # few words, or none, begin with it
            cut = min(word_at[high + 1], word_at[high] + stop - start)
            if _compare(text, word_at[high], cut, asked, start, stop) > 0:
                break
            low = high + 1
            high = min(high + stride, word_at.size - 1)
            stride *= 2
        while low < high:
            middle = (low + high) // 2
            cut = min(word_at[middle + 1], word_at[middle] + stop - start)
            if _compare(text, word_at[middle], cut, asked, start, stop) <= 0:
                low = middle + 1
            else:
                high = middle
        ends[question] = low
    return firsts, ends


@_compiled(
    types.void(
        _LONGS, _INTS, _INTS, _LONGS, types.int64, _output(types.int64), _output(types.int32), _output(types.int32)
    )
)
def gather(
    starts: Longs, document_of: Ints, count_of: Ints, places: Longs, offset: int, free: Longs, entry: Ints, count: Ints
) -> None:
    """Copy one tap's postings of each word asked for behind those of the taps before it.

    ``places`` says where the words stand in the tap's vocabulary, -1 where it lacks one; ``offset`` is the row of the
    tap's first entry; ``free`` is where the next posting of each word goes, and is moved on.
    """
    for word in range(places.size):
        place = places[word]
        if place < 0:
            continue
        to = free[word]
        for posting in range(starts[place], starts[place + 1]):
            entry[to] = document_of[posting] + offset
            count[to] = count_of[posting]
            to += 1
        free[word] = to


@_compiled(types.void(_output(types.float64), _LONGS, _LONGS, _INTS, _INTS, _FLOATS, _FLOATS, types.float64))
def add_scores(
    scores: Floats, terms: Longs, starts: Longs, entry: Ints, count: Ints, idf: Floats, norms: Floats, k1: float
) -> None:
    """Add to the scores of all entries what each term gives, term by term in the order given."""
    for number in range(terms.size):
        term = terms[number]
        weight = idf[term]
        for posting in range(starts[term], starts[term + 1]):
            row = entry[posting]
            frequency = float(count[posting])
            scores[row] += weight * (frequency * (k1 + 1.0)) / (frequency + norms[row])
