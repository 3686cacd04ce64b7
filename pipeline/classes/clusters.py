"""Near-duplicate clusters: bodies joined by verified similarity, with their facts, and how good the candidates were."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from pydantic import Field, JsonValue

from pipeline.classes.bodies import EntriesOfBodies, Holders, group_id, groups_of
from pipeline.classes.candidates import BANDS, Bands
from pipeline.classes.confusable import confusable_pairs
from pipeline.records import Record, Table

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from pipeline.classes.linking import Linked
    from pipeline.classes.signatures import Signed
    from pipeline.classes.similarity import Pairs

Reading = Literal["copies", "family", "vetoed"]
"""What a cluster may be: one skill in several wordings; a template family; names too alike to tell without a person."""

Side = Literal["above", "below"]


DIFFERS_CHARACTERS = 200
"""Characters that are kept of where a pair differs."""
DIFFERS_WORDS = 300
"""Words that are compared for them."""


class NearDuplicateCluster(Record):
    """Two or more distinct bodies joined by verified similarity."""

    cluster_id: str = Field(description="Digest of the sorted digests of its bodies.")
    reading: Reading = Field(
        description="copies; family: different names, and what differs are names or slots of a template; vetoed: "
        "confusable names, or two bodies that a person refused. Only copies may become one skill, once a person has "
        "confirmed it."
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
    differs: str = Field(
        description="Where they differ, word by word, cut: `[-only left-]`, `{+only right+}`, shared words between."
    )


CLUSTERS = Table("near_duplicate_clusters", NearDuplicateCluster, ("cluster_id",))
MEMBERS = Table("near_duplicate_members", ClusterMember, ("cluster_id", "body_sha256"))
NEAR_PAIRS = Table("near_pairs", NearPair, ("side", "similarity", "left_body", "right_body"))


@dataclass(frozen=True)
class NearDuplicateOptions:
    """What joins bodies into clusters."""

    threshold: float = 0.8
    """Least exact Jaccard similarity of two bodies that are joined; above 0, at most 1."""
    bands: Bands = BANDS
    refused: frozenset[tuple[str, str]] = frozenset()
    """Pairs of body digests, the smaller first, that a person said are not one skill: never joined by an edge."""
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
        readings: list[Reading] = self.clusters["reading"].to_pylist()
        return {
            "clusters": self.clusters.num_rows,
            **{f"clusters_{reading}": readings.count(reading) for reading in get_args(Reading)},
            "clusters_chained": sum(bool(chained) for chained in self.clusters["chained"].to_pylist()),
            "bodies": sum(self.clusters["bodies"].to_pylist()),
            "entries": sum(self.clusters["entries"].to_pylist()),
            **self.unverified,
        }

    def files(self) -> dict[str, bytes]:
        """Return the tables as Parquet, by their names."""
        tables = {CLUSTERS: self.clusters, MEMBERS: self.members, NEAR_PAIRS: self.pairs}
        return {table.name: table.to_bytes(rows) for table, rows in tables.items()}


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

    def facts(self) -> dict[str, JsonValue]:
        """Return the counts, recall and precision, as ``lsh_...`` and ``exact_...``."""
        return {
            "eligible": self.eligible,
            "exact_pairs": self.pairs,
            "exact_bodies": self.bodies_joined,
            "astray": self.bodies_astray,
            "lsh_candidates": self.candidates,
            "lsh_recall": self.recall,
            "lsh_precision": self.precision,
        }


def near_duplicates(
    bodies: pa.Table, signed: Signed, entries: pa.Table, options: NearDuplicateOptions | None = None, threads: int = 1
) -> NearDuplicates:
    """Join bodies into near-duplicate clusters. The order of the rows, of bodies and of entries, does not matter.

    Args:
        bodies: rows of ``DistinctBody``, each digest once.
        signed: their signatures, in the order of ``bodies``.
        entries: any table with the columns tap, path, path_text, slug, locale and body_sha256 of ``EntryFacts``.
        options: what joins bodies.
        threads: how many to use; the result is the same for every number.

    Raises:
        ValueError: the threshold is not above 0 and at most 1, or no entry has one of the bodies.
    """
    from pipeline.classes.linking import link, undecided

    options = options or NearDuplicateOptions()
    if not 0.0 < options.threshold <= 1.0:
        raise ValueError(f"a threshold of {options.threshold} is not above 0 and at most 1")
    bodies, keys, eligible = _in_order(bodies, signed, options)
    known = EntriesOfBodies(bodies["body_sha256"], entries)
    refused = _refused_rows(bodies, options)
    linked = link(bodies["body"], keys, eligible, known.standing, options.threshold, threads, refused)
    groups = groups_of(linked.labels)
    clustered = [row for rows in groups for row in rows.tolist()]
    holders = dict(zip(clustered, known.of(clustered), strict=True))
    parted = {row for pair in refused.tolist() if linked.labels[pair[0]] == linked.labels[pair[1]] for row in pair}
    found = [
        _Cluster.of(rows, bodies, known, holders, linked, options.threshold, refused=not parted.isdisjoint(rows))
        for rows in (group.tolist() for group in groups)
    ]
    unverified = groups_of(linked.groups)
    return NearDuplicates(
        clusters=CLUSTERS.from_rows(each.cluster for each in found),
        members=MEMBERS.from_rows(member for each in found for member in each.members),
        pairs=NEAR_PAIRS.from_rows(_near_pairs(bodies, known, undecided(linked.near, refused), options)),
        unverified={"unverified_clusters": len(unverified), "unverified_bodies": sum(map(len, unverified))},
    )


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
    import numpy as np
    import pyarrow.compute as pc

    from pipeline.classes.candidates import candidate_pairs
    from pipeline.classes.similarity import components_of, join

    options = options or NearDuplicateOptions()
    bodies, keys, eligible = _in_order(bodies, signed, options)
    true = join(bodies["body"], eligible, options.threshold).rows
    refused = set(map(tuple, _refused_rows(bodies, options).tolist()))
    allowed = [tuple(pair) not in refused for pair in true.tolist()]
    exact = components_of(true[np.array(allowed, np.bool_)], bodies.num_rows)
    rows = pc.index_in(found.members["body_sha256"], bodies["body_sha256"]).to_numpy().astype(np.int64)
    here = np.arange(bodies.num_rows)
    # The members of a cluster stand together: its first row of the table names it.
    names = pc.index_in(found.members["cluster_id"], pc.unique(found.members["cluster_id"])).to_numpy()
    here[rows] = rows[np.unique(names, return_index=True)[1]][names] if rows.size else rows
    return CandidateCheck(
        eligible=int(eligible.sum()),
        pairs=len(true),
        candidates=len(candidate_pairs(keys, eligible)),
        found=int((keys[true[:, 0]] == keys[true[:, 1]]).any(axis=1).sum()),
        bodies_joined=sum(map(len, groups_of(exact))),
        bodies_astray=_astray(exact, here),
    )


class _Cluster(NamedTuple):
    cluster: NearDuplicateCluster
    members: list[ClusterMember]

    @classmethod
    def of(
        cls,
        rows: list[int],
        bodies: pa.Table,
        known: EntriesOfBodies,
        held_by: Mapping[int, Holders],
        linked: Linked,
        threshold: float,
        *,
        refused: bool,
    ) -> _Cluster:
        from pipeline.classes.differences import Member, template_of

        digests: dict[int, str] = {row: bodies["body_sha256"][row].as_py() for row in rows}
        holders = {row: held_by[row] for row in rows}
        slugs = [slug for each in holders.values() for slug in each.slugs]
        shown = min(rows, key=lambda row: int(known.standing[row]))
        first = holders[shown].first
        template = template_of(
            Member(bodies["body"][shown].as_py(), holders[shown].names),
            [Member(bodies["body"][row].as_py(), holders[row].names) for row in rows if row != shown],
        )
        vetoes = _vetoes([each.names for each in holders.values()])
        lowest = linked.lowest[rows[0]]
        cluster = NearDuplicateCluster(
            cluster_id=group_id(digests.values()),
            reading="family" if template.is_family else "vetoed" if vetoes or refused else "copies",
            bodies=len(digests),
            entries=len(slugs),
            taps=len(frozenset().union(*(each.taps for each in holders.values()))),
            names=sorted(set(slugs)),
            lowest_similarity=lowest,
            chained=None if lowest is None else lowest < threshold,
            renamed=sum(slug != first.slug for slug in slugs),
            locale_copies=sum(each.locale_copies for each in holders.values()),
            confusable=vetoes,
            evidence=template.evidence,
            **first._asdict(),
        )
        members = [
            ClusterMember(
                cluster_id=cluster.cluster_id,
                body_sha256=digest,
                similarity=float(linked.to_shown[row]),
                entries=len(holders[row].slugs),
                **holders[row].first._asdict(),
            )
            for row, digest in digests.items()
        ]
        return cls(cluster, members)


def _in_order(
    bodies: pa.Table, signed: Signed, options: NearDuplicateOptions
) -> tuple[pa.Table, NDArray[np.uint64], NDArray[np.bool_]]:
    """Return the bodies ordered by digest, their band keys, and which of them may join others."""
    import numpy as np
    import pyarrow.compute as pc

    from pipeline.classes.candidates import band_keys

    order = pc.sort_indices(bodies["body_sha256"])
    places = order.to_numpy()
    is_ordered = bool((places[1:] > places[:-1]).all())  # as `distinct_bodies` gives them: no text is copied
    kept = bodies if is_ordered else bodies.take(order)
    eligible = kept["eligible"].to_numpy(zero_copy_only=False).astype(np.bool_) & signed.signed[places]
    return kept, band_keys(signed.signatures[places], options.bands), eligible


def _refused_rows(bodies: pa.Table, options: NearDuplicateOptions) -> NDArray[np.int64]:
    """Return the refused pairs as rows of ``bodies``, which are ordered by digest; pairs that are not there go."""
    import numpy as np

    place = {digest: row for row, digest in enumerate(bodies["body_sha256"].to_pylist())} if options.refused else {}
    rows = sorted((place[left], place[right]) for left, right in options.refused if left in place and right in place)
    return np.array(rows, np.int64).reshape(-1, 2)


def _vetoes(names: Sequence[frozenset[str]]) -> list[str]:
    """Return the pairs of confusable names that no body has both of, nor any other name in common, sorted."""
    bodies_of: dict[str, set[int]] = {}
    for number, each in enumerate(names):
        for name in each:
            bodies_of.setdefault(name, set()).add(number)
    folded = [{name.casefold() for name in each} for each in names]
    return [
        f"{one} / {other}"
        for one, other in confusable_pairs(bodies_of)
        if any(folded[left].isdisjoint(folded[right]) for left in bodies_of[one] for right in bodies_of[other])
    ]


def _near_pairs(
    bodies: pa.Table, known: EntriesOfBodies, near: Pairs, options: NearDuplicateOptions
) -> Iterator[NearPair]:
    """Yield the pairs nearest to the threshold on each side of it, ties by row."""
    import numpy as np

    above = near.similarity >= options.threshold
    sides: tuple[tuple[Side, NDArray[np.bool_], int], ...] = (("above", above, 1), ("below", ~above, -1))
    for side, which, direction in sides:
        places = np.flatnonzero(which)
        for place in places[np.argsort(direction * near.similarity[places], kind="stable")][: options.pairs_kept]:
            left, right = near.rows[place].tolist()
            first, second = (each.first for each in known.of([left, right]))
            yield NearPair(
                side=side,
                similarity=float(near.similarity[place]),
                left_body=bodies["body_sha256"][left].as_py(),
                right_body=bodies["body_sha256"][right].as_py(),
                left_tap=first.tap,
                left_path=first.path,
                left_slug=first.slug,
                right_tap=second.tap,
                right_path=second.path,
                right_slug=second.slug,
                differs=_differs(*(bodies["body"][row].as_py() for row in (left, right))),
            )


def _differs(left: str, right: str) -> str:
    from pipeline.classes.wordings import marked, worded

    return marked(worded(left, right, compared=DIFFERS_WORDS), DIFFERS_CHARACTERS)


def _astray(exact: NDArray[np.int64], here: NDArray[np.int64]) -> int:
    """Return how many rows are not in the same company in both."""
    import numpy as np

    _, places, sizes = np.unique(np.stack((exact, here)), axis=1, return_inverse=True, return_counts=True)
    both = sizes[places.ravel()]
    return int(((both != np.bincount(exact)[exact]) | (both != np.bincount(here)[here])).sum())
