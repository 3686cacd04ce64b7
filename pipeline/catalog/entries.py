"""The catalogue of one tap: one row an entry, from the files that its snapshot read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from pydantic import Field, JsonValue

from pipeline.catalog import digests, flags, frontmatter, names
from pipeline.catalog.frontmatter import FrontMatter, ParseStatus
from pipeline.records import Record, Table
from pipeline.store import Stage
from pipeline.taps import profile

if TYPE_CHECKING:
    import pyarrow as pa

    from pipeline.taps.snapshot import TapFile

CATALOG = Stage("catalog", 1)

Kind = Literal["skill", "rule", "workflow"]
Encoding = Literal["utf-8", "lossy"]
DescriptionSource = Literal["front_matter", "body"]

WORKFLOW_KEYS = frozenset({"tools", "model", "argument-hint", "allowed-tools"})
"""Front matter that has ``name``, ``description`` and one of these makes a workflow of Markdown anywhere."""


class EntryFacts(Record):
    """What is known of an entry from its own file, but for its text. Its identity is ``(tap, path)``."""

    tap: str = Field(description="Name of the tap, owner/repo.")
    path: bytes = Field(description="Path from the root of the repository, as git has it.")
    path_text: str = Field(description="The path as text; bytes that are no UTF-8 show as \\xff.")
    kind: Kind = Field(description="skill, rule or workflow.")
    name: str = Field(description="Name as written in the front matter, else taken from the path.")
    slug: str = Field(description="The name in the form that is compared.")
    description: str | None = Field(description="From the front matter, else the first line of the body that says any.")
    description_source: DescriptionSource | None = Field(description="front_matter, body, or null without description.")
    parse_status: ParseStatus = Field(
        description="ok: valid YAML; recovered: valid once values were quoted; lenient: read line by line; none."
    )
    encoding: Encoding = Field(description="utf-8, or lossy where bytes that are no UTF-8 were replaced.")
    via_link: bool = Field(description="Whether the path is a symbolic link to the file that was read.")
    empty_body: bool = Field(description="Whether no word is left in the body.")
    alias_stub: bool = Field(description="Whether the body is short and only points elsewhere.")
    locale: str | None = Field(description="The locale that the path says it is a copy for, or null: no locale copy.")
    spec_violations: list[str] = Field(description="Breaches of the open skill format, as codes; skills only.")
    blob: str = Field(description="git's id of the blob that was read.")
    raw_sha256: str = Field(description="SHA-256 of the bytes.")
    body_sha256: str = Field(description="SHA-256 of the body, its white space normalised.")
    entry_sha256: str = Field(description="SHA-256 of slug, LF, description, LF, normalised body.")


class Entry(EntryFacts):
    """A row of a tap's catalogue."""

    body: str = Field(description="The text after the front matter, line ends LF.")


ENTRIES = Table("catalog", Entry, ("tap", "path"))


class Catalogue(NamedTuple):
    """The entries of a tap, and what was read and is none."""

    entries: pa.Table
    """One row an ``Entry``, ordered by path."""
    passed_over: dict[str, int]
    """Files that turned out to be no entries, by kind of file, ordered by kind."""

    def facts(self) -> dict[str, JsonValue]:
        """Return the counts of the tap: entries by kind and by parse status, content classes, flags, files passed over.

        ``classes`` goes by the normalised body; each empty body is a class of its own.
        """
        empties: list[bool] = self.entries["empty_body"].to_pylist()
        bodies = zip(self.entries["body_sha256"].to_pylist(), empties, strict=True)
        kinds, statuses = (Counter(self.entries[name].to_pylist()) for name in ("kind", "parse_status"))
        return {
            "entries": self.entries.num_rows,
            **{f"{kind}s": kinds[kind] for kind in get_args(Kind)},
            "classes": len({body for body, empty in bodies if not empty}) + sum(empties),
            "empty_bodies": sum(empties),
            "alias_stubs": sum(self.entries["alias_stub"].to_pylist()),
            "links": sum(self.entries["via_link"].to_pylist()),
            **{f"parse_{status}": statuses[status] for status in get_args(ParseStatus)},
            "passed_over": dict(self.passed_over),
        }


def catalogue(tap: str, files: Iterable[TapFile]) -> Catalogue:
    """Return the catalogue of a tap. The order of ``files`` does not matter; each is an entry or is counted.

    Args:
        tap: its name, ``owner/repo``.
        files: what the snapshot read; each path once. What lies inside a skill without being one was left out there.
    """
    kept = list(files)
    skills = profile.skill_folders(file.path for file in kept)
    rows: list[Entry] = []
    passed_over: Counter[str] = Counter()
    for file in kept:
        row = _entry(tap, file, skills)
        if row is None:
            passed_over[profile.kind_of_file(file.path, skills)] += 1
        else:
            rows.append(row)
    columns = {column: [getattr(row, column) for row in rows] for column in Entry.model_fields}
    return Catalogue(ENTRIES.from_columns(columns), dict(sorted(passed_over.items())))


def decoded(content: bytes) -> tuple[str, Encoding]:
    """Return ``content`` as text with LF line ends and without a byte order mark, and how it was decoded."""
    encoding: Encoding = "utf-8"
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text, encoding = content.decode("utf-8-sig", "replace"), "lossy"
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, encoding


def _entry(tap: str, file: TapFile, skills: Collection[bytes]) -> Entry | None:
    """Return the row of ``file``, or None where it is no entry."""
    candidate = profile.classify(file.path, skills)
    if candidate is None:
        return None
    text, encoding = decoded(file.content)
    front, body = frontmatter.split(text)
    parsed = frontmatter.NO_FRONT_MATTER if front is None else frontmatter.parse(front)
    kind = _kind(candidate, parsed)
    if kind is None:
        return None
    written = parsed.fields.get("name")
    name = written if written and written.strip() else names.name_from_path(tap, file.path)
    slug = names.slug(name)
    description, source = _description(parsed, body)
    normal = digests.normalised(body).encode("utf-8")
    return Entry(
        tap=tap,
        path=file.path,
        path_text=names.readable(file.path),
        kind=kind,
        name=name,
        slug=slug,
        description=description,
        description_source=source,
        parse_status=parsed.status,
        encoding=encoding,
        via_link=file.via_link,
        empty_body=not normal,
        alias_stub=flags.is_alias_stub(body),
        locale=flags.locale_of(file.path),
        spec_violations=flags.spec_violations(file.path, parsed.fields) if kind == "skill" else [],
        blob=file.oid,
        raw_sha256=digests.raw_sha256(file.content),
        body_sha256=digests.body_sha256(normal),
        entry_sha256=digests.entry_sha256(slug, description, normal),
        body=body,
    )


def _kind(candidate: profile.Kind, parsed: FrontMatter) -> Kind | None:
    if candidate != "maybe_workflow":
        return candidate
    keys = parsed.fields.keys()
    is_workflow = "name" in keys and "description" in keys and not WORKFLOW_KEYS.isdisjoint(keys)
    return "workflow" if is_workflow else None


def _description(parsed: FrontMatter, body: str) -> tuple[str | None, DescriptionSource | None]:
    written = names.collapsed(parsed.fields.get("description") or "")
    if written:
        return written, "front_matter"
    line = names.description_from_body(body)
    return line, None if line is None else "body"
