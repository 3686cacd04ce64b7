"""The machine loops: bodies to signatures and shingle sets, sets to similarities, texts to differences.

All of them run as plain Python too (``NUMBA_DISABLE_JIT=1``). Signatures are written out, so that each loop is compiled
once, for arrays that may be read-only. Numba turns products of 32-bit integers into 64-bit ones, and a mix of signed
and unsigned 64-bit integers into floats: so every constant has its type, and every 32-bit product is cut again.
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

Scalar: TypeAlias = Any
"""A whole number of the machine; of the interpreter without the compiler."""
Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int32]
Longs: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint32]
Keys: TypeAlias = NDArray[np.uint64]
Floats: TypeAlias = NDArray[np.float64]

PLAIN, SPACE, SINGLE, FOLDS = 0, 1, 2, 3
"""What a character is to the shingles; see ``shingles.CharacterTables``."""
CODES = 1 << 21
"""Room for whatever four bytes can spell, so that no broken text points outside the tables."""

U32, U64 = np.uint32, np.uint64
_PRIME = U64(0x00000100000001B3)
_START = U64(0xCBF29CE484222325)
_FACTOR = U64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = U64(0xFF51AFD7ED558CCD), U64(0xC4CEB9FE1A85EC53)
_S33 = U64(33)
_MIX32_1, _MIX32_2 = U32(0x85EBCA6B), U32(0xC2B2AE35)
_S16, _S13 = U32(16), U32(13)
_ZERO, _LOW = U64(0), U64(0xFFFFFFFF)
_LARGEST = U32(0xFFFFFFFF)


_BYTES, _INTS, _LONGS, _WORDS, _KEYS = (
    _input(kind) for kind in (types.uint8, types.int32, types.int64, types.uint32, types.uint64)
)
_TEXTS = (_BYTES, _LONGS, _LONGS)
_TABLES = (_BYTES, _BYTES, _INTS, _LONGS, _BYTES)


@_compiled()
def _finalized(mixed: Scalar) -> Scalar:
    """The finalizer of MurmurHash3 for 64 bits."""
    mixed = (mixed ^ (mixed >> _S33)) * _MIX_1
    mixed = (mixed ^ (mixed >> _S33)) * _MIX_2
    return mixed ^ (mixed >> _S33)


@_compiled()
def _hash_words(
    data: Bytes,
    start: Scalar,
    stop: Scalar,
    lower: Bytes,
    kinds: Bytes,
    fold_of: Ints,
    fold_at: Longs,
    fold_text: Bytes,
    words: Keys,
) -> int:
    """Put the hash of each word of a text into ``words``, which has room for half its bytes; returns how many."""
    count = 0
    mixed = _START
    inside = False
    at = start
    while at < stop:
        byte = data[at]
        if byte < 0x80:
            at += 1
            folded = lower[byte]
            if folded != 0x20:
                mixed = (mixed ^ U64(folded)) * _PRIME
                inside = True
            elif inside:
                words[count] = _finalized(mixed)
                count += 1
                mixed = _START
                inside = False
            continue
        lead = np.int64(byte)
        width = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        code = lead & (0x7F >> width)
        for step in range(1, width):
            code = code << 6 | (np.int64(data[at + step]) & 0x3F)
        kind = kinds[code]
        if inside and kind in (SPACE, SINGLE):
            words[count] = _finalized(mixed)
            count += 1
            mixed = _START
            inside = False
        if kind == FOLDS:
            form = fold_of[code]
            for place in range(fold_at[form], fold_at[form + 1]):
                mixed = (mixed ^ U64(fold_text[place])) * _PRIME
            inside = True
        elif kind != SPACE:
            for place in range(at, at + width):
                mixed = (mixed ^ U64(data[place])) * _PRIME
            inside = True
            if kind == SINGLE:
                words[count] = _finalized(mixed)
                count += 1
                mixed = _START
                inside = False
        at += width
    if inside:
        words[count] = _finalized(mixed)
        count += 1
    return count


@_compiled()
def _shingles(words: Keys, count: int, length: int) -> int:
    """Replace the hashes of words by those of shingles, in place; returns how many."""
    if count == 0:
        return 0
    shingles = max(count - length, 0) + 1
    for at in range(shingles):
        mixed = _ZERO
        for place in range(at, min(at + length, count)):
            mixed = mixed * _FACTOR + words[place]
        words[at] = _finalized(mixed)
    return shingles


@_compiled()
def _room(starts: Longs, stops: Longs) -> int:
    """Room for the words of the longest text: each but the last takes two bytes at least."""
    room = 1
    for row in range(starts.size):
        room = max(room, (stops[row] - starts[row]) // 2 + 1)
    return room


@_compiled(types.void(*_TEXTS, *_TABLES, types.int64, _WORDS, _WORDS, _output(types.uint32, 2), _output(types.boolean)))
def sign(
    data: Bytes,
    starts: Longs,
    stops: Longs,
    lower: Bytes,
    kinds: Bytes,
    fold_of: Ints,
    fold_at: Longs,
    fold_text: Bytes,
    length: int,
    factors: Words,
    addends: Words,
    signatures: Words,
    signed: NDArray[np.bool_],
) -> None:
    """Make the signature of each text: for each permutation the least of ``factor * h + addend`` modulo 2 ** 32.

    h is the 32-bit shingle hash (the low half of the 64-bit one) through the finalizer of MurmurHash3, as the scheme
    affine32 of ``datasketch`` 2 has it.
    """
    room = _room(starts, stops)
    words = np.empty(room, np.uint64)
    hashes = np.empty(room, np.uint32)
    for row in range(starts.size):
        count = _hash_words(data, starts[row], stops[row], lower, kinds, fold_of, fold_at, fold_text, words)
        shingles = _shingles(words, count, length)
        signed[row] = shingles > 0
        for at in range(shingles):
            mixed = U32(words[at] & _LOW)
            mixed = U32(U32(mixed ^ (mixed >> _S16)) * _MIX32_1)
            mixed = U32(U32(mixed ^ (mixed >> _S13)) * _MIX32_2)
            hashes[at] = U32(mixed ^ (mixed >> _S16))
        for permutation in range(factors.size):
            factor = factors[permutation]
            addend = addends[permutation]
            least = _LARGEST
            for at in range(shingles):  # the compiler turns this loop into vector code
                least = min(least, U32(factor * hashes[at] + addend))
            signatures[row, permutation] = least


@_compiled(_results(_output(types.uint64), _output(types.int64))(*_TEXTS, *_TABLES))
def word_hashes(
    data: Bytes,
    starts: Longs,
    stops: Longs,
    lower: Bytes,
    kinds: Bytes,
    fold_of: Ints,
    fold_at: Longs,
    fold_text: Bytes,
) -> tuple[Keys, Longs]:
    """Return the hashes of the words of each text, in order, and where those of each begin."""
    words = np.empty(_room(starts, stops), np.uint64)
    at_ = np.zeros(starts.size + 1, np.int64)
    size = 0
    for row in range(starts.size):
        size += (stops[row] - starts[row]) // 2 + 1
    hashes = np.empty(size, np.uint64)
    for row in range(starts.size):
        count = _hash_words(data, starts[row], stops[row], lower, kinds, fold_of, fold_at, fold_text, words)
        hashes[at_[row] : at_[row] + count] = words[:count]
        at_[row + 1] = at_[row] + count
    return hashes[: at_[-1]], at_


@_compiled()
def _distinct(hashes: Keys, count: int, free: Longs, sorted_: Keys) -> int:
    """Put the distinct ones of ``count`` hashes into ``sorted_``, ascending; returns how many.

    They are as good as random, so the high bits of each say about where it goes, and few of them have to move.
    ``free`` has room for twice as many numbers and three.
    """
    bits = 1
    while 1 << bits < count:
        bits += 1
    free[: (1 << bits) + 1] = 0
    shift = U64(64 - bits)
    for place in range(count):
        free[np.int64(hashes[place] >> shift) + 1] += 1
    for before in range(1 << bits):
        free[before + 1] += free[before]
    for place in range(count):
        slot = np.int64(hashes[place] >> shift)
        sorted_[free[slot]] = hashes[place]
        free[slot] += 1
    for place in range(1, count):
        value = sorted_[place]
        to = place
        while to > 0 and sorted_[to - 1] > value:
            sorted_[to] = sorted_[to - 1]
            to -= 1
        sorted_[to] = value
    kept = 0
    for place in range(count):
        if place == 0 or sorted_[place] != sorted_[kept - 1]:
            sorted_[kept] = sorted_[place]
            kept += 1
    return kept


@_compiled(_results(_output(types.uint64), _output(types.int64))(*_TEXTS, *_TABLES, types.int64))
def shingle_sets(
    data: Bytes,
    starts: Longs,
    stops: Longs,
    lower: Bytes,
    kinds: Bytes,
    fold_of: Ints,
    fold_at: Longs,
    fold_text: Bytes,
    length: int,
) -> tuple[Keys, Longs]:
    """Return the distinct 64-bit shingle hashes of each text, ascending, and where those of each begin."""
    room = _room(starts, stops)
    words = np.empty(room, np.uint64)
    sorted_ = np.empty(room, np.uint64)
    free = np.empty(2 * room + 3, np.int64)
    at_ = np.zeros(starts.size + 1, np.int64)
    size = 0
    for row in range(starts.size):
        size += (stops[row] - starts[row]) // 2 + 1
    sets = np.empty(size, np.uint64)  # room for the worst costs nothing: memory that is never touched is never taken
    used = 0
    for row in range(starts.size):
        count = _hash_words(data, starts[row], stops[row], lower, kinds, fold_of, fold_at, fold_text, words)
        shingles = _shingles(words, count, length)
        distinct = _distinct(words, shingles, free, sorted_)
        sets[used : used + distinct] = sorted_[:distinct]
        used += distinct
        at_[row + 1] = used
    return sets[:used], at_


@_compiled(types.void(_input(types.uint32, 2), types.int64, _output(types.uint64, 2)))
def band_keys(signatures: Words, rows: int, keys: Keys) -> None:
    """Put a 64-bit hash of each band of ``rows`` minima into ``keys``, shape (signatures, bands)."""
    for row in range(keys.shape[0]):
        for band in range(keys.shape[1]):
            mixed = _START
            for place in range(band * rows, (band + 1) * rows):
                mixed = (mixed ^ U64(signatures[row, place])) * _FACTOR
                mixed ^= mixed >> _S33
            keys[row, band] = _finalized(mixed)


@_compiled()
def _met_before(keys: Keys, left: Scalar, right: Scalar, band: Scalar) -> Scalar:
    """Say whether two rows share a band before this one."""
    met = False
    for earlier in range(band):
        met |= keys[left, earlier] == keys[right, earlier]
    return met


@_compiled(_output(types.int64, 2)(_input(types.uint64, 2), _input(types.int64, 2)))
def candidate_pairs(keys: Keys, orders: Longs) -> Longs:
    """Return each pair of rows that share a band once. ``orders`` gives for each band the rows ordered by its key."""
    pairs = np.empty((1024, 2), np.int64)
    found = 0
    for band in range(orders.shape[0]):
        first = 0
        for place in range(orders.shape[1]):
            row = orders[band, place]
            if keys[row, band] != keys[orders[band, first], band]:
                first = place
            for earlier in range(first, place):
                other = orders[band, earlier]
                if _met_before(keys, row, other, band):
                    continue
                if found == pairs.shape[0]:
                    larger = np.empty((2 * found, 2), np.int64)
                    larger[:found] = pairs
                    pairs = larger
                pairs[found, 0] = min(row, other)
                pairs[found, 1] = max(row, other)
                found += 1
    return pairs[:found].copy()


@_compiled()
def _root(parents: Longs, row: Scalar) -> Scalar:
    """The smallest row of the component of ``row``, paths halved on the way."""
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@_compiled()
def _union(parents: Longs, left: Scalar, right: Scalar) -> None:
    left, right = _root(parents, left), _root(parents, right)
    if left < right:
        parents[right] = left
    else:
        parents[left] = right


@_compiled()
def _with_pair(
    pairs: Longs, similarities: Floats, found: Scalar, row: Scalar, other: Scalar, similarity: Scalar
) -> tuple[Longs, Floats]:
    """Note a pair after the ``found`` that are noted already, in arrays twice as long where there is no room."""
    if found == similarities.size:
        longer_pairs = np.empty((2 * found, 2), np.int64)
        longer_pairs[:found] = pairs
        longer_similarities = np.empty(2 * found, np.float64)
        longer_similarities[:found] = similarities
        pairs, similarities = longer_pairs, longer_similarities
    pairs[found, 0] = min(row, other)
    pairs[found, 1] = max(row, other)
    similarities[found] = similarity
    return pairs, similarities


@_compiled(types.void(_input(types.uint64, 2), _input(types.int64, 2), _output(types.int64)))
def tie(keys: Keys, orders: Longs, parents: Longs) -> None:
    """Join all rows that share a band, unverified. At the end ``parents`` holds the smallest row of each component."""
    for band in range(orders.shape[0]):
        for place in range(1, orders.shape[1]):
            row, before = orders[band, place], orders[band, place - 1]
            if keys[row, band] == keys[before, band]:
                _union(parents, row, before)
    for row in range(parents.size):
        parents[row] = _root(parents, row)


@_compiled()
def _shared(sets: Keys, at: Longs, left: Scalar, right: Scalar, wanted: Scalar) -> Scalar:
    """How many elements two ascending sets share; -1 as soon as it must be fewer than ``wanted``."""
    here, end_here = at[left], at[left + 1]
    there, end_there = at[right], at[right + 1]
    spare_here = end_here - here - wanted
    spare_there = end_there - there - wanted
    if spare_here < 0 or spare_there < 0:
        return -1
    shared: Scalar = 0
    begin_here, begin_there = here, there
    while here < end_here and there < end_there:
        # No branch depends on the elements, which are as good as random, within a stretch of 32 steps.
        for _ in range(32):
            if here == end_here or there == end_there:
                break
            one, other = sets[here], sets[there]
            shared += np.int64(one == other)
            here += np.int64(one <= other)
            there += np.int64(other <= one)
        if here - begin_here - shared > spare_here or there - begin_there - shared > spare_there:
            return -1
    return shared if shared >= wanted else -1


@_compiled()
def _similarity(sets: Keys, at: Longs, left: Scalar, right: Scalar, wanted: Scalar) -> Scalar:
    """Jaccard similarity of two sets; -1 as soon as they must share fewer than ``wanted``; 0 where both are empty."""
    shared = _shared(sets, at, left, right, wanted)
    if shared <= 0:
        return float(shared)
    return shared / (at[left + 1] - at[left] + at[right + 1] - at[right] - shared)


@_compiled(_output(types.float64)(_KEYS, _LONGS, _input(types.int64, 2)))
def compare(sets: Keys, at: Longs, pairs: Longs) -> Floats:
    """Return the Jaccard similarity of each pair of sets; 0 where one of them is empty."""
    similarity = np.empty(pairs.shape[0], np.float64)
    for pair in range(pairs.shape[0]):
        similarity[pair] = _similarity(sets, at, pairs[pair, 0], pairs[pair, 1], 0)
    return similarity


@_compiled()
def _wanted(size: Scalar, other: Scalar, threshold: Scalar) -> int:
    """No fewer elements than these may two sets of these sizes share at ``threshold``; one too few does no harm."""
    return int(np.ceil(threshold / (1.0 + threshold) * (size + other) - 1e-6))


@_compiled(
    _results(_output(types.int64, 2), _output(types.float64))(
        _input(types.uint64, 2),
        _input(types.int64, 2),
        _KEYS,
        _LONGS,
        types.float64,
        types.float64,
        _output(types.int64),
    )
)
def link(
    keys: Keys, orders: Longs, sets: Keys, at: Longs, threshold: float, floor: float, parents: Longs
) -> tuple[Longs, Floats]:
    """Join the rows that share a band and are as similar as ``threshold``; rows that are joined are not compared again.

    At the end ``parents`` holds the smallest row of each component. Returns the pairs that were compared, are below the
    threshold and not below ``floor``, with their similarity.
    """
    pairs = np.empty((64, 2), np.int64)
    similarities = np.empty(64, np.float64)
    found = 0
    for band in range(orders.shape[0]):
        first = 0
        for place in range(orders.shape[1]):
            row = orders[band, place]
            if keys[row, band] != keys[orders[band, first], band]:
                first = place
            for earlier in range(first, place):
                other = orders[band, earlier]
                if _root(parents, row) == _root(parents, other) or _met_before(keys, row, other, band):
                    continue
                wanted = _wanted(at[row + 1] - at[row], at[other + 1] - at[other], floor)
                similarity = _similarity(sets, at, row, other, wanted)
                if similarity >= threshold:
                    _union(parents, row, other)
                elif similarity >= floor:
                    pairs, similarities = _with_pair(pairs, similarities, found, row, other, similarity)
                    found += 1
    for row in range(parents.size):
        parents[row] = _root(parents, row)
    return pairs[:found].copy(), similarities[:found].copy()


@_compiled(types.void(_KEYS, types.uint64, _output(types.uint8)))
def count_elements(sets: Keys, mask: Scalar, counts: Bytes) -> None:
    """Count how often each element occurs in all sets, up to 255; elements that share a counter are counted together.

    ``counts`` (all zero) has a power of two counters; ``mask`` is one less.
    """
    for place in range(sets.size):
        slot = np.int64(sets[place] & mask)
        if counts[slot] < 255:
            counts[slot] += np.uint8(1)


@_compiled(
    _results(_output(types.uint64), _output(types.int32), _output(types.int32), _output(types.int64))(
        _KEYS, _LONGS, _LONGS, _BYTES, types.uint64, types.float64
    )
)
def prefixes(
    sets: Keys, at: Longs, order: Longs, counts: Bytes, mask: Scalar, threshold: float
) -> tuple[Keys, Ints, Ints, Longs]:
    """Return the rarest elements of each set, of which it shares one with every set as similar as ``threshold``.

    Elements are ordered by their counter, then by value, in every set alike. Those that no other set holds are left
    out, but keep their places. Returns the elements, the places in ``order`` of the sets that hold them, their places
    among the elements of the set, and where those of each set begin.
    """
    size = 0
    for number in range(order.size):
        own = at[order[number] + 1] - at[order[number]]
        size += own - int(np.ceil(threshold * own - 1e-6)) + 1
    elements = np.empty(size, np.uint64)
    holders = np.empty(size, np.int32)
    places = np.empty(size, np.int32)
    starts = np.zeros(order.size + 1, np.int64)
    free = np.empty(257, np.int64)
    longest = 1
    for row in range(at.size - 1):
        longest = max(longest, at[row + 1] - at[row])
    ranked = np.empty(longest, np.uint64)
    used = 0
    for number in range(order.size):
        first, end = at[order[number]], at[order[number] + 1]
        own = end - first
        free[:] = 0
        for place in range(first, end):
            free[np.int64(counts[np.int64(sets[place] & mask)]) + 1] += 1
        alone = free[2]  # those whose counter says 1 come first
        for count in range(256):
            free[count + 1] += free[count]
        for place in range(first, end):
            counter = np.int64(counts[np.int64(sets[place] & mask)])
            ranked[free[counter]] = sets[place]
            free[counter] += 1
        for place in range(alone, own - int(np.ceil(threshold * own - 1e-6)) + 1):
            if place < own:
                elements[used] = ranked[place]
                holders[used] = number
                places[used] = place
                used += 1
        starts[number + 1] = used
    return elements[:used].copy(), holders[:used].copy(), places[:used].copy(), starts


@_compiled(
    _results(_output(types.int64, 2), _output(types.float64))(
        _KEYS,
        _LONGS,
        _LONGS,
        _INTS,
        _INTS,
        _LONGS,
        _LONGS,
        _LONGS,
        _LONGS,
        types.float64,
        types.boolean,
        _output(types.int64),
    )
)
def join(
    sets: Keys,
    at: Longs,
    order: Longs,
    holders: Ints,
    places: Ints,
    starts: Longs,
    where: Longs,
    sorted_entries: Longs,
    run_starts: Longs,
    threshold: float,
    linking: bool,
    parents: Longs,
) -> tuple[Longs, Floats]:
    """Find all pairs of sets that are as similar as ``threshold``.

    Sets are taken in ``order``, by size. ``sorted_entries`` lists the entries of `prefixes` by element, ``where`` is
    the place of each entry in that list, ``run_starts`` where the entries of its element begin there. With ``linking``
    only pairs are compared whose sets are not joined yet, and what is returned just joins them; at the end ``parents``
    holds the smallest row of each component.
    """
    pairs = np.empty((1024, 2), np.int64)
    similarities = np.empty(1024, np.float64)
    found = 0
    met = np.zeros(order.size, np.int32)
    candidates = np.empty(order.size, np.int64)
    for number in range(order.size):
        row = order[number]
        own = at[row + 1] - at[row]
        least = threshold * own - 1e-6
        root = _root(parents, row)
        waiting = 0
        for entry in range(starts[number], starts[number + 1]):
            rest = own - places[entry] - 1
            for place in range(where[entry] - 1, run_starts[entry] - 1, -1):
                other_entry = sorted_entries[place]
                other_number = np.int64(holders[other_entry])
                other = order[other_number]
                size = at[other + 1] - at[other]
                if size < least:
                    break
                if met[other_number] < 0:
                    continue
                if met[other_number] == 0:
                    candidates[waiting] = other_number
                    waiting += 1
                    if linking and _root(parents, other) == root:
                        met[other_number] = -1
                        continue
                # What they share so far, this element, and at most all that is behind it.
                most = met[other_number] + 1 + min(rest, size - places[other_entry] - 1)
                if most < _wanted(own, size, threshold):
                    met[other_number] = -1
                else:
                    met[other_number] += 1
        for candidate in range(waiting):
            other_number = candidates[candidate]
            passed = met[other_number] > 0
            met[other_number] = 0
            if not passed:
                continue
            other = order[other_number]
            if linking and _root(parents, other) == _root(parents, row):
                continue
            wanted = _wanted(own, at[other + 1] - at[other], threshold)
            similarity = _similarity(sets, at, row, other, wanted)
            if similarity < threshold:
                continue
            _union(parents, row, other)
            pairs, similarities = _with_pair(pairs, similarities, found, row, other, similarity)
            found += 1
    for row in range(parents.size):
        parents[row] = _root(parents, row)
    return pairs[:found].copy(), similarities[:found].copy()


@_compiled(
    _results(_output(types.int64, 2), _output(types.float64))(
        _KEYS,
        _LONGS,
        _LONGS,
        _LONGS,
        _LONGS,
        types.int64,
        types.float64,
        types.float64,
        _output(types.float64),
        _output(types.float64),
    )
)
def look_inside(
    sets: Keys,
    at: Longs,
    members: Longs,
    starts: Longs,
    shown: Longs,
    most: int,
    floor: float,
    ceiling: float,
    lowest: Floats,
    to_shown: Floats,
) -> tuple[Longs, Floats]:
    """Compare the members of each cluster. Returns the pairs from ``floor`` to ``ceiling`` with their similarity.

    Cluster c is ``members[starts[c]:starts[c + 1]]``; ``to_shown`` becomes the similarity of each to ``shown[c]``,
    ``lowest`` that of the two of the cluster that are least alike, or -1 where it has more than ``most`` members, which
    are not all compared.
    """
    pairs = np.empty((64, 2), np.int64)
    similarities = np.empty(64, np.float64)
    found = 0
    for cluster in range(starts.size - 1):
        for place in range(starts[cluster], starts[cluster + 1]):
            to_shown[place] = _similarity(sets, at, members[place], shown[cluster], 0)
        lowest[cluster] = -1.0
        if starts[cluster + 1] - starts[cluster] > most:
            continue
        lowest[cluster] = 1.0
        for place in range(starts[cluster], starts[cluster + 1]):
            for earlier in range(starts[cluster], place):
                similarity = _similarity(sets, at, members[earlier], members[place], 0)
                lowest[cluster] = min(lowest[cluster], similarity)
                if similarity < floor or similarity > ceiling:
                    continue
                if found == similarities.size:
                    larger = np.empty((2 * found, 2), np.int64)
                    larger[:found] = pairs
                    pairs = larger
                    longer = np.empty(2 * found, np.float64)
                    longer[:found] = similarities
                    similarities = longer
                pairs[found, 0] = min(members[earlier], members[place])
                pairs[found, 1] = max(members[earlier], members[place])
                similarities[found] = similarity
                found += 1
    return pairs[:found].copy(), similarities[:found].copy()


@_compiled(types.void(_KEYS, _KEYS, _output(types.boolean), _output(types.boolean)))
def align(left: Keys, right: Keys, in_left: NDArray[np.bool_], in_right: NDArray[np.bool_]) -> None:
    """Mark the words of two texts that stand in a longest common subsequence; words are given by their hashes.

    Of several subsequences it is the one that skips words of the right text last.
    """
    first = 0
    while first < min(left.size, right.size) and left[first] == right[first]:
        in_left[first] = in_right[first] = True
        first += 1
    end_left, end_right = left.size, right.size
    while min(end_left, end_right) > first and left[end_left - 1] == right[end_right - 1]:
        end_left -= 1
        end_right -= 1
        in_left[end_left] = in_right[end_right] = True
    height, width = end_left - first, end_right - first
    if height == 0 or width == 0:
        return
    # Row by row from the end: how long the common subsequence of what is left is, and whether to go down for it.
    below = np.zeros(width + 1, np.int32)
    here = np.zeros(width + 1, np.int32)
    down = np.zeros((height, width), np.uint8)
    for row in range(height - 1, -1, -1):
        for column in range(width - 1, -1, -1):
            if left[first + row] == right[first + column]:
                here[column] = below[column + 1] + 1
            elif below[column] >= here[column + 1]:
                here[column] = below[column]
                down[row, column] = 1
            else:
                here[column] = here[column + 1]
        below[:] = here
    row = column = 0
    while row < height and column < width:
        if left[first + row] == right[first + column]:
            in_left[first + row] = in_right[first + column] = True
            row += 1
            column += 1
        elif down[row, column]:
            row += 1
        else:
            column += 1
