"""Front matter: the block of YAML at the head of a file, read so that nothing is dropped in silence.

Every scalar is read as its source text (``yes``, ``1.10`` and ``2024-01-01`` stay what was written), so a name or a
description never turns into a truth value, a number or a date.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple, TypeAlias, Union

import yaml

ParseStatus = Literal["ok", "recovered", "lenient", "none"]

MAX_BYTES = 64 * 1024
"""Front matter over this many UTF-8 bytes is not given to the YAML parser."""
MAX_DEPTH = 32
"""Collections inside one another, the outermost mapping included."""
MAX_ALIASES = 256
"""Uses of an anchor in one front matter."""

_CLOSING = re.compile(r"^[^\S\n]*(?:---|\.\.\.)[^\S\n]*$", re.MULTILINE)
_KEY_LINE = re.compile(r"^(?P<key>[^\s#:-].*?):(?=[ \t]|$)(?P<value>.*)$", re.MULTILINE)
_LEFT_ALONE = ("'", '"', "|", ">", "[", "{")
_NEEDS_QUOTES = ("*", "@", "`", "%")
_QUOTES = ("'", '"')

_NULL_TEXTS = frozenset({"", "~", "null", "Null", "NULL"})
_YAML = "tag:yaml.org,2002:"
_NULL_TAG = _YAML + "null"
_TAGS = frozenset(
    {None, "!"}
    | {_YAML + scalar for scalar in ("str", "int", "float", "bool", "null", "timestamp", "binary", "merge", "value")}
    | {_YAML + collection for collection in ("seq", "omap", "pairs", "map", "set")}
)
"""The tags that the safe loader knows. Any other one would ask for an object, and is refused."""


class FrontMatter(NamedTuple):
    """What a front matter says at its top level."""

    status: ParseStatus
    """``ok``: valid YAML; ``recovered``: valid once values were quoted; ``lenient``: read line by line; ``none``."""
    fields: Mapping[str, str | None]
    """Source text of each top-level scalar by its key; None for a list, a mapping or null."""


NO_FRONT_MATTER = FrontMatter("none", {})


def split(text: str) -> tuple[str | None, str]:
    """Return the front matter of ``text`` and the body after it; None and all of ``text`` where there is none.

    Line ends are LF. The front matter opens with a first line ``---`` (white space after it is let pass) and closes at
    a line that is ``---`` or ``...`` once trimmed; what never closes is no front matter.
    """
    if not text.startswith("---"):
        return None, text
    first = text.partition("\n")[0]
    if first.rstrip() != "---":
        return None, text
    closing = _CLOSING.search(text, len(first) + 1)
    if closing is None:
        return None, text
    return text[len(first) + 1 : closing.start()], text[closing.end() + 1 :]


def parse(front: str) -> FrontMatter:
    """Read a front matter as YAML, else as YAML with risky values quoted, else line by line. Never raises.

    ``front`` is text without lone surrogates, such as :func:`split` returns. A blank one counts as none.
    """
    if not front.strip():
        return NO_FRONT_MATTER
    fields = _top_level(front)
    if fields is not None:
        return FrontMatter("ok", fields)
    fields = _top_level(_with_values_quoted(front))
    if fields is not None:
        return FrontMatter("recovered", fields)
    return FrontMatter("lenient", _first_lines(front))


def _top_level(text: str) -> dict[str, str | None] | None:
    """Return the fields of the one mapping that ``text`` is, or None where it is no valid YAML or anything else."""
    if len(text.encode("utf-8")) > MAX_BYTES:
        return None
    try:
        node = _Document(text).root()
    except (yaml.YAMLError, _Refused):
        return None
    if not isinstance(node, dict):
        return None
    return {key: value if isinstance(value, str) else None for key, value in node.items()}


_Node: TypeAlias = Union[str, "list[_Node]", "dict[str, _Node]", None]


class _Refused(Exception):
    """Well-formed YAML that is not taken: beyond a bound, or with a key or a tag that safe reading does not allow."""


class _Document:
    """Builds the tree of one YAML document from the parser's events, and checks the bounds while it does.

    An alias shares the node that it names, so no alias makes the tree larger. All scalars but null are text.
    """

    def __init__(self, text: str) -> None:
        self._parser = yaml.CSafeLoader(text)
        self._anchors: dict[str, _Node] = {}
        self._aliases = 0

    def root(self) -> _Node:
        """Return the root of the only document."""
        self._next()  # the start of the stream
        if isinstance(self._next(), yaml.StreamEndEvent):
            return None
        node = self._node(self._next(), 1)
        self._next()  # the end of the document
        if not isinstance(self._next(), yaml.StreamEndEvent):
            raise _Refused("more than one document")
        return node

    def _next(self) -> yaml.Event:
        event = self._parser.get_event()
        if event is None:
            raise _Refused("it ended too early")
        return event

    def _node(self, event: yaml.Event, depth: int) -> _Node:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if depth > MAX_DEPTH:
            raise _Refused("too deep")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, depth)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, depth)
        raise _Refused("no node")

    def _scalar(self, event: yaml.ScalarEvent) -> str | None:
        _check_tag(event.tag)
        is_null = event.tag == _NULL_TAG or (event.implicit[0] and event.value in _NULL_TEXTS)
        text = None if is_null else event.value
        self._anchor(event.anchor, text)
        return text

    def _alias(self, event: yaml.AliasEvent) -> _Node:
        self._aliases += 1
        if self._aliases > MAX_ALIASES or event.anchor not in self._anchors:
            raise _Refused("too many aliases, or one that names nothing")
        return self._anchors[event.anchor]

    def _sequence(self, event: yaml.SequenceStartEvent, depth: int) -> list[_Node]:
        _check_tag(event.tag)
        items: list[_Node] = []
        self._anchor(event.anchor, items)
        while not isinstance(item := self._next(), yaml.SequenceEndEvent):
            items.append(self._node(item, depth + 1))
        return items

    def _mapping(self, event: yaml.MappingStartEvent, depth: int) -> dict[str, _Node]:
        _check_tag(event.tag)
        values: dict[str, _Node] = {}
        merged: list[dict[str, _Node]] | None = None
        self._anchor(event.anchor, values)
        while not isinstance(key_event := self._next(), yaml.MappingEndEvent):
            if _is_merge(key_event):
                if merged is not None:
                    raise _Refused("two merge keys")
                merged = _merge_sources(self._node(self._next(), depth + 1))
                continue
            key = self._key(key_event, depth)
            if key in values:
                raise _Refused("duplicate key")
            values[key] = self._node(self._next(), depth + 1)
        for source in merged or ():
            for key, value in source.items():
                values.setdefault(key, value)
        return values

    def _key(self, event: yaml.Event, depth: int) -> str:
        """Return the source text of a key: two keys that are written alike are the same key, whatever their types."""
        node = self._node(event, depth + 1)
        if isinstance(event, yaml.ScalarEvent):
            return event.value
        if isinstance(node, str):
            return node
        raise _Refused("a key that is no scalar")

    def _anchor(self, name: str | None, node: _Node) -> None:
        if name is not None:
            self._anchors[name] = node


def _check_tag(tag: str | None) -> None:
    if tag not in _TAGS:
        raise _Refused("a tag that the safe loader does not know")


def _is_merge(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]


def _merge_sources(node: _Node) -> list[dict[str, _Node]]:
    """Return the mappings that a merge key names, the first of which wins."""
    nodes = node if isinstance(node, list) else [node]
    sources = [source for source in nodes if isinstance(source, dict)]
    if len(sources) < len(nodes):
        raise _Refused("a merge of what is no mapping")
    return sources


def _with_values_quoted(front: str) -> str:
    """Return ``front`` with the values of top-level keys quoted where YAML would take them for something else."""
    return _KEY_LINE.sub(_quoted_line, front)


def _quoted_line(line: re.Match[str]) -> str:
    value = line["value"].strip()
    risky = ": " in value or value.endswith(":") or value.startswith(_NEEDS_QUOTES)
    if not risky or value.startswith(_LEFT_ALONE):
        return line[0]
    return f"{line['key']}: '" + value.replace("'", "''") + "'"


def _first_lines(front: str) -> dict[str, str | None]:
    """Return the value on the first ``key: value`` line of each key at column 0; None for keys that have none."""
    fields: dict[str, str | None] = {}
    for line in _KEY_LINE.finditer(front):
        key, value = _unquoted(line["key"].rstrip()), line["value"].strip()
        if fields.get(key) is None:
            fields[key] = None if value in _NULL_TEXTS else _unquoted(value)
    return fields


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] in _QUOTES and text[-1] == text[0]:
        return text[1:-1]
    return text
