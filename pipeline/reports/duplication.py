"""Views on the duplicates of a run, from its tables alone: by tap, by name, families, clusters, pairs, golden names."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from pipeline.classes.clusters import Side
from pipeline.classes.wordings import Side as WordSide
from pipeline.records import Record
from pipeline.reports.feed import NearDuplicateFacts
from pipeline.reports.reading import Row, count_of, names_of, rows_of, text_of
from pipeline.scoring.near import copies, joined_classes

if TYPE_CHECKING:
    import pyarrow as pa

TABLES = (
    "taps",
    "entries",
    "items",
    "near_duplicate_clusters",
    "near_duplicate_members",
    "near_pairs",
    "template_families",
)
"""What the views are made from, beside ``runs``."""


class TapCopies(Record):
    """What of a tap stands in the corpus before: an earlier entry, by tap and path, has the same content or nearly."""

    tap: str = Field(description="The tap.")
    entries: int = Field(description="Its entries.")
    mirrors_inside: int = Field(description="Entries with the content of an earlier one of the tap.")
    mirrors_of_earlier: int = Field(description="Entries with the content of one of an earlier tap, and of none here.")
    near_inside: int = Field(description="No mirrors, but in a cluster of copies with an earlier entry of the tap.")
    near_of_earlier: int = Field(description="The same with an entry of an earlier tap, and none here.")
    share: float | None = Field(description="Share of its entries that are any of these; null without entries.")

    @property
    def mirrors(self) -> int:
        """Exact mirrors."""
        return self.mirrors_inside + self.mirrors_of_earlier

    @property
    def near(self) -> int:
        """Near copies."""
        return self.near_inside + self.near_of_earlier


class NameCopies(Record):
    """What one name stands for in the corpus."""

    name: str = Field(description="The name, as a slug.")
    entries: int = Field(description="Entries that carry it.")
    classes: int = Field(description="Content classes among them; a name with more than one is ambiguous.")
    apart: int = Field(description="What these are when each cluster of copies counts as one.")
    clusters: int = Field(description="Near-duplicate clusters that hold one of the entries, of any reading.")
    taps: int = Field(description="Taps that hold one.")


class GoldenNames(Record):
    """How ambiguous the names of golden sets are, in total. Each name counts once, in however many rows it stands."""

    names: int = Field(description="Names that rows of golden sets give as answers.")
    ambiguous: int = Field(description="Those that stand for more than one content class.")
    ambiguous_apart: int = Field(description="Those that still do when each cluster of copies counts as one.")
    entries: int = Field(description="Entries that carry one of the names.")
    classes: int = Field(description="Content classes of these.")
    apart: int = Field(description="What these are when each cluster of copies counts as one.")


class FamilyView(Record):
    """A template family: different jobs made from one template."""

    family_id: str = Field(description="Digest of its bodies.")
    bodies: int = Field(description="Distinct bodies.")
    entries: int = Field(description="Entries that have one of them.")
    taps: int = Field(description="Taps that hold one.")
    names: list[str] = Field(description="Slugs of the entries.")
    shared_words: float = Field(description="Median share of the representative's words that other members have.")
    slots: list[str] = Field(description="Words of the representative where most members have others.")
    evidence: list[str] = Field(description="In which words members differ from it, «its / theirs».")
    tap: str = Field(description="Tap of the representative.")
    path: str = Field(description="Path of it, as text.")


class ClusterView(Record):
    """A near-duplicate cluster."""

    cluster_id: str = Field(description="Digest of its bodies.")
    reading: str = Field(description="copies, family or vetoed.")
    bodies: int = Field(description="Distinct bodies.")
    entries: int = Field(description="Entries that have one of them.")
    taps: int = Field(description="Taps that hold one.")
    names: list[str] = Field(description="Slugs of the entries.")
    lowest_similarity: float | None = Field(description="Of any two of its bodies; null where not all were compared.")
    chained: bool | None = Field(description="Whether some two of them are below the threshold; null as above.")
    confusable: list[str] = Field(description="Pairs of confusable names that veto a merge.")
    evidence: list[str] = Field(description="In which words members differ from the representative.")
    tap: str = Field(description="Tap of the representative.")
    path: str = Field(description="Path of it, as text.")


class PairView(Record):
    """Two bodies near the threshold."""

    side: Side = Field(description="above: joined; below: not joined.")
    similarity: float = Field(description="Exact Jaccard similarity.")
    left: str = Field(description="First entry of the one body, as `tap::path`.")
    left_name: str = Field(description="Its slug.")
    left_body: str = Field(description="Digest of the body.")
    right: str = Field(description="First entry of the other body.")
    right_name: str = Field(description="Its slug.")
    right_body: str = Field(description="Digest of the body.")
    differs: str = Field(description="Where they differ, word by word: `[-only left-]`, `{+only right+}`; cut.")


class WordRun(Record):
    """Words that both bodies of a pair have, or only one of them."""

    side: WordSide = Field(description="both, left or right.")
    text: str = Field(description="The words; `…` stands where some are left out.")


class ReadPair(PairView):
    """A pair with the words in which it differs, from the bodies themselves."""

    words: list[WordRun] | None = Field(
        description="Each difference with some shared words around it; null where the store no longer holds a body."
    )


class EventCount(Record):
    """How often something became of entries or clusters."""

    subject: str = Field(description="entry or cluster.")
    event: str = Field(description="What became of it.")
    count: int = Field(description="How often.")


class ClusterEvent(Record):
    """What became of a near-duplicate cluster."""

    event: str = Field(description="born, gone, split or merged.")
    lineage_id: str = Field(description="Its lineage id.")
    cluster_before: str | None = Field(description="The cluster in the earlier run.")
    cluster_after: str | None = Field(description="The cluster in this one.")


class Became(Record):
    """What became of entries and clusters since the run that was the latest before."""

    run_before: str = Field(description="That run.")
    counts: list[EventCount] = Field(description="How often each thing happened.")
    clusters: list[ClusterEvent] = Field(description="Clusters that are not simply carried on.")


class Duplicates(Record):
    """The duplicates of a run, all sections or one; a section that was not asked for is null."""

    run_id: str = Field(description="The run.")
    near_duplicates: NearDuplicateFacts = Field(description="Near-duplicates in numbers.")
    near_threshold: float = Field(description="Similarity from which bodies are joined.")
    taps: list[TapCopies] | None = Field(default=None, description="Taps by the share of entries that are copies.")
    names: list[NameCopies] | None = Field(default=None, description="Names of several contents, the most first.")
    families: list[FamilyView] | None = Field(default=None, description="Template families, the largest first.")
    clusters: list[ClusterView] | None = Field(default=None, description="Clusters of several names, the most first.")
    pairs: list[ReadPair] | None = Field(default=None, description="Pairs near the threshold, above it, then below.")
    golden: GoldenNames | None = Field(default=None, description="Ambiguity of the golden names in total.")
    golden_names: list[NameCopies] | None = Field(default=None, description="Each golden name, most ambiguous first.")
    became: Became | None = Field(
        default=None, description="What became of entries and clusters; null too where no run came before."
    )
    left_out: dict[str, int] = Field(description="Rows of each section that a limit leaves out.")


class Duplication:
    """The duplicates of a run.

    Args:
        tables: the run's tables, ``TABLES`` at least.
    """

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = tables
        entries = tables["entries"]
        self._clusters = rows_of(tables["near_duplicate_clusters"])
        near = copies(tables["near_duplicate_clusters"], tables["near_duplicate_members"])
        self._becomes = joined_classes(entries, near)
        columns = (entries[name].to_pylist() for name in _Entry._fields)
        self._entries = sorted(
            map(_Entry._make, zip(*columns, strict=True)), key=lambda entry: (entry.tap.encode(), entry.path)
        )

    def taps(self) -> list[TapCopies]:
        """Return what of each tap stands in the corpus before, by share, the largest first."""
        found: dict[str, Counter[str]] = defaultdict(Counter)
        seen: dict[str, set[str]] = {}
        for entry in self._entries:
            joined = self._becomes.get(entry.class_id)
            before = seen.setdefault(joined, set()) if joined is not None else set[str]()
            if entry.mirror_kind is not None:
                found[entry.tap][entry.mirror_kind] += 1
            elif before:
                found[entry.tap]["near_inside" if entry.tap in before else "near_of_earlier"] += 1
            before.add(entry.tap)
        rows = (
            _tap_copies(text_of(row, "tap"), count_of(row, "entries"), found) for row in rows_of(self._tables["taps"])
        )
        return sorted(rows, key=lambda row: (-(row.share or 0.0), row.tap.encode()))

    def nearly_elsewhere(self) -> Counter[str]:
        """Return, by tap, how many entries have content that no other has, but in a cluster of copies with others."""
        sizes = Counter(entry.class_id for entry in self._entries)
        groups = Counter(self._become(entry) for entry in self._entries)
        alone = (entry for entry in self._entries if sizes[entry.class_id] == 1)
        return Counter(entry.tap for entry in alone if groups[self._become(entry)] > 1)

    def names(self) -> list[NameCopies]:
        """Return every name that stands for more than one content class, by classes, the most first."""
        several = (self._name(name, entries) for name, entries in self._by_name().items())
        kept = (row for row in several if row.classes > 1)
        return sorted(kept, key=lambda row: (-row.classes, -row.entries, row.name.encode()))

    def golden_names(self) -> list[NameCopies]:
        """Return every name that a row of a golden set gives as an answer, the most ambiguous first."""
        by_name = self._by_name()
        rows = (self._name(name, by_name.get(name, [])) for name in self._golden())
        return sorted(rows, key=lambda row: (-row.classes, -row.entries, row.name.encode()))

    def golden(self) -> GoldenNames:
        """Return how ambiguous the names of the golden sets are in total."""
        by_name = self._by_name()
        rows = self.golden_names()
        entries = [entry for row in rows for entry in by_name.get(row.name, ())]
        return GoldenNames(
            names=len(rows),
            ambiguous=sum(row.classes > 1 for row in rows),
            ambiguous_apart=sum(row.apart > 1 for row in rows),
            entries=len(entries),
            classes=len({entry.class_id for entry in entries}),
            apart=len({self._become(entry) for entry in entries}),
        )

    def families(self) -> list[FamilyView]:
        """Return the template families, the largest first."""
        rows = (_family(row) for row in rows_of(self._tables["template_families"]))
        return sorted(rows, key=lambda row: (-row.bodies, row.family_id))

    def clusters(self) -> list[ClusterView]:
        """Return the near-duplicate clusters, those of most bodies first."""
        return sorted(map(_cluster, self._clusters), key=lambda row: (-row.bodies, -row.entries, row.cluster_id))

    def across_names(self) -> list[ClusterView]:
        """Return the clusters whose entries have several names, those of most names first."""
        kept = (row for row in self.clusters() if len(row.names) > 1)
        return sorted(kept, key=lambda row: (-len(row.names), -row.bodies, row.cluster_id))

    def pairs(self) -> list[PairView]:
        """Return the pairs near the threshold: those above it, then those below, the nearest first."""
        rows = map(_pair, rows_of(self._tables["near_pairs"]))
        return sorted(rows, key=_from_the_threshold)

    def _by_name(self) -> dict[str, list[_Entry]]:
        by_name: dict[str, list[_Entry]] = {}
        for entry in self._entries:
            by_name.setdefault(entry.slug, []).append(entry)
        return by_name

    def _golden(self) -> set[str]:
        items = self._tables["items"]
        if "wanted" not in items.column_names:
            return set()  # a feed of an earlier release, that did not keep it
        return {
            name
            for row in rows_of(items.select(["grading", "mode", "wanted"]))
            if row["grading"] == "name" and row["mode"] == "name"
            for name in names_of(row, "wanted")
        }

    def _become(self, entry: _Entry) -> str:
        return self._becomes.get(entry.class_id, entry.class_id)

    def _name(self, name: str, entries: Sequence[_Entry]) -> NameCopies:
        return NameCopies(
            name=name,
            entries=len(entries),
            classes=len({entry.class_id for entry in entries}),
            apart=len({self._become(entry) for entry in entries}),
            clusters=len({entry.cluster_id for entry in entries if entry.cluster_id is not None}),
            taps=len({entry.tap for entry in entries}),
        )


def became(rows: Sequence[Row]) -> Became | None:
    """Return what became of entries and clusters, from the rows of ``lineage`` that led to a run; None without any."""
    if not rows:
        return None
    counts = Counter((text_of(row, "subject"), text_of(row, "event")) for row in rows)
    moved = [row for row in rows if row["subject"] == "cluster" and row["event"] != "kept"]
    return Became(
        run_before=text_of(rows[0], "run_before"),
        counts=[
            EventCount(subject=subject, event=event, count=count) for (subject, event), count in sorted(counts.items())
        ],
        clusters=[
            ClusterEvent(
                event=text_of(row, "event"),
                lineage_id=text_of(row, "lineage_id"),
                cluster_before=text_of(row, "cluster_before") or None,
                cluster_after=text_of(row, "cluster_after") or None,
            )
            for row in moved
        ],
    )


def drawn(pairs: Iterable[PairView], seed: int) -> list[PairView]:
    """Return pairs in an order that ``seed`` alone decides, so that the first of each side are a fair draw."""

    def order(pair: PairView) -> tuple[str, str]:
        text = f"{seed}:{pair.left_body}:{pair.right_body}"
        return pair.side, hashlib.sha256(text.encode()).hexdigest()

    return sorted(pairs, key=order)


def first_of_each_side(pairs: Iterable[PairView], most: int) -> Iterator[PairView]:
    """Yield the first ``most`` pairs above the threshold and below it, in their order."""
    taken: Counter[str] = Counter()
    for pair in pairs:
        taken[pair.side] += 1
        if taken[pair.side] <= most:
            yield pair


class _Entry(NamedTuple):
    tap: str
    path: bytes
    slug: str
    class_id: str
    mirror_kind: str | None
    cluster_id: str | None


def _tap_copies(tap: str, entries: int, found: Mapping[str, Counter[str]]) -> TapCopies:
    counts = found.get(tap, Counter())
    return TapCopies(
        tap=tap,
        entries=entries,
        mirrors_inside=counts["intra_tap"],
        mirrors_of_earlier=counts["cross_tap"],
        near_inside=counts["near_inside"],
        near_of_earlier=counts["near_of_earlier"],
        share=counts.total() / entries if entries else None,
    )


def _family(row: Row) -> FamilyView:
    return FamilyView.model_validate({**_picked(row, FamilyView), "path": row["path_text"]})


def _cluster(row: Row) -> ClusterView:
    return ClusterView.model_validate({**_picked(row, ClusterView), "path": row["path_text"]})


def _picked(row: Row, view: type[Record]) -> Row:
    """Return the columns that a view has too."""
    return {name: row[name] for name in view.model_fields if name in row}


def _pair(row: Row) -> PairView:
    names = {"left_name": row["left_slug"], "right_name": row["right_slug"]}
    places = {"left": _place(row, "left"), "right": _place(row, "right")}
    return PairView.model_validate({**_picked(row, PairView), **names, **places})


def _place(row: Row, side: str) -> str:
    path: object = row[f"{side}_path"]  # bytes: no value of JSON, so the type of a row does not know them
    shown = path.decode("utf-8", "backslashreplace") if isinstance(path, bytes) else str(path)
    return f"{text_of(row, f'{side}_tap')}::{shown}"


def _from_the_threshold(pair: PairView) -> tuple[str, float, str, str]:
    above = pair.side == "above"
    return pair.side, pair.similarity if above else -pair.similarity, pair.left_body, pair.right_body
