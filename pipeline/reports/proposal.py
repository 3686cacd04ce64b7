"""A proposal of new pins: what would move between the pinned corpus and the proposed one, for people and programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from pydantic import Field

from pipeline.errors import one_line
from pipeline.records import Record
from pipeline.reports.reading import counted
from pipeline.taps.failures import State

MOST_LISTED = 200
"""Entries of a kind that the page lists of one tap; the rest are counted, and stand in the JSON."""


class Counts(Record):
    """How much a tap or a corpus holds."""

    entries: int = Field(description="Entries.")
    classes: int = Field(description="Content classes; of a tap by the rule `body`, of a corpus by the rule in force.")


class MovedEntry(Record):
    """An entry whose content stands at another path."""

    before: str = Field(description="Its path at the pin.")
    after: str = Field(description="Its path at the proposed pin.")


class TapChange(Record):
    """What a new pin of one tap would move."""

    tap: str = Field(description="The tap, `owner/repo`.")
    state: State = Field(description="How reading upstream's head ended; unless `ok`, no pin is proposed.")
    reason: str = Field(description="Why, in one line; empty where all is well.")
    pin: str | None = Field(description="The pin of the row; null where it has none.")
    proposed: str | None = Field(description="The commit of upstream's HEAD; null where it cannot be read.")
    before: Counts | None = Field(description="What the pinned tree holds; null where it cannot be read.")
    after: Counts | None = Field(description="What the proposed tree holds; null where it cannot be read.")
    not_compared: str | None = Field(description="Why the lists below are null; null where they are lists.")
    born: list[str] | None = Field(description="Paths that are new, with content that no vanished path held.")
    gone: list[str] | None = Field(description="Paths that vanish, whose content is at no new path.")
    edited: list[str] | None = Field(description="Paths that stay, with other content.")
    moved: list[MovedEntry] | None = Field(description="Paths that vanish, whose content is at a new path.")

    @property
    def changes_pin(self) -> bool:
        """Whether the row would get another pin."""
        return self.proposed is not None and self.proposed != self.pin


class Place(Record):
    """An entry that a golden row may name instead."""

    entry: str = Field(description="The entry, `tap::path`.")
    why: str = Field(description="What speaks for it: the same body, the same path, the same name.")


class RowChange(Record):
    """A string of a golden row that would name nothing, or other content."""

    golden_set: str = Field(description="Name of the set.")
    line: int = Field(description="Line of its file.")
    query_id: str = Field(description="Id of the item.")
    field: str = Field(
        description="Where it stands: `exemplar`, `relevant`, `citations` or `decisions`, and its place."
    )
    written: str = Field(description="The string.")
    effect: Literal["unresolved", "edited"] = Field(
        description="`unresolved`: it would name nothing; `edited`: it would name other content than at the pins."
    )
    what: str = Field(description="What would be wrong, in one line.")
    already: bool | None = Field(description="Whether it is so at the pins too; null where they cannot all be read.")
    now_at: str | None = Field(description="The entry that would hold the same body, `tap::path`; null: none.")
    candidates: list[Place] = Field(description="Entries that it may name instead, the likeliest first.")
    more: int = Field(description="Further candidates that are not listed.")


class NearDuplicateChanges(Record):
    """What would become of the near-duplicate clusters of the corpus."""

    before: int = Field(description="Clusters of the pinned corpus.")
    after: int = Field(description="Clusters of the proposed one.")
    born: int = Field(description="Clusters that share no body and no entry with an earlier one.")
    gone: int = Field(description="Clusters that share none with a later one.")
    split: int = Field(description="Clusters that come of one with others.")
    merged: int = Field(description="Clusters that become one with others.")
    joined: list[str] = Field(description="Entries that would join a cluster, `tap::path`.")
    left: list[str] = Field(description="Entries that would leave one.")

    @property
    def said(self) -> str:
        """What would change, in one line; empty where nothing would."""
        counts = {
            "born": self.born,
            "gone": self.gone,
            "split": self.split,
            "merged": self.merged,
            "entries join one": len(self.joined),
            "leave one": len(self.left),
        }
        changes = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        return f"{self.before} clusters become {self.after}: {changes}" if changes else ""


class PinProposal(Record):
    """New pins for a tap list, and what would move. The same pins and heads give the same bytes."""

    corpus: str | None = Field(description="Digest of the pinned corpus; null where a row has no pin.")
    proposed_corpus: str | None = Field(description="Digest of the proposed corpus; null where a row has no pin then.")
    class_rule: str = Field(description="What makes two entries the same content.")
    before: Counts | None = Field(description="The pinned corpus; null where a tap cannot be read at its pin.")
    after: Counts | None = Field(description="The proposed corpus; null where a tap can be read at neither commit.")
    taps: list[TapChange] = Field(description="Every tap of the list, by name.")
    near_duplicates: NearDuplicateChanges | None = Field(
        description="What would become of near-duplicate clusters; null where a tap cannot be read at a commit."
    )
    golden_not_checked: str | None = Field(description="Why `golden` is null; null where it is a list.")
    golden: list[RowChange] | None = Field(description="Golden rows that would be hit, by set and line.")

    @property
    def changes(self) -> list[TapChange]:
        """The taps that would get another pin."""
        return [tap for tap in self.taps if tap.changes_pin]


def as_markdown(proposal: PinProposal, diff: str | None) -> str:
    """Return the proposal as a page for its reviewer. Text of registries stands in code spans, where it says nothing.

    Args:
        proposal: what would move.
        diff: the change of the tap list; None where it is a list that is not changed in place.
    """
    return (
        "\n".join([*_head(proposal), *_taps(proposal), *_near_duplicates(proposal), *_golden(proposal), *_change(diff)])
        + "\n"
    )


def _head(proposal: PinProposal) -> Iterator[str]:
    yield "# Proposed pins"
    yield ""
    yield f"{len(proposal.changes)} of {counted(len(proposal.taps), 'tap')} would get another pin. Nothing was scored."
    yield ""
    yield "| corpus | digest | entries | content classes |"
    yield "|---|---|--:|--:|"
    for name, digest, counts in (
        ("pinned", proposal.corpus, proposal.before),
        ("proposed", proposal.proposed_corpus, proposal.after),
    ):
        yield f"| {name} | {(digest or '–')[:12]} | {_counts(counts)} |"
    yield ""


def _counts(counts: Counts | None) -> str:
    return "– | –" if counts is None else f"{counts.entries} | {counts.classes}"


def _taps(proposal: PinProposal) -> Iterator[str]:
    yield "## Taps"
    yield ""
    yield "| tap | state | pin | proposed | entries | then | born | gone | edited | moved |"
    yield "|---|---|---|---|--:|--:|--:|--:|--:|--:|"
    for tap in proposal.taps:
        entries = (str(counts.entries) if counts else "–" for counts in (tap.before, tap.after))
        lists = (tap.born, tap.gone, tap.edited, tap.moved)
        sizes = ("–" if each is None else str(len(each)) for each in lists)
        pins = ((commit or "–")[:12] for commit in (tap.pin, tap.proposed))
        yield f"| {' | '.join([tap.tap, tap.state, *pins, *entries, *sizes])} |"
    yield ""
    for tap in proposal.taps:
        yield from _tap(tap)


def _tap(tap: TapChange) -> Iterator[str]:
    lines = []
    if tap.reason:
        lines.append(f"- {tap.state}: {code(tap.reason)}")
    if tap.not_compared and tap.not_compared != tap.reason:
        lines.append(f"- not compared: {code(tap.not_compared)}")
    lines += _listed("born", map(code, tap.born or ()))
    lines += _listed("gone", map(code, tap.gone or ()))
    lines += _listed("edited", map(code, tap.edited or ()))
    lines += _listed("moved", (f"{code(move.before)} to {code(move.after)}" for move in tap.moved or ()))
    if lines:
        yield from (f"### {tap.tap}", "", *lines, "")


def _listed(kind: str, items: Iterable[str]) -> Iterator[str]:
    every = list(items)
    yield from (f"- {kind}: {item}" for item in every[:MOST_LISTED])
    if len(every) > MOST_LISTED:
        yield f"- {kind}: {len(every) - MOST_LISTED} more"


def _near_duplicates(proposal: PinProposal) -> Iterator[str]:
    found = proposal.near_duplicates
    if found is None or not found.said:
        return
    yield from ("## Near-duplicates", "", f"{found.said}.", "")
    lines = [*_listed("joined", map(code, found.joined)), *_listed("left", map(code, found.left))]
    yield from [*lines, ""] if lines else []


def _golden(proposal: PinProposal) -> Iterator[str]:
    yield "## Golden rows"
    yield ""
    if proposal.golden is None:
        yield f"Not checked: {proposal.golden_not_checked}."
    elif not proposal.golden:
        yield "Every row names what it named."
    for row in proposal.golden or ():
        yield f"- {code(row.golden_set)} line {row.line} {row.field}: {code(row.what)}{_ALREADY[row.already]}"
        yield from (f"  - {place.why}: {code(place.entry)}" for place in row.candidates)
        if row.more:
            yield f"  - {row.more} more"
    yield ""


_ALREADY = {True: " (it is so at the pins too)", False: "", None: ""}


def _change(diff: str | None) -> Iterator[str]:
    yield "## The change"
    yield ""
    if diff is None:
        yield "The list is made of text rows, which are not changed in place."
    elif not diff:
        yield "None."
    else:
        fence = _fence(diff, 3)
        yield from (f"{fence}diff", diff.removesuffix("\n"), fence)


def code(text: str) -> str:
    """Return text as a code span of Markdown, whatever is in it, on one line."""
    shown = one_line(text)
    fence = _fence(shown, 1)
    space = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{space}{shown}{space}{fence}"


def _fence(text: str, least: int) -> str:
    """Return more backticks than stand together anywhere in ``text``."""
    fence = "`" * least
    while fence in text:
        fence += "`"
    return fence
