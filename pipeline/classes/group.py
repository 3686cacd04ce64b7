"""Group the entries of a corpus into content classes, and tell mirrors, renamed mirrors and homonyms.

Entries are looked at in the order of ``(tap, path)``. The first entry of a class is the one that it is shown by; every
later one is a mirror: intra-tap if an earlier member of the class lies in the same tap, else cross-tap; renamed if its
slug is not the first entry's. An entry with an empty body is a class of its own under every rule, and bodies that a
person confirmed to be one skill are one class under every rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field, JsonValue

from pipeline.catalog.entries import EntryFacts
from pipeline.classes.decisions import NO_DECISIONS, ClusterDecisions
from pipeline.classes.digests import CLASS_RULES, ClassRule, class_id, empty_class_id
from pipeline.records import Record, Table
from pipeline.store import Stage

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

CLASSES = Stage("classes", 2)

MirrorKind = Literal["intra_tap", "cross_tap"]


class CorpusEntry(EntryFacts):
    """An entry in its corpus: what its own file says, and how it relates to all others."""

    class_id: str = Field(description="The content class, under the class rule of the run.")
    mirror: bool = Field(description="Whether an earlier entry, by tap and path, is of the same class.")
    mirror_kind: MirrorKind | None = Field(
        description="intra_tap: an earlier one lies in the same tap; cross_tap: in other taps only; null: no mirror."
    )
    renamed_mirror: bool = Field(description="Whether it is a mirror whose slug differs from the first entry's.")
    homonyms: int = Field(description="Other classes that hold an entry with the same slug.")


class ContentClass(Record):
    """Entries with the same content under a class rule."""

    class_id: str = Field(description="Digest of rule, its version and content; of tap and path for an empty body.")
    rule: ClassRule = Field(description="The class rule: body, entry, raw or blob.")
    entries: int = Field(description="Entries of the class.")
    taps: int = Field(description="Taps that hold one.")
    names: list[str] = Field(description="Slugs of its entries, sorted, each once.")
    intra_tap_mirrors: int = Field(description="Entries with an earlier one of the class in the same tap.")
    cross_tap_mirrors: int = Field(description="Entries with an earlier one of the class in other taps only.")
    renamed_mirrors: int = Field(description="Entries whose slug differs from the first one's.")
    empty_body: bool = Field(description="Whether it is an entry without a body, which joins no other.")
    locale_copy: bool = Field(description="Whether every entry is a locale copy.")
    tap: str = Field(description="Tap of the first entry, by tap and path.")
    path: bytes = Field(description="Path of the first entry.")
    path_text: str = Field(description="That path as text.")


CORPUS_ENTRIES = Table("entries", CorpusEntry, ("tap", "path"))
CLASS_ROWS = Table("classes", ContentClass, ("class_id",))


class Grouped(NamedTuple):
    """A corpus grouped into content classes."""

    entries: pa.Table
    """One row a ``CorpusEntry``, ordered by tap and path."""
    classes: pa.Table
    """One row a ``ContentClass``, ordered by id."""

    def facts(self) -> dict[str, JsonValue]:
        """Return the counts. ``classes`` counts each empty body; ``classes_empties_as_one`` counts them as one."""
        empties = sum(self.classes["empty_body"].to_pylist())
        return {
            "entries": self.entries.num_rows,
            "classes": self.classes.num_rows,
            "classes_empties_as_one": self.classes.num_rows - max(empties - 1, 0),
            "empty_bodies": empties,
            **{name: sum(self.classes[name].to_pylist()) for name in _MIRROR_COUNTS},
        }


class TapMirrors(NamedTuple):
    """How many entries of a tap are mirrors."""

    intra_tap: int
    cross_tap: int
    renamed: int


NO_MIRRORS = TapMirrors(0, 0, 0)
_MIRROR_COUNTS = ("intra_tap_mirrors", "cross_tap_mirrors", "renamed_mirrors")


def group(entries: pa.Table, rule: ClassRule = "body", decisions: ClusterDecisions = NO_DECISIONS) -> Grouped:
    """Group entries into content classes. The order of the rows does not matter.

    Args:
        entries: the columns of ``EntryFacts``, others are dropped; each ``(tap, path)`` once.
        rule: which digest decides.
        decisions: which bodies are one class, because a person said so.
    """
    import pyarrow as pa

    facts = CORPUS_ENTRIES.sort(entries.select(list(EntryFacts.model_fields))).combine_chunks()
    keys = _class_keys(facts, rule, decisions)
    relations = _relate(facts, keys.codes)
    ids = pa.array(keys.ids, pa.string())
    kinds = pa.array(["intra_tap", "cross_tap", None], pa.string())
    columns = {name: facts[name] for name in facts.column_names}
    grouped = CORPUS_ENTRIES.from_columns(
        {
            **columns,
            "class_id": ids.take(pa.array(keys.codes)),
            "mirror": pa.array(relations.is_mirror),
            "mirror_kind": kinds.take(pa.array(_kind_places(relations))),
            "renamed_mirror": pa.array(relations.is_renamed),
            "homonyms": pa.array(relations.homonyms),
        }
    )
    return Grouped(grouped, _class_table(facts, rule, ids, keys.codes, relations))


def class_ids(entries: pa.Table, rule: ClassRule = "body", decisions: ClusterDecisions = NO_DECISIONS) -> list[str]:
    """Return the id of the class of each entry, in the order of the rows, as ``group`` gives it.

    Args:
        entries: any table with the columns tap, path, empty_body and body_sha256, and that of the rule.
        rule: which digest decides.
        decisions: which bodies are one class, because a person said so.
    """
    joined = decisions.class_of_body()
    columns = (entries[name].to_pylist() for name in ("tap", "path", "empty_body", "body_sha256", CLASS_RULES[rule]))
    return [
        empty_class_id(tap, path) if empty else class_id(rule, joined.get(body, content))
        for tap, path, empty, body, content in zip(*columns, strict=True)
    ]


def counted_classes(entries: pa.Table, rule: ClassRule = "body") -> int:
    """Return how many classes the entries make under ``rule``: as many as ``group`` gives, each empty body one.

    Args:
        entries: any table with the column of the rule and ``empty_body``.
        rule: which digest decides.
    """
    empties: list[bool] = entries["empty_body"].to_pylist()
    contents = zip(entries[CLASS_RULES[rule]].to_pylist(), empties, strict=True)
    return len({content for content, empty in contents if not empty}) + sum(empties)


def counted_classes_by_tap(entries: pa.Table, rule: ClassRule = "body") -> dict[str, int]:
    """Return ``counted_classes`` of each tap that has an entry, by its name, ordered by name."""
    import pyarrow.compute as pc

    taps = sorted(pc.unique(entries["tap"]).to_pylist())
    return {tap: counted_classes(entries.filter(pc.equal(entries["tap"], tap)), rule) for tap in taps}


def mirrors_by_tap(entries: pa.Table) -> dict[str, TapMirrors]:
    """Return the mirrors of each tap that has an entry, by its name; ``NO_MIRRORS`` holds for any other tap.

    Args:
        entries: rows of ``CorpusEntry``.
    """
    counts: dict[str, TapMirrors] = {}
    for tap, kind, renamed in zip(
        entries["tap"].to_pylist(),
        entries["mirror_kind"].to_pylist(),
        entries["renamed_mirror"].to_pylist(),
        strict=True,
    ):
        sofar = counts.get(tap, NO_MIRRORS)
        counts[tap] = TapMirrors(
            sofar.intra_tap + (kind == "intra_tap"), sofar.cross_tap + (kind == "cross_tap"), sofar.renamed + renamed
        )
    return dict(sorted(counts.items()))


class _Keys(NamedTuple):
    """The class of each entry, as a number in order of first appearance, and the id of each class."""

    codes: NDArray[np.int64]
    ids: list[str]


class _Relations(NamedTuple):
    """How the entries relate, one value an entry but for ``first``: the place of the first entry of each class."""

    first: NDArray[np.int64]
    is_mirror: NDArray[np.bool_]
    is_intra_tap: NDArray[np.bool_]
    is_renamed: NDArray[np.bool_]
    homonyms: NDArray[np.int64]


def _class_keys(facts: pa.Table, rule: ClassRule, decisions: ClusterDecisions) -> _Keys:
    import numpy as np

    seen: dict[str, int] = {}
    codes = [seen.setdefault(identity, len(seen)) for identity in class_ids(facts, rule, decisions)]
    return _Keys(np.array(codes, dtype=np.int64), list(seen))


def _relate(facts: pa.Table, classes: NDArray[np.int64]) -> _Relations:
    import numpy as np

    places = np.arange(len(classes))
    taps, slugs = _codes(facts["tap"]), _codes(facts["slug"])
    first = np.unique(classes, return_index=True)[1]
    first_of_mine = first[classes]
    # The first place of each pair of class and tap, for every entry.
    _, first_in_tap, pair = np.unique(_pairs(classes, taps), return_index=True, return_inverse=True)
    is_mirror = places != first_of_mine
    # A slug with n classes has n - 1 homonyms for each of its entries.
    pair_slugs = slugs[np.unique(_pairs(classes, slugs), return_index=True)[1]]
    return _Relations(
        first=first,
        is_mirror=is_mirror,
        is_intra_tap=is_mirror & (places != first_in_tap[pair]),
        is_renamed=slugs != slugs[first_of_mine],
        homonyms=np.bincount(pair_slugs, minlength=1)[slugs].astype(np.int64) - 1,
    )


def _codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Number the values of a column; equal values have equal numbers."""
    import numpy as np

    encoded = column.combine_chunks().dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


