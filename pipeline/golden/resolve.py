"""What the rows of a golden set name in a corpus, and loud failure with candidates where they name nothing."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pydantic import JsonValue

from pipeline.catalog.names import name_from_path, slug
from pipeline.golden.assertions import is_place
from pipeline.golden.concepts import Mentioned
from pipeline.golden.items import CLASS_EXEMPLAR, Draft, GoldenItem, GoldenSet, bad_rows
from pipeline.jsonlines import Wrong, in_row

if TYPE_CHECKING:
    import pyarrow as pa

Key = TypeVar("Key", bound=Hashable)

Earlier = Mapping[tuple[str, bytes], Sequence[str]]
"""Digests of the bodies that entries, by tap and path, have held, the latest first."""

COLUMNS = ("tap", "path", "path_text", "slug", "class_id", "body_sha256", "empty_body")
"""Columns of the entries of a corpus that are needed here."""

NOTHING_MENTIONED = Mentioned()

SAME_BODY = "same body"

MOST_CANDIDATES = 5
"""Candidates shown for a string that names nothing; the rest are counted."""


class Resolved(NamedTuple):
    """What an item names in a corpus."""

    item: GoldenItem
    classes: tuple[str, ...]
    """Content classes of the exemplars, sorted, each once."""
    ambiguous: bool
    """Whether one of the relevant names has more than one class, so that by name is an upper bound."""
    class_entries: int
    """Entries of the corpus in ``classes``."""
    name_entries: int
    """Entries of the corpus that carry a relevant name."""
    candidates: tuple[str, ...] = ()
    """Content classes that hold an entry with a relevant name, sorted, each once."""
    lookup: bool = False
    """Whether it has names, and each of them has exactly one class."""
    included: tuple[str, ...] = ()
    """Classes that its decisions include, sorted."""
    excluded: tuple[str, ...] = ()
    """Classes that its decisions exclude, sorted."""
    bodies: tuple[tuple[str, str], ...] = ()
    """What its exemplars and citations name: each string, and the digest of a body, sorted."""
    places: Mapping[str, frozenset[str]] = {}
    """Classes of the entries and contents that its assertions name, by the string."""
    concepts: Mapping[str, frozenset[str]] = {}
    """The concepts that each class of the corpus mentions, where the item asks about any."""
    names: frozenset[str] = frozenset()
    """Names of what answers it: those of the row, and those that entries of its exemplars' classes carry."""
    taps: tuple[str, ...] = ()
    """Taps of the entries that its exemplars name, or, without one, that carry its names; sorted, each once."""

    @property
    def decided(self) -> tuple[str, ...]:
        """The classes that answer it with the decisions applied.

        Those of its exemplars, where it has any, else all candidates; and those that a decision includes, but for those
        that a decision excludes.
        """
        start = self.classes or self.candidates
        return tuple(sorted({*start, *self.included} - {*self.excluded}))


@dataclass(frozen=True)
class ResolvedSet:
    """A golden set of which every row names something in a corpus."""

    golden: GoldenSet
    items: tuple[Resolved, ...]
    """One for each item of the set, in its order."""

    def facts(self) -> dict[str, JsonValue]:
        """Return the counts of the set in this corpus."""
        return {
            "items": len(self.items),
            "superseded": self.golden.superseded,
            "by_exemplar": sum(resolved.item.mode == "exemplar" for resolved in self.items),
            "by_name": sum(resolved.item.mode == "name" for resolved in self.items),
            "ambiguous": sum(resolved.ambiguous for resolved in self.items),
        }


class Candidate(NamedTuple):
    """An entry that an unresolved string may have meant."""

    id: str
    """``tap::path_text``."""
    why: str


class Proposal(NamedTuple):
    """Candidates for a string that names nothing, one entry a content class."""

    shown: tuple[Candidate, ...]
    more: int
    """Further classes that are not shown."""

    def __str__(self) -> str:
        if not self.shown:
            return "no candidate in this corpus: mend the row or take it out"
        listed = ", ".join(f"{candidate.id} ({candidate.why})" for candidate in self.shown)
        return f"candidates: {listed}" + (f", and {self.more} more" if self.more else "")


