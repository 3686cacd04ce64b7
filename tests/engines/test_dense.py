"""Engine dense: the cosine made by hand, what is embedded and what is not, and a model that a package carries."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.config import Overrides, load
from pipeline.engines import INDEX, Answer, Query, RememberingEngine, embedding, fingerprint, made_of
from pipeline.engines.dense import Dense, DenseOptions
from pipeline.engines.embedding import SentenceModel
from pipeline.errors import BadInput
from pipeline.store import Store
from pipeline.workspace import Facts
from tests.conftest import Ended
from tests.engines.sentence_models import (
    Words,
    carried_model,
    lookup_as_onnx,
    onnx_model,
    static_model,
    write_safetensors,
    write_tokenizer,
)
from tests.engines.test_bm25 import Document, table
from tests.engines.test_plugins import project_with

Assay = Callable[..., Ended]

WORDS: Words = {
    "cat": [1.0, 0.25, 0.0],
    "kitten": [0.9, 0.5, 0.0],
    "engine": [0.0, 0.125, 1.0],
    "anti-cat": [-1.0, -0.25, 0.0],
    "[end]": [0.0, 3.0, 0.0],
}
ENTRIES: list[Document] = [("kitten", None, "cat cat"), ("engine", "engine", ""), ("x", None, "anti-cat")]

texts = st.lists(st.sampled_from([*WORDS, "strange", "\t", ""]), max_size=6).map(" ".join)
documents: st.SearchStrategy[Document] = st.tuples(st.sampled_from(["cat-kitten", "x", ""]), st.none() | texts, texts)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same vectors as a model of either kind."""
    folder = tmp_path_factory.mktemp("models")
    return {"table": static_model(folder / "table", WORDS), "onnx": onnx_model(folder / "onnx", WORDS)}


