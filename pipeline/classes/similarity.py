"""Exact Jaccard similarity of bodies by their shingle sets: of given pairs, and of all pairs above a threshold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipeline.classes import kernel
from pipeline.classes.shingles import SHINGLE_WORDS, character_tables, chosen, texts


class Pairs(NamedTuple):
    """Pairs of rows with their similarity, ordered by left, then right row."""

    rows: NDArray[np.int64]
    """Shape (pairs, 2), left below right."""
    similarity: NDArray[np.float64]
    """Exact Jaccard similarity of the shingle sets, 0 to 1."""


class ShingleSets(NamedTuple):
    """The shingle sets of some bodies: that of body b is ``elements[starts[b]:starts[b + 1]]``, ascending."""

    elements: NDArray[np.uint64]
    starts: NDArray[np.int64]


def shingle_sets(bodies: pa.Array | pa.ChunkedArray) -> ShingleSets:
    """Return the sets of the 64-bit shingle hashes of bodies: some eight bytes a word."""
    read = (*texts(bodies), *character_tables())
    with np.errstate(over="ignore"):  # without the compiler, the hash overflows aloud
        return ShingleSets(*kernel.shingle_sets(*read, SHINGLE_WORDS))


def jaccard(bodies: pa.Array | pa.ChunkedArray, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the exact Jaccard similarity of each pair of rows; 0 where one of the two has no word."""
    rows, places = np.unique(pairs, return_inverse=True)
    sets = shingle_sets(chosen(bodies, rows))
    return kernel.compare(*sets, np.ascontiguousarray(places.reshape(-1, 2).astype(np.int64)))


def join(bodies: pa.Array | pa.ChunkedArray, eligible: NDArray[np.bool_], threshold: float) -> Pairs:
    """Return every pair of eligible rows whose similarity is at least ``threshold``: the exact all-pairs join.

    Affordable up to some 200,000 bodies. Prefix, size and position filters leave out only pairs that cannot reach the
    threshold (Bayardo, Ma, Srikant 2007; Xiao, Wang, Lin, Yu 2008), so that nothing is missed.

    Raises:
        ValueError: the threshold is not above 0 and at most 1.
    """
    rows = np.flatnonzero(eligible)
    pairs, similarity = join_sets(shingle_sets(chosen(bodies, rows)), threshold)
    return Pairs(rows[pairs], similarity)


def join_sets(sets: ShingleSets, threshold: float) -> Pairs:
    """Return every pair of sets, by their numbers, whose similarity is at least ``threshold``.

    Raises:
        ValueError: the threshold is not above 0 and at most 1.
    """
    pairs, similarity, _ = _joined(sets, threshold, linking=False)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    return Pairs(pairs[order], similarity[order])


def taken(sets: ShingleSets, which: NDArray[np.int64]) -> ShingleSets:
    """Return some of the sets, in the order of ``which``."""
    parts = [sets.elements[sets.starts[one] : sets.starts[one + 1]] for one in which.tolist()]
    starts = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([part.size for part in parts], out=starts[1:])
    return ShingleSets(np.concatenate([sets.elements[:0], *parts]), starts)


def components(bodies: pa.Array | pa.ChunkedArray, eligible: NDArray[np.bool_], threshold: float) -> NDArray[np.int64]:
    """Return for each row the smallest row that it is tied to by pairs of ``join``; its own where to none.

    Pairs that are tied already are not compared, so this takes less time than the pairs, and no memory for them.

    Raises:
        ValueError: the threshold is not above 0 and at most 1.
    """
    rows = np.flatnonzero(eligible)
    labels = np.arange(len(eligible), dtype=np.int64)
    labels[rows] = rows[_joined(shingle_sets(chosen(bodies, rows)), threshold, linking=True)[2]]
    return labels


def components_of(pairs: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return for each of ``size`` rows the smallest row that it is tied to by ``pairs``; its own where to none."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ties = coo_array((np.ones(len(pairs), np.bool_), (pairs[:, 0], pairs[:, 1])), shape=(size, size))
    _, numbers = connected_components(ties, directed=False)
    _, firsts = np.unique(numbers, return_index=True)
    return np.asarray(firsts[numbers], np.int64)


def _joined(
    sets: ShingleSets, threshold: float, *, linking: bool
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return pairs, their similarity, and the smallest row of the component of each row."""
    if not 0.0 < threshold <= 1.0:
        raise ValueError(f"a threshold of {threshold} is not above 0 and at most 1")
    sizes = np.diff(sets.starts)
    parents = np.arange(sizes.size, dtype=np.int64)
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    counts = np.zeros(1 << max(2 * sets.elements.size, 1).bit_length(), np.uint8)
    mask = np.uint64(counts.size - 1)
    kernel.count_elements(sets.elements, mask, counts)
    elements, holders, places, starts = kernel.prefixes(*sets, order, counts, mask, threshold)
    by_element = np.argsort(elements, kind="stable")
    ordered = elements[by_element]
    where = np.empty(elements.size, np.int64)
    where[by_element] = np.arange(elements.size)
    is_first = np.append(True, ordered[1:] != ordered[:-1])[: elements.size]
    firsts = np.maximum.accumulate(np.where(is_first, np.arange(elements.size), 0))
    pairs, similarity = kernel.join(
        *sets, order, holders, places, starts, where, by_element, firsts[where], threshold, linking, parents
    )
    return pairs, similarity, parents
