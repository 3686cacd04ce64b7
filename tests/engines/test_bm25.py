"""Scores of engine bm25, against the formula in plain Python, bit for bit."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.engines import ENGINES, Answer, Engine, Query, engine_class, fingerprint
from pipeline.engines.bm25 import Bm25, Bm25Options
from pipeline.engines.text import opened, words
from pipeline.errors import BadInput

VOCABULARY = ["alpha", "alphabet", "alphas", "beta", "betamax", "c++", "gamma", "the", "学習", "x", "delta"]
texts = st.lists(st.sampled_from(VOCABULARY), max_size=8).map(" ".join)
Document = tuple[str, str | None, str]
DEFAULT = Bm25Options()
documents: st.SearchStrategy[Document] = st.tuples(
    st.sampled_from(["alpha-beta", "gamma", "x"]), st.none() | texts, texts
)
corpora = st.lists(documents, max_size=10)
queries = st.lists(st.sampled_from([*VOCABULARY, "alph", "bet", "betam", "zzzz", "delt"]), max_size=6).map(" ".join)
options = st.builds(
    Bm25Options,
    tokenizer=st.sampled_from(["unicode", "ascii"]),
    k1=st.sampled_from([0.0, 0.9, 1.2, 2.0]),
    b=st.sampled_from([0.0, 0.3, 0.75, 1.0]),
    name_weight=st.integers(1, 3),
    description_weight=st.integers(0, 2),
    prefix=st.booleans(),
)


def table(entries: Sequence[Document]) -> pa.Table:
    columns = {"slug": [e[0] for e in entries], "description": [e[1] for e in entries], "body": [e[2] for e in entries]}
    return pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})


def ask(taps: Sequence[Sequence[Document]], query: str, options: Bm25Options = DEFAULT) -> Answer:
    engine = Bm25(options)
    (answer,) = engine.retriever([engine.index_tap(table(tap)) for tap in taps]).answer([Query("q", query)])
    return answer


def naive(entries: Sequence[Document], query: str, options: Bm25Options) -> dict[int, float]:
    """The formula, entry by entry."""
    counts = []
    for slug, description, body in entries:
        count: Counter[str] = Counter()
        for text, weight in (
            (opened(slug), 1),
            (slug, options.name_weight - 1),
            (description or "", options.description_weight),
            (body, options.body_weight),
        ):
            for word in words(text, options.tokenizer):
                count[word] += weight
        counts.append(+count)
    df = Counter(word for count in counts for word in count)
    asked = words(query, options.tokenizer)
    if options.prefix:
        for place, word in enumerate(asked):
            longer = [other for other in df if other.startswith(word)]
            if word not in df and len(word) >= 4 and longer:
                asked[place] = sorted(sorted(longer), key=lambda other: -df[other])[0]
    n = len(entries)
    scores: dict[int, float] = {}
    for word in dict.fromkeys(asked):
        idf = math.log(1.0 + (n - df[word] + 0.5) / (df[word] + 0.5))
        for row, count in enumerate(counts):
            if word in count:
                average = sum(other.total() for other in counts) / n
                norm = options.k1 * (1.0 - options.b + options.b * count.total() / average)
                gain = idf * (count[word] * (options.k1 + 1.0)) / (count[word] + norm)
                scores[row] = scores.get(row, 0.0) + gain
    return scores


def scores(answer: Answer) -> dict[int, float]:
    return dict(zip(answer.entries.tolist(), answer.scores.tolist(), strict=True))


@settings(deadline=None, max_examples=300)
@given(corpora, queries, options)
def test_scores_are_those_of_the_formula(entries: list[Document], query: str, options: Bm25Options) -> None:
    assert scores(ask([entries], query, options)) == naive(entries, query, options)


@settings(deadline=None, max_examples=200)
@given(corpora, st.lists(st.integers(0, 10), max_size=4), queries, options)
def test_scores_do_not_depend_on_how_entries_are_cut_into_taps(
    entries: list[Document], cuts: list[int], query: str, options: Bm25Options
) -> None:
    edges = [0, *sorted(cuts), len(entries)]
    taps = [entries[start:end] for start, end in pairwise(edges)]
    whole, cut = ask([entries], query, options), ask(taps, query, options)
    assert scores(cut) == scores(whole)
    assert cut.replaced_words == whole.replaced_words


@settings(deadline=None, max_examples=100)
@given(st.lists(corpora, max_size=4), queries, st.randoms())
def test_the_score_of_an_entry_does_not_depend_on_the_order_of_taps(
    taps: list[list[Document]], query: str, shuffle: random.Random
) -> None:
    order = list(range(len(taps)))
    shuffle.shuffle(order)
    shuffled = scores(ask([taps[number] for number in order], query))
    first = {number: sum(len(taps[other]) for other in order[: order.index(number)]) for number in order}
    moved = [first[number] + row for number in range(len(taps)) for row in range(len(taps[number]))]
    assert {row: shuffled[new] for row, new in enumerate(moved) if new in shuffled} == scores(ask(taps, query))


@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_a_word_in_every_entry_of_a_small_corpus_still_scores(size: int) -> None:
    """Okapi's IDF would be 0 or below here, and a small corpus would answer nothing."""
    answer = ask([[("a-skill", None, "")] * size], "skill")
    assert answer.entries.tolist() == list(range(size))
    assert (answer.scores > 0).all()


