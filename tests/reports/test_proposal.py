"""The page of a proposal: what is in it says nothing to who renders it."""

from __future__ import annotations

import re

import pytest

from pipeline.reports.proposal import MOST_LISTED, Counts, MovedEntry, PinProposal, TapChange, as_markdown, code

HOSTILE = "x` ![](https://evil.example/p.png) <script>``\n# shout\x1b[31m"


@pytest.mark.parametrize("text", ["plain", "a`b", "`", "``a`", "", " ", HOSTILE])
def test_a_code_span_ends_where_its_text_does(text: str) -> None:
    span = code(text)
    fence = re.match(r"`+", span)
    assert fence and span.endswith(fence[0]) and "\n" not in span
    inner = span[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall(r"`+", inner)
    assert "\x1b" not in span


def proposal(*paths: str) -> PinProposal:
    change = TapChange(
        tap="a/b",
        state="ok",
        reason="",
        pin="1" * 40,
        proposed="2" * 40,
        before=Counts(entries=1, classes=1),
        after=Counts(entries=1 + len(paths), classes=2),
        not_compared=None,
        born=list(paths),
        gone=[],
        edited=[],
        moved=[MovedEntry(before="old`", after="new")],
    )
    counts = Counts(entries=3, classes=3)
    return PinProposal(
        corpus=None,
        proposed_corpus="3" * 64,
        class_rule="body",
        before=None,
        after=counts,
        taps=[change],
        near_duplicates=None,
        golden_not_checked="a tap is missing",
        golden=None,
    )


def test_text_of_a_registry_stands_in_code_spans_alone() -> None:
    page = as_markdown(proposal(HOSTILE), "-pin\n+```\n")
    (line,) = [line for line in page.splitlines() if "evil" in line]
    assert line == f"- born: {code(HOSTILE)}"
    assert "- moved: `` old` `` to `new`" in page
    assert page.endswith("## The change\n\n````diff\n-pin\n+```\n````\n")
    assert "\n# shout" not in page


def test_a_long_list_is_cut_and_counted() -> None:
    page = as_markdown(proposal(*(f"p{number}" for number in range(MOST_LISTED + 5))), "")
    assert page.count("- born: `p") == MOST_LISTED
    assert "- born: 5 more" in page


def test_what_is_missing_is_said() -> None:
    page = as_markdown(proposal(), None)
    assert "| pinned | – | – | – |" in page
    assert "Not checked: a tap is missing." in page
    assert "text rows, which are not changed in place" in page
