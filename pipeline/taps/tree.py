"""The tree of a commit as a listing, and where its symbolic links lead. Pure; paths are bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

LINK_MODE = "120000"
SUBMODULE_MODE = "160000"
MOST_HOPS = 8
"""Links that may be followed on the way from one link to its file, the first included."""

LinkFault = Literal["broken_link", "link_to_directory", "link_outside", "link_loop", "missing_link"]
"""Why a link leads to no file. ``missing_link``: the repository lacks the blob of a link on the way."""


class TreeItem(NamedTuple):
    """A file, a link or a submodule of a tree."""

    path: bytes
    mode: str
    oid: str


class Tree(NamedTuple):
    """All items of a tree by path, and the folders that hold them."""

    items: dict[bytes, TreeItem]
    folders: frozenset[bytes]

    @classmethod
    def of(cls, items: Iterable[TreeItem]) -> Tree:
        """Build a tree from its items, whose paths differ."""
        by_path = {item.path: item for item in items}
        folders: set[bytes] = {b""}
        for path in by_path:
            folder = path.rpartition(b"/")[0]
            while folder not in folders:
                folders.add(folder)
                folder = folder.rpartition(b"/")[0]
        return cls(by_path, frozenset(folders))

    def resolve(self, link: TreeItem, targets: Mapping[str, bytes]) -> TreeItem | LinkFault:
        """Return the file that ``link`` leads to, or why it leads to none.

        Works as an operating system would whose root is the root of the tree, but that nothing leads out of it: a
        folder on the way may be a link too, and ``..`` is the folder that really holds the one reached so far.

        Args:
            link: a link of this tree.
            targets: what is written in each link, by the id of its blob; a blob that is lacking is left out.
        """
        here: list[bytes] = link.path.split(b"/")[:-1]
        ahead: list[bytes] = []
        hops, at = 0, link
        while True:
            if at.mode == LINK_MODE:
                hops += 1
                if hops > MOST_HOPS:
                    return "link_loop"
                written = targets.get(at.oid)
                if written is None:
                    return "missing_link"
                if written.startswith(b"/"):
                    return "link_outside"
                if not written:
                    return "broken_link"
                ahead[:0] = written.split(b"/")
            elif at.mode == SUBMODULE_MODE or ahead:
                return "broken_link"  # nothing of a submodule is here, and a file has nothing below it
            else:
                return at
            found = self._walk(here, ahead)
            if not isinstance(found, TreeItem):
                return found
            at = found

    def _walk(self, here: list[bytes], ahead: list[bytes]) -> TreeItem | LinkFault:
        """Walk from the folder ``here`` along ``ahead`` to the first item that is no folder; changes both lists."""
        while ahead:
            name = ahead.pop(0)
            if name == b"..":
                if not here:
                    return "link_outside"
                here.pop()
            elif name not in (b"", b"."):
                path = b"/".join((*here, name))
                if path in self.items:
                    return self.items[path]
                if path not in self.folders:
                    return "broken_link"
                here.append(name)
        return "link_to_directory"
