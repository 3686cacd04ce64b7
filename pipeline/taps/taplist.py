"""The tap list: what people write about registries, read strictly. Every fault is named, nothing is guessed.

Two forms: TOML, one ``[[tap]]`` table a row, and the text rows ``owner/repo [sha [entries [distinct]]]``, told apart by
the ending ``.toml``. A row's number counts ``[[tap]]`` tables in the one form and lines in the other.
"""

from __future__ import annotations

import hashlib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from pydantic import Field

from pipeline.errors import BadInput, Fault
from pipeline.records import Record
from pipeline.taps.failures import without_credentials

TRANSPORTS = ("https", "ssh", "git", "file")
KEYS = ("name", "url", "pin", "entries", "classes", "role")

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*/[A-Za-z0-9._-]+")
_PIN = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SSH = re.compile(r"[^/:]+:")
"""git's own rule: a colon before the first slash is a host, as in ``git@host:owner/repo``."""


class TapKeys(Record):
    """What people write in a row of a tap list."""

    name: str = Field(description="`owner/repo`, the tap's identity in every table.")
    url: str | None = Field(default=None, description="git URL or local path; by default the GitHub repository `name`.")
    pin: str | None = Field(default=None, description="Full commit id in lower case: 40 hex digits, or 64.")
    entries: int | None = Field(
        default=None, description="Entries that the pinned tree must parse into; null: unknown."
    )
    classes: int | None = Field(default=None, description="Classes by rule `body` that it must give; null: unknown.")
    role: Literal["target", "scale"] = Field(default="scale", description="Whether it holds right answers.")


class Tap(TapKeys):
    """A row of a tap list: a git repository that is read as a registry."""

    url: str = Field(description="git URL or local path, as written.")
    row: int = Field(description="Where it stands in its file, counted from 1.")


class Written(NamedTuple):
    """A row as it stands in a file, before anything of it is believed."""

    where: str
    row: int
    values: Mapping[str, object]


@dataclass(frozen=True)
class TapList:
    """A tap list and the file that it was read from."""

    path: Path
    taps: tuple[Tap, ...]

    @property
    def base(self) -> Path:
        """The folder that relative local paths are relative to."""
        return self.path.absolute().parent


