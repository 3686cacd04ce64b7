"""Near-duplicates and families of the real registries: the published counts, and the exact join beside them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest

from pipeline.catalog.entries import catalogue
from pipeline.classes.bodies import distinct_bodies
from pipeline.classes.clusters import NearDuplicates, check_candidates, near_duplicates
from pipeline.classes.families import template_families
from pipeline.classes.shingles import shingles
from pipeline.classes.signatures import Signed, sign
from pipeline.store import Store
from pipeline.taps.snapshot import SnapshotOptions, read_files, snapshot
from pipeline.taps.taplist import read_tap_list

pytestmark = [pytest.mark.corpora, pytest.mark.slow, pytest.mark.xdist_group("corpora")]


class Corpus(NamedTuple):
    entries: pa.Table
    bodies: pa.Table
    signed: Signed
    found: NearDuplicates


@pytest.fixture(scope="module")
def corpus(registries: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    store = Store(tmp_path_factory.mktemp("store"))
    taps = read_tap_list(registries / "taps.toml").taps
    read = [read_files(store, snapshot(store, tap, registries, SnapshotOptions()).artifact) for tap in taps]
    entries = pa.concat_tables([catalogue(tap.name, files).entries for tap, files in zip(taps, read, strict=True)])
    bodies = distinct_bodies(entries)
    signed = sign(bodies["body"])
    return Corpus(entries, bodies, signed, near_duplicates(bodies, signed, entries))


def test_signatures_equal_those_of_datasketch(corpus: Corpus) -> None:
    from datasketch import MinHash

    for row in range(0, corpus.bodies.num_rows, 97):
        minhash = MinHash(hashfunc=lambda value: value)
        minhash.update_batch([value & 0xFFFFFFFF for value in shingles(corpus.bodies["body"][row].as_py())])
        assert (minhash.hashvalues == corpus.signed.signatures[row]).all()


def test_the_clusters_are_those_of_the_exact_join_but_for_2_bodies_in_1000(corpus: Corpus) -> None:
    check = check_candidates(corpus.bodies, corpus.signed, corpus.found)
    assert (check.eligible, check.pairs, check.candidates, check.found) == (12_132, 1_253, 1_741, 1_249)
    assert (check.bodies_joined, check.bodies_astray) == (1_426, 5)
    assert check.bodies_astray <= 0.002 * check.eligible


def test_the_counts_are_the_published_ones(corpus: Corpus) -> None:
    assert corpus.found.facts() == {
        "clusters": 572,
        "clusters_copies": 561,
        "clusters_family": 11,
        "clusters_vetoed": 0,
        "clusters_chained": 20,
        "bodies": 1_423,
        "entries": 2_059,
        "unverified_clusters": 705,
        "unverified_bodies": 1_805,
    }


def test_no_empty_body_and_no_stub_is_in_a_cluster(corpus: Corpus) -> None:
    joined = set(corpus.found.members["body_sha256"].to_pylist())
    odd = {
        row["body_sha256"]
        for row in corpus.entries.select(["body_sha256", "empty_body", "alias_stub"]).to_pylist()
        if row["empty_body"] or row["alias_stub"]
    }
    assert len(odd) > 30
    assert not joined & odd


def test_the_recipes_are_a_family_and_not_one_skill(corpus: Corpus) -> None:
    found = template_families(corpus.bodies, corpus.entries)
    assert found.facts() == {
        "families": 30,
        "families_bodies": 208,
        "families_entries": 235,
        "families_largest": 57,
    }
    (recipes,) = [row for row in found.families.to_pylist() if all(name.startswith("recipe-") for name in row["names"])]
    assert (recipes["tap"], recipes["bodies"], len(recipes["names"])) == ("davila7/claude-code-templates", 46, 46)
    assert recipes["named"] == 1.0
