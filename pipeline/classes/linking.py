"""From candidates to clusters: compare exactly, join what is alike, and look inside what was joined."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pipeline.classes import kernel
from pipeline.classes.candidates import candidate_groups, orders
from pipeline.classes.shingles import chosen
from pipeline.classes.similarity import Pairs, ShingleSets, components_of, join_sets, shingle_sets, taken

MEMBERS_COMPARED = 400
"""In clusters of more bodies not all pairs are compared, so that the time does not grow with their square."""
NEAR = 0.1
"""How far from the threshold a pair may be and still count as near."""
BYTES_AT_ONCE = 32 << 20
"""Text that is compared at once, where groups of candidates allow it: its shingle sets take about as much again."""


class Linked(NamedTuple):
    """Bodies joined by verified similarity."""

    labels: NDArray[np.int64]
    """For each row the smallest row of its cluster; its own where it is in none."""
    groups: NDArray[np.int64]
    """The same by candidates alone, unverified."""
    to_shown: NDArray[np.float64]
    """For each row of a cluster its similarity to the row that the cluster is shown by; 1 for all others."""
    lowest: dict[int, float | None]
    """For each cluster, by its smallest row, the lowest similarity of two bodies; None where not all were compared."""
    near: Pairs
    """The pairs no further than ``NEAR`` from the threshold among those that were compared."""


class _Part(NamedTuple):
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    to_shown: NDArray[np.float64]
    lowest: dict[int, float | None]
    near: Pairs


def link(
    bodies: pa.Array | pa.ChunkedArray,
    keys: NDArray[np.uint64],
    eligible: NDArray[np.bool_],
    standing: NDArray[np.int64],
    threshold: float,
    threads: int = 1,
    refused: NDArray[np.int64] | None = None,
) -> Linked:
    """Join the eligible rows whose exact similarity is at least ``threshold``, among those that share a band.

    Groups of candidates are independent, so they are compared some at a time, in bounded memory, and side by side.

    Args:
        bodies: the texts; only those of candidates are read.
        keys: the band keys of each row.
        eligible: which rows may join others.
        standing: for each row a number; a cluster is shown by the row with the smallest.
        threshold: least Jaccard similarity that joins.
        threads: how many to use; the result is the same for every number.
        refused: pairs of rows that are joined by no similarity of their own, shape (pairs, 2), left below right.
    """
    refused = np.empty((0, 2), np.int64) if refused is None else refused
    groups = candidate_groups(keys, eligible)
    labels = np.arange(len(groups), dtype=np.int64)
    to_shown = np.ones(len(groups))
    lowest: dict[int, float | None] = {}
    pairs, similarities = [np.empty((0, 2), np.int64)], [np.empty(0)]
    with ThreadPoolExecutor(max(threads, 1)) as pool:
        parts = _parts(bodies, groups)
        for part in pool.map(lambda rows: _link_part(bodies, keys, standing, threshold, refused, rows), parts):
            labels[part.rows] = part.labels
            to_shown[part.rows] = part.to_shown
            lowest.update(part.lowest)
            pairs.append(part.near.rows)
            similarities.append(part.near.similarity)
    rows, similarity = np.concatenate(pairs), np.concatenate(similarities)
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    return Linked(labels, groups, to_shown, dict(sorted(lowest.items())), Pairs(rows[order], similarity[order]))


def _parts(bodies: pa.Array | pa.ChunkedArray, groups: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Cut the rows that have candidates into parts of whole groups, each some ``BYTES_AT_ONCE`` or one group."""
    sizes = np.bincount(groups, minlength=1)
    rows = np.flatnonzero(sizes[groups] > 1)
    if not rows.size:
        return []
    rows = rows[np.argsort(groups[rows], kind="stable")]
    lengths = np.asarray(pc.binary_length(bodies), dtype=np.int64)[rows]
    is_first = np.append(True, groups[rows][1:] != groups[rows][:-1])
    begins = np.cumsum(lengths) - lengths
    part = begins[is_first][np.cumsum(is_first) - 1] // BYTES_AT_ONCE
    return np.split(rows, np.flatnonzero(np.diff(part)) + 1)


def _link_part(
    bodies: pa.Array | pa.ChunkedArray,
    keys: NDArray[np.uint64],
    standing: NDArray[np.int64],
    threshold: float,
    refused: NDArray[np.int64],
    rows: NDArray[np.int64],
) -> _Part:
    rows = np.sort(rows)
    sets = shingle_sets(chosen(bodies, rows))
    own_keys = np.ascontiguousarray(keys[rows])
    parents = np.arange(rows.size, dtype=np.int64)
    floor, ceiling = max(threshold - NEAR, 0.0), threshold + NEAR
    pairs, similarity = kernel.link(own_keys, orders(own_keys), *sets, threshold, floor, parents)
    _part_refused(sets, threshold, np.searchsorted(rows, refused[np.isin(refused, rows).all(axis=1)]), parents)
    apart = parents[pairs[:, 0]] != parents[pairs[:, 1]]  # those that were joined after all are compared again below

    joined = np.bincount(parents, minlength=1)[parents] > 1
    members = np.flatnonzero(joined)
    members = members[np.lexsort((standing[rows[members]], parents[members]))]
    labels, starts = np.unique(parents[members], return_index=True)
    starts = np.append(starts, members.size).astype(np.int64)
    lowest, own_to_shown = np.empty(labels.size), np.empty(members.size)
    inside, inside_similarity = kernel.look_inside(
        *sets, members, starts, members[starts[:-1]], MEMBERS_COMPARED, floor, ceiling, lowest, own_to_shown
    )
    to_shown = np.ones(rows.size)
    to_shown[members] = own_to_shown
    return _Part(
        rows=rows,
        labels=rows[parents],
        to_shown=to_shown,
        lowest={int(row): None if value < 0 else float(value) for row, value in zip(rows[labels], lowest, strict=True)},
        near=Pairs(
            rows[np.concatenate((pairs[apart], inside))], np.concatenate((similarity[apart], inside_similarity))
        ),
    )


def _part_refused(sets: ShingleSets, threshold: float, refused: NDArray[np.int64], parents: NDArray[np.int64]) -> None:
    """Join the clusters that hold a refused pair anew, without the edge between its two rows."""
    for label in np.unique(parents[refused[parents[refused[:, 0]] == parents[refused[:, 1]]]]):
        members = np.flatnonzero(parents == label)
        pairs = join_sets(taken(sets, members), threshold).rows
        kept = pairs[~_among(members[pairs], refused)]
        parents[members] = members[components_of(kept, members.size)]


def undecided(pairs: Pairs, refused: NDArray[np.int64]) -> Pairs:
    """Return the pairs that nobody refused."""
    kept = ~_among(pairs.rows, refused)
    return Pairs(pairs.rows[kept], pairs.similarity[kept])


def _among(pairs: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say which pairs are among those wanted."""
    listed = set(map(tuple, wanted.tolist()))
    return np.array([tuple(pair) in listed for pair in pairs.tolist()], dtype=np.bool_)
