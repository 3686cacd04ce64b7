"""The store: everything derived, kept under a key made of what it was derived from.

A run that is killed leaves nothing that a reader could take for a result, because an artifact is written in a hidden
folder outside the published place, synced, and then put in place by one rename. Two runs that make the same artifact
at once do no harm: the first rename wins and the second finds equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, JsonValue, ValidationError

from pipeline.errors import MissingArtifact, Unsound
from pipeline.records import Record

LEFTOVERS_ARE_KEPT = 24 * 3600.0
"""Seconds after which a hidden folder that a killed run left is removed. Longer than any run may last."""


class Stage(NamedTuple):
    """A step whose output is kept. ``version`` rises whenever the same inputs would give other bytes."""

    name: str
    version: int


class Artifact(Record):
    """The manifest of what a stage wrote: all that an unchanged run needs to read."""

    stage: str = Field(description="Name of the stage that wrote it.")
    version: int = Field(description="Version of that stage.")
    key: str = Field(description="Digest of the stage, its version and its inputs.")
    inputs: dict[str, JsonValue] = Field(description="What it was derived from: digests, versions and options.")
    facts: dict[str, JsonValue] = Field(description="Small results: counts, states, digests.")
    files: dict[str, str] = Field(description="SHA-256 of each file beside the manifest, by name.")
    sizes: dict[str, int] = Field(description="Size of each file in bytes, by name.")
    seal: str = Field(description="Digest of all of the above: a manifest that was changed is none.")


def canonical_json(value: object) -> str:
    """Return ``value`` as JSON with sorted keys, no spaces and no escapes beyond what JSON needs."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: object) -> str:
    """Return the SHA-256 (hex) of ``value`` as canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


class Store:
    """A folder of artifacts, ``<root>/store/<stage>/<key>/``, and beside it the feed and the git mirrors."""

    def __init__(self, root: Path) -> None:
        self.root = Path(os.path.abspath(root))

    @property
    def feed(self) -> Path:
        """Where published runs lie."""
        return self.root / "feed"

    @property
    def mirrors(self) -> Path:
        """Where the bare git mirrors lie."""
        return self.root / "git"

    @property
    def nights(self) -> Path:
        """Where the steps of nights that are still running are noted."""
        return self.root / "nights"

    @property
    def proposals(self) -> Path:
        """Where proposals of new pins lie."""
        return self.root / "proposals"

    @staticmethod
    def key(stage: Stage, inputs: Mapping[str, JsonValue]) -> str:
        """Return the key of what ``stage`` makes from ``inputs``."""
        return digest({"stage": stage.name, "version": stage.version, "inputs": dict(inputs)})

    def find(self, stage: Stage, inputs: Mapping[str, JsonValue]) -> Artifact | None:
        """Return the manifest of what ``stage`` made from ``inputs``, or None where it was never made.

        An artifact of which a file is missing or has another size, or whose manifest was changed, say after a power
        cut, is removed: it can be made again from its inputs.
        """
        folder = self._folder(stage.name, self.key(stage, inputs))
        artifact = _whole(folder)
        if artifact is None:
            self.discard(folder)
        return artifact

    def get(self, stage: Stage, inputs: Mapping[str, JsonValue], command: str) -> Artifact:
        """Return the manifest of what ``stage`` made from ``inputs``.

        Raises:
            MissingArtifact: it was never made; the message names ``command``, which makes it.
        """
        found = self.find(stage, inputs)
        if found is None:
            what = f"nothing is stored for the step «{stage.name}» with these options"
            raise MissingArtifact(f"{self.root}: {what}; run `{command}` first, with the same options")
        return found

    def discard(self, folder: Path) -> None:
        """Take a folder out of its place by one rename, then remove it. One that is not there is no matter."""
        hidden = self._hidden()
        try:
            hidden.parent.mkdir(parents=True, exist_ok=True)
            os.rename(folder, hidden)
        except FileNotFoundError:
            return
        shutil.rmtree(hidden, ignore_errors=True)

    def _hidden(self) -> Path:
        return self.root / ".tmp" / f"{os.getpid()}-{uuid.uuid4().hex}"

    def stored(self, stage: Stage) -> Iterator[Artifact]:
        """Yield the manifests of what ``stage`` in its present version has made, as far as it is whole, by key."""
        for folder in sorted((self.root / "store" / stage.name).glob("*")):
            artifact = _whole(folder)
            if artifact is not None and artifact.version == stage.version:
                yield artifact

    def path(self, artifact: Artifact, file: str) -> Path:
        """Return where ``file`` of ``artifact`` lies."""
        return self._folder(artifact.stage, artifact.key) / file

    def read(self, artifact: Artifact, file: str) -> bytes:
        """Return ``file`` of ``artifact``.

        Raises:
            Unsound: it is not what was written; the artifact is discarded, so that the next run makes it again.
        """
        path = self.path(artifact, file)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            data = b""
        if hashlib.sha256(data).hexdigest() != artifact.files[file]:
            self.discard(path.parent)
            raise Unsound(f"{path}: the stored file was damaged and is discarded; run again to make it anew")
        return data

    def write(
        self,
        stage: Stage,
        inputs: Mapping[str, JsonValue],
        files: Mapping[str, bytes],
        facts: Mapping[str, JsonValue],
    ) -> Artifact:
        """Keep ``files`` and ``facts`` under the key of ``stage`` and ``inputs``, all or nothing."""
        content = {
            "stage": stage.name,
            "version": stage.version,
            "key": self.key(stage, inputs),
            "inputs": dict(inputs),
            "facts": dict(facts),
            "files": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())},
            "sizes": {name: len(data) for name, data in sorted(files.items())},
        }
        artifact = Artifact.model_validate({**content, "seal": digest(content)})
        manifest = canonical_json(artifact.model_dump()).encode("utf-8")
        self.publish({**files, "manifest.json": manifest}, self._folder(stage.name, artifact.key))
        return artifact

    def publish(self, files: Mapping[str, bytes], place: Path) -> None:
        """Make the folder ``place`` with ``files`` in it, by one rename. A folder that is there already stays."""
        if place.exists():
            return
        hidden = self._hidden()
        hidden.mkdir(parents=True)
        try:
            for name, data in files.items():
                _write_synced(hidden / name, data)
            _sync_folder(hidden)
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.rename(hidden, place)
            except OSError:
                # Another run put the same artifact there first. Anything else is a real fault.
                if not place.exists():
                    raise
            _sync_folder(place.parent)
        finally:
            shutil.rmtree(hidden, ignore_errors=True)

    def replace(self, path: Path, data: bytes) -> None:
        """Write ``data`` to ``path`` in the store so that a reader sees the old file or the new one, never a part."""
        hidden = self._hidden()
        hidden.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, data, hidden)

    def sweep(self) -> None:
        """Remove the hidden folders and the notes that killed runs left long ago."""
        oldest = time.time() - LEFTOVERS_ARE_KEPT
        for leftover in [*(self.root / ".tmp").glob("*"), *self.nights.glob("*.jsonl")]:
            try:
                if leftover.stat().st_mtime < oldest:
                    shutil.rmtree(leftover, ignore_errors=True) if leftover.is_dir() else leftover.unlink()
            except FileNotFoundError:
                continue  # another run sweeps too

    def _folder(self, stage: str, key: str) -> Path:
        return self.root / "store" / stage / key


def _whole(folder: Path) -> Artifact | None:
    """Return the manifest of an artifact; None where it is missing, was changed or moved, or where a file is not whole.

    The facts of a manifest are published as they stand, so they are sealed as the files are.
    """
    try:
        artifact = Artifact.model_validate_json((folder / "manifest.json").read_bytes())
        whole = all((folder / name).stat().st_size == size for name, size in artifact.sizes.items())
    except (FileNotFoundError, ValidationError):
        return None
    in_place = (artifact.stage, artifact.key) == (folder.parent.name, folder.name)
    return artifact if whole and in_place and artifact.seal == digest(artifact.model_dump(exclude={"seal"})) else None


def replace_file(path: Path, data: bytes) -> None:
    """Write ``data`` to a file that people own, wherever it is, so that a reader sees the old one or the new one."""
    target = path.resolve()  # where the path is a link, the file that it leads to
    hidden = target.with_name(f".{target.name}.{os.getpid()}-{uuid.uuid4().hex}")
    try:
        _replace(target, data, hidden)
    finally:
        hidden.unlink(missing_ok=True)


def _replace(path: Path, data: bytes, hidden: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_synced(hidden, data)
    os.replace(hidden, path)
    _sync_folder(path.parent)


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
