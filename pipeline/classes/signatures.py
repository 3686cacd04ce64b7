"""MinHash signatures of bodies: what they are made by, how they are made, kept and read again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from pipeline.errors import BadInput, Fault, MissingArtifact
from pipeline.records import Record, Table

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from pipeline.classes.shingles import Texts

ROWS_AT_ONCE = 1024
"""Texts that a thread signs before it takes more."""
FAULTS_SHOWN = 5
"""Signatures of another scheme that are named at once."""


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
        bodies: strings, none of them null. Chunks are read one by one, where they lie.
        scheme: what to make them by.
        threads: how many to use; the result is the same for every number.

    Raises:
        ValueError: the scheme is none that is known here, or a body is null.
    """
    import numpy as np
    import pyarrow as pa

    from pipeline.classes import kernel
    from pipeline.classes.shingles import character_tables, texts

    tables = character_tables()
    factors, addends = permutations(scheme)
    signatures = np.empty((len(bodies), scheme.permutations), np.uint32)
    signed = np.zeros(len(bodies), np.bool_)
    chunks = bodies.chunks if isinstance(bodies, pa.ChunkedArray) else [bodies]
    offsets = np.cumsum([0, *map(len, chunks)])
    parts = [
        (
            texts(chunk).part(start, start + ROWS_AT_ONCE),
            slice(offset + start, offset + min(start + ROWS_AT_ONCE, size)),
        )
        for chunk, offset, size in zip(chunks, offsets.tolist(), map(len, chunks), strict=False)
        for start in range(0, size, ROWS_AT_ONCE)
    ]

    def sign_part(part: tuple[Texts, slice]) -> None:
        column, rows = part
        read = (*column, *tables)
        with np.errstate(over="ignore"):  # without the compiler, the hash overflows aloud
            kernel.sign(*read, scheme.shingle_words, factors, addends, signatures[rows], signed[rows])

    with ThreadPoolExecutor(max(threads, 1)) as pool:
        list(pool.map(sign_part, parts))
    return Signed(signatures, signed)


def permutations(scheme: Scheme = SCHEME) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the odd factors and the addends of a scheme, as ``datasketch`` 2 draws them.

    They are drawn here because importing ``datasketch`` takes longer than to sign all registries.

    Raises:
        ValueError: the scheme is none that is known here.
    """
    import numpy as np

    if scheme.name != SCHEME.name or scheme.version != SCHEME.version:
        raise ValueError(f"the signature scheme {scheme} is not known; known is {SCHEME}")
    if scheme.permutations < 1 or scheme.shingle_words < 1:
        raise ValueError(f"the signature scheme {scheme} has no permutations or no shingle words")
    generator = np.random.RandomState(scheme.seed)
    factors = generator.randint(0, 1 << 31, scheme.permutations, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    return factors, generator.randint(0, 1 << 32, scheme.permutations, dtype=np.uint32)


def signature_table(bodies: pa.Table, scheme: Scheme = SCHEME, threads: int = 1) -> pa.Table:
    """Return one row a ``BodySignature``, ordered by digest, each digest once.

    Args:
        bodies: any table with the columns body_sha256 and body: a tap's catalogue, or ``distinct_bodies``.
        scheme: what to make them by.
        threads: how many to use.
    """
    import numpy as np
    import pyarrow as pa

    digests, firsts = np.unique(np.array(bodies["body_sha256"].to_pylist(), dtype=object), return_index=True)
    found = sign(bodies["body"].take(pa.array(firsts, pa.int64())), scheme, threads)
    kept = found.signatures.astype("<u4")
    return SIGNATURES.from_columns(
        {
            "body_sha256": pa.array(digests.tolist(), pa.string()),
            "scheme": pa.array([str(scheme)] * len(digests), pa.string()),
            "signature": pa.array(
                [row.tobytes() if signed else None for row, signed in zip(kept, found.signed, strict=True)], pa.binary()
            ),
        }
    )


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
    import numpy as np
    import pyarrow.compute as pc

    size = 4 * scheme.permutations
    others = tables.filter(pc.not_equal(tables["scheme"], str(scheme)))
    odd = tables.filter(pc.not_equal(pc.binary_length(tables["signature"]), size))  # a null is not odd
    if others.num_rows or odd.num_rows:
        raise BadInput(_faults(others, odd, scheme))
    places = pc.index_in(digests, tables["body_sha256"])
    if places.null_count:
        lacking = pc.filter(digests, pc.is_null(places))[0].as_py()
        raise MissingArtifact(f"{places.null_count} bodies have no signature, {lacking} the first: sign them first")
    wanted = tables["signature"].take(places)
    signed = wanted.is_valid().to_numpy().astype(np.bool_)
    data = b"".join(pc.fill_null(wanted, b"\xff" * size).to_pylist())
    return Signed(np.frombuffer(data, "<u4").reshape(-1, scheme.permutations).astype(np.uint32), signed)


def _faults(others: pa.Table, odd: pa.Table, scheme: Scheme) -> list[Fault]:
    todo = f"sign it again by {scheme}; signatures of different schemes are not comparable"
    return [
        *(
            Fault(f"signature of body {row['body_sha256']}", f"it was made by {row['scheme']}", todo)
            for row in others.to_pylist()[:FAULTS_SHOWN]
        ),
        *(
            Fault(f"signature of body {row['body_sha256']}", f"it has {len(row['signature'])} bytes", todo)
            for row in odd.to_pylist()[:FAULTS_SHOWN]
        ),
    ]
