"""Candidates by locality-sensitive hashing: which bodies are worth comparing. They propose, they never decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Bands(NamedTuple):
    """How a signature is cut: two bodies are candidates where all rows of some band are equal."""

    bands: int = 16
    rows: int = 8

    def chance(self, similarity: float) -> float:
        """Return the probability that a pair of this Jaccard similarity becomes a candidate."""
        return 1.0 - (1.0 - similarity**self.rows) ** self.bands


BANDS = Bands()
"""Finds 0.99 of the pairs at 0.8 with 128 permutations."""


def band_keys(signatures: NDArray[np.uint32], bands: Bands = BANDS) -> NDArray[np.uint64]:
    """Return the 64-bit key of each band of each signature, shape (bodies, bands).

    Raises:
        ValueError: a signature has fewer minima than the bands have rows.
    """
    if signatures.shape[1] < bands.bands * bands.rows:
        raise ValueError(f"{bands.bands} bands of {bands.rows} rows need more than {signatures.shape[1]} minima")
    import numpy as np

    from pipeline.classes import kernel

    keys = np.empty((signatures.shape[0], bands.bands), np.uint64)
    with np.errstate(over="ignore"):  # without the compiler, the hash overflows aloud
        kernel.band_keys(np.ascontiguousarray(signatures), bands.rows, keys)
    return keys


def orders(keys: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return for each band the rows ordered by its key, equal keys by row; shape (bands, rows)."""
    import numpy as np

    return np.ascontiguousarray(np.argsort(keys, axis=0, kind="stable").T)


def candidate_pairs(keys: NDArray[np.uint64], eligible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return all pairs of eligible rows with an equal key in the same band, each once, left below right, sorted.

    Shape (pairs, 2). Meant for checks and small corpora: one bucket of n rows alone gives n (n - 1) / 2 pairs.
    """
    import numpy as np

    from pipeline.classes import kernel

    rows, kept = _kept(keys, eligible)
    pairs = rows[kernel.candidate_pairs(kept, orders(kept))]
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def candidate_groups(keys: NDArray[np.uint64], eligible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for each row the smallest row that it is tied to by candidates, unverified; its own where to none.

    It takes no pairs: neighbours in a bucket tie the whole of it.
    """
    import numpy as np

    from pipeline.classes import kernel

    rows, kept = _kept(keys, eligible)
    parents = np.arange(rows.size, dtype=np.int64)
    kernel.tie(kept, orders(kept), parents)
    groups = np.arange(keys.shape[0], dtype=np.int64)
    groups[rows] = rows[parents]
    return groups


def _kept(keys: NDArray[np.uint64], eligible: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    import numpy as np

    rows = np.flatnonzero(eligible)
    return rows, np.ascontiguousarray(keys[rows])
