"""Engines: from entries and questions to ranked hits.

``text.py`` says what a word is; ``kernel.py`` holds the machine loops; ``characters.py`` is the character table that
they read; ``index.py`` makes the index of one tap, and ``lexical.py`` joins taps into one corpus of words, for the
engines in ``bm25.py`` and ``okapi.py``; ``embedding.py`` reads a sentence model from disk, for the engine in
``dense.py``; ``runfile.py`` takes the ranking of an outside system; ``hybrid.py`` fuses two
rankings; ``plugins.py`` finds the engines of others; ``ranking.py`` turns any engine's scores into ranked classes. An
engine knows nothing of golden sets: it is given documents and queries. This module imports nothing heavy, so that an
unchanged night need not load an engine to know what it would do.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence, Set
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

from pydantic import JsonValue

from pipeline.errors import AssayError, BadInput, Fault
from pipeline.records import Record
from pipeline.store import Stage, digest

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

INDEX = Stage("index", 1)
"""One tap's index, for every engine that agrees on it. Key inputs: the tap's catalogue and `Engine.index_inputs`."""
RANK = Stage("rank", 3)
"""All queries of a golden set ranked by one engine. Key inputs: `fingerprint` and the digest of the set."""

ENGINES: dict[str, str] = {
    "bm25": "pipeline.engines.bm25:Bm25",
    "bm25-okapi": "pipeline.engines.okapi:Okapi",
    "metadata": "pipeline.engines.bm25:Metadata",
    "dense": "pipeline.engines.dense:Dense",
    "hybrid": "pipeline.engines.hybrid:Hybrid",
    "run-file": "pipeline.engines.runfile:RunFile",
}
"""Every kind of engine by name, and where its class stands. Plug-ins add to it and override nothing."""


class Plugin(Protocol):
    """An engine of somebody else, not loaded yet."""

    @property
    def distribution(self) -> str:
        """The package that brings it, and its version."""
        ...

    def load(self) -> EngineClass:
        """Import it; CannotLoad, with the reason, where that fails."""
        ...


Plugins: TypeAlias = Mapping[str, Plugin]
NO_PLUGINS: Plugins = MappingProxyType({})


class CannotLoad(AssayError):
    """A plug-in cannot be loaded. Its engine is `not run`, for the reason that is this error's text."""


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
    reach: float | None = None
    """The most that any entry could score for the query, whatever it held; None where the engine states no bound."""


class Retriever(Protocol):
    """A corpus that can be asked."""

    def answer(self, queries: Sequence[Query]) -> Iterator[Answer]:
        """Answer each query, in order."""
        ...


class Engine(Protocol):
    """What every engine is. It is built from its options; equal options and documents give equal bytes and scores.

    It is an `IndexEngine` or a `Borrower` besides.
    """

    name: ClassVar[str]
    """Its kind: the key of `ENGINES`, or the name of its entry point."""
    VERSION: ClassVar[int]
    Options: ClassVar[type[Record]]
    """An option called ``path`` names a file or folder. What lies there is in the fingerprint, the path is not."""

    @property
    def options(self) -> Record:
        """The options it was built from."""
        ...

    def why_not(self) -> str | None:
        """Say why it cannot run here, in words that are the same on every machine; None where it can."""
        ...

    def fingerprint_inputs(self) -> dict[str, JsonValue]:
        """Return all that its scores depend on, beside the corpus: its index and its parameters."""
        ...


@runtime_checkable
class IndexEngine(Engine, Protocol):
    """An engine that ranks by an index of each tap, so that a changed tap costs one tap."""

    def index_inputs(self) -> dict[str, JsonValue]:
        """Return all that the index of a tap depends on, beside its entries; engines that return the same share it."""
        ...

    def index_tap(self, entries: pa.Table) -> bytes:
        """Index the entries of one tap, in order of path, from the columns ``slug``, ``description`` and ``body``."""
        ...

    def retriever(self, indexes: Sequence[bytes | memoryview | pa.Buffer]) -> Retriever:
        """Join the indexes of taps, in the order of the corpus, into one corpus."""
        ...


@runtime_checkable
class RememberingEngine(IndexEngine, Protocol):
    """An engine for which the index of a text is dear, so that what an index holds is never made again.

    What is known must change the work alone, never the bytes.
    """

    def parts(self, index: bytes | memoryview | pa.Buffer) -> Mapping[bytes, bytes]:
        """Return what an index, made with the same `index_inputs`, holds of each text, by the digest of the text."""
        ...

    def index_tap(self, entries: pa.Table, known: Mapping[bytes, bytes] = ...) -> bytes:
        """Index as any engine does, with what `parts` found in earlier indexes, of any tap."""
        ...


