"""Listings: what others publish about registries, read into the rows of a tap list. Nothing of a listing is dropped.

Two forms: the text rows ``owner/repo [sha [entries [distinct]]]``, and a Claude plugin ``marketplace.json``, told apart
by the ending ``.json``. A plugin's ``source`` is a path in the marketplace's own repository, or an object that says
where the plugin comes from: ``github`` (``repo``), ``url`` and ``git-subdir`` (``url``), each with an optional ``sha``,
or a package of another kind. A tap is a whole repository at one commit, so the plugins of one repository are one tap.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from pipeline.errors import BadInput, Fault, one_line
from pipeline.taps.taplist import Tap, is_name, is_pin, is_remote, parse_tap_list, same_place, shown_value

GITHUB = "https://github.com/"

_MOST_NAMED = 12
"""Plugins that the comment above a row names; the rest are counted."""
_SHA_TODO = "write the id of the commit itself, 40 or 64 hex digits"
_URL_TODO = "give the URL of a git repository over https, ssh or git"


class PassedOver(NamedTuple):
    """A plugin that names no repository at a commit."""

    where: str
    """The file, and which plugin."""
    plugin: str
    reason: str


class Listing(NamedTuple):
    """What a listing says."""

    taps: tuple[Tap, ...]
    """Rows for a tap list, in the order of the listing."""
    plugins: dict[str, tuple[str, ...]]
    """What of each tap the listing names, by the name of the tap."""
    passed_over: tuple[PassedOver, ...]


def read_listing(path: Path) -> Listing:
    """Read a listing from a file.

    Raises:
        BadInput: it cannot be read, or it is wrong; all faults are named with their place.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadInput([Fault(str(path), f"cannot be read ({error.strerror})", "mend the path")]) from None
    ending = path.suffix.lower()
    if ending == ".toml":
        raise BadInput([Fault(str(path), "is a tap list already", "use it with --taps")])
    if ending == ".json":
        return parse_marketplace(path, data)
    return Listing(parse_tap_list(path, data, need_pins=False).taps, {}, ())


def as_tap_list(listing: Listing, source: str) -> str:
    """Return the text of the tap list that a listing gives.

    Args:
        listing: what was read.
        source: what to call the listing in the first line.
    """
    parts = [f"# Imported from {one_line(source)}. `assay taps refresh` proposes pins, `assay taps relock` counts.\n"]
    for tap in listing.taps:
        named = listing.plugins.get(tap.name, ())
        more = f", and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        comment = [f"# plugins: {one_line(', '.join(named[:_MOST_NAMED]))}{more}"] if named else []
        is_default = re.sub(r"(/|[.]git)+$", "", tap.url) == GITHUB + tap.name
        values = {"name": tap.name, "url": None if is_default else tap.url, "pin": tap.pin, "entries": tap.entries}
        # Printable text is written the same way in JSON and in TOML.
        written = ((key, json.dumps(value, ensure_ascii=False)) for key, value in values.items() if value is not None)
        lines = (f"{key} = {value}" for key, value in written)
        parts.append("\n".join([*comment, "[[tap]]", *lines]) + "\n")
    return "\n".join(parts)


def parse_marketplace(path: Path, data: bytes) -> Listing:
    """Read the bytes of a ``marketplace.json``; ``path`` is only named.

    Raises:
        BadInput: with all faults at once, each naming the file and the plugin.
    """
    reading = _Reading(path)
    for number, plugin in enumerate(_plugins(path, data), 1):
        reading.add(number, plugin)
    reading.faults += _shared_names(reading.places.values())
    if not reading.places and not reading.faults:
        todo = "list a plugin whose `source` is a git repository with a `sha`"
        reading.faults += [Fault(each.where, f"passed over: {each.reason}", todo) for each in reading.passed_over]
        reading.faults += [] if reading.passed_over else [Fault(str(path), "the marketplace lists no plugin", todo)]
    if reading.faults:
        raise BadInput(reading.faults)
    places = reading.places.values()
    taps = tuple(Tap(name=place.name, url=place.url, pin=place.pin, row=row) for row, place in enumerate(places, 1))
    return Listing(taps, {place.name: tuple(place.plugins) for place in places}, tuple(reading.passed_over))


def _plugins(path: Path, data: bytes) -> list[object]:
    twice: list[str] = []

    def pairs(found: list[tuple[str, object]]) -> dict[str, object]:
        twice.extend(key for key, times in Counter(key for key, _ in found).items() if times > 1)
        return dict(found)

    try:
        document = json.loads(data.decode("utf-8-sig"), object_pairs_hook=pairs)
    except UnicodeDecodeError as error:
        raise BadInput([Fault(str(path), f"is not UTF-8 text (byte {error.start})", "save it as UTF-8")]) from None
    except RecursionError:
        raise BadInput([Fault(str(path), "is nested too deeply", "give a marketplace.json")]) from None
    except ValueError as error:
        raise BadInput([Fault(str(path), f"is not JSON: {error}", "mend the file")]) from None
    plugins = document.get("plugins") if isinstance(document, dict) else None
    if not isinstance(plugins, list):
        raise BadInput([Fault(f"{path} plugins", "there is no list of plugins", "give a marketplace.json")])
    if twice:
        raise BadInput([Fault(str(path), f"the key {key!r} occurs twice in an object", "keep one") for key in twice])
    return plugins


