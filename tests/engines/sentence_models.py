"""Small sentence models for tests, made of a table of vectors: as a static table, and as ONNX."""

from __future__ import annotations

import importlib.util
import json
import shutil
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Words = dict[str, list[float]]
"""The vector of each word. Every other word is unknown: a vector of zeros."""


def static_model(folder: Path, words: Words) -> Path:
    """Write a static table; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(folder / "model.safetensors", {"embeddings": _rows(words)})
    write_tokenizer(folder, words)
    return folder


def onnx_model(folder: Path, words: Words, special: bool = False) -> Path:
    """Write a model of one node, which looks the vector of each token up; ``special`` puts a token at either end."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(lookup_as_onnx(_rows(words)))
    write_tokenizer(folder, words, special)
    return folder


def carried_model(folder: Path) -> Path:
    """Put the static table that the package wordllama carries into a model folder."""
    spec = importlib.util.find_spec("wordllama")
    assert spec is not None and spec.submodule_search_locations is not None
    package = Path(spec.submodule_search_locations[0])
    folder.mkdir(parents=True)
    shutil.copyfile(package / "weights" / "l2_supercat_256.safetensors", folder / "model.safetensors")
    shutil.copyfile(package / "tokenizers" / "l2_supercat_tokenizer_config.json", folder / "tokenizer.json")
    return folder


def _rows(words: Words) -> NDArray[np.float32]:
    dimensions = len(next(iter(words.values())))
    return np.array([[0.0] * dimensions, *words.values()], np.float32)


def write_tokenizer(folder: Path, words: Words, special: bool = False) -> None:
    """Write a tokenizer of words between spaces, the unknown being 0; ``special`` puts ``[end]`` at either end."""
    vocabulary = {name: number for number, name in enumerate(["[unknown]", *words])}
    ends = {"SpecialToken": {"id": "[end]", "type_id": 0}}
    template = [ends, {"Sequence": {"id": "A", "type_id": 0}}, ends]
    of_end = {"id": "[end]", "ids": [vocabulary.get("[end]", 0)], "tokens": ["[end]"]}
    wrapped = {"type": "TemplateProcessing", "single": template, "pair": template, "special_tokens": {"[end]": of_end}}
    tokenizer = {
        "version": "1.0",
        "normalizer": {  # drops control characters
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": False,
            "strip_accents": False,
            "lowercase": False,
        },
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": wrapped if special else None,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[unknown]"},
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def write_safetensors(file: Path, tensors: dict[str, NDArray[np.float32]], kind: str = "F32") -> None:
    """Write tensors as safetensors: the length of a header, the header, the numbers."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        held = tensor.astype("<f4").tobytes()
        header[name] = {"dtype": kind, "shape": tensor.shape, "data_offsets": [len(data), len(data) + len(held)]}
        data += held
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def lookup_as_onnx(table: NDArray[np.float32], given: str = "input_ids", kind: str = "Gather") -> bytes:
    """Return an ONNX model that gives the row of each token, as the protocol buffer that onnx.proto describes."""
    ints, floats = 7, 1  # TensorProto.DataType
    tensor = (
        b"".join(_number(1, size) for size in table.shape)
        + _number(2, floats)
        + _part(8, b"table")
        + _part(9, table.astype("<f4").tobytes())
    )
    node = _part(1, b"table") + _part(1, given.encode()) + _part(2, b"vectors") + _part(4, kind.encode())
    graph = (
        _part(1, node)
        + _part(2, b"lookup")
        + _part(5, tensor)
        + _part(11, _value(given, ints, 2))
        + _part(11, _value("attention_mask", ints, 2))
        + _part(12, _value("vectors", floats, 3))
    )
    return _number(1, 8) + _part(7, graph) + _part(8, _part(1, b"") + _number(2, 17))


def _value(name: str, kind: int, axes: int) -> bytes:
    shape = b"".join(_part(1, _part(2, f"{name}{axis}".encode())) for axis in range(axes))
    return _part(1, name.encode()) + _part(2, _part(1, _number(1, kind) + _part(2, shape)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _part(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    more, last = divmod(value, 128)
    return bytes([last]) if more == 0 else bytes([last | 128]) + _varint(more)