class Unresolved(NamedTuple):
    """A string of a row that does not name what it named, or anything."""

    item: GoldenItem
    field: str
    """``exemplar``, ``relevant``, or ``decisions`` with the number of the decision."""
    written: str
    """The string."""
    what: str
    """What is wrong with it."""
    proposal: Proposal
    todo: str = ""
    """What to do about it; empty where the proposal says it."""


def resolve(
    golden: GoldenSet,
    entries: pa.Table,
    earlier: Callable[[], Earlier] = dict,
    concepts: Mentioned = NOTHING_MENTIONED,
) -> ResolvedSet:
    """Find what each item of ``golden`` names among ``entries``.

    Args:
        golden: the set.
        entries: the rows of a corpus, with ``COLUMNS``.
        earlier: gives what is known of earlier corpora; called only where an item names nothing.
        concepts: what is known of concepts in the corpus.

    Raises:
        BadInput: strings that name nothing in the corpus, all of them, with candidates; concepts that are not declared,
            or that a citation holds against the row.
    """
    corpus = _Corpus(entries)
    wrongs = _all_wrong(golden, corpus, earlier, concepts)
    if wrongs:
        raise bad_rows(golden, wrongs)
    return ResolvedSet(golden, tuple(_resolved(item, corpus, concepts) for item in golden.items))


def looked_up(draft: Draft, entries: pa.Table, earlier: Callable[[], Earlier], concepts: Mentioned) -> Draft:
    """Return a set with what ``resolve`` would refuse too, beside what is wrong with its rows already."""
    return draft.with_wrongs(_all_wrong(draft.golden, _Corpus(entries), earlier, concepts))


def _all_wrong(
    golden: GoldenSet, corpus: _Corpus, earlier: Callable[[], Earlier], concepts: Mentioned
) -> list[tuple[int, Wrong]]:
    wrongs = [
        (found.item.line, Wrong(found.field, found.what, found.todo or str(found.proposal)))
        for found in _all_unresolved(golden, corpus, earlier)
    ]
    return wrongs + [(item.line, wrong) for item in golden.items for wrong in _concept_faults(item, corpus, concepts)]


def resolve_known(golden: GoldenSet, entries: pa.Table) -> ResolvedSet:
    """Return what each item names among ``entries``, of a set of which ``resolve`` found every row to name something.

    Args:
        golden: the set.
        entries: as for ``resolve``; their classes may be others than those that the rows were checked against.
    """
    corpus = _Corpus(entries)
    return ResolvedSet(golden, tuple(_resolved(item, corpus) for item in golden.items))


def unresolved(golden: GoldenSet, entries: pa.Table, earlier: Callable[[], Earlier] = dict) -> list[Unresolved]:
    """Return every string of the set that names nothing in a corpus, in the order of the rows, with candidates."""
    return _all_unresolved(golden, _Corpus(entries), earlier)


def edited(golden: GoldenSet, before: pa.Table, after: pa.Table) -> list[Unresolved]:
    """Return every exemplar, and entry of a decision, that is in both of two corpora, but not with the same content."""
    old, new = _Corpus(before), _Corpus(after)
    return [
        Unresolved(item, field, target, f"{in_row(target)} holds other content", new.holding(was))
        for item in golden.items
        for field, target in _targets(item)
        for was in old.entry(target)
        for now in new.entry(target)
        if was.class_id != now.class_id
    ]


def _all_unresolved(golden: GoldenSet, corpus: _Corpus, earlier: Callable[[], Earlier]) -> list[Unresolved]:
    known = cache(earlier)
    return [
        found for item in golden.items for found in [*_unresolved(item, corpus, known), *_contradictions(item, corpus)]
    ]


class _Named(NamedTuple):
    """An entry that an exemplar names in a corpus."""

    tap: str
    class_id: str
    body: str


