"""Counts with their nouns."""

from __future__ import annotations

import pytest

from pipeline.errors import counted


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [
        (0, "tap", "0 taps"),
        (1, "tap", "1 tap"),
        (1234, "entry", "1,234 entries"),
        (2, "body", "2 bodies"),
        (2, "query", "2 queries"),
        (2, "day", "2 days"),
        (1, "class", "1 class"),
        (2, "class", "2 classes"),
        (2, "near-duplicate cluster", "2 near-duplicate clusters"),
    ],
)
def test_a_count_has_its_noun_in_the_right_number(count: int, noun: str, said: str) -> None:
    assert counted(count, noun) == said