@pytest.fixture(scope="session")
def carried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of a real model that a package carries."""
    return carried_model(tmp_path_factory.mktemp("carried") / "wordllama")


def engine_of(folder: Path, max_tokens: int = 256) -> Dense:
    return Dense(DenseOptions(path=str(folder), max_tokens=max_tokens))


def ask(engine: Dense, taps: Sequence[Sequence[Document]], query: str) -> Answer:
    (answer,) = engine.retriever([engine.index_tap(table(tap)) for tap in taps]).answer([Query("q", query)])
    return answer


def by_hand(text: str) -> list[float]:
    """The mean of the vectors of the words, scaled to length 1; an unknown word is a vector of zeros."""
    found = [WORDS.get(word, [0.0] * 3) for word in text.split()]
    mean = [sum(values) / len(found) for values in zip(*found, strict=True)]
    length = math.hypot(*mean)
    return [value / length for value in mean]


@pytest.mark.parametrize("kind", ["table", "onnx"])
def test_the_score_is_the_cosine_made_by_hand_and_what_points_away_is_no_hit(
    folders: dict[str, Path], kind: str
) -> None:
    answer = ask(engine_of(folders[kind]), [ENTRIES], "cat strange")
    assert answer.entries.tolist() == [0, 1]
    asked = by_hand("cat strange")
    held = [by_hand(text) for text in ("kitten cat cat", "engine engine")]
    wanted = [sum(a * b for a, b in zip(asked, vector, strict=True)) for vector in held]
    assert answer.scores.tolist() == pytest.approx(wanted, abs=1e-7)
    assert not answer.empty_query
    assert answer.reach == 1


def test_a_transformer_sees_the_tokens_that_its_tokenizer_puts_around_a_text(tmp_path: Path) -> None:
    vector = SentenceModel(onnx_model(tmp_path / "m", WORDS, special=True), 256).embed("cat")
    assert vector is not None and vector.tolist() == pytest.approx(by_hand("[end] cat [end]"), abs=1e-7)


def test_a_text_without_a_token_has_no_vector_whatever_a_tokenizer_puts_in_its_place(
    tmp_path: Path, carried: Path
) -> None:
    transformer = SentenceModel(onnx_model(tmp_path / "m", WORDS, special=True), 256)
    assert [transformer.embed(text) for text in ("", " \n", "\a")] == [None] * 3
    assert [SentenceModel(carried, 256).embed(text) for text in ("", " \n")] == [None] * 2


@given(st.lists(documents, max_size=8), st.lists(st.integers(0, 8), max_size=3), texts)
@settings(max_examples=50, deadline=None)
def test_scores_have_the_same_bits_however_entries_are_cut_into_taps(
    folders: dict[str, Path], entries: list[Document], cuts: list[int], query: str
) -> None:
    engine = engine_of(folders["table"])
    ends = sorted(min(cut, len(entries)) for cut in cuts)
    taps = [entries[first:last] for first, last in zip([0, *ends], [*ends, len(entries)], strict=True)]
    one, many = ask(engine, [entries], query), ask(engine, taps, query)
    assert one.entries.tolist() == many.entries.tolist()
    assert one.scores.tobytes() == many.scores.tobytes()
    assert (one.scores > 0).all()


@given(st.lists(documents, max_size=6), st.lists(documents, max_size=6))
@settings(max_examples=50, deadline=None)
def test_what_is_known_changes_no_byte(
    folders: dict[str, Path], entries: list[Document], earlier: list[Document]
) -> None:
    engine = engine_of(folders["onnx"])
    known = engine.parts(engine.index_tap(table(earlier)))
    assert engine.index_tap(table(entries), known) == engine.index_tap(table(entries))


def test_a_text_that_is_known_or_stands_twice_is_not_embedded_again(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(folders["table"])
    assert isinstance(engine, RememberingEngine)
    known = engine.parts(engine.index_tap(table(ENTRIES)))
    noted = _embedded(monkeypatch)
    engine.index_tap(table([*ENTRIES, ("new-one", "cat", "b"), ("new_one", "cat", "b")]), known)
    assert noted == ["new one\ncat\nb"]


@pytest.mark.parametrize("kind", ["table", "onnx"])
def test_what_is_blank_or_has_no_vector_is_never_found_and_never_a_nan(folders: dict[str, Path], kind: str) -> None:
    blank: list[Document] = [("", None, ""), ("", "", " \n\t"), ("strange", None, ""), ("cat", "anti-cat", "")]
    answer = ask(engine_of(folders[kind]), [blank, [("cat", None, "")], []], "cat")
    assert (answer.entries.tolist(), answer.scores.tolist()) == ([4], pytest.approx([1.0]))
    assert ask(engine_of(folders[kind]), [blank], "cat").entries.size == 0
    assert ask(engine_of(folders[kind]), [], "cat").entries.size == 0


@pytest.mark.parametrize("query", ["", " \n", "strange"])
def test_a_question_without_a_vector_is_an_empty_one(folders: dict[str, Path], query: str) -> None:
    answer = ask(engine_of(folders["onnx"]), [ENTRIES], query)
    assert answer.empty_query and answer.entries.size == 0


def test_tokens_beyond_max_tokens_do_not_count_nor_does_a_text_beyond_32_characters_a_token(
    folders: dict[str, Path],
) -> None:
    engine = engine_of(folders["table"], max_tokens=2)
    assert ask(engine, [[("cat", None, "kitten engine engine")]], "cat kitten").scores.tolist() == pytest.approx([1.0])
    far = "x" * 64
    assert ask(engine, [[("", None, f"{far} cat")]], "cat").entries.size == 0


def test_the_digest_of_a_model_is_of_the_names_and_bytes_of_its_files(folders: dict[str, Path], tmp_path: Path) -> None:
    here = engine_of(folders["table"])
    moved = Path(shutil.copytree(folders["table"], tmp_path / "elsewhere"))
    (moved / ".notes").write_text("hidden")
    (moved / "sub").mkdir()
    assert engine_of(moved).index_inputs() == here.index_inputs()
    assert fingerprint(engine_of(moved), "body", "c") == fingerprint(here, "body", "c")
    named = json.dumps(made_of(here))
    assert str(here._model.digest) in named
    assert all(str(version) in named for version in dict(here._model.packages).values())
    assert str(folders["table"]) not in named
    (moved / "model.safetensors").rename(moved / "other.safetensors")
    renamed = engine_of(moved).index_inputs()
    (moved / "tokenizer.json").write_text((moved / "tokenizer.json").read_text() + " ")
    assert len({str(inputs) for inputs in (here.index_inputs(), renamed, engine_of(moved).index_inputs())}) == 3
    assert fingerprint(engine_of(folders["table"], 3), "body", "c") != fingerprint(here, "body", "c")


def test_a_newer_package_is_another_fingerprint(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    here = fingerprint(engine_of(folders["onnx"]), "body", "c")
    monkeypatch.setattr(embedding, "version", lambda package: "99")
    assert fingerprint(engine_of(folders["onnx"]), "body", "c") != here


def test_without_its_model_it_is_not_run_and_says_what_is_missing(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "small"
    assert engine_of(folder).why_not() == "there is no model folder small"
    folder.mkdir()
    assert engine_of(folder).why_not() == "the model folder small holds no tokenizer.json"
    shutil.copy(folders["table"] / "tokenizer.json", folder)
    neither = "the model folder small holds neither model.onnx nor one file *.safetensors"
    assert engine_of(folder).why_not() == neither
    for name in ("a.safetensors", "b.safetensors"):
        shutil.copy(folders["table"] / "model.safetensors", folder / name)
    assert engine_of(folder).why_not() == neither
    (folder / "b.safetensors").unlink()
    assert engine_of(folder).why_not() is None

    def nothing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(embedding, "version", nothing)
    missing = "missing here: the packages safetensors, tokenizers; the extra `dense` brings them"
    assert engine_of(folder).why_not() == missing
    assert "onnxruntime, tokenizers" in str(engine_of(folders["onnx"]).why_not())


def _bad_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{")


def _two_tensors(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", {name: np.zeros((9, 3), np.float32) for name in "ab"})


def _flat(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", {"a": np.zeros(27, np.float32)})


def _too_few_rows(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", {"a": np.zeros((2, 3), np.float32)})


def _unknown_numbers(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", {"a": np.zeros((9, 3), np.float32)}, "F33")


def _no_numbers(folder: Path) -> None:
    write_safetensors(folder / "model.safetensors", {"a": np.full((9, 3), np.nan, np.float32)})


def _no_onnx(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"no protocol buffer")


def _other_input(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(lookup_as_onnx(np.zeros((9, 3), np.float32), given="pixels"))


def _few_tokens(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(lookup_as_onnx(np.zeros((1, 3), np.float32)))


def _flat_output(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(lookup_as_onnx(np.zeros(9, np.float32)))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_bad_tokenizer, "tokenizer.json cannot be read"),
        (_two_tensors, "holds tensors of shape [(9, 3), (9, 3)], not one with a row for each of 6 tokens"),
        (_flat, "holds tensors of shape [(27,)]"),
        (_too_few_rows, "holds tensors of shape [(2, 3)], not one"),
        (_unknown_numbers, "model.safetensors cannot be read"),
        (_no_numbers, "gives a vector that is no number"),
        (_no_onnx, "model.onnx cannot be read"),
        (_other_input, "model.onnx asks for pixels, attention_mask"),
        (_few_tokens, "model.onnx cannot embed a text of 1 tokens"),
        (_flat_output, "is no vector a token"),
    ],
)
def test_a_model_that_is_there_and_wrong_is_bad_input_by_name(
    tmp_path: Path, spoil: Callable[[Path], None], words: str
) -> None:
    folder = static_model(tmp_path / "model", WORDS)
    spoil(folder)
    with pytest.raises(BadInput) as caught:
        SentenceModel(folder, 256).embed("cat")
    assert words in str(caught.value) and str(folder) in str(caught.value)
    (told,) = engine_of(folder).input_faults(None)  # before any work, too
    assert words in told.what


def test_a_model_that_is_right_is_found_to_be_so_before_any_work(folders: dict[str, Path]) -> None:
    assert [engine_of(folder).input_faults(None) for folder in folders.values()] == [[] for _ in folders]


def test_a_file_where_the_model_folder_should_be_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(BadInput, match="is a file, not a model folder; name the folder that holds the model"):
        engine_of(tmp_path / "model.onnx")


def test_a_table_in_half_precision_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "half"
    folder.mkdir()
    write_tokenizer(folder, {"cat": [1.0, 0.5]})
    from safetensors.numpy import save_file

    save_file({"embedding.weight": np.array([[0, 0], [1, 0.5]], np.float16)}, str(folder / "m.safetensors"))
    vector = SentenceModel(folder, 8).embed("cat")
    assert vector is not None and vector.tolist() == pytest.approx([1 / math.hypot(1, 0.5), 0.5 / math.hypot(1, 0.5)])


def test_a_carried_model_finds_what_shares_no_word_with_the_question(carried: Path) -> None:
    entries: list[Document] = [
        ("bread", None, "Knead the dough and bake a loaf in the oven."),
        ("sums", None, "Add up the columns of a spreadsheet."),
        ("rebase", None, "Squash commits before a merge."),
    ]
    answer = ask(engine_of(carried), [entries], "how are cakes made")
    assert answer.entries[answer.scores.argmax()] == 0


# --- a night ---------------------------------------------------------------------------------------------------------


def _embedded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every text that is embedded from here on."""
    noted: list[str] = []
    embed = SentenceModel.embed

    def noting(self: SentenceModel, text: str) -> object:
        noted.append(text)
        return embed(self, text)

    monkeypatch.setattr(SentenceModel, "embed", noting)
    return noted


