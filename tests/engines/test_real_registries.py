"""The kernel on real registries: every word, every count, as the definition in plain Python has them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pipeline.catalog.entries import catalogue
from pipeline.engines.index import TapIndex, Weights, index_tap
from pipeline.engines.text import Tokenizer, opened, words
from pipeline.store import Store
from pipeline.taps.snapshot import SnapshotOptions, read_files, snapshot
from pipeline.taps.taplist import read_tap_list

pytestmark = [pytest.mark.corpora, pytest.mark.slow]

# One in English, one of rules in Chinese, one full of signs.
TAPS = ("NeoLabHQ/context-engineering-kit", "LessUp/awesome-cursorrules-zh", "danielrosehill/Claude-Slash-Commands")


@pytest.mark.parametrize("name", TAPS)
@pytest.mark.parametrize("tokenizer", ["unicode", "ascii"])
def test_the_index_of_a_registry_is_that_of_the_definition(
    name: str, tokenizer: Tokenizer, registries: Path, tmp_path: Path
) -> None:
    (tap,) = (tap for tap in read_tap_list(registries / "taps.toml").taps if tap.name == name)
    store = Store(tmp_path)
    files = read_files(store, snapshot(store, tap, registries, SnapshotOptions()).artifact)
    entries = catalogue(name, files).entries
    slugs, descriptions, bodies = (entries[column].to_pylist() for column in ("slug", "description", "body"))
    index = index_tap(slugs, descriptions, bodies, tokenizer, Weights())
    found = of_document(index)
    assert len(found) > 20
    for row, (slug, description, body) in enumerate(zip(slugs, descriptions, bodies, strict=True)):
        text = "\n".join((slug, opened(slug), description or "", slug, description or "", body))
        assert found[row] == Counter(words(text, tokenizer))


def of_document(index: TapIndex) -> list[Counter[str]]:
    counted: list[Counter[str]] = [Counter() for _ in range(index.lengths.size)]
    for place in range(index.words):
        word = index.word(place).decode()
        for posting in range(index.starts[place], index.starts[place + 1]):
            counted[index.documents[posting]][word] = int(index.counts[posting])
    return counted