class _Corpus:
    """The entries of a corpus as columns, with what is looked up in them."""

    def __init__(self, entries: pa.Table) -> None:
        # Byte order of (tap, path), so that candidates do not depend on the order of the table.
        rows = entries.sort_by([("tap", "ascending"), ("path", "ascending")])
        self.tap: list[str] = rows["tap"].to_pylist()
        self.path: list[bytes] = rows["path"].to_pylist()
        self.path_text: list[str] = rows["path_text"].to_pylist()
        self.slug: list[str] = rows["slug"].to_pylist()
        self.class_id: list[str] = rows["class_id"].to_pylist()
        self.body: list[str] = rows["body_sha256"].to_pylist()
        self.empty_body: list[bool] = rows["empty_body"].to_pylist()
        self.by_identity = _rows_by(zip(self.tap, self.path, strict=True))
        self.by_shown_identity = _rows_by(zip(self.tap, self.path_text, strict=True))
        self.by_slug = _rows_by(self.slug)

    @cached_property
    def taps(self) -> frozenset[str]:
        return frozenset(self.tap)

    @cached_property
    def by_path(self) -> Mapping[bytes, list[int]]:
        return _rows_by(self.path)

    @cached_property
    def by_body(self) -> Mapping[str, list[int]]:
        return _rows_by(self.body)

    @cached_property
    def by_class(self) -> Mapping[str, list[int]]:
        return _rows_by(self.class_id)

    @cached_property
    def by_folded_slug(self) -> Mapping[str, list[int]]:
        return _rows_by(slug.casefold() for slug in self.slug)

    def exemplar(self, exemplar: str) -> list[int]:
        """Return the rows that an exemplar names: entries of a class, or one entry; a path's own bytes come first."""
        digest = CLASS_EXEMPLAR.fullmatch(exemplar)
        if digest:
            return self.by_body.get(digest[1], [])
        tap, _, path = exemplar.partition("::")
        return self.by_identity.get((tap, path.encode()), []) or self.by_shown_identity.get((tap, path), [])

    def entry(self, exemplar: str) -> list[_Named]:
        """Return the one entry that an exemplar names by its path; none where it names content, nothing or several."""
        rows = [] if CLASS_EXEMPLAR.fullmatch(exemplar) else self.exemplar(exemplar)
        return [_Named(self.tap[row], self.class_id[row], self.body[row]) for row in rows] if len(rows) == 1 else []

    def holding(self, old: _Named) -> Proposal:
        """Propose the entries that hold the body of an entry of another corpus."""
        return self.propose([(SAME_BODY, self.with_bodies([old.body], old.tap))])

    def with_bodies(self, bodies: Iterable[str], tap: str) -> list[int]:
        """Return the rows that hold one of ``bodies``, in their order; those of ``tap`` before its mirrors."""
        rows = [row for body in bodies for row in self.by_body.get(body, []) if not self.empty_body[row]]
        return sorted(rows, key=lambda row: self.tap[row] != tap)

    def classes_of(self, rows: Iterable[int]) -> set[str]:
        return {self.class_id[row] for row in rows}

    def called(self, names: Collection[str]) -> list[tuple[str, list[int]]]:
        """Return the rows that carry one of ``names``, then those that do but for its case."""
        exact = sorted(row for name in set(names) for row in self.by_slug.get(name, []))
        folded = {name.casefold() for name in names}
        other = sorted(row for name in folded for row in self.by_folded_slug.get(name, []))
        return [("same name", exact), ("same name in other case", other)]

    def propose(self, guesses: Iterable[tuple[str, Iterable[int]]]) -> Proposal:
        """Return one candidate a class, in the order of the guesses: why, and the rows."""
        candidates: dict[str, Candidate] = {}
        for why, rows in guesses:
            for row in rows:
                entry = f"{self.tap[row]}::{self.path_text[row]}"
                candidates.setdefault(self.class_id[row], Candidate(entry, why))
        listed = tuple(candidates.values())
        return Proposal(listed[:MOST_CANDIDATES], max(0, len(listed) - MOST_CANDIDATES))


