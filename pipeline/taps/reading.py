"""Read out of a mirror, at its pin, what the catalogue may need, and account for every other file of the tree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pydantic import Field

from pipeline.records import Record
from pipeline.taps import licences
from pipeline.taps.failures import TapError
from pipeline.taps.git import Mirror
from pipeline.taps.profile import classify, is_skipped, kind_of_file, skill_folders
from pipeline.taps.tree import LINK_MODE, SUBMODULE_MODE, LinkFault, Tree, TreeItem

LONGEST_LINK = 4096
"""Bytes of a link; no system makes a longer one, and one that is longer leads nowhere."""

_LFS_POINTER = re.compile(
    rb"version https?://(?:git-lfs\.github\.com|hawser\.github\.com|git-media\.io)/\S+\r?\n"
    rb"(?:ext-[^\n]+\n)*oid sha256:[0-9a-f]{64}\r?\nsize [0-9]+\s*"
)
LONGEST_LFS_POINTER = 1024
"""Bytes; Git LFS takes nothing longer for a pointer."""


class TapFile(NamedTuple):
    """A file that the catalogue may need; as bytes throughout.

    ``path`` is its own path, ``oid`` the git id of the blob that was read: of a link, that of the file it leads to.
    """

    path: bytes
    oid: str
    via_link: bool
    content: bytes


class TapManifest(Record):
    """What a tap's pinned tree is. ``files`` is the sum of ``read``, ``passed_over`` and ``others``."""

    name: str = Field(description="The tap, `owner/repo`.")
    pin: str = Field(description="Commit id.")
    tree: str = Field(description="Id of the commit's tree.")
    committed: str | None = Field(description="Date of the commit, ISO 8601 in UTC; null where it has none.")
    licence: str | None = Field(description="SPDX guess from the licence file at the root; null where none is known.")
    files: int = Field(description="Files, links and submodules in the tree.")
    read: int = Field(description="Files that the catalogue may need.")
    passed_over: dict[str, int] = Field(description="Files that could not be read, by reason.")
    others: dict[str, int] = Field(description="Files that can be no entry, by kind of file.")
    bytes: int = Field(description="Bytes of the files read.")


class _Plan(NamedTuple):
    """What of a tree has to be looked at."""

    tree: Tree
    skills: frozenset[bytes]
    wanted: list[TreeItem]
    """Files and links at paths that may be entries."""
    links: list[TreeItem]
    """All links, those in skipped folders too: others may lead through them."""
    licences: list[TreeItem]


def read(mirror: Mirror, name: str, limit: int) -> tuple[list[TapFile], TapManifest]:
    """Fetch what is missing and read the pinned tree.

    Args:
        mirror: the tap's mirror.
        name: the tap's name, for the manifest.
        limit: bytes; larger files are not read.

    Returns:
        The files at paths that may be entries, by path, and the manifest.

    Raises:
        TapError: the tap cannot be had, or lacks a blob that the catalogue needs.
        Spoilt: the mirror cannot be read.
    """
    commit = mirror.fetch_commit()
    plan = _plan(mirror.tree(commit.tree))
    ends = _follow(plan, _link_texts(mirror, plan))
    files_at = {item.path: end for item in plan.wanted if isinstance(end := ends.get(item.path, item), TreeItem)}
    licence_files = [end for item in plan.licences if isinstance(end := ends.get(item.path, item), TreeItem)]
    vital = {end.oid: path for path, end in sorted(files_at.items(), reverse=True)}
    # The blobs that links lead to are asked for now; all others are here already.
    sizes = mirror.fetch_blobs(vital.keys() | {end.oid for end in licence_files}, vital)
    contents = mirror.blobs([oid for oid, size in sizes.items() if size <= limit])
    files, unread = _sort_out(plan, files_at, contents)
    passed_over, others = _account(plan, ends, files_at, unread)
    return files, TapManifest(
        name=name,
        pin=mirror.pin,
        tree=commit.tree,
        committed=commit.committed,
        licence=licences.guess(contents[end.oid] for end in licence_files if end.oid in contents),
        files=len(plan.tree.items),
        read=len(files),
        passed_over=passed_over,
        others=others,
        bytes=sum(len(file.content) for file in files),
    )


