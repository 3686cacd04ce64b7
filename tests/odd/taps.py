"""Odd taps: made in bulk through git's plumbing, and read as a night reads them, from snapshot to entry."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.catalog.entries import catalogue
from pipeline.store import Store
from pipeline.taps.snapshot import SnapshotOptions, TapManifest, read_files, read_manifest, snapshot
from pipeline.taps.taplist import Tap
from tests.taps.gitforge import SUBMODULE, Node, Repository, tap_of

Tree = Mapping[Any, bytes | Node]
"""What stands at each path, which is text or bytes; keys of a mapping are invariant, so no type says «either»."""


class Reading(NamedTuple):
    """What a night makes of a tap."""

    manifest: TapManifest
    read: frozenset[bytes]
    """Paths that the snapshot read."""
    entries: dict[bytes, dict[str, Any]]
    """Rows of the catalogue, by path."""
    counted: dict[str, int]
    """Files that were read and are no entry, by kind of file."""

    @property
    def accounted(self) -> int:
        """The files of the tree that are an entry, or counted by reason or by kind."""
        counts = (self.manifest.passed_over, self.manifest.others, self.counted)
        return len(self.entries) + sum(sum(count.values()) for count in counts)


def read_tap(store: Store, tap: Tap, base: Path = Path("/"), options: SnapshotOptions | None = None) -> Reading:
    taken = snapshot(store, tap, base, options or SnapshotOptions()).artifact
    files = read_files(store, taken)
    made = catalogue(tap.name, files)
    rows = {row["path"]: row for row in made.entries.to_pylist()}
    return Reading(read_manifest(taken), frozenset(file.path for file in files), rows, made.passed_over)


def read_tree(folder: Path, files: Tree, options: SnapshotOptions | None = None, name: str = "owner/repo") -> Reading:
    """Commit ``files`` to a repository below ``folder`` and read it."""
    repository = Repository(folder / "served" / "repo.git")
    tap = tap_of(repository, commit_in_bulk(repository.folder, files), name=name)
    return read_tap(Store(folder / "store"), tap, options=options)


def commit_in_bulk(folder: Path, files: Tree) -> str:
    """Commit a tree with these files and nothing else to the bare repository ``folder``, in one call of git."""
    stream = [b"commit refs/heads/main\ncommitter A. Tester <tester@example.org> 1714972089 +0200\ndata 0\ndeleteall\n"]
    for path, content in files.items():
        node = content if isinstance(content, Node) else Node(content)
        name = quoted(path.encode() if isinstance(path, str) else path)
        if node.mode == SUBMODULE:
            stream.append(b"M 160000 %s %s\n" % (node.data, name))
        else:
            stream.append(b"M %s inline %s\ndata %d\n%s\n" % (node.mode.encode(), name, len(node.data), node.data))
    git = ["git", f"--git-dir={folder}", "-c", "core.protectNTFS=false"]
    subprocess.run([*git, "fast-import", "--quiet", "--force"], input=b"".join(stream), capture_output=True, check=True)
    return subprocess.run(
        [*git, "rev-parse", "refs/heads/main"], capture_output=True, check=True, text=True
    ).stdout.strip()


def quoted(path: bytes) -> bytes:
    """Return ``path`` as ``git fast-import`` reads it, whatever its bytes."""
    plain = frozenset(range(0x20, 0x7F)) - set(b'"\\')
    return b'"' + b"".join(bytes([byte]) if byte in plain else b"\\%03o" % byte for byte in path) + b'"'


def count_of_files(folder: Path, pin: str) -> int:
    """Count the files, links and submodules of a tree by git's own listing."""
    command = ["git", f"--git-dir={folder}", "ls-tree", "-r", "-z", "--name-only", "--full-tree", pin]
    return subprocess.run(command, capture_output=True, check=True).stdout.count(b"\0")
