"""New pins: the heads of upstream, read and catalogued, and what would move. It scores nothing and moves no pin itself.

What comes out is a change for a person to review: the tap list with new pins and counts, all else byte for byte.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pipeline.errors import BadInput, Fault
from pipeline.golden.items import GoldenSet
from pipeline.reports.proposal import (
    Counts,
    MovedEntry,
    NearDuplicateChanges,
    PinProposal,
    Place,
    RowChange,
    TapChange,
    as_markdown,
)
from pipeline.stages import catalog, checked, classes, clusters, count, put_together, sign, snapshot
from pipeline.store import Artifact, canonical_json, digest, replace_file
from pipeline.taps.snapshot import TapState, find_head
from pipeline.taps.taplist import (
    Pinned,
    Tap,
    TapList,
    corpus_digest,
    duplicates,
    is_local,
    parse_tap_list,
    read_tap_list,
    repinned,
    written_text,
)
from pipeline.workspace import Files, Workspace, bodies_in, read

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.golden.resolve import Earlier, Unresolved


class Side(NamedTuple):
    """A tap at one commit: how reading it ended, and its catalogue where it ended well."""

    tap: Tap
    state: TapState
    made: Artifact | None


class TapHeads(NamedTuple):
    """A tap at its pin and at upstream's head."""

    tap: Tap
    pinned: Side | None
    """None where the row has no pin."""
    head: Side

    @property
    def kept(self) -> Side | None:
        """What stands in the proposed corpus: the head, or the pin where the head cannot be read."""
        return self.head if self.head.made else self.pinned


class Refreshed(NamedTuple):
    """What a refresh found."""

    taps: TapList
    proposal: PinProposal
    states: tuple[TapState, ...]
    """How each attempt ended: every head, and every pin of a row that has one."""
    pins: dict[str, Pinned]
    """What the rows that would change would say, by the name of the tap."""
    written: Path | None
    """The file that the proposed list was written to; None where it was not."""


def refresh(workspace: Workspace, write: Path | None = None) -> Refreshed:
    """Find the head of every tap, read and catalogue it, and compare it with the pin. Every row is attempted.

    Args:
        workspace: where the tap list, the golden sets and the store are.
        write: the tap list itself, or a new file beside it, to take the list with the new pins. A row whose head cannot
            be read keeps its pin there.

    Raises:
        BadInput: the tap list, the decisions or a golden set is wrong, two rows turn out to be one repository, or
            ``write`` is another file, or the list cannot be changed in place.
    """
    taps = read_tap_list(workspace.settings.tap_file, need_pins=False)
    if write is not None:
        _demand_target(taps, write)
    sets = workspace.golden_sets()
    with ThreadPoolExecutor(workspace.settings.config.threads) as pool:
        heads = list(pool.map(partial(read_heads, workspace, taps), taps.taps))
    faults = list(duplicates(taps.path, (each.kept.tap if each.kept else each.tap for each in heads)))
    if faults:
        raise BadInput(faults)
    pinned = [each.pinned for each in heads if each.pinned and each.pinned is not each.head]
    proposal = _proposal(workspace, sorted(heads, key=lambda each: each.tap.name.encode("utf-8")), sets)
    states = tuple(side.state for side in [*(each.head for each in heads), *pinned])
    refreshed = Refreshed(taps, proposal, states, _pins(heads), write)
    return refreshed if _written(refreshed) else refreshed._replace(written=None)


def read_heads(workspace: Workspace, taps: TapList, tap: Tap) -> TapHeads:
    """Read one tap at its pin and at upstream's head. Trouble is the state of a side, never an error."""
    pinned = _side(workspace, tap) if tap.pin else None
    found = find_head(tap, taps.base, workspace.snapshot_options)
    if found.state != "ok":
        return TapHeads(tap, pinned, Side(tap, found, None))
    if pinned and found.pin == tap.pin:
        return TapHeads(tap, pinned, pinned)
    head = _side(workspace, tap.model_copy(update={"pin": found.pin, "entries": None, "classes": None}))
    if head.made and tap.entries != 0:
        # A tree without any entry is never proposed, unless the row says that there is none.
        state = checked(head.tap, head.made, head.state)
        head = Side(head.tap, state, head.made if state.state == "ok" else None)
    return TapHeads(tap, pinned, head)


def _side(workspace: Workspace, tap: Tap) -> Side:
    state = snapshot(workspace, tap)
    return Side(tap, state, catalog(workspace, tap) if state.state == "ok" else None)


def _pins(heads: Iterable[TapHeads]) -> dict[str, Pinned]:
    return {
        tap.name: Pinned(str(head.tap.pin), count(head.made, "entries"), count(head.made, "classes"))
        for tap, _, head in heads
        if head.made and head.tap.pin != tap.pin
    }


# --- what would move --------------------------------------------------------------------------------------------------


