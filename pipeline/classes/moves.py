"""What becomes of the entries of one tap between two commits: born, gone, edited, moved. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple


class Seen(NamedTuple):
    """An entry as it stands at one commit."""

    class_id: str
    slug: str


class Move(NamedTuple):
    """An entry whose content stands at another path now."""

    before: bytes
    after: bytes


class Moves(NamedTuple):
    """What becomes of the entries of a tap. Each path is in one list at most, and every list is in byte order.

    So as many entries as before, and those born, less those gone, are the entries after.
    """

    born: tuple[bytes, ...]
    """A path that held no entry, with content that no vanished path held."""
    gone: tuple[bytes, ...]
    """A path that holds no entry any more, and whose content is at no new path."""
    edited: tuple[bytes, ...]
    """The same path, another class."""
    moved: tuple[Move, ...]
    """A vanished path and a new one of the same class."""


def moves(before: Mapping[bytes, Seen], after: Mapping[bytes, Seen]) -> Moves:
    """Compare the entries of a tap at two commits, given by path."""
    vanished, new = before.keys() - after.keys(), after.keys() - before.keys()
    moved = sorted(_pairs({path: before[path] for path in vanished}, {path: after[path] for path in new}))
    edited = (path for path in before.keys() & after.keys() if before[path].class_id != after[path].class_id)
    return Moves(
        born=tuple(sorted(new - {move.after for move in moved})),
        gone=tuple(sorted(vanished - {move.before for move in moved})),
        edited=tuple(sorted(edited)),
        moved=tuple(moved),
    )


def _pairs(vanished: Mapping[bytes, Seen], new: Mapping[bytes, Seen]) -> Iterator[Move]:
    """Pair paths of the same class: first those of the same name too, then in byte order."""
    for by_name in (True, False):
        sources = _by_key(vanished, by_name)
        targets = _by_key(new, by_name)
        found = [Move(*pair) for key in sources for pair in zip(sources[key], targets.get(key, ()), strict=False)]
        yield from found
        vanished = {path: seen for path, seen in vanished.items() if path not in {move.before for move in found}}
        new = {path: seen for path, seen in new.items() if path not in {move.after for move in found}}


def _by_key(entries: Mapping[bytes, Seen], by_name: bool) -> dict[Iterable[str], list[bytes]]:
    paths: dict[Iterable[str], list[bytes]] = defaultdict(list)
    for path in sorted(entries):
        seen = entries[path]
        paths[seen if by_name else (seen.class_id,)].append(path)
    return paths