def _pairs(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number pairs of numbers; equal pairs have equal numbers, ordered by ``left`` first."""
    return left * (int(right.max(initial=0)) + 1) + right


def _kind_places(relations: _Relations) -> NDArray[np.int64]:
    """Return 0 for an intra-tap mirror, 1 for a cross-tap one, 2 for no mirror."""
    import numpy as np

    return np.where(relations.is_intra_tap, 0, np.where(relations.is_mirror, 1, 2))


def _class_table(
    facts: pa.Table, rule: ClassRule, ids: pa.Array, classes: NDArray[np.int64], relations: _Relations
) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    def members(which: NDArray[np.bool_]) -> pa.Array:
        return pa.array(np.bincount(classes[which], minlength=len(ids)))

    every = np.ones(len(classes), dtype=bool)
    with_locale = facts["locale"].is_valid().to_numpy(zero_copy_only=False).astype(bool)
    taps_of = np.unique(_pairs(classes, _codes(facts["tap"])), return_index=True)[1]
    shown = facts.take(pa.array(relations.first))
    return CLASS_ROWS.from_columns(
        {
            "class_id": ids,
            "rule": pa.array([rule] * len(ids), pa.string()),
            "entries": members(every),
            "taps": pa.array(np.bincount(classes[taps_of], minlength=len(ids))),
            "names": _names(facts["slug"].to_pylist(), classes, len(ids)),
            "intra_tap_mirrors": members(relations.is_intra_tap),
            "cross_tap_mirrors": members(relations.is_mirror & ~relations.is_intra_tap),
            "renamed_mirrors": members(relations.is_renamed),
            "empty_body": shown["empty_body"],
            "locale_copy": pa.array(np.bincount(classes[~with_locale], minlength=len(ids)) == 0),
            "tap": shown["tap"],
            "path": shown["path"],
            "path_text": shown["path_text"],
        }
    )


def _names(slugs: list[str], classes: NDArray[np.int64], count: int) -> pa.Array:
    import pyarrow as pa

    names: list[set[str]] = [set() for _ in range(count)]
    for place, slug in zip(classes.tolist(), slugs, strict=True):
        names[place].add(slug)
    return pa.array([sorted(each) for each in names], pa.list_(pa.string()))