def _proposal(workspace: Workspace, heads: Sequence[TapHeads], sets: Sequence[GoldenSet]) -> PinProposal:
    pinned = [each.pinned.made for each in heads if each.pinned and each.pinned.made]
    before = _entries(workspace, [each.pinned for each in heads])
    after = _entries(workspace, [each.kept for each in heads])
    return PinProposal(
        corpus=_digest([each.tap for each in heads]),
        proposed_corpus=_digest([each.kept.tap if each.kept else each.tap for each in heads]),
        class_rule=workspace.settings.config.class_rule,
        before=_corpus_counts(before),
        after=_corpus_counts(after),
        taps=[_tap_change(workspace, each) for each in heads],
        near_duplicates=_near_duplicates(workspace, heads),
        golden_not_checked=None if after else "a tap can be read neither at its pin nor at its head",
        golden=None if after is None else _rows(sets, before, after, partial(bodies_in, workspace, pinned)),
    )


def _digest(taps: Sequence[Tap]) -> str | None:
    return corpus_digest(taps) if all(tap.pin for tap in taps) else None


def _entries(workspace: Workspace, sides: Sequence[Side | None]) -> pa.Table | None:
    """Return the entries of a corpus with the class of each; None where a tap is missing."""
    import pyarrow as pa

    from pipeline.classes.digests import CLASS_RULES
    from pipeline.classes.group import class_ids
    from pipeline.golden.resolve import COLUMNS

    catalogs = [side.made for side in sides if side and side.made]
    if len(catalogs) != len(sides):
        return None
    rule = workspace.settings.config.class_rule
    columns = sorted({*COLUMNS, CLASS_RULES[rule], "body_sha256"} - {"class_id"})
    entries = pa.concat_tables([read(workspace, made, "entries.parquet", columns) for made in catalogs])
    return entries.append_column(
        "class_id", pa.array(class_ids(entries, rule, workspace.settings.cluster_decisions()), pa.string())
    )


def _near_duplicates(workspace: Workspace, heads: Sequence[TapHeads]) -> NearDuplicateChanges | None:
    """Return what would become of the near-duplicate clusters; None where one of the corpora has a tap missing."""
    from pipeline.classes.lineage import lineage

    before = _clustered(workspace, [each.pinned for each in heads])
    after = _clustered(workspace, [each.kept for each in heads])
    if before is None or after is None:
        return None
    rows = lineage(before, after, {}).rows.to_pylist()

    def told(event: str) -> int:
        return len({row["lineage_id"] for row in rows if (row["subject"], row["event"]) == ("cluster", event)})

    def entries(event: str) -> list[str]:
        return [f"{row['tap']}::{row['path_text']}" for row in rows if row["event"] == event]

    return NearDuplicateChanges(
        before=len(set(before["cluster_id"].to_pylist()) - {None}),
        after=len(set(after["cluster_id"].to_pylist()) - {None}),
        born=told("born"),
        gone=told("gone"),
        split=told("split"),
        merged=told("merged"),
        joined=entries("joined"),
        left=entries("left"),
    )


def _clustered(workspace: Workspace, sides: Sequence[Side | None]) -> pa.Table | None:
    """Return the entries of a corpus, each with its class and its cluster; None where a tap is missing."""
    from pipeline.classes.clusters import MEMBERS
    from pipeline.reports.feed import with_clusters

    read_well = [(side.tap, side.made) for side in sides if side and side.made]
    if len(read_well) != len(sides):
        return None
    corpus = put_together(workspace, [tap for tap, _ in read_well], [made for _, made in read_well])
    grouped = classes(workspace, corpus)
    sign(workspace, corpus)
    members = read(workspace, clusters(workspace, corpus), f"{MEMBERS.name}.parquet", ["body_sha256", "cluster_id"])
    return with_clusters(read(workspace, grouped, "entries.parquet"), members)


def _corpus_counts(entries: pa.Table | None) -> Counts | None:
    if entries is None:
        return None
    return Counts(entries=entries.num_rows, classes=len(set(entries["class_id"].to_pylist())))


def _tap_change(workspace: Workspace, heads: TapHeads) -> TapChange:
    pinned, head = heads.pinned, heads.head
    change = TapChange(
        tap=heads.tap.name,
        state=head.state.state,
        reason=head.state.reason,
        pin=heads.tap.pin,
        proposed=head.tap.pin if head.made else None,
        before=_counts(pinned),
        after=_counts(head),
        not_compared=_not_compared(heads),
        born=None,
        gone=None,
        edited=None,
        moved=None,
    )
    return change if change.not_compared else change.model_copy(update=_moves(workspace, heads))


def _counts(side: Side | None) -> Counts | None:
    if side is None or side.made is None:
        return None
    return Counts(entries=count(side.made, "entries"), classes=count(side.made, "classes"))


def _not_compared(heads: TapHeads) -> str | None:
    if heads.head.made is None:
        return heads.head.state.reason
    if heads.pinned is None:
        return "the row has no pin yet"
    if heads.pinned.made is None:
        return f"its pin is not to be had: {heads.pinned.state.state}: {heads.pinned.state.reason}"
    return None


