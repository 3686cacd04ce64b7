"""Concepts: entities with names and aliases, and which entries of a corpus mention them.

An alias is found on word boundaries, whatever its case: the texts are case-folded, and any white space inside an alias
matches any white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field, ValidationError

from pipeline.errors import BadInput, Fault
from pipeline.jsonlines import Wrong, bad_input, in_row, no_text, read_file, rows
from pipeline.records import Record, Table
from pipeline.store import Stage, digest

if TYPE_CHECKING:
    import pyarrow as pa

CONCEPTS = Stage("concepts", 1)

COLUMNS = ("tap", "path", "body_sha256", "slug", "name", "description", "body")
"""Columns of a catalogue that are read."""

Said = Annotated[str, Field(pattern=r"\w")]


class Concept(Record):
    """A concept, as a person writes it."""

    concept_id: str = Field(alias="conceptId", pattern=r"^\S+$", description="Stable for life, no white space.")
    name: Said = Field(description="What it is called.")
    aliases: list[Said] = Field(default=[], description="What else it is called.")


class Mention(Record):
    """An entry mentions a concept."""

    concept_id: str = Field(description="The concept.")
    tap: str = Field(description="Tap of the entry.")
    path: bytes = Field(description="Path of the entry.")
    body_sha256: str = Field(description="Digest of its body.")
    mentions: int = Field(description="How often one of the names stands in its name, description or body.")


MENTIONS = Table("mentions", Mention, ("concept_id", "tap", "path"))


@dataclass(frozen=True)
class Concepts:
    """All concepts of a file."""

    concepts: tuple[Concept, ...] = ()

    @property
    def digest(self) -> str:
        """Digest of all that detection depends on."""
        return digest([[each.concept_id, sorted({each.name, *each.aliases})] for each in self._sorted()])

    def _sorted(self) -> list[Concept]:
        return sorted(self.concepts, key=lambda concept: concept.concept_id)


NO_CONCEPTS = Concepts()


class DraftConcepts(NamedTuple):
    """Concepts as far as they can be read, so that golden sets can be looked up though rows are wrong."""

    concepts: Concepts
    named: frozenset[str]
    """Ids in rows, of those that are wrong too."""
    faults: list[Fault]


NO_DRAFT = DraftConcepts(NO_CONCEPTS, frozenset(), [])


class Mentioned(NamedTuple):
    """What is known of concepts in a corpus."""

    known: frozenset[str] = frozenset()
    """Ids of all concepts."""
    by_class: Mapping[str, frozenset[str]] = {}
    """Concepts that the entries of a class mention."""


def read_concepts(path: Path) -> Concepts:
    """Read a file of concepts, JSON Lines.

    Raises:
        BadInput: the file cannot be read, or rows are wrong; all faults are named with their line and field.
    """
    return parse_concepts(path, read_file(path))


def parse_concepts(path: Path, data: bytes) -> Concepts:
    """Read concepts from the bytes ``data`` of the file ``path``, which is only named in faults.

    Raises:
        BadInput: rows are wrong; all faults are named with their line and field.
    """
    draft = draft_concepts(path, data)
    if draft.faults:
        raise BadInput(draft.faults)
    return draft.concepts


def draft_concepts(path: Path, data: bytes) -> DraftConcepts:
    """Read what can be read of concepts, and note what is wrong."""
    read: dict[str, tuple[int, Concept]] = {}
    wrongs: list[tuple[int, Wrong]] = []
    for line, value, found in rows(data):
        wrongs += [(line, wrong) for wrong in found]
        if value is None:
            continue
        of_text = [(key, no_text(content)) for key, content in value.items()]
        if any(wrong for _, wrong in of_text):
            wrongs += [(line, wrong._replace(field=key)) for key, wrong in of_text if wrong]
            continue
        try:
            concept = Concept.model_validate(value)
        except ValidationError as error:
            wrongs += [(line, wrong) for wrong in _typed(error)]
            continue
        first, _ = read.setdefault(concept.concept_id, (line, concept))
        if first != line:
            wrongs.append((line, Wrong("conceptId", f"is the id of line {first} too", "give each an id of its own")))
    concepts = Concepts(tuple(concept for _, concept in read.values()))
    named = frozenset(str(value["conceptId"]) for _, value, _ in rows(data) if value and "conceptId" in value)
    return DraftConcepts(concepts, named, list(bad_input(path, wrongs).faults))


def in_both_places(concept_id: str) -> Fault:
    """Return what is wrong with a concept that a file and the ledger declare."""
    todo = "a concept is declared in a file or in the ledger, never in both: take it out of the file"
    return Fault(f"concept {concept_id}", "is declared in the file of concepts, and in the ledger too", todo)


def _typed(error: ValidationError) -> Iterator[Wrong]:
    for found in error.errors(include_url=False):
        field = " ".join(str(part + 1) if isinstance(part, int) else str(part) for part in found["loc"])
        if found["type"] == "extra_forbidden":
            yield Wrong(field, "unknown field", "use one of: conceptId, name, aliases")
        elif found["type"] == "missing":
            yield Wrong(field, "is missing", "write it")
        elif found["type"] == "string_pattern_mismatch":
            yield Wrong(field, f"is blank, or holds no word: {in_row(found['input'])}", "mend the value")
        else:
            yield Wrong(field, f"{found['msg']}: {in_row(found['input'])}", "mend the value")


def find_mentions(catalogue: pa.Table, concepts: Concepts) -> pa.Table:
    """Return which entries mention which concept, a row ``Mention`` each.

    Args:
        catalogue: entries, with ``COLUMNS``.
        concepts: what is looked for.
    """
    patterns = [(concept.concept_id, _Names([concept.name, *concept.aliases])) for concept in concepts.concepts]
    found = []
    for row in catalogue.select(list(COLUMNS)).to_pylist():
        # A line end parts the texts, so that no alias is found across two of them but by its own white space.
        text = "\n\n".join([row["name"], row["slug"], row["description"] or "", row["body"]]).casefold()
        for concept_id, names in patterns:
            count = names.count(text)
            if count:
                found.append(
                    Mention(
                        concept_id=concept_id,
                        tap=row["tap"],
                        path=row["path"],
                        body_sha256=row["body_sha256"],
                        mentions=count,
                    )
                )
    return MENTIONS.from_rows(found)


def mentioned(concepts: Concepts, mentions: pa.Table, entries: pa.Table) -> Mentioned:
    """Return the concepts that each class mentions: those of all its entries.

    Args:
        concepts: all of them.
        mentions: what ``find_mentions`` found in every tap.
        entries: columns tap, path, class_id of the corpus.
    """
    columns = (entries[name].to_pylist() for name in ("tap", "path", "class_id"))
    class_of = {(tap, path): class_id for tap, path, class_id in zip(*columns, strict=True)}
    by_class: dict[str, set[str]] = {}
    for row in mentions.select(["concept_id", "tap", "path"]).to_pylist():
        by_class.setdefault(class_of[row["tap"], row["path"]], set()).add(row["concept_id"])
    known = frozenset(concept.concept_id for concept in concepts.concepts)
    return Mentioned(known, {class_id: frozenset(found) for class_id, found in by_class.items()})


class _Names:
    """The names of a concept, to be found in a case-folded text."""

    def __init__(self, names: Iterable[str]) -> None:
        words: list[Sequence[str]] = [name.casefold().split() for name in sorted(set(names))]
        # The longest first, so that of two names that begin alike the whole one is taken.
        words.sort(key=lambda name: (-len(" ".join(name)), name))
        self._words = words
        alternatives = "|".join(r"\s+".join(map(re.escape, name)) for name in words)
        self._pattern = re.compile(rf"(?<!\w)(?:{alternatives})(?!\w)")

    def count(self, text: str) -> int:
        # Looking for plain words is many times faster than the pattern, and most texts lack one of each name.
        if not any(all(word in text for word in name) for name in self._words):
            return 0
        return sum(1 for _ in self._pattern.finditer(text))
