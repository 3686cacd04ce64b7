"""Scores of ``bm25-okapi`` held against those of ``rank_bm25.BM25Okapi``, over the same words of the same entries.

The sample is a corpus of its own: its taps are indexed and joined as those of the whole corpus are, so that words,
weights, postings, their join and the scores are all in the check. Where no engine of that kind is configured, the index
that ``bm25`` shares with it is checked by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pydantic import JsonValue

from pipeline.checks import CheckRow, Outcome, Sample
from pipeline.engines import Engine
from pipeline.engines.bm25 import Bm25, Bm25Options
from pipeline.engines.okapi import Okapi, OkapiOptions
from pipeline.engines.text import opened, words
from pipeline.errors import one_line

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

TOLERANCE = 1e-9
MOST_BYTES = 4_000_000
"""Text of the sample, bodies as often as they count: some corpora hold little but giants."""


def subjects(engines: Mapping[str, Engine]) -> dict[str, Okapi]:
    """Return what is checked: every ``bm25-okapi`` that runs, else the index of the first ``bm25``."""
    own = {name: engine for name, engine in sorted(engines.items()) if isinstance(engine, Okapi)}
    if own:
        return own
    for name, engine in sorted(engines.items()):
        if isinstance(engine.options, Bm25Options) and isinstance(engine, Bm25):
            shared = engine.options.model_dump(include={"tokenizer", *_WEIGHTS})
            return {f"index of {name}": Okapi(OkapiOptions(**shared))}
    return {}


_WEIGHTS = ("name_weight", "description_weight", "body_weight")


def inputs(engines: Mapping[str, Engine]) -> JsonValue:
    """Return what is checked, and all that its scores depend on."""
    return {name: [engine.VERSION, engine.fingerprint_inputs()] for name, engine in subjects(engines).items()}


def outcomes(check: str, peer: str, sample: Sample, engines: Mapping[str, Engine]) -> Iterator[Outcome]:
    """Check every subject."""
    for subject, engine in subjects(engines).items():
        yield _outcome(check, peer, sample, subject, engine)


def _outcome(check: str, peer: str, sample: Sample, subject: str, engine: Okapi) -> Outcome:
    import numpy as np

    entries = _bounded(sample.entries, MOST_BYTES // max(1, engine.options.body_weight))
    ours, theirs = _ours(engine, entries, sample), _theirs(engine.options, entries, sample)
    compared = np.isfinite(theirs)
    differences = np.abs(np.where(compared, ours - theirs, 0.0))
    worst = float(differences.max(initial=0.0))
    # Where no score of either side is above or below 0, as in a corpus of two entries, that they agree says nothing.
    tells = bool((compared & ((ours != 0) | (theirs != 0))).any())
    row = CheckRow(
        check=check,
        subject=subject,
        peer=peer,
        entries=entries.num_rows,
        values=int(compared.sum()) if tells else 0,
        worst_difference=worst if tells else None,
        tolerance=TOLERANCE,
        passed=bool(worst <= TOLERANCE) if tells else None,
        detail=_detail(sample, compared, tells),
    )
    # `not <=` rather than `>`: a score of ours that is no number is a disagreement too.
    return Outcome(row, "" if worst <= TOLERANCE else _disagreement(sample, entries, ours, theirs, differences))


def _bounded(entries: pa.Table, most: int) -> pa.Table:
    """Return the first entries whose text has at most ``most`` bytes together, and one at least."""
    import numpy as np
    import pyarrow.compute as pc

    sizes = sum(np.asarray(pc.fill_null(pc.binary_length(entries[name]), 0)) for name in ("description", "body"))
    return entries.slice(0, max(1, int(np.searchsorted(np.cumsum(sizes), most, side="right"))))


def _ours(engine: Okapi, entries: pa.Table, sample: Sample) -> NDArray[np.float64]:
    """Return a row of scores for each question."""
    import numpy as np
    import pyarrow.compute as pc

    taps = [entries.filter(pc.equal(entries["tap"], tap)) for tap in pc.unique(entries["tap"]).to_pylist()]
    retriever = engine.retriever([engine.index_tap(tap) for tap in taps])
    scores = [retriever.scores(query.text) for query in sample.queries]
    return np.array(scores, np.float64).reshape(len(scores), entries.num_rows)


def _theirs(options: OkapiOptions, entries: pa.Table, sample: Sample) -> NDArray[np.float64]:
    """Return the same of the package; no number where it divides 0 by 0.

    It does so without a word in any entry, for a word that an entry lacks where k1 is 0, and for an empty entry where b
    is 1.
    """
    import numpy as np
    from rank_bm25 import BM25Okapi

    documents = [weighed_words(options, **row) for row in entries.select(_TEXTS).to_pylist()]
    if not any(documents):
        return np.full((len(sample.queries), entries.num_rows), np.nan)
    peer = BM25Okapi(documents, k1=options.k1, b=options.b, epsilon=options.epsilon)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = [peer.get_scores(words(query.text, options.tokenizer)) for query in sample.queries]
    return np.array(scores, np.float64).reshape(len(scores), entries.num_rows)


_TEXTS = ["slug", "description", "body"]


def weighed_words(options: OkapiOptions, slug: str, description: str | None, body: str) -> list[str]:
    """Return the words of an entry, each as often as it counts."""
    weighed = (
        (opened(slug), min(options.name_weight, 1)),
        (slug, options.name_weight - 1),
        (description or "", options.description_weight),
        (body, options.body_weight),
    )
    return [word for text, weight in weighed if weight > 0 for word in words(text, options.tokenizer) * weight]


def _detail(sample: Sample, compared: NDArray[np.bool_], tells: bool) -> str:
    questions = "1 question" if len(sample.queries) == 1 else f"{len(sample.queries)} questions"
    text = f"scores of {compared.shape[1]} entries for {questions}"
    without = int(compared.size - compared.sum())
    if compared.any() and not tells:
        return f"{text}; every one is 0 on both sides, so that none tells anything"
    return f"{text}; {without} not compared, for the package has no number for them" if without else text


def _disagreement(
    sample: Sample,
    entries: pa.Table,
    ours: NDArray[np.float64],
    theirs: NDArray[np.float64],
    differences: NDArray[np.float64],
) -> str:
    import numpy as np

    wrong = ~(differences <= TOLERANCE)
    question, place = np.unravel_index(int(np.argmax(np.where(wrong, differences, -1.0))), wrong.shape)
    query, entry = sample.queries[int(question)], entries.slice(int(place), 1).to_pylist()[0]
    others = f", and {int(wrong.sum()) - 1} other values are off" if wrong.sum() > 1 else ""
    return one_line(
        f"for question {query.query_id} ({query.text[:80]!r}) the entry {entry['tap']}::{entry['path_text']} "
        f"has the score {float(ours[question, place])!r}, which ought to be {float(theirs[question, place])!r}{others}"
    )