def _moves(workspace: Workspace, heads: TapHeads) -> dict[str, object]:
    from pipeline.classes.moves import Seen, moves

    seen: list[dict[bytes, Seen]] = []
    shown: dict[bytes, str] = {}
    for side in (heads.pinned, heads.head):
        entries = _entries(workspace, [side])
        assert entries is not None
        columns = (entries[name].to_pylist() for name in ("path", "path_text", "class_id", "slug"))
        rows = list(zip(*columns, strict=True))
        shown |= {path: text for path, text, _, _ in rows}
        seen.append({path: Seen(class_id, slug) for path, _, class_id, slug in rows})
    found = moves(*seen)
    return {
        "born": [shown[path] for path in found.born],
        "gone": [shown[path] for path in found.gone],
        "edited": [shown[path] for path in found.edited],
        "moved": [MovedEntry(before=shown[move.before], after=shown[move.after]) for move in found.moved],
    }


def _rows(
    sets: Sequence[GoldenSet], before: pa.Table | None, after: pa.Table, at_the_pins: Callable[[], Earlier]
) -> list[RowChange]:
    """Return the golden rows that would name nothing, or other content, by set and line."""
    from pipeline.golden.resolve import edited, unresolved

    found = []
    for golden in sorted(sets, key=lambda golden: golden.name):
        known = None if before is None else {_key(each) for each in unresolved(golden, before)}
        rows = [
            _row(golden, "unresolved", each, None if known is None else _key(each) in known)
            for each in unresolved(golden, after, at_the_pins)
        ]
        if before is not None:
            rows += [_row(golden, "edited", each, False) for each in edited(golden, before, after)]
        found += sorted(rows, key=lambda row: row.line)
    return found


def _key(found: Unresolved) -> tuple[int, str, str]:
    return found.item.line, found.field, found.written


def _row(golden: GoldenSet, effect: str, found: Unresolved, already: bool | None) -> RowChange:
    from pipeline.golden.resolve import SAME_BODY

    shown = found.proposal.shown
    return RowChange.model_validate(
        {
            "golden_set": golden.name,
            "line": found.item.line,
            "query_id": found.item.query_id,
            "field": found.field,
            "written": found.written,
            "effect": effect,
            "what": found.what,
            "already": already,
            "now_at": next((candidate.id for candidate in shown if candidate.why == SAME_BODY), None),
            "candidates": [Place(entry=candidate.id, why=candidate.why) for candidate in shown],
            "more": found.proposal.more,
        }
    )


# --- the change, for review -------------------------------------------------------------------------------------------


def proposed_list(refreshed: Refreshed) -> str:
    """Return the tap list with the proposed pins and their counts, and everything else byte for byte as it was.

    Raises:
        BadInput: the list cannot be changed in place.
    """
    text = repinned(written_text(refreshed.taps), refreshed.pins)
    parse_tap_list(refreshed.taps.path, text.encode("utf-8"), need_pins=False)
    return text


def _demand_target(taps: TapList, path: Path) -> None:
    """Raise BadInput where ``path`` is another file, or relative paths of the list would lead elsewhere from there."""
    written_text(taps)
    if path.exists() and not path.samefile(taps.path):
        todo = f"name a new file, or the list itself ({taps.path})"
        raise BadInput([Fault(str(path), "there is another file already", todo)])
    relative = [tap for tap in taps.taps if is_local(tap) and not Path(tap.url).is_absolute()]
    if relative and path.absolute().parent.resolve() != taps.base.resolve():
        what = f"the url of {relative[0].name} is relative to the list, and would lead elsewhere from there"
        raise BadInput([Fault(str(path), what, f"name a file in {taps.base}")])


def _written(refreshed: Refreshed) -> bool:
    """Write the proposed list where it was asked for, unless that is the list itself and nothing changes."""
    path = refreshed.written
    if path is None or (path.exists() and not refreshed.pins):
        return False
    replace_file(path, proposed_list(refreshed).encode("utf-8"))
    return True


def publish(workspace: Workspace, refreshed: Refreshed) -> Path:
    """Keep the proposal for review under the digest of its files; return the folder. Nothing else is changed.

    Writes ``proposal.json``, ``proposal.md``, and ``taps.diff``, which `patch` and `git apply` understand. The file
    ``latest.json`` beside the folders names the one that was made last.
    """
    diff = _diff(refreshed) if refreshed.taps.path.suffix.lower() == ".toml" else None
    texts = {
        "proposal.json": canonical_json(refreshed.proposal.model_dump()) + "\n",
        "proposal.md": as_markdown(refreshed.proposal, diff),
        **({} if diff is None else {"taps.diff": diff}),
    }
    files: Files = {name: text.encode("utf-8") for name, text in texts.items()}
    key = digest({name: hashlib.sha256(data).hexdigest() for name, data in files.items()})
    folder = workspace.store.proposals / key
    workspace.store.publish(files, folder)
    workspace.store.replace(workspace.store.proposals / "latest.json", f'{{"folder":"{key}"}}\n'.encode("ascii"))
    return folder


def _diff(refreshed: Refreshed) -> str:
    name = refreshed.taps.path.name
    old, new = (_lines(text) for text in (written_text(refreshed.taps), proposed_list(refreshed)))
    lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _lines(text: str) -> list[str]:
    """Split at LF alone, as `patch` does."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