@pytest.mark.parametrize("taps", [[], [[]], [[("x", None, "")]], [[], [("x", "", " ")], []]])
def test_a_corpus_without_a_word_answers_nothing(taps: list[list[Document]]) -> None:
    answer = ask(taps, "alpha")
    assert answer.entries.size == 0
    assert answer.unknown_words == ("alpha",)


@pytest.mark.parametrize("query", ["", "the of", "x ?!", "…"])
def test_a_query_without_a_word_is_reported_empty(query: str) -> None:
    answer = ask([[("alpha", None, "")]], query)
    assert answer.empty_query
    assert answer.entries.size == 0
    assert answer.unknown_words == ()


def test_no_query_gives_no_answer() -> None:
    engine = Bm25(Bm25Options())
    assert list(engine.retriever([engine.index_tap(table([("alpha", None, "")]))]).answer([])) == []


def test_an_unknown_word_becomes_the_word_that_most_entries_hold() -> None:
    taps = [[("", None, "alphas alphas alphas alphabet")], [("", None, "alphabet"), ("", None, "beta")]]
    answer = ask(taps, "alph")
    assert answer.replaced_words == (("alph", "alphabet"),)
    assert answer.unknown_words == ("alph",)
    assert answer.entries.tolist() == [0, 1]


def test_of_equally_frequent_words_the_first_by_alphabet_stands_in() -> None:
    assert ask([[("", None, "alphas alphabet")]], "alph").replaced_words == (("alph", "alphabet"),)


def test_a_word_of_three_characters_is_never_replaced() -> None:
    assert ask([[("", None, "alpha")]], "alp").replaced_words == ()


def test_a_word_of_four_characters_is_replaced_however_many_bytes_it_has() -> None:
    assert ask([[("", None, "éééééé")]], "ééé").replaced_words == ()
    assert ask([[("", None, "éééééé")]], "éééé").replaced_words == (("éééé", "éééééé"),)


def test_words_are_made_distinct_after_they_are_replaced() -> None:
    tap: list[Document] = [("", None, "alphabet")]
    assert scores(ask([tap], "alph alphabet alpha")) == scores(ask([tap], "alphabet"))


def test_a_word_is_reported_unknown_once_and_in_order() -> None:
    assert ask([[("alpha", None, "")]], "zz yy alpha zz").unknown_words == ("zz", "yy")


def test_a_lone_surrogate_in_a_query_separates() -> None:
    assert ask([[("alpha", None, "")]], "alpha\ud800beta").entries.tolist() == [0]


def of(options: Bm25Options) -> str:
    return fingerprint(Bm25(options), "body", "corpus")


def test_every_option_is_in_the_fingerprint() -> None:
    changed = [
        Bm25Options(tokenizer="ascii"),
        Bm25Options(k1=1.5),
        Bm25Options(b=0.5),
        Bm25Options(name_weight=2),
        Bm25Options(description_weight=1),
        Bm25Options(body_weight=2),
        Bm25Options(prefix=False),
    ]
    assert len(changed) == len(Bm25Options.model_fields)
    assert len({of(option) for option in [*changed, Bm25Options()]}) == len(changed) + 1
    assert of(Bm25Options()) == of(Bm25Options())


def test_class_rule_and_corpus_are_in_the_fingerprint() -> None:
    engine: Engine = Bm25(Bm25Options())
    three = {fingerprint(engine, "body", "one"), fingerprint(engine, "body", "two"), fingerprint(engine, "raw", "one")}
    assert len(three) == 3


def test_what_only_scoring_reads_leaves_the_index_alone() -> None:
    assert Bm25(Bm25Options(k1=2, b=0, prefix=False)).index_inputs() == Bm25(Bm25Options()).index_inputs()
    assert Bm25(Bm25Options(body_weight=2)).index_inputs() != Bm25(Bm25Options()).index_inputs()


@pytest.mark.parametrize(
    "wrong", [{"k1": -0.1}, {"k1": math.inf}, {"b": 1.1}, {"tokenizer": "words"}, {"name_weight": -1}, {"weight": 1}]
)
def test_wrong_options_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Bm25Options.model_validate(wrong)


def test_weights_that_are_all_zero_are_refused() -> None:
    with pytest.raises(ValidationError, match="set one of them above 0"):
        Bm25Options(name_weight=0, description_weight=0, body_weight=0)


def test_every_engine_can_be_had_by_its_name() -> None:
    assert all(engine_class(name, "config").name == name for name in ENGINES)


def test_an_unknown_engine_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match=r"config/engines.toml row 1: no engine is called 'bm52'; use one of: bm25"):
        engine_class("bm52", "config/engines.toml row 1")


def test_naming_an_engine_loads_nothing_heavy() -> None:
    code = (
        "import sys; from pipeline.engines import engine_class, fingerprint; kind = engine_class('bm25', '');"
        "fingerprint(kind(kind.Options()), 'body', '');"
        "print({'numpy', 'numba', 'pyarrow'} & set(sys.modules))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "set()"
