"""The catalogue of a tap: each kind of file that breaks readers, and that nothing is lost or depends on order."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.catalog.entries import ENTRIES, catalogue
from pipeline.taps.snapshot import TapFile

TAP = "owner/repo"
SKILL = b"skills/pdf/SKILL.md"


def file(path: bytes, content: bytes = b"", via_link: bool = False) -> TapFile:
    return TapFile(path, hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(), via_link, content)


def rows(*files: TapFile) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = catalogue(TAP, files).entries.to_pylist()
    return found


def entry(content: bytes, path: bytes = SKILL) -> dict[str, Any]:
    (row,) = rows(file(path, content))
    return row


# --- kinds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (b"skills/a/SKILL.md", "skill"),
        (b"SKILL.md", "skill"),
        (b"skills/a/nested/SKILL.md", "skill"),
        (b".cursorrules", "rule"),
        (b"rules/a.MDC", "rule"),
        (b"commands/a.md", "workflow"),
        (b"x/Agents/deep/a.MD", "workflow"),
    ],
)
def test_a_path_decides_the_kind(path: bytes, kind: str) -> None:
    assert entry(b"Text", path)["kind"] == kind


@pytest.mark.parametrize("key", ["tools", "model", "argument-hint", "allowed-tools"])
def test_markdown_elsewhere_is_a_workflow_by_its_front_matter(key: str) -> None:
    content = f"---\nname: a\ndescription: b\n{key}: [x]\n---\n".encode()
    assert entry(content, b"notes/a.md")["kind"] == "workflow"


@pytest.mark.parametrize(
    "front", ["name: a\ndescription: b", "name: a\ntools: x", "description: b\nmodel: x", "# none"]
)
def test_markdown_elsewhere_without_it_is_counted_by_kind_of_file(front: str) -> None:
    found = catalogue(TAP, [file(b"notes/a.md", f"---\n{front}\n---\n".encode())])
    assert (found.entries.num_rows, found.passed_over) == (0, {".md": 1})


def test_what_lies_in_a_skill_is_no_entry() -> None:
    found = catalogue(TAP, [file(SKILL), file(b"skills/pdf/commands/a.md")])
    assert (found.entries["path"].to_pylist(), found.passed_over) == ([SKILL], {"part of a skill": 1})


# --- odd files -------------------------------------------------------------------------------------------------------


def test_a_byte_order_mark_is_dropped() -> None:
    assert entry(b"\xef\xbb\xbf---\nname: a\n---\nText")["name"] == "a"


def test_a_second_byte_order_mark_is_text_so_there_is_no_front_matter() -> None:
    row = entry(b"\xef\xbb\xbf\xef\xbb\xbf---\nname: a\n---\n")
    assert (row["parse_status"], row["name"]) == ("none", "pdf")


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_line_ends_are_alike(end: bytes) -> None:
    row = entry(end.join([b"---", b"name: a", b"---", b"One", b"Two"]))
    assert (row["name"], row["body"]) == ("a", "One\nTwo")


def test_mixed_line_ends_become_lf() -> None:
    assert entry(b"one\r\ntwo\rthree\n\r\n")["body"] == "one\ntwo\nthree\n\n"


def test_bytes_that_are_no_utf_8_are_replaced_and_told() -> None:
    row = entry(b"---\nname: caf\xe9\n---\nText")
    assert (row["encoding"], row["name"], row["slug"]) == ("lossy", "caf\ufffd", "caf")


def test_a_byte_order_mark_is_dropped_from_bytes_that_are_no_utf_8_too() -> None:
    row = entry(b"\xef\xbb\xbf---\nname: a\n---\n\xff")
    assert (row["encoding"], row["name"], row["body"]) == ("lossy", "a", "\ufffd")


def test_a_replacement_character_in_the_source_is_no_loss() -> None:
    assert entry("Text \ufffd".encode())["encoding"] == "utf-8"


def test_double_encoded_text_is_kept_as_it_is() -> None:
    assert entry("donâ€™t".encode())["body"] == "donâ€™t"


def test_zero_width_and_cjk_text_stay() -> None:
    assert entry("一\u200b二".encode())["body"] == "一\u200b二"


def test_an_indented_front_matter_is_body() -> None:
    row = entry(b"\n    ---\n    name: a\n    ---\n")
    assert (row["parse_status"], row["name"], row["description"]) == ("none", "pdf", "---")


def test_a_front_matter_in_the_middle_is_body() -> None:
    assert entry(b"# How\n\n---\nname: a\n---\n")["parse_status"] == "none"


@pytest.mark.parametrize(
    ("front", "status", "description"),
    [
        (b"globs: **/x", "recovered", "Text"),
        (b"globs: *", "recovered", "Text"),
        (b"globs: *.mdc", "recovered", "Text"),
        (b"description: @x does y", "recovered", "@x does y"),
        (b"description: Use it: always", "recovered", "Use it: always"),
        (b"description: d\nargument-hint: [a] | --b", "lenient", "d"),
        (b"description: >\n  a b\n  c\n allowed-tools: Read", "lenient", ">"),
    ],
)
def test_broken_yaml_is_read_and_told(front: bytes, status: str, description: str) -> None:
    row = entry(b"---\n" + front + b"\n---\nText")
    assert (row["parse_status"], row["description"]) == (status, description)


def test_a_nested_name_is_not_the_name() -> None:
    assert entry(b"---\nname: outer\nx:\n- name: inner\n---\n")["name"] == "outer"


def test_a_name_with_emoji_is_kept_as_written_and_has_a_slug() -> None:
    row = entry("---\nname: Vedic 🕉️ Text\n---\n".encode())
    assert (row["name"], row["slug"]) == ("Vedic 🕉️ Text", "vedic-text")


@pytest.mark.parametrize("written", ["", "~", "''", "' '", "[a]", "{a: b}"])
def test_a_name_that_is_no_text_falls_back_to_the_folder(written: str) -> None:
    assert entry(f"---\nname: {written}\n---\n".encode())["name"] == "pdf"


def test_a_long_description_is_never_cut() -> None:
    row = entry(b"---\ndescription: " + b"word " * 600 + b"\n---\n")
    assert (len(row["description"]), row["description_source"]) == (2999, "front_matter")


def test_the_white_space_of_a_description_is_collapsed() -> None:
    assert entry(b"---\ndescription: |\n  a\n\n  b   c\n---\n")["description"] == "a b c"


def test_a_description_from_the_body_is_told_and_cut() -> None:
    row = entry(b"---\ndescription:\n---\n# T\n" + b"x" * 200)
    assert (row["description"], row["description_source"]) == ("x" * 160, "body")


def test_an_empty_file_has_a_name_and_nothing_else() -> None:
    row = entry(b"")
    assert (row["name"], row["description"], row["description_source"]) == ("pdf", None, None)
    assert (row["parse_status"], row["empty_body"], row["body"]) == ("none", True, "")


def test_a_front_matter_alone_leaves_an_empty_body() -> None:
    row = entry(b"---\nname: a\n---\n \n\xc2\xa0\n")
    assert (row["empty_body"], row["body_sha256"]) == (True, hashlib.sha256(b"").hexdigest())


def test_large_files_and_long_lines_are_read_whole() -> None:
    row = entry(b"x" * 130_000 + b"\n" + b"word " * 60_000)
    assert len(row["body"]) == 130_000 + 1 + 300_000


def test_a_link_is_an_entry_under_its_own_path() -> None:
    (row,) = rows(file(SKILL, b"---\nname: README\n---\n", via_link=True))
    assert (row["via_link"], row["name"], row["path"]) == (True, "README", SKILL)


def test_a_path_may_be_any_bytes() -> None:
    row = entry(b"", b'commands/-a \xff:\r".md')
    assert (row["path"], row["path_text"]) == (b'commands/-a \xff:\r".md', 'commands/-a \\xff:\r".md')


def test_two_files_whose_bodies_differ_in_white_space_have_one_body_digest() -> None:
    first, second = entry(b"---\nname: a\n---\n one\n two"), entry(b"one two\n")
    assert first["body_sha256"] == second["body_sha256"] == hashlib.sha256(b"one two").hexdigest()
    assert first["raw_sha256"] != second["raw_sha256"]


def test_only_skills_are_held_against_the_skill_format() -> None:
    assert entry(b"", SKILL)["spec_violations"] == ["name_missing", "description_missing"]
    assert entry(b"", b"commands/a.md")["spec_violations"] == []


# --- the whole -------------------------------------------------------------------------------------------------------


def test_facts_count_entries_and_each_empty_body() -> None:
    files = [
        file(b"skills/a/SKILL.md", b"---\nname: a\n---\nText"),
        file(b"skills/b/SKILL.md", b"---\nname: b: c\n---\nText"),
        file(b"rules/a.mdc", b""),
        file(b"rules/b.mdc", b"\n"),
        file(b"commands/a.md", b"See `x.md`.", via_link=True),
        file(b"notes/a.md", b"Text"),
    ]
    assert catalogue(TAP, files).facts() == {
        "entries": 5, "skills": 2, "rules": 2, "workflows": 1, "classes": 4, "empty_bodies": 2, "alias_stubs": 1,
        "links": 1, "parse_ok": 1, "parse_recovered": 1, "parse_lenient": 0, "parse_none": 3, "passed_over": {".md": 1},
    }  # fmt: skip


def test_a_tap_without_files_has_an_empty_catalogue() -> None:
    found = catalogue(TAP, [])
    assert (found.entries.num_rows, found.entries.schema, found.facts()["classes"]) == (0, ENTRIES.schema, 0)


PATHS = st.lists(
    st.builds(
        lambda folder, name: folder + name,
        st.sampled_from([b"", b"skills/a/", b"skills/b/", b"commands/", b"notes/", b"docs/ja/agents/"]),
        st.sampled_from([b"SKILL.md", b"a.md", b"readme.md", b".cursorrules", b"b.mdc", b"\xff.MD"]),
    ),
    unique=True,
    max_size=12,
)
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet="-nametools: \n\r#'\"[*&!\ufeff", max_size=60).map(lambda text: f"---\n{text}\n---\n".encode()),
    st.just(b"---\nname: a\ndescription: b\ntools: c\n---\nText"),
)


@given(PATHS, st.data())
@settings(deadline=None)
def test_every_file_is_an_entry_or_is_counted_and_order_never_matters(paths: list[bytes], data: st.DataObject) -> None:
    files = [file(path, data.draw(CONTENTS)) for path in paths]
    found = catalogue(TAP, files)
    assert found.entries.num_rows + sum(found.passed_over.values()) == len(files)
    assert found.entries["path"].to_pylist() == sorted(found.entries["path"].to_pylist())
    again = catalogue(TAP, data.draw(st.permutations(files)))
    assert ENTRIES.to_bytes(again.entries) == ENTRIES.to_bytes(found.entries)
    assert again.passed_over == found.passed_over
