"""Each kind of odd file, made here and read from git to entry: it is an entry as the facts say, or is counted."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from pipeline.store import Store
from pipeline.taps.snapshot import SnapshotOptions
from tests.odd.facts import (
    BODY_ALONE,
    READ,
    REAL,
    RECOVERED,
    RULE,
    SKILL,
    WORKFLOW,
    Case,
    Counted,
    Entry,
    differing,
    measured,
)
from tests.odd.taps import Reading, Tree, count_of_files, read_tap, read_tree
from tests.taps.gitforge import LINK, SUBMODULE, Node, Repository, link, submodule, tap_of

LENIENT = {"parse_status": "lenient", "description_source": "front_matter"}
PLACED = {"slug": "pdf", "name_is": "folder"}
AT = "skills/pdf/SKILL.md"


class Made(NamedTuple):
    """A file that is made here, what stands beside it, and what must hold of it."""

    path: str | bytes
    content: bytes | Node
    case: Case
    beside: Tree = MappingProxyType[Any, bytes | Node]({})


def skill(front: str, facts: dict[str, object], body: str = "Reads portable documents.\n") -> Made:
    return Made(AT, f"---\n{front}\n---\n{body}".encode(), Entry({**SKILL, **facts}))


NAMED = "name: pdf\ndescription: Reads documents"
FRONT = f"---\n{NAMED}\n---\n".encode()
TEXT = FRONT + b"# PDF\n\nReads portable documents.\n"
GOOD = {**SKILL, **READ, "slug": "pdf", "description": "Reads documents", "spec_violations": []}

AS_FOUND: dict[str, Made] = {
    "bom": Made(AT, b"\xef\xbb\xbf" + TEXT, Entry({**GOOD, "body": "# PDF\n\nReads portable documents.\n"})),
    "crlf": Made(AT, TEXT.replace(b"\n", b"\r\n"), Entry({**GOOD, "has_cr": False})),
    "crlf-mixed": Made(AT, TEXT.replace(b"\n", b"\r\n", 3) + b"one\rtwo", Entry({**GOOD, "has_cr": False})),
    "u+fffd": Made(AT, TEXT + "caf\ufffd".encode(), Entry({**GOOD, "replacements": True})),
    "mojibake": Made(AT, TEXT + "donâ€™t".encode(), Entry({**GOOD, "holds": "donâ€™t"})),
    "zero-width": Made(AT, TEXT + "ig\u200bnore".encode(), Entry({**GOOD, "holds": "ig\u200bnore"})),
    "cjk": Made(
        "docs/ja/agents/翻訳.md", "日本語の本文。\n".encode(),
        Entry({**WORKFLOW, **BODY_ALONE, "slug": "翻訳", "locale": "ja"}),
    ),
    "fm-late": Made(AT, b"\n    ---\n    name: other\n    ---\n", Entry({**SKILL, **BODY_ALONE, **PLACED})),
    "yaml-alias": Made("go.mdc", b"---\nglobs: **/x\ndescription: d\n---\nB\n", Entry({**RULE, **RECOVERED})),
    "yaml-tagdot": Made("go.mdc", b"---\nglobs: *.mdc\ndescription: d\n---\nB\n", Entry({**RULE, **RECOVERED})),
    "yaml-flow": Made(
        "commands/go.md",
        b"---\nargument-hint: [a] | --b\ndescription: d\n---\nB\n",
        Entry({**WORKFLOW, **LENIENT, "description": "d"}),
    ),
    "yaml-at": skill("description: @State and views", {**RECOVERED, "description_starts": "@"}),
    "yaml-indent": skill("name: pdf\ndescription: |\n  text\n allowed-tools: x", {**LENIENT, "description": "|"}),
    "name-nested": skill(f"{NAMED}\nsteps:\n- name: inner\n- name: last", {**READ, "slug": "pdf"}),
    "name-emoji": skill(
        "name: Pdf 🕉️\ndescription: d",
        {**READ, "name": "Pdf 🕉️", "slug": "pdf", "spec_violations": ["name_characters", "name_differs_from_folder"]},
    ),
    "name-missing": skill("description: d", {**READ, **PLACED, "spec_violations": ["name_missing"]}),
    "desc-long": skill(
        f'name: pdf\ndescription: "{"word " * 599}end"',
        {**READ, "description_length": 2998, "spec_violations": ["description_too_long"]},
    ),
    "empty-file": Made(
        AT,
        b"",
        Entry(
            {
                **SKILL,
                **PLACED,
                "parse_status": "none",
                "description": None,
                "description_source": None,
                "empty_body": True,
            }
        ),
    ),
    "empty-body": Made(AT, FRONT + b" \n", Entry({**GOOD, "empty_body": True, "body": " \n"})),
    "huge": Made(AT, TEXT + b"words " * 150_000, Entry({**GOOD, "bytes": len(TEXT) + 900_000})),
    "long-line": Made(AT, TEXT + b"x" * 130_000, Entry({**GOOD, "longest_line": 130_000})),
    "symlink-entry": Made(
        AT, link("../../README.md"), Entry({**SKILL, **PLACED, "via_link": True}), {"README.md": b"Read me\n"}
    ),
    "symlink-broken": Made(AT, link("../nowhere/README.md"), Counted("passed_over", "broken_link", 1, LINK)),
    "symlink-newline": Made(
        "CHANGELOG.md", link("NEWS.md\n"), Counted("passed_over", "broken_link", 1, LINK), {"NEWS.md": b"News\n"}
    ),
    "symlink-dir": Made(
        "skills/doc", link("pdf"), Counted("passed_over", "link_to_directory", 1, LINK), {AT: TEXT}
    ),
    "submodule": Made("skills/other", submodule(), Counted("passed_over", "submodule", 1, SUBMODULE), {AT: TEXT}),
    "case-collision": Made("docs/A.md", b"One\n", Counted("counted", ".md", 2), {"docs/a.md": b"Two\n"}),
    "skill-case": Made("skills/pdf/SKILL.MD", TEXT, Counted("counted", ".md", 1)),
    "hidden-workflow": Made(
        "skills/pdf/.claude/commands/go.md", TEXT, Counted("others", "part of a skill", 1), {AT: TEXT}
    ),
    "self-nested-path": Made(
        "agents/x/" * 12 + "go.md", b"Text\n", Entry({**WORKFLOW, **BODY_ALONE, "slug": "go", "folders": 24})
    ),
}  # fmt: skip
"""The categories of the list of real files."""

NAMELESS = ["name_missing", "description_missing"]
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"
BOMB = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9 if n else ['x'])}]\n" for n in range(40))
NFC, NFD = "skills/caf\u00e9/SKILL.md", "skills/cafe\u0301/SKILL.md"


def value(written: str, name: object, description: object) -> Made:
    source = "front_matter" if description else "body"
    found = {"name": name or "pdf", "parse_status": "ok", "description_source": source}
    return skill(
        f"name: {written}\ndescription: {written}", found | ({"description": description} if description else {})
    )


ADDED: dict[str, Made] = {
    "tab-indented": skill("\tname: other\n\tdescription: d", {**PLACED, "parse_status": "lenient"}),
    "tab-indented below": skill(f"{NAMED}\nmetadata:\n\tname: other", {**LENIENT, "slug": "pdf"}),
    "link loop": Made(
        AT, link("../b/SKILL.md"), Counted("passed_over", "link_loop", 2, LINK),
        {"skills/b/SKILL.md": link(f"../../{AT}")},
    ),
    "link to itself": Made(AT, link("SKILL.md"), Counted("passed_over", "link_loop", 1, LINK)),
    "link outside": Made(AT, link("../../../etc/passwd"), Counted("passed_over", "link_outside", 1, LINK)),
    "link absolute": Made(AT, link("/etc/passwd"), Counted("passed_over", "link_outside", 1, LINK)),
    "link to a link to a folder's file": Made(
        AT, link("../../shelf/a.txt"), Entry({**SKILL, **PLACED, "via_link": True, "body": "A\n"}),
        {"shelf": link("lib"), "lib/a.txt": b"A\n"},
    ),
    "link to a link in a skipped folder": Made(
        AT, link("../../.venv/__pycache__/SKILL.md"), Entry({**SKILL, **PLACED, "via_link": True, "body": "A\n"}),
        {".venv/__pycache__/SKILL.md": link("../a.txt"), ".venv/a.txt": b"A\n"},
    ),
    "link through a folder that is a link in a skipped folder": Made(
        AT, link("../../__pycache__/lib/a.txt"), Entry({**SKILL, **PLACED, "via_link": True, "body": "A\n"}),
        {"__pycache__/lib": link("../lib"), "lib/a.txt": b"A\n"},
    ),
    "broken link in a skipped folder": Made(
        "__pycache__/SKILL.md", link("nowhere"), Counted("others", "skipped", 1, LINK)
    ),
    "nfc of twins": Made(NFC, b"One\n", Entry({**SKILL, "body": "One\n", "slug": "café"}), {NFD: b"Two\n"}),
    "nfd of twins": Made(NFD, b"Two\n", Entry({**SKILL, "body": "Two\n", "slug": "cafe"}), {NFC: b"One\n"}),
    "path that is no utf-8": Made(
        b"skills/\xff\xfe/SKILL.md", b"Text\n",
        Entry({**SKILL, "path_text": "skills/\\xff\\xfe/SKILL.md", "slug": "xff-xfe"}),
    ),
    "path with line ends": Made(b"agents/a\nb\r.md", b"Text\n", Entry({**WORKFLOW, "slug": "a-b", "name": "a\nb\r"})),
    "skill at the root": Made(
        "SKILL.md", b"Text\n", Entry({**SKILL, "slug": "owner__repo", "spec_violations": NAMELESS}),
        {"agents/go.md": b"Part\n", "go.mdc": b"Part\n"},
    ),
    "integer": value("42", "42", "42"),
    "boolean": value("yes", "yes", "yes"),
    "float": value("1.10", "1.10", "1.10"),
    "date": value("2024-13-99", "2024-13-99", "2024-13-99"),
    "list": value("[a, b]", None, None),
    "mapping": value("{a: b}", None, None),
    "null": value("~", None, None),
    "nothing": value("", None, None),
    "control characters": value('"a\\e[31m\\0\\x9b"', "a\x1b[31m\0\x9b", "a\x1b[31m\0\x9b"),
    "alias bomb": skill(f"{NAMED}\n{BOMB}", {**LENIENT, "slug": "pdf"}),
    "anchor on itself": skill("name: pdf\ndescription: d\nx: &x [*x]", {**READ, "slug": "pdf"}),
    "lfs pointer": Made(AT, LFS, Counted("passed_over", "lfs_pointer", 1), {"skills/pdf/notes.md": b"Part\n"}),
    "lfs pointer with crlf": Made(AT, LFS.replace(b"\n", b"\r\n"), Counted("passed_over", "lfs_pointer", 1)),
    "lfs pointer with an extension": Made(
        AT, LFS.replace(b"oid", b"ext-0-x sha256:" + b"1" * 64 + b"\noid"), Counted("passed_over", "lfs_pointer", 1)
    ),
    "link to an lfs pointer": Made(
        AT, link("../../a.bin"), Counted("passed_over", "lfs_pointer", 1, LINK), {"a.bin": LFS}
    ),
    "text about lfs pointers": Made(AT, LFS + b"is what a pointer looks like.\n", Entry({**SKILL, **BODY_ALONE})),
    # The first of two values counts, as in all that is read line by line; the status says that this is no clean read.
    "conflict in the front matter": skill(
        f"<<<<<<< HEAD\n{NAMED}\n=======\nname: theirs\n>>>>>>> branch", {**LENIENT, "slug": "pdf"}
    ),
    "conflict around the front matter": Made(
        AT, b"<<<<<<< HEAD\n" + TEXT, Entry({**SKILL, **BODY_ALONE, **PLACED, "description": "<<<<<<< HEAD"})
    ),
    # Not told from a lesson on merging, which shows the same lines.
    "conflict in the body": skill(NAMED, {**GOOD, "holds": "<<<<<<<"}, "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> b\n"),
    "bytes that are no utf-8": Made(
        AT, TEXT + b"caf\xe9\n", Entry({**GOOD, "encoding": "lossy", "holds": "caf\ufffd\n"})
    ),
    "nul": Made(AT, b"a\0b", Counted("passed_over", "binary", 1)),
    "utf-16": Made(AT, TEXT.decode().encode("utf-16"), Counted("passed_over", "binary", 1)),
    "executable": Made(AT, Node(TEXT, "100755"), Entry(GOOD)),
    "skill that is a folder": Made(
        "skills/pdf/SKILL.md/agents/a.md", b"Text\n", Entry({**WORKFLOW, **BODY_ALONE, "slug": "a"})
    ),
    "skill that is a submodule": Made(AT, submodule(), Counted("passed_over", "submodule", 1, SUBMODULE)),
    "only a separator": Made(AT, b"---\n---\n", Entry({**SKILL, **PLACED, "parse_status": "none", "empty_body": True})),
    "separators alone": Made(AT, b"---\n" * 4, Entry({**SKILL, **PLACED, "parse_status": "none", "body": "---\n" * 2})),
    "too large": Made(AT, b"x" * ((1 << 20) + 1), Counted("passed_over", "too_large", 1)),
    "as large as may be": Made(AT, b"x" * (1 << 20), Entry({**SKILL, **PLACED, "longest_line": 1 << 20})),
}  # fmt: skip
"""Kinds that the list of real files does not have."""


def reading_of(made: Made, folder: Path) -> Reading:
    return read_tree(folder, {made.path: made.content, **made.beside})


def content_of(made: Made) -> bytes:
    return made.content.data if isinstance(made.content, Node) else made.content


def test_every_category_of_real_files_is_made_here_too() -> None:
    assert AS_FOUND.keys() == REAL.keys()


@pytest.mark.parametrize("kind", [*AS_FOUND, *ADDED])
def test_an_odd_file_is_an_entry_as_the_facts_say_or_is_counted_by_its_reason(kind: str, tmp_path: Path) -> None:
    made = (AS_FOUND | ADDED)[kind]
    reading = reading_of(made, tmp_path)
    path = made.path.encode() if isinstance(made.path, str) else made.path
    if isinstance(made.case, Entry):
        assert differing(made.case.facts, measured(reading.entries[path], content=content_of(made))) == {}
    else:
        counts = {**reading.manifest.model_dump(include={"passed_over", "others"}), "counted": reading.counted}
        assert path not in reading.entries
        assert counts[made.case.where] == {made.case.reason: made.case.files}
    assert reading.accounted == reading.manifest.files == 1 + len(made.beside)


def test_what_lies_beside_a_skill_that_cannot_be_read_stays_part_of_it(tmp_path: Path) -> None:
    reading = reading_of(ADDED["lfs pointer"], tmp_path)
    assert (reading.entries, reading.manifest.others) == ({}, {"part of a skill": 1})


def test_twins_that_differ_in_normalisation_alone_are_two_entries(tmp_path: Path) -> None:
    assert len(reading_of(ADDED["nfc of twins"], tmp_path).entries) == 2


def test_a_folder_called_git_that_a_tree_smuggles_in_is_skipped(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "repo.git")
    inner = repository.git("mktree", stdin=f"100644 blob {repository.blob(TEXT)}\tSKILL.md\n".encode()).decode().strip()
    tree = repository.git("mktree", stdin=f"040000 tree {inner}\t.git\n".encode()).decode().strip()
    pin = repository.git("commit-tree", tree, "-m", "odd").decode().strip()
    repository.git("update-ref", "refs/heads/main", pin)
    reading = read_tap(Store(tmp_path / "store"), tap_of(repository, pin))
    assert (reading.entries, reading.manifest.others, reading.accounted) == ({}, {"skipped": 1}, 1)
    assert count_of_files(repository.folder, pin) == 1


def test_the_limit_of_size_is_the_one_that_is_configured(tmp_path: Path) -> None:
    files = {AT: b"x" * 11, "go.mdc": b"x" * 10}
    reading = read_tree(tmp_path, files, SnapshotOptions(max_file_bytes=10))
    assert ([*reading.entries], reading.manifest.passed_over) == ([b"go.mdc"], {"too_large": 1})
