"""The machine loops of falloff curves: nested subsets ranked, rankings measured, means taken.

A cell is one query in one subset: number ``step * queries + query``. All loops run as plain Python too
(``NUMBA_DISABLE_JIT=1``). Nothing is reassociated, so a score has the bits that the engine itself gives it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from pipeline.machine import compiled as _compiled
from pipeline.machine import input_of as _input
from pipeline.machine import output_of as _output
from pipeline.machine import results_of as _results

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

DEPTH = 100
"""Classes that a ranking holds at most, as in `pipeline.engines.ranking`."""
LEAST = 5e-324
"""The least score of a hit: the first number above 0."""
FIRST = 192
"""Hits that are looked at before more are: enough for 100 classes where mirrors are few."""

UNJUDGED, WRONG = -1, -2
"""Slots of a hit that fills none: nobody judged it, or a decision excludes its class."""
REMOVED, IRRELEVANT, UNMODIFIED = 0, 1, 2
"""Treatments of later mirrors, by number."""
RECALL, HIT, PRECISION, NDCG, JUDGED, MRR, BPREF, NDCG_CONDENSED, RBP, RBP_RESIDUAL = range(10)
"""Families of measures, by number."""


_I4, _I8, _F8 = types.int32, types.int64, types.float64
_RANKINGS = _results(_output(_I8), _output(_I4), _output(_F8), _output(_I4))
Found = tuple[Longs, Ints, Floats, Ints]
"""Rankings of all cells: where each begins, one more than there are; rows, scores and ranks of the hits."""


@_compiled(_results(_output(_I4), _output(_I4), _output(_I8))(_input(_I4), _I8))
def places(step_of: Ints, steps: int) -> tuple[Ints, Ints, Longs]:
    """Line the rows up by the subset that they first belong to, so that each subset is the first few of them.

    Returns the row at each place, the place of each row, and the size of each subset.
    """
    free = np.zeros(steps + 2, np.int64)
    for row in range(step_of.size):
        free[step_of[row] + 1] += 1
    for step in range(steps + 1):
        free[step + 1] += free[step]
    sizes = free[1 : steps + 1].copy()
    row_at = np.empty(step_of.size, np.int32)
    place_of = np.empty(step_of.size, np.int32)
    for row in range(step_of.size):
        place = free[step_of[row]]
        free[step_of[row]] = place + 1
        row_at[place] = row
        place_of[row] = place
    return row_at, place_of, sizes


@_compiled(
    _results(_output(_I4), _output(_I4), _output(_I8, 2))(
        _input(_I8), _input(_I4), _input(_I4), _input(_I4), _input(_I4), _I8
    )
)
def by_step(
    starts: Longs, entry: Ints, count: Ints, step_of: Ints, place_of: Ints, steps: int
) -> tuple[Ints, Ints, Longs]:
    """Sort the postings of each word by `places`.

    Returns places, counts, and for each subset and word how many of its first postings belong to it: its df.
    """
    words = starts.size - 1
    at = np.empty(entry.size, np.int32)
    counts = np.empty(entry.size, np.int32)
    df = np.zeros((steps, words), np.int64)
    free = np.zeros(steps + 2, np.int64)
    for word in range(words):
        free[:] = 0
        for posting in range(starts[word], starts[word + 1]):
            free[step_of[entry[posting]] + 1] += 1
        for step in range(steps):
            free[step + 1] += free[step]
            df[step, word] = free[step + 1]
        for posting in range(starts[word], starts[word + 1]):
            step = step_of[entry[posting]]
            to = starts[word] + free[step]
            free[step] += 1
            at[to] = place_of[entry[posting]]
            counts[to] = count[posting]
    return at, counts, df


@_compiled(types.void(_output(_I4, 2), _input(_I8), _input(_I8), _input(_I4), _I8, _input(_I4)))
def count_vocabulary(
    df: NDArray[np.int32], words: Longs, starts: Longs, documents: Ints, first_row: int, step_of: Ints
) -> None:
    """Add one tap's postings to ``df``: for each word of the corpus and subset, entries that first belong to it.

    ``words`` numbers the tap's vocabulary; entries that are in no subset are counted in a last column.
    """
    for place in range(words.size):
        word = words[place]
        for posting in range(starts[place], starts[place + 1]):
            df[word, step_of[first_row + documents[posting]]] += 1


@_compiled()
def _worse(score: Any, row: Any, other: Any, other_row: Any) -> Any:
    return score < other or (score == other and row > other_row)


@_compiled()
def _sink(scores: Floats, rows: Ints, place: Any, size: Any) -> None:
    """Let the hit at ``place`` sink in a heap whose root is the worst."""
    score, row = scores[place], rows[place]
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _worse(scores[child + 1], rows[child + 1], scores[child], rows[child]):
            child += 1
        if not _worse(scores[child], rows[child], score, row):
            break
        scores[place], rows[place] = scores[child], rows[child]
        place = child
    scores[place], rows[place] = score, row


@_compiled()
def _best(scores: Floats, rows: Ints, number: Any, top_scores: Floats, top_rows: Ints) -> None:
    """Put the best of the first ``number`` hits, best first, into ``top_*``."""
    room = top_scores.size
    size = 0
    for hit in range(number):
        row = rows[hit]
        score = scores[hit]
        if size < room:
            # Rise to where the parent is worse.
            at = size
            size += 1
            while at > 0:
                parent = (at - 1) // 2
                if not _worse(score, row, top_scores[parent], top_rows[parent]):
                    break
                top_scores[at], top_rows[at] = top_scores[parent], top_rows[parent]
                at = parent
            top_scores[at], top_rows[at] = score, row
        elif _worse(top_scores[0], top_rows[0], score, row):
            top_scores[0], top_rows[0] = score, row
            _sink(top_scores, top_rows, 0, size)
    while size > 1:
        size -= 1
        top_scores[0], top_scores[size] = top_scores[size], top_scores[0]
        top_rows[0], top_rows[size] = top_rows[size], top_rows[0]
        _sink(top_scores, top_rows, 0, size)


@_compiled()
def _grown(array: Any, size: Any) -> Any:
    larger = np.empty(size, array.dtype)
    larger[: array.size] = array
    return larger


@_compiled()
def _rank(scores: Floats, rows: Ints, number: Any, class_of: Longs, met: Longs, cell: Any) -> Any:
    """Rank the first ``number`` hits: the scores, rows and ranks that a ranking holds.

    ``met`` holds for each class the last cell, plus one, in which it was met.
    """
    room = FIRST
    while True:
        top_scores = np.empty(room, np.float64)
        top_rows = np.empty(room, np.int32)
        ranks = np.zeros(room, np.int32)
        _best(scores, rows, number, top_scores, top_rows)
        classes = 0
        length = 0
        looked_at = min(number, room)
        for place in range(looked_at):
            of = class_of[top_rows[place]]
            if met[of] != cell + 1:
                met[of] = cell + 1
                classes += 1
                ranks[place] = classes
                length = place + 1
                if classes == DEPTH:
                    break
        if classes == DEPTH or number <= room:
            length = max(length, min(number, DEPTH))
            return top_scores[:length], top_rows[:length], ranks[:length]
        for place in range(looked_at):
            met[class_of[top_rows[place]]] = 0
        room *= 4


@_compiled()
def _hits(scores: Floats, size: Any, floor: Any, row_at: Ints, hit_scores: Floats, hit_rows: Ints) -> Any:
    """Gather those of the first ``size`` places that score above 0 and at least ``floor``; return how many."""
    floor = max(floor, LEAST)
    number = 0
    for place in range(size):
        if scores[place] >= floor:
            hit_scores[number] = scores[place]
            hit_rows[number] = row_at[place]
            number += 1
    return number


@_compiled()
def _floor(scores: Floats, rows: Ints, ranks: Ints, place_of: Ints) -> Any:
    """Return a score that the hits of a subset reach, seen from those of a smaller one; 0 where that had too few.

    All classes of the smaller subset are in the larger one, so no less than the worst of them is the last there.
    """
    if ranks.size == 0 or ranks[-1] < DEPTH:
        return 0.0
    floor = np.inf
    for hit in range(rows.size):
        if ranks[hit] > 0:
            floor = min(floor, scores[place_of[rows[hit]]])
    return floor


@_compiled()
def _weigh_postings(given: Floats, places: Ints, counts: Ints, idf: Any, norms: Floats, k1: Any) -> None:
    """Say what each posting of a word adds to the score of its entry."""
    for posting in range(places.size):
        frequency = float(counts[posting])
        given[posting] = idf * (frequency * (k1 + 1.0)) / (frequency + norms[np.uint64(places[posting])])


@_compiled()
def _add(scores: Floats, places: Ints, given: Floats) -> None:
    # An unsigned place counts from the front without asking, which is a sixth of the time of a ranking.
    for posting in range(places.size):
        scores[np.uint64(places[posting])] += given[posting]


@_compiled(
    _RANKINGS(
        _input(_I8),
        _input(_I4),
        _input(_I4),
        _input(_I8, 2),
        _input(_F8, 2),
        _input(_I8),
        _input(_I8),
        _input(_I8),
        _input(_F8),
        _F8,
        _F8,
        _input(_I4),
        _input(_I4),
        _input(_I8),
        _input(_I8),
    )
)
def rank_words(
    starts: Longs,
    at_place: Ints,
    count: Ints,
    df: Longs,
    idf: Floats,
    chosen: Longs,
    chosen_at: Longs,
    lengths: Longs,
    averages: Floats,
    k1: float,
    b: float,
    row_at: Ints,
    place_of: Ints,
    sizes: Longs,
    class_of: Longs,
) -> Found:
    """Rank every cell by the words chosen for it: ``chosen[chosen_at[cell]:chosen_at[cell + 1]]``, in that order.

    Postings are those of `by_step`, rows stand at the places of `places`; ``idf`` is by subset and word; ``averages``
    are the mean lengths of the subsets.
    """
    steps = averages.size
    cells = chosen_at.size - 1
    queries = cells // steps
    at = np.zeros(cells + 1, np.int64)
    hit_rows = np.empty(256 * cells + 1, np.int32)
    hit_scores = np.empty(256 * cells + 1, np.float64)
    hit_ranks = np.empty(256 * cells + 1, np.int32)
    scores = np.zeros(row_at.size, np.float64)
    norms = np.empty(row_at.size, np.float64)
    found_scores = np.empty(row_at.size, np.float64)
    found_rows = np.empty(row_at.size, np.int32)
    met = np.zeros(max(1, class_of.max() + 1 if class_of.size else 1), np.int64)
    given = np.empty(at_place.size, np.float64)
    weighed = np.full(starts.size, -1, np.int64)
    for step in range(steps):
        size = sizes[step]
        for place in range(size):
            norms[place] = k1 * (1.0 - b + b * lengths[row_at[place]] / averages[step])
        for query in range(queries):
            cell = step * queries + query
            for word in range(chosen_at[cell], chosen_at[cell + 1]):
                term = chosen[word]
                start, stop = starts[term], starts[term] + df[step, term]
                if weighed[term] != step:  # once, however many questions hold the word
                    weighed[term] = step
                    part = slice(start, stop)
                    _weigh_postings(given[part], at_place[part], count[part], idf[step, term], norms, k1)
                _add(scores, at_place[start:stop], given[start:stop])
            floor = 0.0
            if step > 0:
                before = slice(at[cell - queries], at[cell - queries + 1])
                floor = _floor(scores, hit_rows[before], hit_ranks[before], place_of)
            number = _hits(scores, size, floor, row_at, found_scores, found_rows)
            top_scores, top_rows, ranks = _rank(found_scores, found_rows, number, class_of, met, cell)
            end = at[cell] + top_rows.size
            if end > hit_rows.size:
                hit_rows = _grown(hit_rows, 2 * end)
                hit_scores = _grown(hit_scores, 2 * end)
                hit_ranks = _grown(hit_ranks, 2 * end)
            hit_rows[at[cell] : end] = top_rows
            hit_scores[at[cell] : end] = top_scores
            hit_ranks[at[cell] : end] = ranks
            at[cell + 1] = end
            scores[:size] = 0.0
    return at, hit_rows[: at[cells]].copy(), hit_scores[: at[cells]].copy(), hit_ranks[: at[cells]].copy()


@_compiled(_RANKINGS(_input(_F8, 2), _input(_I4), _I8, _input(_I8)))
def rank_scores(scores: Floats, step_of: Ints, steps: int, class_of: Longs) -> Found:
    """Rank every cell by scores that no subset changes, ``scores[query, row]``."""
    queries = scores.shape[0]
    cells = steps * queries
    at = np.zeros(cells + 1, np.int64)
    hit_rows = np.empty(256 * cells + 1, np.int32)
    hit_scores = np.empty(256 * cells + 1, np.float64)
    hit_ranks = np.empty(256 * cells + 1, np.int32)
    found_scores = np.empty(step_of.size, np.float64)
    found_rows = np.empty(step_of.size, np.int32)
    met = np.zeros(max(1, class_of.max() + 1 if class_of.size else 1), np.int64)
    for step in range(steps):
        for query in range(queries):
            cell = step * queries + query
            floor = LEAST
            if step > 0 and at[cell - queries + 1] > at[cell - queries]:
                last = at[cell - queries + 1] - 1
                if hit_ranks[last] == DEPTH:  # the last hit of the subset before
                    floor = hit_scores[last]
            number = 0
            for row in range(step_of.size):
                if scores[query, row] >= floor and step_of[row] <= step:
                    found_scores[number] = scores[query, row]
                    found_rows[number] = row
                    number += 1
            top_scores, top_rows, ranks = _rank(found_scores, found_rows, number, class_of, met, cell)
            end = at[cell] + top_rows.size
            if end > hit_rows.size:
                hit_rows = _grown(hit_rows, 2 * end)
                hit_scores = _grown(hit_scores, 2 * end)
                hit_ranks = _grown(hit_ranks, 2 * end)
            hit_rows[at[cell] : end] = top_rows
            hit_scores[at[cell] : end] = top_scores
            hit_ranks[at[cell] : end] = ranks
            at[cell + 1] = end
    return at, hit_rows[: at[cells]].copy(), hit_scores[: at[cells]].copy(), hit_ranks[: at[cells]].copy()


@_compiled(_RANKINGS(_input(_I8), _input(_I4), _input(_I4), _input(_I8), _input(_I4), _input(_I4), _I8, _input(_I8)))
def fuse(
    at_1: Longs, rows_1: Ints, ranks_1: Ints, at_2: Longs, rows_2: Ints, ranks_2: Ints, constant: int, class_of: Longs
) -> Found:
    """Fuse two rankings of every cell as engine ``hybrid`` does: the sum of ``1 / (constant + rank)`` of each class."""
    cells = at_1.size - 1
    at = np.zeros(cells + 1, np.int64)
    hit_rows = np.empty(rows_1.size + rows_2.size, np.int32)
    hit_scores = np.empty(rows_1.size + rows_2.size, np.float64)
    hit_ranks = np.empty(rows_1.size + rows_2.size, np.int32)
    classes = max(1, class_of.max() + 1 if class_of.size else 1)
    met = np.zeros(classes, np.int64)
    of_class = np.zeros(classes, np.float64)
    seen = np.zeros(class_of.size, np.int64)
    scores = np.empty(class_of.size, np.float64)
    rows = np.empty(class_of.size, np.int32)
    for cell in range(cells):
        for place in range(at_1[cell], at_1[cell + 1]):
            if ranks_1[place] > 0:
                of_class[class_of[rows_1[place]]] += 1.0 / (constant + ranks_1[place])
        for place in range(at_2[cell], at_2[cell + 1]):
            if ranks_2[place] > 0:
                of_class[class_of[rows_2[place]]] += 1.0 / (constant + ranks_2[place])
        number = 0
        for place in range(at_1[cell], at_1[cell + 1]):
            row = rows_1[place]
            seen[row] = cell + 1
            scores[number] = of_class[class_of[row]]
            rows[number] = row
            number += 1
        for place in range(at_2[cell], at_2[cell + 1]):
            row = rows_2[place]
            if seen[row] != cell + 1:
                scores[number] = of_class[class_of[row]]
                rows[number] = row
                number += 1
        top_scores, top_rows, ranks = _rank(scores, rows, number, class_of, met, cell)
        end = at[cell] + top_rows.size
        hit_rows[at[cell] : end] = top_rows
        hit_scores[at[cell] : end] = top_scores
        hit_ranks[at[cell] : end] = ranks
        at[cell + 1] = end
        for place in range(number):
            of_class[class_of[rows[place]]] = 0.0
    return at, hit_rows[: at[cells]].copy(), hit_scores[: at[cells]].copy(), hit_ranks[: at[cells]].copy()


@_compiled(_F8(_output(_F8), _I8, _output(_F8)))
def exact_sum(values: Floats, number: int, parts: Floats) -> float:
    """Return the exactly rounded sum of the first ``number`` values, as ``math.fsum`` does; Shewchuk 1997.

    ``parts`` is scratch; 64 places are enough for values between 2^-1000 and 2^1000 that are no more than 2^50.
    """
    size = 0
    for place in range(number):
        value = values[place]
        kept = 0
        for part in range(size):
            other = parts[part]
            if abs(value) < abs(other):
                value, other = other, value
            high = value + other
            low = other - (high - value)
            if low != 0.0:
                parts[kept] = low
                kept += 1
            value = high
        parts[kept] = value
        size = kept + 1
    if size == 0:
        return 0.0
    size -= 1
    high = parts[size]
    low = 0.0
    while size > 0:
        size -= 1
        before = high
        other = parts[size]
        high = before + other
        low = other - (high - before)
        if low != 0.0:
            break
    # Half way between two numbers, the parts that are left say which of them is nearer.
    if size > 0 and ((low < 0.0 and parts[size - 1] < 0.0) or (low > 0.0 and parts[size - 1] > 0.0)):
        twice = low * 2.0
        moved = high + twice
        if twice == moved - high:
            high = moved
    return float(high)


@_compiled(
    types.void(
        _input(_I8),
        _input(_I4),
        _input(_I4),
        _input(_I8),
        _input(types.int16, 3),
        _input(types.boolean, 2),
        _input(_I8, 4),
        _input(_I8, 2),
        _input(_I8),
        _input(_I8),
        _input(_F8),
        _input(_F8),
        _input(_F8),
        _F8,
        _output(_F8, 5),
        _output(_I4, 4),
    )
)
def measure(
    at: Longs,
    rows: Ints,
    ranks: Ints,
    class_of: Longs,
    slots: NDArray[np.int16],
    active: NDArray[np.bool_],
    relevant: Longs,
    others: Longs,
    families: Longs,
    cuts: Longs,
    discounts: Floats,
    ideals: Floats,
    powers: Floats,
    persistence: float,
    values: Floats,
    first_ranks: Ints,
) -> None:
    """Grade and measure every cell, as ``pipeline.scoring`` does one ranking.

    Args:
        at: where each cell's hits begin.
        rows: entries of the hits.
        ranks: ranks among classes; 0 for a later mirror.
        class_of: class of each entry.
        slots: by grading, query and entry: the slot that it would fill, or ``UNJUDGED`` or ``WRONG``.
        active: by grading and query: whether the item counts.
        relevant: by subset, grading, query and treatment: relevant items.
        others: by grading and query: classes judged not relevant.
        families: family of each measure, by number.
        cuts: cut of each, at most 100.
        discounts: ``1 / log2(rank + 1)``.
        ideals: exactly rounded sums of the first discounts.
        powers: powers of ``persistence``.
        persistence: RBP's.
        values: filled, by subset, query, grading, treatment and measure; NaN where undefined.
        first_ranks: filled, by subset, query, grading and treatment: rank of the first relevant hit, 0 without one.
    """
    steps, queries, gradings, treatments, measures = values.shape
    slot_of_class = np.zeros(max(1, class_of.max() + 1 if class_of.size else 1), np.int64)
    met = np.zeros(slot_of_class.size, np.int64)
    filled = np.zeros(32768, np.int64)
    stamp = 0
    gain = np.zeros(DEPTH, np.bool_)
    known = np.zeros(DEPTH, np.bool_)
    wrong = np.zeros(DEPTH, np.bool_)
    terms = np.zeros(DEPTH + 1, np.float64)
    parts = np.zeros(DEPTH + 1, np.float64)
    for step in range(steps):
        for query in range(queries):
            cell = step * queries + query
            for grading in range(gradings):
                for treatment in range(treatments):
                    if not active[grading, query]:
                        values[step, query, grading, treatment, :] = np.nan
                        continue
                    # 1. Grade: what each hit that stays is worth.
                    stamp += 1
                    length = 0
                    first = 0
                    for place in range(at[cell], at[cell + 1]):
                        if length == DEPTH:
                            break
                        row = rows[place]
                        of = class_of[row]
                        mirror = ranks[place] == 0
                        if mirror and treatment == REMOVED:
                            continue
                        slot = np.int64(slots[grading, query, row])
                        if mirror and treatment == IRRELEVANT:
                            slot = slot_of_class[of]
                        if met[of] != stamp:
                            met[of] = stamp
                            slot_of_class[of] = slot
                        counts = treatment == UNMODIFIED or (not mirror and (slot < 0 or filled[slot] != stamp))
                        gain[length] = slot >= 0 and counts
                        known[length] = slot != UNJUDGED
                        wrong[length] = slot == WRONG
                        if slot >= 0:
                            filled[slot] = stamp
                        length += 1
                        if gain[length - 1] and first == 0:
                            first = length
                    first_ranks[step, query, grading, treatment] = first
                    # 2. Measure.
                    total = relevant[step, grading, query, treatment]
                    for number in range(measures):
                        family = families[number]
                        cut = min(cuts[number], length)
                        value = np.nan
                        size = 0
                        if family == JUDGED:
                            for place in range(cut):
                                size += known[place]
                            if cut > 0:
                                value = size / cut
                        elif family == RBP_RESIDUAL:
                            for place in range(cut):
                                if not known[place]:
                                    terms[size] = powers[place]
                                    size += 1
                            value = (1.0 - persistence) * exact_sum(terms, size, parts) + powers[cut]
                        elif total > 0:
                            if family in (RECALL, HIT, PRECISION):
                                for place in range(cut):
                                    size += gain[place]
                                if family == RECALL:
                                    value = size / total
                                elif family == HIT:
                                    value = 1.0 if size > 0 else 0.0
                                else:
                                    value = size / cuts[number]
                            elif family == NDCG:
                                for place in range(cut):
                                    if gain[place]:
                                        terms[size] = discounts[place]
                                        size += 1
                                value = exact_sum(terms, size, parts) / ideals[min(total, cuts[number])]
                            elif family == MRR:
                                value = 1.0 / first if 0 < first <= cut else 0.0
                            elif family == BPREF:
                                if others[grading, query] > 0:
                                    above = 0
                                    bound = min(total, others[grading, query])
                                    for place in range(cut):
                                        if gain[place]:
                                            terms[size] = 1.0 - min(above, total) / bound
                                            size += 1
                                        elif wrong[place]:
                                            above += 1
                                    value = exact_sum(terms, size, parts) / total
                            elif family == NDCG_CONDENSED:
                                place_of = 0
                                for place in range(length):
                                    if place_of == cuts[number]:
                                        break
                                    if known[place]:
                                        if gain[place]:
                                            terms[size] = discounts[place_of]
                                            size += 1
                                        place_of += 1
                                value = exact_sum(terms, size, parts) / ideals[min(total, cuts[number])]
                            elif family == RBP:
                                for place in range(cut):
                                    if gain[place]:
                                        terms[size] = powers[place]
                                        size += 1
                                value = (1.0 - persistence) * exact_sum(terms, size, parts)
                        values[step, query, grading, treatment, number] = value


@_compiled(types.void(_input(_F8, 3), _output(_F8, 2), _output(_I8, 2)))
def means(values: Floats, averages: Floats, numbers: Longs) -> None:
    """Take the means over the middle axis, exactly rounded sums; NaN is left out, and stays where nothing else is."""
    column = np.empty(values.shape[1], np.float64)
    parts = np.empty(values.shape[1] + 1, np.float64)
    for first in range(values.shape[0]):
        for last in range(values.shape[2]):
            size = 0
            for item in range(values.shape[1]):
                if not math.isnan(values[first, item, last]):
                    column[size] = values[first, item, last]
                    size += 1
            numbers[first, last] = size
            averages[first, last] = exact_sum(column, size, parts) / size if size > 0 else np.nan


@_compiled(types.void(_input(_I4, 2), _input(_F8, 2), _output(_F8, 2)))
def weigh(weights: Ints, sums: Floats, drawn: Floats) -> None:
    """Add up ``weights @ sums`` in one order on every machine, which a library of linear algebra does not promise."""
    for draw in range(weights.shape[0]):
        for cluster in range(weights.shape[1]):
            weight = weights[draw, cluster]
            if weight != 0:
                for cell in range(sums.shape[1]):
                    drawn[draw, cell] += weight * sums[cluster, cell]