@dataclass
class _Place:
    """A repository that plugins come from."""

    name: str
    url: str
    pin: str
    where: str
    plugins: list[str] = field(default_factory=list)


class _Reading:
    """A marketplace while it is read, plugin by plugin."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.places: dict[str, _Place] = {}
        self.passed_over: list[PassedOver] = []
        self.faults: list[Fault] = []

    def add(self, number: int, plugin: object) -> None:
        """Take a plugin in: as part of a repository, as passed over, or as a fault."""
        where = f"{self._path} plugin {number}"
        if not isinstance(plugin, dict):
            self.faults.append(Fault(where, f"{shown_value(plugin)} is no object", "write one object a plugin"))
            return
        name = plugin.get("name")
        if not isinstance(name, str) or not name:
            self.faults.append(Fault(f"{where} name", f"{shown_value(name)} is no name", "give the plugin a name"))
            return
        where = f"{where} ({name})"
        source = plugin.get("source")
        reason = _why_not(source)
        if reason:
            self.passed_over.append(PassedOver(where, name, reason))
        elif isinstance(source, dict) and isinstance(source.get("source"), str):
            self._add_repository(where, name, source)
        else:
            todo = "write a path, or an object with the key `source`"
            self.faults.append(Fault(f"{where} source", f"{shown_value(source)} is no source", todo))

    def _add_repository(self, where: str, plugin: str, source: dict[str, object]) -> None:
        url, sha = _url(source), source["sha"]
        name = _name(url) if url else None
        if not is_pin(sha):
            self.faults.append(Fault(f"{where} sha", f"{shown_value(sha)} is not a full commit id", _SHA_TODO))
        if url is None or name is None:
            key = "repo" if source["source"] == "github" else "url"
            what = f"{shown_value(source.get(key))} names no repository as owner/repo"
            self.faults.append(Fault(f"{where} {key}", what, _URL_TODO))
        elif is_pin(sha):
            self._add_pinned(where, plugin, source.get("path"), _Place(name, url, str(sha).lower(), where))

    def _add_pinned(self, where: str, plugin: str, path: object, place: _Place) -> None:
        first = self.places.setdefault(same_place(place.url), place)
        if first.pin != place.pin:
            what = f"pins {first.name} at {place.pin}, and {first.where.removeprefix(f'{self._path} ')} at {first.pin}"
            self.faults.append(Fault(f"{where} sha", what, "a tap has one pin: keep the plugins of one commit"))
        first.plugins.append(f"{plugin} ({path})" if isinstance(path, str) else plugin)


def _why_not(source: object) -> str | None:
    """Say why a source is no repository at a commit, though nothing is wrong with it; None where it may be one."""
    if isinstance(source, str):
        return f"it lies in the marketplace's own repository ({source})"
    kind = source.get("source") if isinstance(source, dict) else None
    if not isinstance(source, dict) or not isinstance(kind, str):
        return None
    if kind not in ("github", "url", "git", "git-subdir"):
        return f"it comes from {kind}, which is no git repository"
    if source.get("sha") is None:
        return "it has no sha, so that nothing pins it"
    return None


def _url(source: dict[str, object]) -> str | None:
    """Return the URL of a source that is a repository; None where it gives none."""
    kind = source["source"]
    if kind == "github":
        repo = source.get("repo")
        return GITHUB + str(repo) if is_name(repo) else None
    url = source.get("url")
    if kind == "git-subdir" and is_name(url):
        return GITHUB + str(url)
    return str(url) if is_remote(url) else None


def _name(url: str) -> str | None:
    """Return ``owner/repo`` as a URL ends; None where it does not end so."""
    host, separator, rest = url.partition(":")
    path = urlsplit(url).path if "://" in url else rest if separator else host
    parts = re.sub(r"(/|[.]git)+$", "", path).strip("/").split("/")
    name = "/".join(parts[-2:])
    return name if is_name(name) else None


def _shared_names(places: Iterable[_Place]) -> Iterator[Fault]:
    first: dict[str, _Place] = {}
    for place in places:
        other = first.setdefault(place.name.casefold(), place)
        if other is not place:
            what = f"{shown_value(place.url)} and {shown_value(other.url)} would both be called {place.name}"
            yield Fault(f"{place.where} url", what, "keep one, and add the other to the tap list by hand")
