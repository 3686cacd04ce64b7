"""What the engines that match words share: the index of a tap, and indexed taps as one corpus.

An index says how often each entry holds each word, and nothing of how that is scored; so engines whose words and
weights agree share it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from pydantic import Field, JsonValue, model_validator

from pipeline.engines import Earlier, Updated
from pipeline.engines.text import Tokenizer, stopwords_digest
from pipeline.records import Record

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from pipeline.engines.index import TapIndex

LAYOUT = "words-1"
"""What an index of words holds. It changes whenever the same entries would give other bytes."""


class NameOptions(Record):
    """Options of every engine that matches words."""

    tokenizer: Tokenizer = Field("unicode", description="How text is cut into words.")
    name_weight: int = Field(3, ge=0, le=1000, description="How often a word of the name counts.")
    description_weight: int = Field(2, ge=0, le=1000, description="How often a word of the description counts.")

    @property
    def weights(self) -> dict[str, int]:
        """How often a word of each part of an entry counts."""
        return {"name": self.name_weight, "description": self.description_weight, "body": 0}

    @model_validator(mode="after")
    def _some_weight(self) -> Self:
        if not any(self.weights.values()):
            names = " and ".join(field for field in type(self).model_fields if field.endswith("_weight"))
            raise ValueError(f"{names} are all 0; set one of them above 0")
        return self


class WordOptions(NameOptions):
    """Options of an engine that matches words of the body too."""

    body_weight: int = Field(1, ge=0, le=1000, description="How often a word of the body counts.")

    @property
    def weights(self) -> dict[str, int]:
        """How often a word of each part of an entry counts."""
        return {**super().weights, "body": self.body_weight}


def index_inputs(options: NameOptions) -> dict[str, JsonValue]:
    """Return what the index of a tap depends on: tokenizer, stopwords, Unicode version, weights; no engine."""
    return {
        "layout": LAYOUT,
        "tokenizer": options.tokenizer,
        "stopwords": stopwords_digest(),
        "unicode": unicodedata.unidata_version,
        "weights": list(options.weights.values()),
    }


def index_tap(options: NameOptions, entries: pa.Table) -> bytes:
    """Index the entries of one tap; see `pipeline.engines.index.TapIndex`."""
    return _indexed(options, entries).to_bytes()


def update_tap(options: NameOptions, entries: pa.Table, earlier: Earlier) -> Updated:
    """Index the entries of one tap; those that ``earlier`` holds word for word are not cut into words again."""
    import numpy as np
    import pyarrow as pa

    from pipeline.engines import index

    held = {text: row for row, text in enumerate(_texts(earlier.entries))}
    sources = np.array([held.get(text, index.NEW) for text in _texts(entries)], np.int64)
    new = np.flatnonzero(sources == index.NEW)
    fresh = _indexed(options, entries.take(pa.array(new)))
    updated = index.join(index.TapIndex.from_bytes(earlier.data), fresh, sources)
    return Updated(updated.to_bytes(), new.size)


def _indexed(options: NameOptions, entries: pa.Table) -> TapIndex:
    from pipeline.engines import index

    slugs, descriptions, bodies = (entries.column(name) for name in _PARTS)
    return index.index_tap(slugs, descriptions, bodies, options.tokenizer, index.Weights(**options.weights))


_PARTS = ("slug", "description", "body")


def _texts(entries: pa.Table) -> Iterator[tuple[str | None, ...]]:
    """Yield all that the index of an entry depends on. A missing description is an empty one."""
    return zip(*(entries.column(name).fill_null("").to_pylist() for name in _PARTS), strict=True)


class Term(NamedTuple):
    """A word looked up in every tap."""

    places: NDArray[np.int64]
    """Where it stands in the vocabulary of each tap, -1 where the tap lacks it."""
    df: int
    """How many entries hold it."""


class TermPostings(NamedTuple):
    """The postings of the words that some queries ask for, in corpus order, so that a nested subset is a prefix."""

    starts: NDArray[np.int64]
    """Where the postings of each word begin; one more than there are words."""
    entries: NDArray[np.int32]
    """Rows of the corpus, ascending for each word."""
    counts: NDArray[np.int32]
    """Weighted counts."""


class IndexedTaps:
    """Indexed taps as one corpus. Their vocabularies are not merged to answer: a word is looked up in each."""

    def __init__(self, indexes: Sequence[bytes | memoryview | pa.Buffer]) -> None:
        import numpy as np

        from pipeline.engines.index import TapIndex

        self.taps = [TapIndex.from_bytes(index) for index in indexes]
        self.lengths = np.concatenate([np.zeros(0, np.int64), *(tap.lengths for tap in self.taps)])

    @property
    def entries(self) -> int:
        """How many entries there are."""
        return self.lengths.size

    def look_up(self, asked: Iterable[str]) -> dict[str, Term]:
        """Look up words in every tap. The result is in byte order of the words."""
        import numpy as np

        encoded = sorted({word.encode("utf-8") for word in asked})
        places = np.full((len(encoded), len(self.taps)), -1, np.int64)
        df = np.zeros(len(encoded), np.int64)
        packed = Asked.of(encoded)
        for number, tap in enumerate(self.taps):
            firsts, _, exact = find(tap, packed)
            places[exact, number] = firsts[exact]
            df[exact] += tap.starts[firsts[exact] + 1] - tap.starts[firsts[exact]]
        return {word.decode("utf-8"): Term(places[row], int(df[row])) for row, word in enumerate(encoded)}

    def gather(self, terms: Sequence[Term]) -> TermPostings:
        """Bring together the postings of ``terms`` from all taps."""
        import numpy as np

        from pipeline.engines import kernel

        starts = np.zeros(len(terms) + 1, np.int64)
        np.cumsum([term.df for term in terms], out=starts[1:])
        entries, counts = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)
        places = np.array([term.places for term in terms], np.int64).reshape(len(terms), len(self.taps))
        free = starts[:-1].copy()
        first_row = 0
        for number, tap in enumerate(self.taps):
            in_tap = np.ascontiguousarray(places[:, number])
            kernel.gather(tap.starts, tap.documents, tap.counts, in_tap, first_row, free, entries, counts)
            first_row += tap.lengths.size
        return TermPostings(starts, entries, counts)

    def norms(self, k1: float, b: float) -> NDArray[np.float64]:
        """``k1 * (1 - b + b * dl / avgdl)`` of every entry."""
        total = int(self.lengths.sum())
        if total == 0:
            return self.lengths.astype("float64")  # no word, so no posting will ask for it
        average = total / self.lengths.size
        return k1 * (1.0 - b + b * self.lengths / average)

    def frequencies(self) -> NDArray[np.int64]:
        """How many entries hold each word of the corpus: for each df from 0 on, how many words have it."""
        import numpy as np
        import pyarrow as pa

        if not self.taps:
            return np.zeros(1, np.int64)
        vocabularies = pa.chunked_array([tap.vocabulary() for tap in self.taps], pa.large_binary())
        numbers = np.asarray(vocabularies.combine_chunks().dictionary_encode().indices)
        held_by = np.concatenate([np.diff(tap.starts) for tap in self.taps])
        df = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
        np.add.at(df, numbers, held_by)
        return np.bincount(df, minlength=1)


class Asked(NamedTuple):
    """Words to find, as the kernel takes them: packed once, found in many taps."""

    text: NDArray[np.uint8]
    """The words, UTF-8, one behind the other, and one byte more."""
    word_at: NDArray[np.int64]
    """Where each begins; one more than there are words."""

    @classmethod
    def of(cls, encoded: Sequence[bytes]) -> Self:
        """Pack words."""
        import numpy as np

        word_at = np.zeros(len(encoded) + 1, np.int64)
        np.cumsum([len(word) for word in encoded], out=word_at[1:])
        return cls(np.frombuffer(b"".join(encoded) + b"\0", np.uint8), word_at)


def find(tap: TapIndex, asked: Asked) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Where each word would stand, the end of those that begin with it, and whether it is there."""
    return tap.find(asked.text, asked.word_at)
