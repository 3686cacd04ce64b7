"""Nasty front matters and trees by the thousand: no crash, nothing lost, any order alike, YAML as others read it."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.catalog.entries import ENTRIES, Catalogue, catalogue
from pipeline.catalog.frontmatter import parse, split
from pipeline.taps import reading
from pipeline.taps.git import Commit, Mirror, mirror_name, open_mirror
from pipeline.taps.reading import TapFile, TapManifest
from pipeline.taps.tree import LINK_MODE, TreeItem
from tests.odd.taps import commit_in_bulk, count_of_files
from tests.taps.gitforge import FILE, SUBMODULE, Node, link, submodule

LIMIT = 200
"""Bytes of a file in a fuzzed tree, so that some are too large."""

# --- front matters ---------------------------------------------------------------------------------------------------

KEYS = [
    *("name", "description", "tools", "model", "<<", "'name'", '"name"', "1", "true", "null", "?", "-", "*", "&"),
    *("!!str", "{a}", "[b]", "naïve", "…", "=", "%YAML", "<<<<<<<", ">>>>>>>", "a:b", "a b", "\tname", " name"),
    *("  name", "- name", "? k", "#name", "&k name", "*k", "\u2028name", "name\u0301"),
]  # fmt: skip
SEPARATORS = [": ", ":", ":\t", " : ", ":  ", " ", "= "]
VALUES = [
    *("a", "yes", "1.10", "010", "0x1F", "2024-01-01", "null", "~", "=", "<<", "'it''s'", "'open", '"open'),
    *('"\\u0041"', '"\\ud800"', '"\\x1b\\0\\x9b"', '"a\\\n  b"', "|\n  a\n  b", ">-\n  a\n\n  b", "|2\n a", "[a, b]"),
    *("{a: b}", "[open", "{open", "*k", "&k a", "&k [*k]", "!!binary aGk=", "!!int x", "!x y"),
    *("!!python/name:os.system", "a: b", "a:", "@a", "`a`", "%a", "\n  - name: c", "\n\tname: d", "a\n  b", "a # c"),
    *("\n  name: e\n  name: f", " a ", "a\tb", "...", "---", "--- a", "?", "- a", "a\x00b", "a\x07b", "a\x85b"),
    *("a\u2028b", "a\ufeffb", "\ufffd", "中文", "🕉️", "e\u0301", "\u202eabc", "a" * 300, "", " "),
]  # fmt: skip
LINES = st.tuples(*map(st.sampled_from, (KEYS, SEPARATORS, VALUES))).map("".join)
NASTY = st.one_of(
    st.lists(st.one_of(LINES, st.sampled_from(VALUES)), max_size=6).map("\n".join),
    st.text(alphabet="ab:-#*&!|>[]{}'\"`@% \n\t,?<~=.\\0\x00\x85\ufeff中🙂", max_size=60),
)
WORDS = st.text(st.sampled_from("abcdefghé中 -_./,;()@#'\"!?%&*"), min_size=1, max_size=20)
PLAIN = st.dictionaries(
    st.sampled_from(["name", "description", "globs", "a b", "x-y"]), WORDS, min_size=1, max_size=4
).map(lambda fields: "".join(f"{key}: {value}\n" for key, value in fields.items()))


def check_parse(front: str) -> None:
    parsed = parse(front)
    assert parse(front) == parsed
    assert parsed.status in ("ok", "recovered", "lenient", "none")
    assert (parsed.status == "none") == (not front.strip())
    for key, text in parsed.fields.items():
        f"{key}{text}".encode()  # no half of a surrogate pair, which no table could hold


def check_against_another_reader(front: str) -> bool:
    """Hold what is read as valid YAML against PyYAML's own reader, where that reads plain text; say whether it did."""
    parsed = parse(front)
    try:
        theirs = yaml.safe_load(front)
    except (yaml.YAMLError, ValueError, TypeError):
        return False  # such as 2024-13-99, which is text to us and no date to it
    texts = isinstance(theirs, dict) and all(isinstance(part, str) for pair in theirs.items() for part in pair)
    if texts and parsed.status == "ok":
        assert parsed.fields == theirs
    return texts and parsed.status == "ok"


def check_document(front: str) -> None:
    """A front matter in its place: the text is split without loss and becomes one entry that a table can hold."""
    text = f"---\n{front}\n---\nBody\n"
    inner, body = split(text)
    assert text.endswith(body) and (inner is None or inner in text)
    content = text.encode()
    found = catalogue("owner/repo", [TapFile(b"skills/a/SKILL.md", "0" * 40, False, content)])
    assert found.entries.num_rows == 1
    ENTRIES.to_bytes(found.entries)


@settings(deadline=None, max_examples=300)
@given(NASTY)
def test_a_nasty_front_matter_is_read(front: str) -> None:
    check_parse(front)
    check_against_another_reader(front)
    check_document(front)