def _plan(items: list[TreeItem]) -> _Plan:
    tree = Tree.of(items)
    if len(tree.items) != len(items):
        twice = next(path for path, count in Counter(item.path for item in items).items() if count > 1)
        raise TapError("invalid", f"the tree holds «{_shown(twice)}» twice")
    here = [item for item in items if item.mode != SUBMODULE_MODE and not is_skipped(item.path)]
    skills = skill_folders(item.path for item in here)
    return _Plan(
        tree,
        skills,
        wanted=[item for item in here if classify(item.path, skills)],
        links=[item for item in items if item.mode == LINK_MODE],
        licences=sorted(item for item in here if licences.LICENCE_FILE.fullmatch(item.path)),
    )


def _link_texts(mirror: Mirror, plan: _Plan) -> dict[str, bytes]:
    """Fetch all that the tree itself names, in one request, and return what is written in each link."""
    direct = {item.oid for item in (*plan.wanted, *plan.links, *plan.licences)}
    sizes = mirror.fetch_blobs(direct, {item.oid: item.path for item in sorted(plan.wanted, reverse=True)})
    oids = {item.oid for item in plan.links} & sizes.keys()
    too_long = {oid: b"" for oid in oids if sizes[oid] > LONGEST_LINK}
    return too_long | mirror.blobs(oids - too_long.keys())


def _follow(plan: _Plan, texts: Mapping[str, bytes]) -> dict[bytes, TreeItem | LinkFault]:
    """Return where each link leads, by the path of the link."""
    ends = {link.path: plan.tree.resolve(link, texts) for link in plan.links}
    for item in plan.wanted:
        if ends.get(item.path) == "missing_link":
            message = f"the catalogue needs «{_shown(item.path)}», and the blob of a link on the way is missing"
            raise TapError("invalid", message)
    return ends


def _sort_out(
    plan: _Plan, files_at: Mapping[bytes, TreeItem], contents: Mapping[str, bytes]
) -> tuple[list[TapFile], dict[bytes, str]]:
    """Tell the files that are read from those that are too large, binary, or lie in Git LFS."""
    files, unread = [], {}
    for path, end in sorted(files_at.items()):
        content = contents.get(end.oid)
        if content is None:
            unread[path] = "too_large"
        elif b"\0" in content:
            unread[path] = "binary"
        elif _is_lfs_pointer(content):
            unread[path] = "lfs_pointer"
        else:
            files.append(TapFile(path, end.oid, plan.tree.items[path].mode == LINK_MODE, content))
    return files, unread


def _is_lfs_pointer(content: bytes) -> bool:
    """Say whether ``content`` only names a file that lies in Git LFS: what the file says is not in the repository."""
    return len(content) <= LONGEST_LFS_POINTER and _LFS_POINTER.fullmatch(content) is not None


def _account(
    plan: _Plan,
    ends: Mapping[bytes, TreeItem | LinkFault],
    files_at: Iterable[bytes],
    unread: Mapping[bytes, str],
) -> tuple[dict[str, int], dict[str, int]]:
    """Count every file that was not read: those passed over by reason, the others by kind of file."""
    passed_over, others, wanted = Counter[str](), Counter[str](), frozenset(files_at)
    for path, item in plan.tree.items.items():
        end = ends.get(path, item)
        if is_skipped(path):
            others[kind_of_file(path, plan.skills)] += 1
        elif item.mode == SUBMODULE_MODE:
            passed_over["submodule"] += 1
        elif not isinstance(end, TreeItem):
            passed_over[end] += 1
        elif path in unread:
            passed_over[unread[path]] += 1
        elif path not in wanted:
            others[kind_of_file(path, plan.skills)] += 1
    return dict(sorted(passed_over.items())), dict(sorted(others.items()))


def _shown(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