def _rows_by(keys: Iterable[Key]) -> dict[Key, list[int]]:
    rows: dict[Key, list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        rows[key].append(row)
    return dict(rows)


def _concept_faults(item: GoldenItem, corpus: _Corpus, concepts: Mentioned) -> Iterator[Wrong]:
    """Yield what is wrong with concepts that nobody declared, or that citations contradict."""
    asked = [(f"golden_concepts {place}", each.concept_id) for place, each in enumerate(item.golden_concepts, start=1)]
    for place, assertion in enumerate(item.assertions, start=1):
        if assertion.concept_id is not None:
            asked.append((f"assertions {place} conceptId", assertion.concept_id))
        elif assertion.check is not None and assertion.check.type == "concept_in_top_k":
            asked.append((f"assertions {place} check arg", str(assertion.check.arg)))
    for field, concept_id in asked:
        if concept_id not in concepts.known:
            todo = "declare it in the file that `concepts` names, or by `assay concepts import`"
            yield Wrong(field, f"no concept is called {in_row(concept_id)}", todo)
    wrong = {each.concept_id for each in item.golden_concepts if each.grade == "irrelevant"}
    for place, citation in enumerate(item.citations, start=1):
        cited = _content(citation.target, corpus)
        found = {concept for class_id in cited for concept in concepts.by_class.get(class_id, ())}
        for concept_id in sorted(found & wrong):
            what = f"{in_row(citation.target)} mentions {in_row(concept_id)}, which the row grades `irrelevant`"
            yield Wrong(f"citations {place}", what, "mend the citation or the grade")


def _resolved(item: GoldenItem, corpus: _Corpus, concepts: Mentioned = NOTHING_MENTIONED) -> Resolved:
    pinned = [row for exemplar in item.exemplar for row in corpus.exemplar(exemplar)]
    classes = corpus.classes_of(pinned)
    named = [corpus.by_slug[name] for name in item.relevant]
    classes_by_name = [corpus.classes_of(rows) for rows in named]
    return Resolved(
        item=item,
        classes=tuple(sorted(classes)),
        ambiguous=any(len(found) > 1 for found in classes_by_name),
        class_entries=sum(len(corpus.by_class[class_id]) for class_id in classes),
        name_entries=sum(map(len, named)),
        names=frozenset(
            [*item.relevant, *(corpus.slug[row] for class_id in classes for row in corpus.by_class[class_id])]
        ),
        candidates=tuple(sorted(set[str]().union(*classes_by_name))),
        lookup=bool(named) and all(len(found) == 1 for found in classes_by_name),
        included=_decided(item, corpus, include=True),
        excluded=_decided(item, corpus, include=False),
        bodies=tuple(sorted(_bodies(item, corpus))),
        places={place: frozenset(_content(place, corpus)) for _, place in _checked_places(item)},
        concepts=concepts.by_class if item.golden_concepts or item.assertions else {},
        taps=tuple(sorted({corpus.tap[row] for row in pinned or itertools.chain.from_iterable(named)})),
    )


def _bodies(item: GoldenItem, corpus: _Corpus) -> Iterator[tuple[str, str]]:
    for target in {*item.exemplar, *(citation.target for citation in item.citations)}:
        yield from {(target, corpus.body[row]) for row in corpus.exemplar(target)}


def _checked_places(item: GoldenItem) -> Iterator[tuple[str, str]]:
    """Yield the field and the string of each entry or content that an assertion looks for."""
    for place, assertion in enumerate(item.assertions, start=1):
        check = assertion.check
        if check is not None and check.arg is not None and is_place(check.arg):
            yield f"assertions {place} check arg", check.arg


def _decided(item: GoldenItem, corpus: _Corpus, include: bool) -> tuple[str, ...]:
    chosen = (decision.target for decision in item.decisions if decision.include == include)
    return tuple(sorted(corpus.classes_of(row for target in chosen for row in corpus.exemplar(target))))


def _unresolved(item: GoldenItem, corpus: _Corpus, earlier: Callable[[], Earlier]) -> Iterator[Unresolved]:
    """Yield what is wrong, and candidates, for each string of a row that names nothing."""
    for field, target in _targets(item):
        trouble = _trouble(target, corpus)
        if trouble:
            proposal = _for_exemplar(target, item, corpus, earlier)
            yield Unresolved(item, field, target, f"{in_row(target)} {trouble}", proposal)
    for place, name in enumerate(item.relevant, start=1):
        if name not in corpus.by_slug:
            pinned = sorted(row for exemplar in item.exemplar for row in corpus.exemplar(exemplar))
            guesses = [*corpus.called([name]), ("the row's exemplar", pinned)]
            yield Unresolved(
                item, f"relevant {place}", name, f"no entry is called {in_row(name)}", corpus.propose(guesses)
            )


def _targets(item: GoldenItem) -> Iterator[tuple[str, str]]:
    """Yield the field and the string of everything in a row that names an entry or content."""
    cited: dict[str, str] = {}
    for place, citation in enumerate(item.citations, start=1):
        cited.setdefault(citation.target, f"citations {place}")
    for place, exemplar in enumerate(item.exemplar, start=1):
        yield cited.get(exemplar, f"exemplar {place}"), exemplar
    yield from ((field, target) for target, field in cited.items() if target not in item.exemplar)
    yield from ((f"decisions {place}", decision.target) for place, decision in enumerate(item.decisions, start=1))
    yield from _checked_places(item)


def _contradictions(item: GoldenItem, corpus: _Corpus) -> Iterator[Unresolved]:
    """Yield the decisions of a row about content that its exemplars, or an earlier decision, said the contrary of."""
    said = {class_id: ("exemplar", True) for exemplar in item.exemplar for class_id in _content(exemplar, corpus)}
    for place, decision in enumerate(item.decisions, start=1):
        for class_id in _content(decision.target, corpus):
            by, include = said.setdefault(class_id, (f"decisions {place}", decision.include))
            if include != decision.include:
                verb = "includes" if include else "excludes"
                what = f"is about content that `{by}` {verb}"
                none = Proposal((), 0)
                yield Unresolved(item, f"decisions {place}", decision.target, what, none, "keep one of the two")


def _content(target: str, corpus: _Corpus) -> set[str]:
    return corpus.classes_of(corpus.exemplar(target))


def _trouble(exemplar: str, corpus: _Corpus) -> str | None:
    rows = corpus.exemplar(exemplar)
    if CLASS_EXEMPLAR.fullmatch(exemplar):
        if not rows:
            return "names nothing in the corpus: no entry has this body"
        if any(corpus.empty_body[row] for row in rows):
            return "names no class: it is an empty body, and those are never one content"
        return None
    if len(rows) > 1:
        return f"names {len(rows)} entries whose paths read alike"
    if rows:
        return None
    tap = exemplar.partition("::")[0]
    reason = "the tap has no such entry" if tap in corpus.taps else f"no tap is called {in_row(tap)}"
    return f"names nothing in the corpus: {reason}"


def _for_exemplar(exemplar: str, item: GoldenItem, corpus: _Corpus, earlier: Callable[[], Earlier]) -> Proposal:
    """Propose, in this order: the same body elsewhere, the same path in another tap, entries of the same name."""
    names = set(item.relevant)
    digest = CLASS_EXEMPLAR.fullmatch(exemplar)
    if digest:
        held = sorted(
            row
            for identity, bodies in earlier().items()
            if digest[1] in bodies
            for row in corpus.by_identity.get(identity, [])
        )
        return corpus.propose([("held this body earlier", held), *corpus.called(names)])
    tap, _, path = exemplar.partition("::")
    same_body = corpus.with_bodies(earlier().get((tap, path.encode()), ()), tap)
    same_path = corpus.by_path.get(path.encode(), [])
    names.add(slug(name_from_path(tap, path.encode())))
    return corpus.propose([(SAME_BODY, same_body), ("same path", same_path), *corpus.called(names)])
