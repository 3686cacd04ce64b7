"""What became of entries and near-duplicate clusters between two corpora. Pure.

An entry is born, gone, edited (another class at the same path) or moved (the same class at another path of its tap),
as `pipeline.classes.moves` tells. One whose class is another though its body is the same was not edited but regrouped:
by a decision, or by another class rule. And it has joined or left a cluster. A cluster's id is a digest of its members,
so it changes whenever one comes or goes; its **lineage id** is carried on to the cluster that shares the most with it.
Of two clusters that lay claim to one lineage id the larger overlap has it; the other goes by its own id.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field

from pipeline.classes.moves import Moves, Seen, moves
from pipeline.records import Record, Table
from pipeline.store import digest

if TYPE_CHECKING:
    import pyarrow as pa

Event = Literal["born", "gone", "edited", "regrouped", "moved", "joined", "left", "kept", "split", "merged"]
Subject = Literal["entry", "cluster"]


class LineageRow(Record):
    """One thing that became of an entry or of a near-duplicate cluster between two corpora."""

    subject: Subject = Field(description="`entry`, or `cluster`: a near-duplicate cluster.")
    event: Event = Field(
        description="Of an entry: born, gone, edited (same path, another class), regrouped (the same, with the same "
        "body: a decision, or the class rule), moved (same class, another path), joined or left a cluster. Of a "
        "cluster: born, gone, kept (its lineage id is carried on), split, merged."
    )
    tap: str | None = Field(description="Tap of the entry; null for a cluster.")
    path: bytes | None = Field(description="Path of the entry, the present one where it has one.")
    path_text: str | None = Field(description="That path as text.")
    path_before: bytes | None = Field(description="Path that a moved entry came from.")
    class_before: str | None = Field(description="Content class of the entry in the earlier corpus.")
    class_after: str | None = Field(description="Content class of the entry in the later corpus.")
    lineage_id: str | None = Field(description="Lineage id of the cluster that the row is about.")
    cluster_before: str | None = Field(description="That cluster in the earlier corpus, by the digest of its members.")
    cluster_after: str | None = Field(description="That cluster in the later corpus.")


ROWS = Table(
    "lineage", LineageRow, ("subject", "event", "tap", "path", "lineage_id", "cluster_before", "cluster_after")
)

COLUMNS = ("tap", "path", "path_text", "slug", "class_id", "body_sha256", "cluster_id")
"""Columns of the entries of a corpus that are needed here."""


class Lineage(NamedTuple):
    """What became of the entries and clusters of a corpus."""

    rows: pa.Table
    """`ROWS`."""
    ids: Mapping[str, str]
    """The lineage id of each cluster of the later corpus, by its own id."""


def lineage(before: pa.Table, after: pa.Table, carried: Mapping[str, str]) -> Lineage:
    """Tell what became of the entries and clusters of one corpus in another. The order of the rows does not matter.

    Args:
        before: entries of the earlier corpus, with ``COLUMNS``.
        after: entries of the later one.
        carried: lineage ids of the earlier corpus's clusters, by their own ids; one that is not there goes by its own.
    """
    old, new = _entries(before), _entries(after)
    ids_before = {cluster: carried.get(cluster, cluster) for cluster in _clusters(old)}
    overlaps = _overlaps(old, new)
    ids_after = _carried(overlaps, ids_before, sorted(_clusters(new)))
    ids = _Ids(ids_before, ids_after)
    rows = [*_entry_rows(old, new), *_membership_rows(old, new, ids), *_cluster_rows(overlaps, ids)]
    return Lineage(ROWS.from_rows(rows), ids_after)


class _Entry(NamedTuple):
    path_text: str
    slug: str
    class_id: str
    body: str
    cluster: str | None


_Entries = Mapping[tuple[str, bytes], _Entry]
_Overlaps = Mapping[tuple[str, str], int]


class _Ids(NamedTuple):
    before: Mapping[str, str]
    after: Mapping[str, str]


def _entries(table: pa.Table) -> _Entries:
    columns = (table[name].to_pylist() for name in COLUMNS)
    return {
        (tap, path): _Entry(path_text, slug, class_id, body, cluster)
        for tap, path, path_text, slug, class_id, body, cluster in zip(*columns, strict=True)
    }


def _clusters(entries: _Entries) -> set[str]:
    return {entry.cluster for entry in entries.values() if entry.cluster is not None}


def _overlaps(old: _Entries, new: _Entries) -> _Overlaps:
    """Count, for each pair of an earlier and a later cluster, the later entries that were in the earlier one.

    An entry was in it at its own place, or by its body, which may have stood elsewhere.
    """
    by_body: dict[str, set[str]] = defaultdict(set)
    for entry in old.values():
        if entry.cluster is not None:
            by_body[entry.body].add(entry.cluster)
    counts: Counter[tuple[str, str]] = Counter()
    for place, entry in new.items():
        if entry.cluster is not None:
            was = old.get(place)
            at_its_place = {was.cluster} if was and was.cluster else set()
            counts.update((cluster, entry.cluster) for cluster in at_its_place | by_body.get(entry.body, set()))
    return counts


def _carried(overlaps: _Overlaps, ids_before: Mapping[str, str], after: Sequence[str]) -> dict[str, str]:
    ids: dict[str, str] = {}
    given: set[str] = set()
    for (old, new), _ in sorted(overlaps.items(), key=lambda pair: (-pair[1], ids_before[pair[0][0]], pair[0][1])):
        if new not in ids and ids_before[old] not in given:
            ids[new] = ids_before[old]
            given.add(ids_before[old])
    taken = given | set(ids_before.values())
    for cluster in after:
        # A cluster whose own id another one carries, or carried, is a new one all the same.
        ids.setdefault(cluster, digest(["again", cluster, sorted(taken)]) if cluster in taken else cluster)
    return ids


def _entry_rows(old: _Entries, new: _Entries) -> Iterator[LineageRow]:
    for tap, found in _moves(old, new):
        for path in found.born:
            yield _row("born", tap, path, None, new[tap, path])
        for path in found.gone:
            yield _row("gone", tap, path, old[tap, path], None)
        for path in found.edited:
            was, now = old[tap, path], new[tap, path]
            yield _row("regrouped" if was.body == now.body else "edited", tap, path, was, now)
        for before, after in found.moved:
            yield _row("moved", tap, after, old[tap, before], new[tap, after], path_before=before)


def _moves(old: _Entries, new: _Entries) -> Iterator[tuple[str, Moves]]:
    for tap in sorted({tap for tap, _ in [*old, *new]}):
        yield tap, moves(_of_tap(old, tap), _of_tap(new, tap))


def _of_tap(entries: _Entries, tap: str) -> dict[bytes, Seen]:
    return {path: Seen(entry.class_id, entry.slug) for (owner, path), entry in entries.items() if owner == tap}


def _membership_rows(old: _Entries, new: _Entries, ids: _Ids) -> Iterator[LineageRow]:
    came_from = {(tap, move.after): move.before for tap, found in _moves(old, new) for move in found.moved}
    moved_away = {(tap, before) for (tap, _), before in came_from.items()}
    for tap, path in sorted({*old, *new} - (moved_away - new.keys())):
        was, now = old.get((tap, came_from.get((tap, path), path))), new.get((tap, path))
        left = ids.before[was.cluster] if was and was.cluster else None
        joined = ids.after[now.cluster] if now and now.cluster else None
        if left == joined:
            continue
        if left is not None:
            yield _row("left", tap, path, was, now, lineage_id=left)
        if joined is not None:
            yield _row("joined", tap, path, was, now, lineage_id=joined)


def _cluster_rows(overlaps: _Overlaps, ids: _Ids) -> Iterator[LineageRow]:
    successors, ancestors = defaultdict(set), defaultdict(set)
    for old, new in overlaps:
        successors[old].add(new)
        ancestors[new].add(old)
    for new, lineage_id in sorted(ids.after.items()):
        if not ancestors[new]:
            yield _cluster_row("born", lineage_id, None, new)
        for old in sorted(ancestors[new]):
            if ids.before[old] == lineage_id:
                yield _cluster_row("kept", lineage_id, old, new)
            if len(ancestors[new]) > 1:
                yield _cluster_row("merged", ids.before[old], old, new)
    for old, lineage_id in sorted(ids.before.items()):
        if not successors[old]:
            yield _cluster_row("gone", lineage_id, old, None)
        if len(successors[old]) > 1:
            for new in sorted(successors[old]):
                yield _cluster_row("split", ids.after[new], old, new)


def _row(
    event: Event,
    tap: str,
    path: bytes,
    was: _Entry | None,
    now: _Entry | None,
    *,
    path_before: bytes | None = None,
    lineage_id: str | None = None,
) -> LineageRow:
    shown = now or was
    return LineageRow(
        subject="entry",
        event=event,
        tap=tap,
        path=path,
        path_text=shown.path_text if shown else None,
        path_before=path_before,
        class_before=was.class_id if was else None,
        class_after=now.class_id if now else None,
        lineage_id=lineage_id,
        cluster_before=was.cluster if was else None,
        cluster_after=now.cluster if now else None,
    )


def _cluster_row(event: Event, lineage_id: str, before: str | None, after: str | None) -> LineageRow:
    return LineageRow(
        subject="cluster",
        event=event,
        tap=None,
        path=None,
        path_text=None,
        path_before=None,
        class_before=None,
        class_after=None,
        lineage_id=lineage_id,
        cluster_before=before,
        cluster_after=after,
    )