ENTRIES_THERE = 229
QUESTIONS_THERE = 93


def with_fusion(examples: Path, folder: Path, model: Path) -> Path:
    of_model = f'[engines.dense]\npath = "{model}"\n'
    return project_with(examples, folder, f'[engines.bm25]\n{of_model}[engines.hybrid]\nof = ["bm25", "dense"]\n')


def test_a_text_that_any_stored_index_holds_is_not_embedded_again(
    examples: Path, stored: Path, tmp_path: Path, assay: Assay, carried: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = with_fusion(examples, tmp_path / "project", carried)
    noted = _embedded(monkeypatch)
    assert assay("rank", "--engine", "hybrid", "--config", config, "--store", stored).exit_code == 0
    of_entries = [text for text in noted if "\n" in text]
    assert len(set(of_entries)) == len(of_entries) and 0 < len(of_entries) <= ENTRIES_THERE
    assert len(noted) - len(of_entries) == QUESTIONS_THERE

    store = Store(stored)
    made = {index.key: index for index in store.stored(INDEX) if "model" in cast(Facts, index.inputs["index"])}
    for index in made.values():  # as if the same texts had been in other catalogues
        files = {name: store.read(index, name) for name in index.files}
        store.write(INDEX, {**index.inputs, "catalog": f"not {index.key}"}, files, index.facts)
        store.discard(store.path(index, ""))
    noted.clear()
    assert assay("rank", "--engine", "hybrid", "--config", config, "--store", stored).exit_code == 0
    assert noted == []
    assert {index.key: index for index in store.stored(INDEX) if index.key in made} == made


@pytest.mark.slow
def test_a_night_publishes_it_and_its_fusion_and_an_unchanged_night_embeds_nothing(
    examples: Path, stored: Path, tmp_path: Path, assay: Assay, carried: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = with_fusion(examples, tmp_path / "project", carried)
    first = assay("run", "--config", config, "--store", stored, "--json").json
    found = {row["engine"]: row["values"]["recall@10"] for row in first["headline"] if row["grading"] == "row"}
    assert set(found) == {"bm25", "dense", "hybrid"}
    assert found["dense"] > 0.5
    noted = _embedded(monkeypatch)
    unchanged = assay("run", "--config", config, "--store", stored, "--json").json
    assert unchanged["run_id"] == first["run_id"] and noted == []
    assert {step["stage"] for step in unchanged["steps"] if step["computed"]} == set()


def test_without_its_model_neither_it_nor_its_fusion_runs(examples: Path, tmp_path: Path) -> None:
    engines = '[engines.bm25]\n[engines.dense]\npath = "m/none"\n[engines.hybrid]\nof = ["bm25", "dense"]\n'
    settings = load(Overrides(config=project_with(examples, tmp_path / "project", engines)), {})
    assert settings.running == ["bm25"]
    reason = "there is no model folder none"
    assert settings.not_run == {"dense": reason, "hybrid": f"its source dense is not run: {reason}"}
