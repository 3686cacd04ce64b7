"""Template families: bodies of different jobs made from one template, told by the words in which they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field, JsonValue

from pipeline.records import Record, Table

if TYPE_CHECKING:
    import pyarrow as pa

FAMILY_THRESHOLD = 0.5
"""Least Jaccard similarity of two bodies of a family; the classes of one skill are sought at 0.8."""


class TemplateFamily(Record):
    """Bodies made from one template for different jobs."""

    family_id: str = Field(description="Digest of the sorted digests of its bodies.")
    bodies: int = Field(description="Distinct bodies.")
    entries: int = Field(description="Entries that have one of them.")
    taps: int = Field(description="Taps that hold one.")
    names: list[str] = Field(description="Slugs of the entries, sorted, each once.")
    compared: int = Field(description="Members that were compared word by word with the representative.")
    shared_words: float = Field(description="Median share of the representative's words that a compared member has.")
    named: float = Field(description="Share of the compared members whose differing words hold words of their names.")
    aligned: float = Field(description="Share of the representative's differing words that most members lack too.")
    slots: list[str] = Field(description="Runs of the representative's words that most compared members lack, cut.")
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
        """Return the counts: families, their bodies and entries, the largest one."""
        raise NotImplementedError


def template_families(bodies: pa.Table, entries: pa.Table, threshold: float = FAMILY_THRESHOLD) -> Families:
    """Find the template families of a corpus, by the exact join. The order of the rows does not matter.

    Args:
        bodies: rows of ``DistinctBody``, each digest once.
        entries: any table with the columns tap, path, path_text, slug and body_sha256 of ``EntryFacts``.
        threshold: least Jaccard similarity of two bodies of a family.
    """
    raise NotImplementedError
