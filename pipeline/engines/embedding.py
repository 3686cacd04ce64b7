"""A sentence model on disk: a folder that turns text into a vector, without a network.

Two kinds. ``model.onnx`` with ``tokenizer.json``: a transformer, run by ONNX Runtime, whose first output is a vector a
token. One ``*.safetensors`` with ``tokenizer.json``: a static table, whose one matrix has a row a token. Either way the
vector of a text is the mean of the vectors of its tokens, scaled to length 1.

A text is embedded by itself, never padded beside others, and ONNX Runtime uses one thread, so that its vector depends
on the text and the model alone. Sums are in float64, token after token. ONNX Runtime chooses its loops by the
processor, so between kinds of processors the last bits of a transformer's vectors may differ; those of a static table
do not.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pipeline.errors import BadInput, Fault, one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ONNX = "model.onnx"
TOKENIZER = "tokenizer.json"
TABLES = "*.safetensors"

LONGEST_TOKEN = 32
"""Characters a token for which a text is read at most, so that a text of megabytes is not cut into tokens in vain."""

_READ_BY = {ONNX: ("onnxruntime", "tokenizers"), TABLES: ("safetensors", "tokenizers")}
_TRIED = 100
"""Words of a vocabulary that are tried at most."""
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class _TokenVectors(Protocol):
    """From the ids of the tokens of a text to a vector each."""

    def __call__(self, ids: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
        """Return one row a token."""
        ...


class SentenceModel:
    """The model in a folder. Nothing is loaded before a text is embedded."""

    def __init__(self, folder: Path, max_tokens: int) -> None:
        self.folder = folder
        self._max_tokens = max_tokens

    def why_not(self) -> str | None:
        """Say why it cannot be used here: a file or a package is missing. None where it can."""
        name = self.folder.name
        if not self.folder.is_dir():
            return f"there is no model folder {name}"
        if not (self.folder / TOKENIZER).is_file():
            return f"the model folder {name} holds no {TOKENIZER}"
        if not self._is_onnx and len(self._tables) != 1:
            return f"the model folder {name} holds neither {ONNX} nor one file {TABLES}"
        missing = [package for package in self._read_by if _version(package) is None]
        return f"missing here: the packages {', '.join(missing)}; the extra `dense` brings them" if missing else None

    @property
    def packages(self) -> Mapping[str, str | None]:
        """The packages that read the model, and their versions."""
        return {package: _version(package) for package in self._read_by}

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the files of the folder, by name and content; hidden ones and folders in it do not count."""
        lines = []
        for path in sorted(self.folder.iterdir(), key=lambda path: path.name):
            if path.is_file() and not path.name.startswith("."):
                with path.open("rb") as file:
                    lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
        return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()

    def cut(self, text: str) -> str:
        """Return as much of a text as can count."""
        return text[: self._max_tokens * LONGEST_TOKEN]

    def embed(self, text: str) -> NDArray[np.float32] | None:
        """Return the vector of a text, of length 1; None where it is blank, has no token, or its tokens cancel out.

        Raises:
            BadInput: the files of the model are wrong.
        """
        import numpy as np

        if not text.strip():
            return None  # for which some tokenizers have a token
        encoded = self._tokenizer.encode(self.cut(text), add_special_tokens=self._is_onnx)
        if all(encoded.special_tokens_mask):
            return None
        vectors = self._token_vectors(np.array(encoded.ids, np.int64))
        mean = np.add.reduce(vectors.astype(np.float64), axis=0) / len(vectors)
        length = math.sqrt(math.fsum((mean * mean).tolist()))  # exact, so the same in any order
        if not math.isfinite(length):
            raise BadInput([self._fault("gives a vector that is no number", "take another model")])
        return (mean / length).astype(np.float32) if length > 0 else None

    def try_out(self) -> None:
        """Load the model and embed a word.

        Raises:
            BadInput: the files of the model are wrong.
        """
        _ = self._tokenizer, self._token_vectors
        # A small vocabulary may lack any one word; then one of its own is embedded.
        for word in ("skill", *sorted(self._tokenizer.get_vocab())[:_TRIED]):
            if self.embed(word) is not None:
                return

    @property
    def _is_onnx(self) -> bool:
        return (self.folder / ONNX).is_file()

    @property
    def _tables(self) -> list[Path]:
        return sorted(self.folder.glob(TABLES))

    @property
    def _read_by(self) -> tuple[str, ...]:
        return _READ_BY[ONNX if self._is_onnx else TABLES]

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self.folder / TOKENIZER))
        except Exception as error:  # the package raises nothing narrower
            raise BadInput([self._fault(f"{TOKENIZER} cannot be read ({one_line(str(error))})")]) from error
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._max_tokens)
        return tokenizer

    @cached_property
    def _token_vectors(self) -> _TokenVectors:
        return self._transformer() if self._is_onnx else self._table()

    def _table(self) -> _TokenVectors:
        from safetensors import SafetensorError
        from safetensors.numpy import load_file

        (path,) = self._tables
        try:
            tensors = load_file(path)
        except (SafetensorError, KeyError, OSError) as error:  # KeyError: a type of number that numpy has not
            raise BadInput([self._fault(f"{path.name} cannot be read ({one_line(repr(error))})")]) from error
        tokens = 1 + max(self._tokenizer.get_vocab().values(), default=-1)
        shapes = [tensor.shape for tensor in tensors.values()]
        if len(shapes) != 1 or len(shapes[0]) != 2 or shapes[0][0] < tokens:
            what = f"{path.name} holds tensors of shape {shapes}, not one with a row for each of {tokens} tokens"
            raise BadInput([self._fault(what)])
        (table,) = tensors.values()
        return lambda ids: table[ids]

    def _transformer(self) -> _TokenVectors:
        import numpy as np
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3  # errors come as exceptions; the rest is not for the terminal
        try:
            session = onnxruntime.InferenceSession(str(self.folder / ONNX), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # the package raises nothing narrower
            raise BadInput([self._fault(f"{ONNX} cannot be read ({one_line(str(error))})")]) from error
        names = [given.name for given in session.get_inputs()]
        if "input_ids" not in names or not set(names) <= set(_INPUTS):
            raise BadInput([self._fault(f"{ONNX} asks for {', '.join(names)}, not for some of {', '.join(_INPUTS)}")])

        def token_vectors(ids: NDArray[np.int64]) -> NDArray[np.floating[Any]]:
            row = ids[np.newaxis]
            given = dict(zip(_INPUTS, (row, np.ones_like(row), np.zeros_like(row)), strict=True))
            try:
                found = session.run(None, {name: given[name] for name in names})[0]
            except Exception as error:
                what = f"{ONNX} cannot embed a text of {ids.size} tokens ({one_line(str(error))})"
                raise BadInput([self._fault(what, "lower max_tokens, or take another model")]) from error
            if found.ndim != 3 or found.shape[:2] != row.shape:
                raise BadInput([self._fault(f"the first output of {ONNX} is no vector a token, but {found.shape}")])
            vectors: NDArray[np.floating[Any]] = found[0]
            return vectors

        return token_vectors

    def _fault(self, what: str, todo: str = "take a model folder as docs/engines.md describes it") -> Fault:
        return Fault(str(self.folder), what, todo)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
