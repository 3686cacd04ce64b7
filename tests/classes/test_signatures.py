"""Signatures equal those of datasketch, bit for bit, and are refused where they are of another kind."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.classes.shingles import shingles
from pipeline.classes.signatures import SCHEME, Scheme, permutations, sign, signature_table, signatures_of
from pipeline.errors import BadInput, MissingArtifact

TEXTS = ["a b c d e f g", "", "a b c d e f h", " \n", "日本語", "x " * 3000, "the same", "THE  same"]


def by_datasketch(text: str, scheme: Scheme = SCHEME) -> list[int]:
    from datasketch import MinHash

    minhash = MinHash(num_perm=scheme.permutations, seed=scheme.seed, scheme=scheme.name, hashfunc=lambda value: value)
    minhash.update_batch([value & 0xFFFFFFFF for value in shingles(text, scheme.shingle_words)])
    return minhash.hashvalues.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("scheme", [SCHEME, Scheme(seed=7), Scheme(permutations=33), Scheme(shingle_words=2)])
def test_a_signature_is_what_datasketch_makes_of_the_same_shingle_hashes(scheme: Scheme) -> None:
    assert sign(pa.array(TEXTS), scheme).signatures.tolist() == [by_datasketch(text, scheme) for text in TEXTS]


@settings(max_examples=50)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_any_text_is_signed_as_by_datasketch(text: str) -> None:
    assert sign(pa.array([text])).signatures[0].tolist() == by_datasketch(text)


@pytest.mark.parametrize("seed", [0, 1, 42])
def test_permutations_are_those_of_datasketch(seed: int) -> None:
    from datasketch import MinHash

    expected = MinHash(seed=seed).permutations
    assert all((ours == theirs).all() for ours, theirs in zip(permutations(Scheme(seed=seed)), expected, strict=True))


def test_a_body_without_a_word_has_no_signature() -> None:
    assert sign(pa.array(TEXTS)).signed.tolist() == [True, False, True, False, True, True, True, True]


def test_threads_and_chunks_change_nothing() -> None:
    bodies = [f"{number} b c d e f {number % 7}" for number in range(3000)]
    whole = sign(pa.array(bodies)).signatures
    cut = pa.chunked_array([bodies[:1], [], bodies[1:1500], bodies[1500:]], pa.string())
    assert (sign(cut, threads=3).signatures == whole).all()


@pytest.mark.parametrize("scheme", [Scheme(name="legacy"), Scheme(name="affine64"), Scheme(version=2)])
def test_an_unknown_scheme_is_an_error(scheme: Scheme) -> None:
    with pytest.raises(ValueError, match="not known"):
        sign(pa.array(["a"]), scheme)


def bodies(*texts: str) -> pa.Table:
    return pa.table({"body_sha256": [f"digest of {text}" for text in texts], "body": list(texts)})


def test_kept_signatures_are_read_again_in_the_order_asked_for() -> None:
    kept = pa.concat_tables([signature_table(bodies("b c", "", "a b c d e f")), signature_table(bodies("b c", "z"))])
    asked = ["a b c d e f", "", "z", "b c"]
    found = signatures_of(pa.array([f"digest of {text}" for text in asked]), kept)
    expected = sign(pa.array(asked))
    assert found.signatures.tolist() == expected.signatures.tolist()
    assert found.signed.tolist() == expected.signed.tolist() == [True, False, True, True]


def test_a_body_is_kept_once_and_in_the_order_of_digests() -> None:
    table = signature_table(bodies("b", "a", "b"))
    assert table["body_sha256"].to_pylist() == ["digest of a", "digest of b"]
    assert [len(signature) for signature in table["signature"].to_pylist()] == [512, 512]


@pytest.mark.parametrize("other", [Scheme(seed=2), Scheme(permutations=64), Scheme(shingle_words=4)])
def test_a_signature_of_another_scheme_or_seed_is_refused(other: Scheme) -> None:
    kept = pa.concat_tables([signature_table(bodies("a")), signature_table(bodies("b"), other)])
    with pytest.raises(BadInput, match="made by affine32-s") as caught:
        signatures_of(pa.array(["digest of a"]), kept)
    assert str(other) in str(caught.value)


def test_a_signature_of_another_length_is_refused() -> None:
    kept = signature_table(bodies("a"))
    cut = kept.set_column(2, "signature", pa.array([b"too short"], pa.binary()))
    with pytest.raises(BadInput, match="9 bytes"):
        signatures_of(pa.array(["digest of a"]), cut)


def test_a_body_that_was_never_signed_is_an_error() -> None:
    with pytest.raises(MissingArtifact, match="digest of c"):
        signatures_of(pa.array(["digest of a", "digest of c"]), signature_table(bodies("a")))


def test_the_permutations_estimate_the_similarity() -> None:
    common = [f"w{number}" for number in range(2000)]
    left, right = sign(pa.array([" ".join(common[:1500]), " ".join(common[500:])])).signatures
    assert abs(float(np.mean(left == right)) - 996 / 1996) < 0.13