class Earlier(NamedTuple):
    """A tap as it was indexed at another commit."""

    entries: pa.Table
    """Its entries then, with the columns that `IndexEngine.index_tap` was given."""
    data: bytes
    """Their index, made with the same `IndexEngine.index_inputs`."""


class Updated(NamedTuple):
    """An index of which a part was taken from an earlier one."""

    data: bytes
    """The bytes that `IndexEngine.index_tap` would give."""
    new: int
    """Entries that the earlier index did not hold."""


@runtime_checkable
class UpdatingEngine(IndexEngine, Protocol):
    """An engine that can take over the entries of a tap that stayed as they were."""

    def update_tap(self, entries: pa.Table, earlier: Earlier) -> Updated:
        """Index the entries of a tap, reading anew only those that ``earlier`` does not hold word for word."""
        ...


class Lent(NamedTuple):
    """What an engine without an index ranks by."""

    queries: Sequence[Query]
    """The questions of one golden set."""
    asked: Set[str]
    """The ids of all questions of all golden sets."""
    corpus: pa.Table
    """The entries in ``(tap, path)`` order, with the columns tap, path, class_id among others."""
    hits: Sequence[pa.Table]
    """The `HITS` of each of its sources for the queries, in their order."""


@runtime_checkable
class Borrower(Engine, Protocol):
    """An engine that ranks by what others ranked: a file, or other engines of the configuration."""

    def sources(self) -> tuple[str, ...]:
        """Return the names of the configured engines whose rankings it reads."""
        ...

    def answer(self, lent: Lent) -> Iterator[Answer]:
        """Answer each query, in order.

        Raises:
            BadInput: what somebody gave it is wrong; all faults are named.
        """
        ...


@runtime_checkable
class CheckedEngine(Engine, Protocol):
    """An engine that can say before any work what is wrong with what somebody gave it."""

    def input_faults(self, asked: Container[str] | None) -> list[Fault]:
        """Return what is wrong, of what can be seen without the corpus; it is asked only where the engine can run.

        Args:
            asked: the ids of all questions of all golden sets; None where they cannot be read.
        """
        ...


class EngineClass(Protocol):
    """The class of an engine, as configuration sees it."""

    name: ClassVar[str]
    VERSION: ClassVar[int]
    Options: ClassVar[type[Record]]

    def __call__(self, options: Record) -> Engine:
        """Build the engine."""
        ...


def engine_class(kind: str, where: str, plugins: Plugins = NO_PLUGINS) -> EngineClass:
    """Return the class of the engines of a kind.

    Args:
        kind: a key of `ENGINES`, or the name of a plug-in.
        where: file and row that named it, for the error.
        plugins: the engines of others, by name.

    Raises:
        BadInput: there is no such engine; the message lists those that there are.
        CannotLoad: it is a plug-in that cannot be loaded.
    """
    if kind in ENGINES:
        module, attribute = ENGINES[kind].split(":")
        return cast(EngineClass, getattr(import_module(module), attribute))
    if kind in plugins:
        return plugins[kind].load()
    known = ", ".join(sorted({*ENGINES, *plugins}))
    raise BadInput(
        [Fault(where, f"no engine is called {kind!r}", f'use one of: {known}, or say which one it is: kind = "bm25"')]
    )


def fingerprint(engine: Engine, class_rule: str, corpus: str, others: Mapping[str, JsonValue] | None = None) -> str:
    """Return the digest (SHA-256, hex) of all that a ranking depends on, beside the queries.

    Args:
        engine: kind, version and `Engine.fingerprint_inputs` of it.
        class_rule: the rule by which hits are collapsed.
        corpus: the corpus digest.
        others: what else it depends on: the package of a plug-in, the fingerprints of its sources.
    """
    return digest({**made_of(engine, others), "class_rule": class_rule, "corpus": corpus})


def made_of(engine: Engine, others: Mapping[str, JsonValue] | None = None) -> dict[str, JsonValue]:
    """Return what makes an engine what it is, beside class rule and corpus: all that its fingerprint is made from.

    The digests of its model or run file and the versions of its packages are among it, and no path.
    """
    inputs = engine.fingerprint_inputs()
    return {"engine": engine.name, "version": engine.VERSION, "inputs": inputs, **(others or {})}
