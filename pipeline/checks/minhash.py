"""Signatures held against those of ``datasketch``: the same minima, bit for bit, of the same shingles.

The shingles of the peer come from their definition in plain Python, so that words, shingles, hashes, permutations and
minima are all in the check.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pydantic import JsonValue

from pipeline.checks import CheckRow, Outcome, Sample
from pipeline.engines import Engine
from pipeline.errors import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIGNED = 40
"""Bodies of the sample that are signed."""
LONGEST = 100_000
"""Characters of the longest body that is: the definition in plain Python takes its time."""


def inputs(engines: Mapping[str, Engine]) -> JsonValue:
    """Return what the outcome depends on: how signatures are made."""
    from pipeline.classes.signatures import SCHEME

    return str(SCHEME)


def outcomes(check: str, peer: str, sample: Sample, engines: Mapping[str, Engine]) -> Iterator[Outcome]:
    """Check the signatures of the first bodies of the sample."""
    import numpy as np
    import pyarrow as pa

    from pipeline.classes.shingles import shingles
    from pipeline.classes.signatures import SCHEME, sign

    entries = sample.entries.to_pylist()
    fitting = [row for row in entries if len(row["body"]) <= LONGEST and shingles(row["body"])][:SIGNED]
    ours = sign(pa.array([row["body"] for row in fitting], pa.string())).signatures
    theirs = _theirs([row["body"] for row in fitting])
    differs = np.flatnonzero((ours != theirs).any(axis=1)) if fitting else np.zeros(0, np.int64)
    row = CheckRow(
        check=check,
        subject=str(SCHEME),
        peer=peer,
        entries=len(fitting),
        values=int(ours.size),
        worst_difference=float((ours != theirs).any()) if fitting else None,
        tolerance=0.0,
        passed=differs.size == 0 if fitting else None,
        detail=(
            f"{len(fitting)} bodies compared bit for bit"
            if fitting
            else f"no body of the sample has a word and at most {LONGEST:,} characters"
        ),
    )
    wrong = [f"{fitting[place]['tap']}::{fitting[place]['path_text']}" for place in differs.tolist()]
    others = f" and {len(wrong) - 1} other bodies" if len(wrong) > 1 else ""
    yield Outcome(row, one_line(f"the signature of {wrong[0]}{others} differs") if wrong else "")


def _theirs(bodies: list[str]) -> NDArray[np.uint32]:
    """Return what the package makes of the shingles of each body."""
    import numpy as np
    from datasketch import MinHash

    from pipeline.classes.shingles import shingles
    from pipeline.classes.signatures import SCHEME

    signed = np.empty((len(bodies), SCHEME.permutations), np.uint32)
    for row, body in enumerate(bodies):
        peer = MinHash(num_perm=SCHEME.permutations, seed=SCHEME.seed, scheme=SCHEME.name, hashfunc=_as_it_is)
        peer.update_batch([shingle & 0xFFFFFFFF for shingle in shingles(body, SCHEME.shingle_words)])
        signed[row] = peer.hashvalues
    return signed


def _as_it_is(value: int) -> int:
    return value
