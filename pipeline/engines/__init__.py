"""Engines: from entries and questions to ranked hits.

``text.py`` says what a word is; ``kernel.py`` holds the machine loops; ``characters.py`` is the character table that
they read; ``index.py`` makes the index of one tap, and ``lexical.py`` joins taps into one corpus of words, for the
engines in ``bm25.py`` and ``okapi.py``; ``ranking.py`` turns any engine's scores into ranked classes. An engine knows nothing of taps, golden sets or files: it is given
documents and queries. This module imports nothing heavy, so that an unchanged night need not load an engine to know
what it would do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, cast

from pydantic import JsonValue

from pipeline.errors import BadInput, Fault
from pipeline.records import Record
from pipeline.store import Stage, digest

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

INDEX = Stage("index", 1)
"""One tap's index, for every engine that agrees on it. Key inputs: the tap's catalogue and `Engine.index_inputs`."""
RANK = Stage("rank", 2)
"""All queries of a golden set ranked by one engine. Key inputs: `fingerprint` and the digest of the set."""

ENGINES: dict[str, str] = {
    "bm25": "pipeline.engines.bm25:Bm25",
    "bm25-okapi": "pipeline.engines.okapi:Okapi",
    "metadata": "pipeline.engines.bm25:Metadata",
}
"""Every engine by name, and where its class stands."""


class Query(NamedTuple):
    """A question: its identity, by which a run file answers, and its text, by which everything else does."""

    query_id: str
    text: str


class Replacement(NamedTuple):
    """A query word that no document holds, and the indexed word that stood in for it."""

    word: str
    by: str


class Answer(NamedTuple):
    """What an engine makes of one query: every entry that it scores above 0, in no order but that of the corpus."""

    query_id: str
    entries: NDArray[np.int64]
    """Rows of the corpus in ``(tap, path)`` order, ascending, each once."""
    scores: NDArray[np.float64]
    """The score of each, above 0."""
    unknown_words: tuple[str, ...] = ()
    """The distinct query words that no document holds, in order, whether or not another one stood in for them."""
    replaced_words: tuple[Replacement, ...] = ()
    """Those of them for which another word stood in."""
    empty_query: bool = False
    """Whether no word at all was left of the query: nothing but stopwords and signs."""


class Retriever(Protocol):
    """A corpus that can be asked."""

    def answer(self, queries: Sequence[Query]) -> Iterator[Answer]:
        """Answer each query, in order."""
        ...


class Engine(Protocol):
    """What an engine must be. It is built from its options; equal options and documents give equal bytes and scores."""

    name: ClassVar[str]
    VERSION: ClassVar[int]
    Options: ClassVar[type[Record]]

    @property
    def options(self) -> Record:
        """The options it was built from."""
        ...

    def index_inputs(self) -> dict[str, JsonValue]:
        """Return all that the index of a tap depends on, beside its entries; engines that return the same share it."""
        ...

    def index_tap(self, entries: pa.Table) -> bytes:
        """Index the entries of one tap, in order of path, from the columns ``slug``, ``description`` and ``body``."""
        ...

    def retriever(self, indexes: Sequence[bytes | memoryview | pa.Buffer]) -> Retriever:
        """Join the indexes of taps, in the order of the corpus, into one corpus."""
        ...

    def fingerprint_inputs(self) -> dict[str, JsonValue]:
        """Return all that its scores depend on, beside the corpus: its index and its parameters."""
        ...


class EngineClass(Protocol):
    """The class of an engine, as configuration sees it."""

    name: ClassVar[str]
    VERSION: ClassVar[int]
    Options: ClassVar[type[Record]]

    def __call__(self, options: Record) -> Engine:
        """Build the engine."""
        ...


def engine_class(name: str, where: str) -> EngineClass:
    """Return the class of the engine called ``name``.

    Args:
        name: a key of `ENGINES`.
        where: file and row that named it, for the error.

    Raises:
        BadInput: there is no such engine; the message lists those that there are.
    """
    if name not in ENGINES:
        raise BadInput([Fault(where, f"no engine is called {name!r}", f"use one of: {', '.join(sorted(ENGINES))}")])
    module, attribute = ENGINES[name].split(":")
    return cast(EngineClass, getattr(import_module(module), attribute))


def fingerprint(engine: Engine, class_rule: str, corpus: str) -> str:
    """Return the digest (SHA-256, hex) of all that a ranking depends on, beside the queries.

    Args:
        engine: name, version and `Engine.fingerprint_inputs` of it.
        class_rule: the rule by which hits are collapsed.
        corpus: the corpus digest.
    """
    return digest(
        {
            "engine": engine.name,
            "version": engine.VERSION,
            "inputs": engine.fingerprint_inputs(),
            "class_rule": class_rule,
            "corpus": corpus,
        }
    )
