"""What a judgment names, in a corpus: an entry at its pin, or content by its digest. A judgment follows the content."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("tap", "path", "path_text", "class_id", "body_sha256", "empty_body")
"""Columns of the entries of a corpus that are needed here."""

_AT_PIN = re.compile(r"(?P<tap>[^@:]+)@(?P<pin>[0-9a-f]{40}|[0-9a-f]{64}):(?P<path>.+)", re.DOTALL)
_CONTENT = re.compile(r"(?:class:)?(?P<body>[0-9a-f]{64})")
_SHORTENED = re.compile(r"class:(?P<digits>[0-9a-f]{6,63})")


class Target(NamedTuple):
    """What is judged."""

    doc_id: str | None
    """`tap@pin:path`, where an entry was named."""
    body: str
    """Digest of the body."""

    @property
    def chunk_id(self) -> str:
        """The content, as a judgment names it."""
        return f"class:{self.body}"


class Targets:
    """The entries of a corpus, to be named."""

    def __init__(self, entries: pa.Table, pins: Mapping[str, str]) -> None:
        """Take the rows of a corpus, with ``COLUMNS``, and the pin of each tap."""
        self._pins = pins
        self._classes_of: dict[str, set[str]] = defaultdict(set)
        self._body_of: dict[str, str] = {}
        self._bodies: dict[tuple[str, bytes], set[str]] = defaultdict(set)
        self._places: set[tuple[str, bytes]] = set()
        columns = (entries[name].to_pylist() for name in COLUMNS)
        for tap, path, shown, class_id, body, empty in zip(*columns, strict=True):
            self._places |= {(tap, path), (tap, shown.encode())}
            if empty:
                continue  # empty bodies are never one content: nothing can be said of all of them
            self._classes_of[body].add(class_id)
            self._body_of[class_id] = min(body, self._body_of.get(class_id, body))
            self._bodies[tap, path].add(body)
            if shown.encode() != path:
                self._bodies[tap, shown.encode()].add(body)

    def classes_of(self, body: str) -> Collection[str]:
        """Return the classes whose entries have a body; none where no entry of the corpus has it.

        Where classes are made of more than bodies, one body can be in several.
        """
        return self._classes_of.get(body, ())

    def entry_of(self, body: str) -> str:
        """Return the first entry, in byte order, that has a body of the corpus, as `tap@pin:path`."""
        tap, path = min(place for place, bodies in self._bodies.items() if body in bodies)
        return f"{tap}@{self._pins[tap]}:{path.decode('utf-8', errors='backslashreplace')}"

    def are_one(self, body: str, other: str) -> bool:
        """Say whether two bodies are one content in the corpus."""
        return bool({*self.classes_of(body)} & {*self.classes_of(other)})

    def holds_tap_of(self, doc_id: str) -> bool:
        """Say whether the corpus holds the tap of an entry `tap@pin:path` at that pin, and so knows its entries."""
        at_pin = _AT_PIN.fullmatch(doc_id)
        return at_pin is not None and self._pins.get(at_pin["tap"]) == at_pin["pin"]

    def has_entry(self, written: str) -> bool:
        """Say whether the corpus has the entry `tap::path`, an empty one too."""
        tap, _, path = written.partition("::")
        return (tap, path.encode()) in self._places

    def find_shown(self, written: str) -> Target | str:
        """Return what is named as pages show it: content by the first digits of its id too, if no other has them."""
        shortened = _SHORTENED.fullmatch(written)
        if shortened is None:
            return self.find(written)
        digests = [each for each in (*self._body_of, *self._classes_of) if each.startswith(shortened["digits"])]
        found = {self.find(each) for each in digests}
        if len(found) > 1:
            return f"begins the ids of {len(found)} contents"
        return found.pop() if found else "names nothing in the corpus: no id of content begins so"

    def find(self, written: str) -> Target | str:
        """Return what is named, or what is wrong with the name.

        It is `tap@pin:path`, `tap::path`, `class:<body digest>` or the digest alone. The id of a class that holds
        several bodies names the first of them.
        """
        content = _CONTENT.fullmatch(written)
        if content:
            digest = content["body"]
            body = digest if digest in self._classes_of else self._body_of.get(digest)
            return "names nothing in the corpus: no entry has this body" if body is None else Target(None, body)
        at_pin = _AT_PIN.fullmatch(written)
        tap, separator, path = written.partition("::")
        if at_pin:
            tap, path = at_pin["tap"], at_pin["path"]
        elif not (tap and separator and path):
            return "names no entry and no content: write `tap@pin:path`, `tap::path` or `class:<body digest>`"
        if tap not in self._pins:
            return f"names nothing in the corpus: no tap is called {tap!r}"
        if at_pin and at_pin["pin"] != self._pins[tap]:
            return f"names another commit than the corpus, which has {tap} at {self._pins[tap]}"
        bodies = self._bodies.get((tap, path.encode()), set())
        if not bodies:
            return "names nothing in the corpus: the tap has no such entry"
        if len(bodies) > 1:
            return "names several entries whose paths read alike"
        return Target(f"{tap}@{self._pins[tap]}:{path}", next(iter(bodies)))