def read_tap_list(path: Path, *, need_pins: bool = True) -> TapList:
    """Read a tap list.

    Args:
        path: a TOML file where its name ends in ``.toml``, else text rows.
        need_pins: whether a row without a pin is a fault.

    Raises:
        BadInput: with all faults of the file at once, each naming the file, the row and the field.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        what, todo = f"the tap list cannot be read ({error.strerror})", "name a file that can be read"
        raise BadInput([Fault(str(path), what, todo)]) from None
    return parse_tap_list(path, data, need_pins=need_pins)


def parse_tap_list(path: Path, data: bytes, *, need_pins: bool = True) -> TapList:
    """Read a tap list from the bytes ``data`` of the file ``path``, which need not exist.

    Raises:
        BadInput: with all faults at once, each naming the file, the row and the field.
    """
    rows, faults = _rows(path, data)
    taps = []
    for written in rows:
        found = list(_row_faults(written, need_pins))
        faults += found
        if not found:
            taps.append(_tap(written))
    faults += duplicates(path, taps)
    if not rows and not faults:
        faults.append(Fault(str(path), "the list holds no tap", "add one row a tap"))
    if faults:
        raise BadInput(faults)
    return TapList(path, tuple(taps))


def location(tap: Tap, base: Path) -> str:
    """Return the URL that git is given for ``tap``.

    A local path becomes a ``file://`` URL, because git refuses partial fetches from a bare path.

    Args:
        tap: a row of a tap list.
        base: the folder that a relative local path is relative to, see ``TapList.base``.
    """
    if not is_local(tap):
        return tap.url
    return "file://" + quote(os.path.normpath(base.absolute() / tap.url))


def is_local(tap: Tap) -> bool:
    """Say whether the url of a row is a path on this machine, rather than a URL."""
    return not (_SCHEME.match(tap.url) or _SSH.match(tap.url))


def corpus_digest(taps: Iterable[Tap]) -> str:
    """Return the digest of a corpus: SHA-256 (hex) of the lines ``name pin``, sorted as bytes, each ended by LF."""
    lines = sorted(f"{tap.name} {tap.pin}\n".encode() for tap in taps)
    return hashlib.sha256(b"".join(lines)).hexdigest()


def written_text(taps: TapList) -> str:
    """Return the text of a TOML tap list with its line ends as they are in the file, ready to be changed in place.

    Raises:
        BadInput: it is a list of text rows, which has no place for what is measured.
    """
    if taps.path.suffix.lower() != ".toml":
        todo = f"make it TOML with `assay taps import {taps.path}`"
        raise BadInput([Fault(str(taps.path), "text rows are not changed in place", todo)])
    return taps.path.read_bytes().decode("utf-8")


class Pinned(NamedTuple):
    """What a row says of a pin: the commit, and what its tree parses into."""

    pin: str
    entries: int
    classes: int


def relocked(text: str, counts: Mapping[str, tuple[int, int]]) -> str:
    """Return the TOML tap list ``text`` with the measured counts in it, and everything else byte for byte as it was.

    Args:
        text: a tap list that ``read_tap_list`` accepts, with its line ends as they are in the file.
        counts: entries and classes by the name of the tap; the rows of other taps stay.

    Raises:
        BadInput: the list is written in a way that cannot be changed in place, such as one inline table a tap.
    """
    return _rewritten(text, {name: {"entries": each[0], "classes": each[1]} for name, each in counts.items()})


def repinned(text: str, pins: Mapping[str, Pinned]) -> str:
    """Return the TOML tap list ``text`` with new pins and their counts in it, like ``relocked`` in all else.

    Raises:
        BadInput: the list is written in a way that cannot be changed in place, such as one inline table a tap.
    """
    return _rewritten(text, {name: each._asdict() for name, each in pins.items()})


Values = Mapping[str, str | int]
"""What a row is to say, by key, in the order in which missing keys are added."""


def _rewritten(marked: str, values: Mapping[str, Values]) -> str:
    text = marked.removeprefix(_MARK)
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    heads = [number for number, line in enumerate(lines) if _HEAD.match(line)] + [len(lines)]
    names = [str(row.get("name")) for row in tomllib.loads(text).get("tap", [])]
    new = lines[: heads[0]]
    for number, (start, end) in enumerate(pairwise(heads)):
        block = lines[start:end]
        known = values.get(names[number]) if number < len(names) else None
        new += block if known is None else _rewritten_block(block, known)
    changed = "".join(new)
    if not _says(changed, text, values):
        todo = "write one [[tap]] table a tap, one `key = value` a line"
        raise BadInput([Fault("tap list", "it cannot be changed in place", todo)])
    return marked[: len(marked) - len(text)] + changed


_MARK = "\ufeff"
_HEAD = re.compile(r"""\s*\[\[\s*(tap|"tap"|'tap')\s*\]\]\s*(#.*)?$""")
_CHANGED = re.compile(
    r"""(?P<before>\s*["']?(?P<key>pin|entries|classes)["']?\s*=\s*)[^\s#]+(?P<after>.*)""", re.DOTALL
)


def _rewritten_block(block: list[str], known: Values) -> list[str]:
    missing = {key: f'"{value}"' if isinstance(value, str) else str(value) for key, value in known.items()}
    new = []
    for line in block:
        found = _CHANGED.match(line)
        if found and found["key"] in missing:
            line = f"{found['before']}{missing.pop(found['key'])}{found['after']}"
        new.append(line)
    if missing:
        keys = [number for number, line in enumerate(new) if re.match(r"""\s*["']?(name|pin)["']?\s*=""", line)]
        after = max(keys, default=0)
        if not new[after].endswith("\n"):
            new[after] += "\n"
        end = "\r\n" if new[after].endswith("\r\n") else "\n"
        new[after + 1 : after + 1] = [f"{key} = {value}{end}" for key, value in missing.items()]
    return new


def _says(changed: str, text: str, values: Mapping[str, Values]) -> bool:
    """Check that ``changed`` holds what ``text`` holds, but for ``values``."""
    wanted = tomllib.loads(text)
    for row in wanted.get("tap", []):
        row |= values.get(str(row.get("name")), {})
    try:
        return tomllib.loads(changed) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _rows(path: Path, data: bytes) -> tuple[list[Written], list[Fault]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return [], [Fault(str(path), f"it is not UTF-8 text (byte {error.start})", "save it as UTF-8")]
    return _toml_rows(path, text) if path.suffix.lower() == ".toml" else _text_rows(path, text)


def _toml_rows(path: Path, text: str) -> tuple[list[Written], list[Fault]]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        number = int(line[1]) if line else text.count("\n") + 1
        return [], [Fault(f"{path} line {number}", f"it is not TOML: {error}", "correct the line")]
    except (ValueError, RecursionError):
        what = "it is nested too deeply, or holds a number of too many digits"
        return [], [Fault(str(path), what, "write rows of plain keys and values")]
    faults = [
        Fault(f"{path} {key}", f"the key {key!r} is unknown here", "a tap list holds [[tap]] tables only")
        for key in document
        if key != "tap"
    ]
    rows = document.get("tap", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return [], [*faults, Fault(f"{path} tap", "`tap` is not a list of tables", "write [[tap]] above each row")]
    return [Written(f"{path} row {number}", number, row) for number, row in enumerate(rows, 1)], faults


def _text_rows(path: Path, text: str) -> tuple[list[Written], list[Fault]]:
    rows, faults = [], []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.partition("#")[0].split()
        where = f"{path} row {number}"
        if len(words) > 4:
            todo = "write `owner/repo [sha [entries [distinct]]]`"
            faults.append(Fault(where, f"the line has {len(words)} words, at most 4 are known", todo))
        elif words:
            counts = [_number(word) for word in words[2:]]
            if len(counts) == 2 and not _is_count(counts[1]):
                # It is read as unknown, but what is no number at all is a slip of the pen.
                faults.append(Fault(f"{where} distinct", f"{words[3]!r} is not a count", "write a whole number"))
            values = dict(zip(("name", "pin", "entries"), [*words[:2], *counts[:1]], strict=False))
            rows.append(Written(where, number, values))
    return rows, faults


def _number(word: str) -> object:
    return int(word) if re.fullmatch(r"-?[0-9]{1,12}", word) else word


def _tap(written: Written) -> Tap:
    values = dict(written.values)
    name = str(values["name"])
    pin = values.get("pin")
    return Tap.model_validate(
        {"url": f"https://github.com/{name}"}
        | values
        | {"pin": pin.lower() if isinstance(pin, str) else None, "row": written.row}
    )


def _row_faults(written: Written, need_pins: bool) -> Iterator[Fault]:
    """Yield what is wrong with one row by itself."""
    values = written.values
    for key in values:
        if key not in KEYS:
            yield Fault(f"{written.where} {key}", f"the key {key!r} is unknown", f"the keys are {', '.join(KEYS)}")
    for key in ("name", *(("pin",) if need_pins else ())):
        if key not in values:
            yield Fault(f"{written.where} {key}", f"`{key}` is missing", _TODO[key])
    for key, is_fine in _CHECKS.items():
        if key in values and not is_fine(values[key]):
            yield Fault(f"{written.where} {key}", f"{shown_value(values[key])} is not {_WHAT[key]}", _TODO[key])
    entries, classes = values.get("entries"), values.get("classes")
    if _is_count(entries) and _is_count(classes) and int(str(classes)) > int(str(entries)):
        what = f"{classes} classes are more than {entries} entries"
        yield Fault(f"{written.where} classes", what, "measure again with `assay taps relock`")


def is_name(value: object) -> bool:
    """Say whether a value is a name of the form ``owner/repo``."""
    return isinstance(value, str) and bool(_NAME.fullmatch(value)) and value.partition("/")[2] not in (".", "..")


def is_pin(value: object) -> bool:
    """Say whether a value is a full commit id."""
    return isinstance(value, str) and bool(_PIN.fullmatch(value)) and bool(value.strip("0"))


def is_remote(value: object) -> bool:
    """Say whether a value is the URL of a repository elsewhere, of a known transport; no path on this machine."""
    if not isinstance(value, str) or not _is_url(value):
        return False
    scheme = _SCHEME.match(value)
    return scheme[1] != "file" if scheme else bool(_SSH.match(value))


def _is_url(value: object) -> bool:
    if not isinstance(value, str) or not value.strip() or not value.isprintable() or value.startswith("-"):
        return False
    scheme = _SCHEME.match(value)
    if scheme:
        return scheme[1] in TRANSPORTS and value != scheme[0] and _is_split(value)
    host = value.partition("/")[0]
    return "::" not in host and "@-" not in host


def _is_split(url: str) -> bool:
    """Say whether ``url`` has a host and a port that can be told apart; a host with a leading ``-`` is an option."""
    try:
        parts = urlsplit(url)
        return parts.port != 0 and not (parts.hostname or "").startswith("-")
    except ValueError:
        return False


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0  # a bool is an int to Python, not to people


_CHECKS: dict[str, Callable[[object], bool]] = {
    "name": is_name,
    "url": _is_url,
    "pin": is_pin,
    "entries": _is_count,
    "classes": _is_count,
    "role": lambda value: value in ("target", "scale"),
}
_WHAT = {
    "name": "a name of the form owner/repo",
    "url": "a git URL of a known transport, or a local path",
    "pin": "a full commit id",
    "entries": "a count",
    "classes": "a count",
    "role": "a role",
}
_TODO = {
    "name": "write owner/repo with letters, digits, `.`, `_` and `-`",
    "url": f"use one of {', '.join(TRANSPORTS)}, or a path",
    "pin": "write the id of the commit itself, 40 or 64 hex digits; branches and tags move",
    "entries": "write a whole number, or leave it out where it is unknown",
    "classes": "write a whole number, or leave it out where it is unknown",
    "role": "write target or scale",
}


def shown_value(value: object) -> str:
    """Return a value as it is shown in a message: cut where it is long, without credentials."""
    shown = without_credentials(value) if isinstance(value, str) else value
    return f"{shown!r:.200}"


def duplicates(path: Path, taps: Iterable[Tap]) -> Iterator[Fault]:
    """Yield one fault for each row that is the repository of an earlier row."""
    base = path.absolute().parent
    seen: dict[tuple[str, str], Tap] = {}
    for tap in taps:
        marks = {"name": tap.name.casefold(), "url": same_place(location(tap, base)), "pin": tap.pin or ""}
        for field, mark in marks.items():
            first = seen.setdefault((field, mark), tap) if mark else tap
            if first is not tap:
                what = f"it is the repository of row {first.row} ({first.name}): {_SAME[field]}"
                yield Fault(f"{path} row {tap.row} {field}", what, "remove one of them, or every entry counts twice")
                break


_PORTS = {"https": 443, "ssh": 22, "git": 9418}
_SAME = {"name": "the same name", "url": "the same URL", "pin": "the same commit id"}


def same_place(url: str) -> str:
    """Return ``host/path`` of a git URL, without what may differ between two ways of writing the same place."""
    if not _SCHEME.match(url):
        host, _, path = url.partition(":")
        url = f"ssh://{host}/{path}"
    parts = urlsplit(url)
    host, path = parts.hostname or "", unquote(parts.path)
    if parts.port not in (None, _PORTS.get(parts.scheme)):
        host += f":{parts.port}"
    if parts.scheme == "file":
        host, path = "", os.path.normpath(path)
    if host == "github.com":
        path = path.casefold()
    return f"{host}/{re.sub(r'(/|[.]git)+$', '', path).strip('/')}"