@pytest.mark.slow
@settings(deadline=None, max_examples=10_000, suppress_health_check=list(HealthCheck))
@given(NASTY)
def test_ten_thousand_nasty_front_matters_are_read(front: str) -> None:
    check_parse(front)
    check_against_another_reader(front)
    if len(front) % 8 == 0:
        check_document(front)


@pytest.mark.slow
def test_what_is_valid_yaml_is_read_as_another_reader_reads_it() -> None:
    compared = 0

    @settings(deadline=None, max_examples=3_000, suppress_health_check=list(HealthCheck))
    @given(PLAIN)
    def compare(front: str) -> None:
        nonlocal compared
        compared += check_against_another_reader(front)

    compare()
    assert compared > 1_000


# --- trees -----------------------------------------------------------------------------------------------------------

FOLDERS = [
    *(b"skills", b"a", b"agents", b"Commands", b"docs", b"ja", b"__pycache__", b"e\xcc\x81", b"\xc3\xa9", b"\xff"),
    *(b" ", b"-x", b'"q"', b"a\nb", b"con", b"SKILL.md", b"x" * 90, b"..."),
]  # fmt: skip
NAMES = [
    *(b"SKILL.md", b"SKILL.md", b"SKILL.MD", b"skill.md", b"a.md", b"README.md", b"x.mdc", b"Y.MDC", b".cursorrules"),
    *(b".clinerules", b"main.py", b"LICENSE", b"a", b"b", b".md", b".mdc", b"\xff.md", b"e\xcc\x81.md", b"\xc3\xa9.md"),
    *(b"a\nb.md", b"a\\b.md", b"-rf.md", b" .md", b"a.tar.gz", b"x." + b"y" * 40),
]  # fmt: skip
PATHS = st.builds(
    lambda folders, name: b"/".join([*folders, name]),
    st.lists(st.sampled_from(FOLDERS), max_size=4),
    st.sampled_from(NAMES),
)
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1\n"
CONTENTS = [
    *(b"", b"Text\n", b"a\0b", b"\xff\xfe", b"x" * (LIMIT + 1), b"x" * LIMIT, POINTER, b"---\n"),
    *(b"---\nname: a\ndescription: b\ntools: c\n---\nText", b"---\nname: a: b\n---\n", b"---\r\nname: a\r\n---\r\nB"),
    *(b"\xef\xbb\xbf---\nname: a\n---\n", b"<<<<<<< HEAD\n---\nname: a\n---\n", b"---\n\tname: a\n---\n"),
    b"---\nname: &a [*a]\n---\n",
]  # fmt: skip
TARGETS = st.lists(
    st.sampled_from([b"..", b".", b"", b"a", b"skills", b"agents", b"SKILL.md", b"a.md", b"b", b"x.mdc", b"main.py"]),
    min_size=1,
    max_size=5,
).map(b"/".join)
NODES = st.one_of(
    st.sampled_from(CONTENTS).map(Node),
    st.sampled_from(CONTENTS).map(Node),
    TARGETS.map(link),
    st.sampled_from([link(b"/etc/passwd"), link(b"a\0b"), link(b"a\n"), link(b"x" * 5000), submodule()]),
    st.just(Node(b"---\nname: run\n---\n", "100755")),
)
Files = dict[bytes, Node]
LINKS_TO_FILES = st.lists(st.tuples(PATHS, st.integers(0, 13)), max_size=4)


def tree_with(files: Files, links: list[tuple[bytes, int]]) -> Files:
    """Return ``files`` with links to some of them at further paths, without files that are folders too."""
    paths = sorted(files)
    lead = {path: link(relative(paths[number % len(paths)], path)) for path, number in links if paths}
    every = lead | files
    folders = {path[:at] for path in every for at, byte in enumerate(path) if byte == ord("/")}
    return {path: node for path, node in every.items() if path not in folders}


def relative(target: bytes, path: bytes) -> bytes:
    return b"../" * path.count(b"/") + target


TREES = st.builds(tree_with, st.dictionaries(PATHS, NODES, max_size=12), LINKS_TO_FILES)


class Held:
    """A mirror that holds a tree in memory and answers as git does. ``seed`` is the order in which it lists."""

    pin = "0" * 40

    def __init__(self, files: Files, seed: int) -> None:
        self._items = [TreeItem(path, node.mode, self._oid(node)) for path, node in files.items()]
        random.Random(seed).shuffle(self._items)
        self._blobs = {self._oid(node): node.data for node in files.values() if node.mode != SUBMODULE}

    @staticmethod
    def _oid(node: Node) -> str:
        return hashlib.sha1(b"blob %d\0%s" % (len(node.data), node.data)).hexdigest()

    def fetch_commit(self) -> Commit:
        return Commit("1" * 40, None)

    def tree(self, oid: str) -> list[TreeItem]:
        return self._items

    def fetch_blobs(self, oids: Collection[str], vital: Mapping[str, bytes]) -> dict[str, int]:
        return {oid: len(self._blobs[oid]) for oid in oids}

    def blobs(self, oids: Collection[str]) -> dict[str, bytes]:
        return {oid: self._blobs[oid] for oid in oids}


