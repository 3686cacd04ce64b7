"""JSON Lines that people write, read strictly: one object a line, each key once, UTF-8, and every fault is named.

Blank lines and lines that start with ``#`` are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from pipeline.errors import BadInput, Fault

BOM = "\ufeff".encode()
_MOST_SHOWN = 80
_MOST_NO_ROWS = 10
_ONE_OBJECT = "write one JSON object a line"


class Wrong(NamedTuple):
    """One thing that is wrong in a row."""

    field: str
    what: str
    todo: str


class Row(NamedTuple):
    """A line that is neither blank nor a comment."""

    line: int
    """Counted from 1."""
    value: dict[str, JsonValue] | None
    """The object; None where there is none."""
    wrongs: list[Wrong]
    """What is wrong with the line itself."""


def read_file(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        BadInput: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput([Fault(str(path), f"cannot be read: {error.strerror}", "mend the path")]) from None


def rows(data: bytes) -> Iterator[Row]:
    """Yield each row of a file. A line that holds nothing but a byte order mark or a comment has no value."""
    for line, text in _lines(data):
        wrongs = []
        if text.startswith(BOM):
            wrongs.append(Wrong("", "starts with a byte order mark", "save the file as UTF-8 without one"))
            text = text.removeprefix(BOM).strip()
            if not text or text.startswith(b"#"):
                yield Row(line, None, wrongs)
                continue
        value, found = _json(text)
        wrongs += found
        if isinstance(value, dict):
            yield Row(line, value, wrongs)
            continue
        if not found:
            wrongs.append(Wrong("", f"is no object: {in_row(value)}", _ONE_OBJECT))
        yield Row(line, None, wrongs)


def no_text(value: JsonValue) -> Wrong | None:
    """Return what is wrong with a value that holds a string, at any depth, which no file or no database can hold.

    JSON can write half of a surrogate pair, and the NUL character.
    """
    texts = list(_texts(value))
    if any("\ud800" <= char <= "\udfff" for text in texts for char in text):
        return Wrong("", "holds half of a surrogate pair, which is no text", "mend the \\u escape")
    if any("\0" in text for text in texts):
        return Wrong("", "holds a NUL character, which no database keeps", "take it out")
    return None


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _texts(each)


def bad_input(path: Path, wrongs: Iterable[tuple[int, Wrong]]) -> BadInput:
    """Return the error that names every fault, in the order of the lines; line 0 is the file as a whole.

    Of lines that are no rows at all, as of a file of another kind, the first few are named and the others counted.
    """
    in_order = sorted(wrongs, key=lambda numbered: numbered[0])
    no_rows = [line for line, wrong in in_order if wrong.todo == _ONE_OBJECT]
    left_out = set(no_rows[_MOST_NO_ROWS:])
    faults = [
        Fault(_place(path, line, wrong.field), wrong.what, wrong.todo)
        for line, wrong in in_order
        if not (line in left_out and wrong.todo == _ONE_OBJECT)
    ]
    more = [Fault(str(path), f"and {len(left_out):,} more lines that are no rows", _ONE_OBJECT)] if left_out else []
    return BadInput([*faults, *more])


def in_row(value: object) -> str:
    """Return ``value`` as it is shown in a message: text in quotes, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value)
    short = text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "…"
    return repr(short) if isinstance(value, str) else short


def _place(path: Path, line: int, field: str) -> str:
    return " ".join(part for part in (str(path), f"line {line}" if line else "", field) if part)


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    # Only LF ends a line: JSON text may hold U+2028 and its like, which str.splitlines would cut at.
    for number, line in enumerate(data.split(b"\n"), start=1):
        bare = line.strip()
        if bare and not bare.startswith(b"#"):
            yield number, bare


def _json(text: bytes) -> tuple[JsonValue, list[Wrong]]:
    twice: list[Wrong] = []

    def pairs(found: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        keys = [key for key, _ in found]
        repeated = sorted({key for key in keys if keys.count(key) > 1})
        twice.extend(Wrong(key, "the key occurs twice in the row", "keep one") for key in repeated)
        return dict(found)

    def constant(name: str) -> JsonValue:
        raise json.JSONDecodeError(f"{name} is no value", name, 0)

    try:
        value: JsonValue = json.loads(text.decode("utf-8"), object_pairs_hook=pairs, parse_constant=constant)
    except UnicodeDecodeError as error:
        return None, [Wrong("", f"byte {error.start + 1} is not UTF-8", "save the file as UTF-8")]
    except json.JSONDecodeError as error:
        return None, [Wrong("", f"no JSON: {error.msg} at column {error.colno}", _ONE_OBJECT)]
    except RecursionError:
        return None, [Wrong("", "nested too deeply", _ONE_OBJECT)]
    except ValueError:
        return None, [Wrong("", "holds a number of too many digits", _ONE_OBJECT)]
    return value, twice
