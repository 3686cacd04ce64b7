"""Template families: bodies of different jobs made from one template, told by the words in which they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field, JsonValue

from pipeline.classes.bodies import EntriesOfBodies, group_id, groups_of
from pipeline.records import Record, Table

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

FAMILY_THRESHOLD = 0.5
"""Least Jaccard similarity of two bodies of a family; the classes of one skill are sought at 0.8."""


class TemplateFamily(Record):
    """Bodies made from one template for different jobs."""

    family_id: str = Field(description="Digest of the sorted digests of its bodies.")
    bodies: int = Field(description="Distinct bodies.")
    entries: int = Field(description="Entries that have one of them.")
    taps: int = Field(description="Taps that hold one.")
    names: list[str] = Field(description="Slugs of the entries, sorted, each once.")
    compared: int = Field(
        description="Members with other names that were compared word by word with the representative."
    )
    shared_words: float = Field(description="Median share of the representative's words that a compared member has.")
    named: float = Field(description="Share of them that differ somewhere in nothing but words of the names.")
    aligned: float | None = Field(
        description="Share of the representative's words that they replace which are slots; null for fewer than two."
    )
    slots: list[str] = Field(description="Where most of them have other words, not all the same: its own words, cut.")
    evidence: list[str] = Field(description="Words in which members differ from the representative, «its / theirs».")
    tap: str = Field(description="Tap of the representative: of the body with most entries the first by tap and path.")
    path: bytes = Field(description="Path of the representative.")
    path_text: str = Field(description="That path as text.")
    slug: str = Field(description="Slug of the representative.")


class FamilyMember(Record):
    """A body of a template family."""

    family_id: str = Field(description="The family.")
    body_sha256: str = Field(description="The body.")
    entries: int = Field(description="Entries that have this body.")
    tap: str = Field(description="Tap of the first of them, by tap and path.")
    path: bytes = Field(description="Path of it.")
    path_text: str = Field(description="That path as text.")
    slug: str = Field(description="Slug of it.")


FAMILIES = Table("template_families", TemplateFamily, ("family_id",))
FAMILY_MEMBERS = Table("template_family_members", FamilyMember, ("family_id", "body_sha256"))


class Families(NamedTuple):
    """The template families of a corpus."""

    families: pa.Table
    """One row a ``TemplateFamily``."""
    members: pa.Table
    """One row a ``FamilyMember``."""

    def facts(self) -> dict[str, JsonValue]:
        """Return the counts: families, their bodies and entries, the bodies of the largest one."""
        bodies: list[int] = self.families["bodies"].to_pylist()
        return {
            "families": len(bodies),
            "families_bodies": sum(bodies),
            "families_entries": sum(self.families["entries"].to_pylist()),
            "families_largest": max(bodies, default=0),
        }

    def files(self) -> dict[str, bytes]:
        """Return the tables as Parquet, by their names."""
        tables = {FAMILIES: self.families, FAMILY_MEMBERS: self.members}
        return {table.name: table.to_bytes(rows) for table, rows in tables.items()}


def template_families(bodies: pa.Table, entries: pa.Table, threshold: float = FAMILY_THRESHOLD) -> Families:
    """Find the template families of a corpus, by the exact join. The order of the rows does not matter.

    Args:
        bodies: rows of ``DistinctBody``, each digest once.
        entries: any table with the columns tap, path, path_text, slug, locale and body_sha256 of ``EntryFacts``.
        threshold: least Jaccard similarity of two bodies of a family.

    Raises:
        ValueError: the threshold is not above 0 and at most 1, or no entry has one of the bodies.
    """
    import numpy as np

    from pipeline.classes.similarity import components

    bodies = bodies.sort_by("body_sha256")
    eligible = bodies["eligible"].to_numpy(zero_copy_only=False).astype(np.bool_)
    known = EntriesOfBodies(bodies["body_sha256"], entries)
    groups = groups_of(components(bodies["body"], eligible, threshold))
    found = [family for rows in groups if (family := _family(rows, bodies, known)) is not None]
    return Families(
        FAMILIES.from_rows(family for family, _ in found),
        FAMILY_MEMBERS.from_rows(member for _, members in found for member in members),
    )


def _family(
    rows: NDArray[np.int64], bodies: pa.Table, known: EntriesOfBodies
) -> tuple[TemplateFamily, list[FamilyMember]] | None:
    from pipeline.classes.differences import Member, template_of

    digests: dict[int, str] = {row: bodies["body_sha256"][row].as_py() for row in rows.tolist()}
    holders = dict(zip(digests, known.of(list(digests)), strict=True))
    shown = min(digests, key=lambda row: int(known.standing[row]))
    template = template_of(
        Member(bodies["body"][shown].as_py(), holders[shown].names),
        [Member(bodies["body"][row].as_py(), holders[row].names) for row in digests if row != shown],
    )
    if not template.is_family or template.shared_words is None or template.named is None:
        return None
    slugs = [slug for each in holders.values() for slug in each.slugs]
    family = TemplateFamily(
        family_id=group_id(digests.values()),
        bodies=len(digests),
        entries=len(slugs),
        taps=len(frozenset().union(*(each.taps for each in holders.values()))),
        names=sorted(set(slugs)),
        compared=template.compared,
        shared_words=template.shared_words,
        named=template.named,
        aligned=template.aligned,
        slots=template.slots,
        evidence=template.evidence,
        **holders[shown].first._asdict(),
    )
    members = [
        FamilyMember(
            family_id=family.family_id,
            body_sha256=digest,
            entries=len(holders[row].slugs),
            **holders[row].first._asdict(),
        )
        for row, digest in digests.items()
    ]
    return family, members