def made_of(mirror: Mirror | Held) -> tuple[TapManifest, list[TapFile], Catalogue]:
    files, manifest = reading.read(cast(Mirror, mirror), "owner/repo", LIMIT)
    return manifest, files, catalogue("owner/repo", files)


def check_tree(files: Files, count: int, found: tuple[TapManifest, list[TapFile], Catalogue]) -> None:
    """Nothing is lost: each file of the tree is an entry, or counted by reason or by kind."""
    manifest, _, made = found
    assert manifest.files == count
    counted = (manifest.passed_over, manifest.others, made.passed_over)
    assert made.entries.num_rows + sum(sum(counts.values()) for counts in counted) == count
    assert all(number > 0 for counts in counted for number in counts.values())
    rows: list[dict[str, Any]] = made.entries.to_pylist()
    assert [row["path"] for row in rows] == sorted(row["path"] for row in rows)
    for row in rows:
        node = files[row["path"]]
        assert row["via_link"] == (node.mode == LINK_MODE)
        assert not row["path"].startswith(b"__pycache__/") and b"/__pycache__/" not in row["path"]
    assert {row["path"] for row in rows} >= set(sure_entries(files))
    assert manifest.passed_over.get("submodule", 0) == sum(
        node.mode == SUBMODULE and b"__pycache__" not in path.split(b"/") for path, node in files.items()
    )


def sure_entries(files: Files) -> list[bytes]:
    """Return paths that are entries by rule 1 and 2 alone, found in another way: by going down the folders."""
    found, owned = [], set()
    for path in sorted(files, key=lambda path: path.count(b"/")):
        if path.rpartition(b"/")[2] == b"SKILL.md" and files[path].mode != SUBMODULE:
            owned.add(path.rpartition(b"/")[0])
    for path, (data, mode) in files.items():
        parts = path.split(b"/")
        above = {b"/".join(parts[:at]) for at in range(len(parts))}
        plain = mode in (FILE, "100755") and len(data) <= LIMIT and b"\0" not in data and data != POINTER
        skipped = b"__pycache__" in parts
        is_rule = parts[-1].lower().endswith(b".mdc") or parts[-1] in (b".cursorrules", b".clinerules")
        inside = any(folder in owned and b"__pycache__" not in folder.split(b"/") for folder in above)
        if plain and not skipped and (parts[-1] == b"SKILL.md" or (is_rule and not inside)):
            found.append(path)
    return found


def check_held(files: Files) -> None:
    found, again = made_of(Held(files, 1)), made_of(Held(files, 2))
    check_tree(files, len(files), found)
    assert again[:2] == found[:2]
    assert ENTRIES.to_bytes(again[2].entries) == ENTRIES.to_bytes(found[2].entries)


@settings(deadline=None, max_examples=100)
@given(TREES)
def test_of_a_nasty_tree_nothing_is_lost(files: Files) -> None:
    check_held(files)


@pytest.mark.slow
@settings(deadline=None, max_examples=2_000, suppress_health_check=list(HealthCheck))
@given(TREES)
def test_of_two_thousand_nasty_trees_nothing_is_lost(files: Files) -> None:
    check_held(files)


@pytest.mark.slow
@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
@given(files=TREES)
def test_git_gives_of_a_nasty_tree_what_memory_gives(tmp_path: Path, files: Files) -> None:
    """The same trees through real git, in a mirror that holds all of them: nothing is fetched."""
    shutil.rmtree(tmp_path)
    with open_mirror(tmp_path, "seed", "file:///nowhere", "0" * 40, 60) as seed:
        seed.erase()
    folder = tmp_path / mirror_name("seed", "0" * 40)
    pin = commit_in_bulk(folder, files)
    with open_mirror(tmp_path, "seed", "file:///nowhere", pin, 60) as mirror:
        found = made_of(mirror)
    check_tree(files, count_of_files(folder, pin), found)
    held = made_of(Held(files, 1))
    assert found[1] == held[1]
    assert found[0].model_dump(exclude={"pin", "tree", "committed"}) == held[0].model_dump(
        exclude={"pin", "tree", "committed"}
    )


def test_the_generators_make_what_they_are_for() -> None:
    """A generator that makes no link that leads to a file, no skill and no broken YAML would test nothing."""
    seen: set[str] = set()

    @settings(deadline=None, max_examples=250, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(TREES)
    def look(files: Files) -> None:
        manifest, read, made = made_of(Held(files, 1))
        seen.update(manifest.passed_over, manifest.others, (f"link read {file.via_link}" for file in read))
        seen.update(made.entries["kind"].to_pylist(), made.entries["parse_status"].to_pylist())

    look()
    links = {"broken_link", "link_loop", "link_outside", "link_to_directory", "link read True"}
    others = {"submodule", "binary", "too_large", "lfs_pointer", "part of a skill", "skipped"}
    assert seen >= links | others | {"skill", "rule", "workflow", "ok", "recovered", "lenient", "none"}
