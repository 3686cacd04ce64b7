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
    """Return the 64-bit key of each band of each signature, shape (bodies, bands)."""
    raise NotImplementedError


def candidate_pairs(keys: NDArray[np.uint64], eligible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return all pairs of eligible rows with an equal key in the same band, each once, left below right, sorted.

    Shape (pairs, 2). Meant for checks and small corpora: one bucket of n rows alone gives n (n - 1) / 2 pairs.
    """
    raise NotImplementedError


def candidate_groups(keys: NDArray[np.uint64], eligible: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for each row the smallest row that it is tied to by candidates, unverified; its own where to none."""
    raise NotImplementedError
