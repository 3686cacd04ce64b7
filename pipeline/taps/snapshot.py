"""The snapshot of a tap: the files that the catalogue may need, at the tap's pin, kept in the store.

What is stored depends on the pin and on the limit of size alone, never on when or how it was fetched. A tap that is in
the store is served from there, and git is not run at all.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import Field, JsonValue

from pipeline.errors import AssayError, BadInput, Fault, Outage, Unsound, one_line
from pipeline.records import Record, Table
from pipeline.store import Artifact, Stage, Store
from pipeline.taps.failures import State, TapError
from pipeline.taps.git import Mirror, Spoilt, open_mirror, remote_head
from pipeline.taps.reading import TapFile, TapManifest, read
from pipeline.taps.taplist import Tap, location

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "FILES",
    "SNAPSHOT",
    "Attempt",
    "Obtained",
    "SnapshotOptions",
    "SnapshotRow",
    "TapError",
    "TapFile",
    "TapManifest",
    "TapState",
    "attempt",
    "find_head",
    "read_files",
    "read_manifest",
    "snapshot",
    "snapshot_inputs",
    "verdict",
]

SNAPSHOT = Stage("snapshot", 2)

Source = Literal["store", "fetched"]


class SnapshotRow(Record):
    """A row of ``files.parquet``: a file that the catalogue may need."""

    path: bytes = Field(description="Path in the tree, as bytes; of a link, its own path.")
    oid: str = Field(description="git id of the blob that was read; of a link, that of the file it leads to.")
    via_link: bool = Field(description="Whether the path is a symbolic link.")
    content: bytes = Field(description="The bytes of the file.")


FILES = Table("snapshot_files", SnapshotRow, ("path",))


class TapState(Record):
    """How an attempt at a tap ended."""

    name: str = Field(description="The tap, `owner/repo`.")
    pin: str | None = Field(description="Commit id; null where the row has none.")
    state: State = Field(description="ok, unavailable, gone, missing_pin, drift or invalid.")
    reason: str = Field(description="Why, in one line without credentials; empty where all is well.")
    source: Source | None = Field(description="Whether the store served it or git fetched it; null where neither did.")
    seconds: float = Field(description="How long it took.")


@dataclass(frozen=True)
class SnapshotOptions:
    """What steers a snapshot.

    Attributes:
        max_file_bytes: larger files are not read; part of the snapshot's key.
        fetch_seconds: the longest that all fetches of one tap may take, and the longest wait for its mirror.
    """

    max_file_bytes: int = 1 << 20
    fetch_seconds: float = 600.0


class Obtained(NamedTuple):
    """The snapshot of a tap, and where it came from."""

    artifact: Artifact
    source: Source


class Attempt(NamedTuple):
    """An attempt at a tap: how it ended, and its snapshot where it ended well."""

    state: TapState
    artifact: Artifact | None


def snapshot_inputs(tap: Tap, options: SnapshotOptions) -> dict[str, JsonValue]:
    """Return what the snapshot of ``tap`` depends on: its key in the store is the digest of them."""
    return {"name": tap.name, "pin": tap.pin, "max_file_bytes": options.max_file_bytes}


def snapshot(store: Store, tap: Tap, base: Path, options: SnapshotOptions) -> Obtained:
    """Make the snapshot of ``tap``, or find it in the store.

    Writes ``files.parquet`` (rows of ``SnapshotRow``, by path) and a ``TapManifest`` as the facts.

    Args:
        store: where snapshots and mirrors lie.
        tap: a row with a pin.
        base: the folder that a relative local path is relative to.
        options: what steers it.

    Raises:
        TapError: the tap cannot be had at its pin.
        BadInput: the row has no pin.
    """
    if tap.pin is None:
        raise BadInput([Fault(f"tap {tap.name} pin", "`pin` is missing", "write the id of a commit")])
    inputs = snapshot_inputs(tap, options)
    found = store.find(SNAPSHOT, inputs)
    if found is not None:
        return Obtained(found, "store")
    with open_mirror(store.mirrors, tap.name, location(tap, base), tap.pin, options.fetch_seconds) as mirror:
        # Whoever held the mirror before us may have made it.
        found = store.find(SNAPSHOT, inputs)
        if found is not None:
            return Obtained(found, "store")
        files, manifest = _read_anew_if_spoilt(mirror, tap.name, options.max_file_bytes)
        data = {"files.parquet": FILES.to_bytes(_table(files))}
        return Obtained(store.write(SNAPSHOT, inputs, data, manifest.model_dump()), "fetched")


def attempt(store: Store, tap: Tap, base: Path, options: SnapshotOptions) -> Attempt:
    """Make the snapshot of ``tap`` like ``snapshot``, but report how it ended and raise nothing for a tap's sake."""
    start = time.monotonic()
    artifact: Artifact | None = None
    source: Source | None = None
    state: State = "ok"
    reason = ""
    try:
        artifact, source = snapshot(store, tap, base, options)
    except TapError as error:
        state, reason = error.state, error.reason
    seconds = round(time.monotonic() - start, 3)
    return Attempt(
        TapState(name=tap.name, pin=tap.pin, state=state, reason=reason, source=source, seconds=seconds), artifact
    )


