"""Equivalence of entries: exact content classes, near-duplicate clusters, template families, and what moved.

``digests.py`` and ``group.py`` make content classes; ``bodies.py``, ``signatures.py``, ``candidates.py``,
``similarity.py``, ``clusters.py`` and ``families.py`` find near-duplicates; ``wordings.py`` shows where two bodies
differ; ``decisions.py`` is what people say of them; ``moves.py`` and ``lineage.py`` compare two corpora. Pure: tables
in, tables out.
"""

from __future__ import annotations

from typing import NamedTuple

from pipeline.store import Stage

SIGN = Stage("signatures", 1)
"""MinHash signatures of bodies that no earlier output holds. Key inputs: the scheme and the bodies."""
CLUSTER = Stage("clusters", 3)
"""Near-duplicate clusters and template families. Key inputs: the corpus, the scheme, thresholds, what is refused."""


class Shard(NamedTuple):
    """A part of all bodies, cut by the first digits of their digests, so that growth moves none to another part."""

    number: int = 0
    """From 0 to ``of`` - 1."""
    of: int = 1

    def holds(self, digest: str) -> bool:
        """Say whether a body, by its digest (hex), belongs to it."""
        return int(digest[:8], 16) * self.of >> 32 == self.number

    def __str__(self) -> str:
        return "all bodies" if self.of == 1 else f"shard {self.number + 1} of {self.of}"


WHOLE = Shard()
