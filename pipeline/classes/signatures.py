"""MinHash signatures of bodies: what they are made by, how they are made, kept and read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from pipeline.records import Record, Table

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class Scheme(NamedTuple):
    """All that decides which signature a text has. Signatures of different schemes are never compared."""

    name: str = "affine32"
    """The permutation scheme, as ``datasketch`` 2 names it; no other one is known."""
    seed: int = 1
    """Of the generator that draws the permutations."""
    permutations: int = 128
    """Minima of a signature."""
    shingle_words: int = 5
    """Words of a shingle."""
    version: int = 1
    """Rises whenever a text gets other words, shingles or hashes than before."""

    def __str__(self) -> str:
        return f"{self.name}-s{self.seed}-p{self.permutations}-w{self.shingle_words}-v{self.version}"


SCHEME = Scheme()


class BodySignature(Record):
    """The signature of a body."""

    body_sha256: str = Field(description="SHA-256 of the body, its white space normalised.")
    scheme: str = Field(
        description="What the signature was made by: scheme, seed, permutations, shingle words, version."
    )
    signature: bytes | None = Field(description="The minima, little-endian uint32; null where the body has no word.")


SIGNATURES = Table("signatures", BodySignature, ("body_sha256",))


class Signed(NamedTuple):
    """Signatures of texts, in their order."""

    signatures: NDArray[np.uint32]
    """Shape (texts, permutations). A text without a word has the largest value everywhere, as an empty set has."""
    signed: NDArray[np.bool_]
    """Whether the text has a word."""


def sign(bodies: pa.Array | pa.ChunkedArray, scheme: Scheme = SCHEME, threads: int = 1) -> Signed:
    """Return the MinHash signatures of texts, equal to those of ``datasketch`` for the same 32-bit shingle hashes.

    Args:
        bodies: strings, none of them null.
        scheme: what to make them by.
        threads: how many to use; the result is the same for every number.

    Raises:
        ValueError: the scheme is none that is known here.
    """
    raise NotImplementedError


def signature_table(bodies: pa.Table, scheme: Scheme = SCHEME, threads: int = 1) -> pa.Table:
    """Return one row a ``BodySignature``, ordered by digest, each digest once.

    Args:
        bodies: any table with the columns body_sha256 and body: a tap's catalogue, or ``distinct_bodies``.
        scheme: what to make them by.
        threads: how many to use.
    """
    raise NotImplementedError


def signatures_of(digests: pa.Array | pa.ChunkedArray, tables: pa.Table, scheme: Scheme = SCHEME) -> Signed:
    """Return the kept signatures of bodies, in the order of ``digests``.

    Args:
        digests: body_sha256 of each body wanted.
        tables: rows of ``BodySignature``, in any order; a digest may stand there more than once.
        scheme: what they must have been made by.

    Raises:
        BadInput: a signature was made by another scheme or seed, or has another length.
        MissingArtifact: a body has no row.
    """
    raise NotImplementedError
