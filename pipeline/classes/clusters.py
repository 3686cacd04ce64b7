"""Near-duplicate clusters: bodies joined by verified similarity, with their facts, and how good the candidates were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field, JsonValue

from pipeline.classes.candidates import BANDS, Bands
from pipeline.records import Record, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.classes.signatures import Signed

Reading = Literal["copies", "family", "vetoed"]
"""What a cluster may be: one skill in several wordings; a template family; names too alike to tell without a person."""

Side = Literal["above", "below"]


class NearDuplicateCluster(Record):
    """Two or more distinct bodies joined by verified similarity."""

    cluster_id: str = Field(description="Digest of the sorted digests of its bodies.")
    reading: Reading = Field(
        description="copies; family: different names, and what differs are names or slots of a template; vetoed: "
        "confusable names. Only copies may become one skill, and none before a person has confirmed it."
    )
    bodies: int = Field(description="Distinct bodies.")
    entries: int = Field(description="Entries that have one of them.")
    taps: int = Field(description="Taps that hold one.")
    names: list[str] = Field(description="Slugs of the entries, sorted, each once.")
    lowest_similarity: float | None = Field(
        description="Of any two of its bodies; null where there are too many bodies to compare all."
    )
    chained: bool | None = Field(
        description="Whether some two of its bodies are below the threshold, joined through others; null as above."
    )
    renamed: int = Field(description="Entries whose slug differs from the representative's.")
    locale_copies: int = Field(description="Entries that are locale copies.")
    confusable: list[str] = Field(description="Pairs of confusable names that veto a merge, as «one / other», sorted.")
    evidence: list[str] = Field(description="Words in which members differ from the representative, «its / theirs».")
    tap: str = Field(description="Tap of the representative: of the body with most entries the first by tap and path.")
    path: bytes = Field(description="Path of the representative.")
    path_text: str = Field(description="That path as text.")
    slug: str = Field(description="Slug of the representative.")


class ClusterMember(Record):
    """A body of a near-duplicate cluster."""

    cluster_id: str = Field(description="The cluster.")
    body_sha256: str = Field(description="The body.")
    similarity: float = Field(description="To the representative's body.")
    entries: int = Field(description="Entries that have this body.")
    tap: str = Field(description="Tap of the first of them, by tap and path.")
    path: bytes = Field(description="Path of it.")
    path_text: str = Field(description="That path as text.")
    slug: str = Field(description="Slug of it.")


class NearPair(Record):
    """A pair of bodies near the threshold, on either side of it."""

    side: Side = Field(description="above: at the threshold or above it, joined; below: compared, and not joined.")
    similarity: float = Field(description="Exact Jaccard similarity of the shingle sets.")
    left_body: str = Field(description="The smaller digest of the two.")
    right_body: str = Field(description="The larger one.")
    left_tap: str = Field(description="Tap of the first entry that has the left body.")
    left_path: bytes = Field(description="Path of it.")
    left_slug: str = Field(description="Slug of it.")
    right_tap: str = Field(description="Tap of the first entry that has the right body.")
    right_path: bytes = Field(description="Path of it.")
    right_slug: str = Field(description="Slug of it.")


CLUSTERS = Table("near_duplicate_clusters", NearDuplicateCluster, ("cluster_id",))
MEMBERS = Table("near_duplicate_members", ClusterMember, ("cluster_id", "body_sha256"))
NEAR_PAIRS = Table("near_pairs", NearPair, ("side", "similarity", "left_body", "right_body"))


@dataclass(frozen=True)
class NearDuplicateOptions:
    """What joins bodies into clusters."""

    threshold: float = 0.8
    """Least exact Jaccard similarity of two bodies that are joined; above 0, at most 1."""
    bands: Bands = BANDS
    pairs_kept: int = 200
    """How many pairs nearest to the threshold are kept on each side of it."""


class NearDuplicates(NamedTuple):
    """The near-duplicate clusters of a corpus."""

    clusters: pa.Table
    """One row a ``NearDuplicateCluster``."""
    members: pa.Table
    """One row a ``ClusterMember``."""
    pairs: pa.Table
    """One row a ``NearPair``."""
    unverified: dict[str, JsonValue]
    """What would be joined without verification: ``unverified_clusters``, ``unverified_bodies``."""

    def facts(self) -> dict[str, JsonValue]:
        """Return the counts: clusters by reading, bodies and entries in them, those without verification beside."""
        raise NotImplementedError


class CandidateCheck(NamedTuple):
    """The candidates held against the exact join over all pairs."""

    eligible: int
    """Bodies that were compared."""
    pairs: int
    """Pairs at the threshold or above it, by the exact join."""
    candidates: int
    """Pairs that share a band."""
    found: int
    """Pairs that are both."""
    bodies_joined: int
    """Bodies in clusters of the exact join."""
    bodies_astray: int
    """Bodies whose cluster here is not the one of the exact join."""

    @property
    def recall(self) -> float | None:
        """Share of the true pairs that are candidates; None without a true pair."""
        return self.found / self.pairs if self.pairs else None

    @property
    def precision(self) -> float | None:
        """Share of the candidates that are true pairs; None without a candidate."""
        return self.found / self.candidates if self.candidates else None


def near_duplicates(
    bodies: pa.Table, signed: Signed, entries: pa.Table, options: NearDuplicateOptions | None = None
) -> NearDuplicates:
    """Join bodies into near-duplicate clusters. The order of the rows, of bodies and of entries, does not matter.

    Args:
        bodies: rows of ``DistinctBody``, each digest once.
        signed: their signatures, in the order of ``bodies``.
        entries: any table with the columns tap, path, path_text, slug, locale and body_sha256 of ``EntryFacts``.
        options: what joins bodies.
    """
    raise NotImplementedError


def check_candidates(
    bodies: pa.Table, signed: Signed, found: NearDuplicates, options: NearDuplicateOptions | None = None
) -> CandidateCheck:
    """Hold candidates and clusters against the exact join over all pairs.

    Args:
        bodies: as for ``near_duplicates``.
        signed: as for ``near_duplicates``.
        found: what it returned.
        options: as for ``near_duplicates``.
    """
    raise NotImplementedError
