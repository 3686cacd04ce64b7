"""Names, slugs, descriptions and digests."""

from __future__ import annotations

import hashlib
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.catalog import digests
from pipeline.catalog.names import description_from_body, name_from_path, readable, slug


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pdf", "pdf"),
        ("PDF_Reader-2.0", "PDF_Reader-2.0"),
        ("-edge-", "-edge-"),
        ("Content Strategist", "content-strategist"),
        ("Plan - Then & Act", "plan---then-act"),
        ("pg_dump Reference", "pg-dump-reference"),
        ("Yoga 🕉️", "yoga"),
        ("数据 分析", "数据-分析"),
        ("Größe", "größe"),
        ("a/b", "a-b"),
        (".", "skill"),
        ("..", "skill"),
        ("", "skill"),
        ("🕉️", "skill"),
        (" spaced ", "spaced"),
    ],
)
def test_a_name_has_its_slug(name: str, expected: str) -> None:
    assert slug(name) == expected


@given(st.text(max_size=30))
@settings(deadline=None)
def test_the_slug_of_a_slug_is_itself(name: str) -> None:
    assert slug(slug(name)) == slug(name) != ""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"skills/pdf/SKILL.md", "pdf"),
        (b"SKILL.md", "owner__repo"),
        (b"rules/go/.cursorrules", "go"),
        (b".windsurfrules", "owner__repo"),
        (b"rules/go.style.mdc", "go.style"),
        (b"rules/.mdc", "rules"),
        (b"commands/fix bug.MD", "fix bug"),
        (b"skills/\xff/SKILL.md", "\\xff"),
    ],
)
def test_a_path_gives_the_name_that_front_matter_lacks(path: bytes, expected: str) -> None:
    assert name_from_path("owner/repo", path) == expected


@given(st.binary(max_size=20))
@settings(deadline=None)
def test_any_path_can_be_shown(path: bytes) -> None:
    readable(path).encode("utf-8")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("# Title\n\n  First line.  \nSecond.", "First line."),
        ("#!shebang\n  # indented\n", "# indented"),
        ("x" * 161, "x" * 160),
        ("two  blanks stay", "two  blanks stay"),
        ("# only\n\n## headings\n", None),
        ("", None),
    ],
)
def test_the_first_line_that_is_no_heading_describes(body: str, expected: str | None) -> None:
    assert description_from_body(body) == expected


@given(st.text())
@settings(deadline=None)
def test_normalising_twice_changes_nothing_more(body: str) -> None:
    normal = digests.normalised(body)
    assert digests.normalised(normal) == normal


@given(st.lists(st.text(alphabet="ab中", min_size=1), max_size=5), st.data())
@settings(deadline=None)
def test_only_white_space_is_normalised_away(words: list[str], data: st.DataObject) -> None:
    space = st.text(alphabet=" \t\n\x0b\x0c\x85\xa0\u1680\u2003\u2028\u2029\u202f\u205f\u3000", min_size=1, max_size=3)
    body = "".join(data.draw(space) + word for word in words) + data.draw(space)
    assert digests.normalised(body) == " ".join(words)


def test_zero_width_characters_are_no_white_space() -> None:
    assert digests.normalised("a\u200bb\ufeffc") == "a\u200bb\ufeffc"


def test_the_entry_digest_is_over_slug_description_and_body() -> None:
    assert digests.entry_sha256("s", "d", b"b c") == hashlib.sha256(b"s\nd\nb c").hexdigest()
    assert digests.entry_sha256("s", None, b"b c") == hashlib.sha256(b"s\n\nb c").hexdigest()


def test_digests_are_hex() -> None:
    made = [digests.raw_sha256(b""), digests.body_sha256(b""), digests.entry_sha256("", None, b"")]
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in made)
