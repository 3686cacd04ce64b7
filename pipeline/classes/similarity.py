"""Exact Jaccard similarity of bodies by their shingle sets: of given pairs, and of all pairs above a threshold."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class Pairs(NamedTuple):
    """Pairs of rows with their similarity, ordered by left, then right row."""

    rows: NDArray[np.int64]
    """Shape (pairs, 2), left below right."""
    similarity: NDArray[np.float64]
    """Exact Jaccard similarity of the shingle sets, 0 to 1."""


def jaccard(bodies: pa.Array | pa.ChunkedArray, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the exact Jaccard similarity of each pair of rows; 0 where one of the two has no word."""
    raise NotImplementedError


def join(bodies: pa.Array | pa.ChunkedArray, eligible: NDArray[np.bool_], threshold: float) -> Pairs:
    """Return every pair of eligible rows whose similarity is at least ``threshold``: the exact all-pairs join.

    Affordable up to some 200,000 bodies. Prefix, size and position filters leave out only pairs that cannot reach the
    threshold (Bayardo, Ma, Srikant 2007; Xiao, Wang, Lin, Yu 2008), so that nothing is missed.

    Raises:
        ValueError: the threshold is not above 0 and at most 1.
    """
    raise NotImplementedError