def find_head(tap: Tap, base: Path, options: SnapshotOptions) -> TapState:
    """Ask a tap's repository for the commit that its HEAD names now. The row need not have a pin.

    Returns:
        The state ``ok`` with that commit as its pin; else how it ended, with the pin of the row.
    """
    start = time.monotonic()
    state: State = "ok"
    reason, pin = "", tap.pin
    try:
        pin = remote_head(location(tap, base), options.fetch_seconds)
        if pin is None:
            raise TapError("missing_pin", "its HEAD names no commit: it is empty, or the branch is gone")
    except TapError as error:
        state, reason, pin = error.state, error.reason, tap.pin
    seconds = round(time.monotonic() - start, 3)
    return TapState(name=tap.name, pin=pin, state=state, reason=reason, source=None, seconds=seconds)


def verdict(states: Sequence[TapState]) -> None:
    """Raise unless every tap is ok: a partial corpus is never indexed or scored.

    Raises:
        Unsound: a tap drifted, is gone or invalid, or lacks its pin; waiting does not help.
        Outage: taps were out of reach, and nothing worse.
    """
    bad = [state for state in states if state.state != "ok"]
    if not bad:
        return
    kind: type[AssayError] = Outage if all(state.state == "unavailable" for state in bad) else Unsound
    lines = (f"{state.name} at {state.pin}: {state.state}: {state.reason}; {_TODO[state.state]}" for state in bad)
    raise kind("\n".join(one_line(line) for line in lines))


_TODO: dict[State, str] = {
    "unavailable": "try again later",
    "gone": "correct its url, or take the tap out of the list",
    "missing_pin": "pin a commit that the repository has",
    "drift": "measure again with `assay taps relock`, and find out why",
    "invalid": "mend the repository, or pin another commit",
}


def read_manifest(artifact: Artifact) -> TapManifest:
    """Return the manifest of a snapshot."""
    return TapManifest.model_validate(artifact.facts)


def read_files(store: Store, artifact: Artifact) -> list[TapFile]:
    """Return the files of a snapshot, by path."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(pa.BufferReader(store.read(artifact, "files.parquet"))).read(use_threads=False)
    columns = [table.column(name).to_pylist() for name in TapFile._fields]
    return [TapFile(*row) for row in zip(*columns, strict=True)]


def _table(files: Iterable[TapFile]) -> pa.Table:
    rows = sorted(files)
    return FILES.from_columns({name: [row[at] for row in rows] for at, name in enumerate(TapFile._fields)})


def _read_anew_if_spoilt(mirror: Mirror, name: str, limit: int) -> tuple[list[TapFile], TapManifest]:
    """Read a mirror; where it turns out bad, and may have been so before, make it anew, once."""
    try:
        return _read_or_invalid(mirror, name, limit)
    except TapError as error:
        if error.state != "invalid" or mirror.was_empty:
            raise
    mirror.erase()
    return _read_or_invalid(mirror, name, limit)


def _read_or_invalid(mirror: Mirror, name: str, limit: int) -> tuple[list[TapFile], TapManifest]:
    try:
        return read(mirror, name, limit)
    except Spoilt as error:
        raise TapError("invalid", str(error)) from error
