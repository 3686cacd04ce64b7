"""What people decided about near-duplicates: these bodies are one skill, or they are not. A file of JSON Lines in git.

A confirmed set of bodies is one content class, whatever their similarity is measured to be; a refused set is never
joined by the similarity of two of its members. Bodies are named by digest, so a decision holds wherever they turn up.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, JsonValue, ValidationError

from pipeline.catalog.digests import body_sha256
from pipeline.jsonlines import Wrong, bad_input, in_row, read_file, rows
from pipeline.records import Record
from pipeline.store import digest

Body = Annotated[str, Field(pattern=r"^class:[0-9a-f]{64}$")]
Pair = tuple[str, str]

EMPTY = body_sha256(b"")
"""Digest of an empty body, which is never one content with another."""


class ClusterDecision(Record):
    """One decision, as a person writes it."""

    same: bool = Field(description="true: these bodies are one skill. false: they are different ones.")
    bodies: Annotated[list[Body], Field(min_length=2)] = Field(
        description="The bodies, each as `class:<body digest>`; at least two."
    )
    by: Annotated[str, Field(pattern=r"\S")] = Field(description="Who decided.")
    note: str | None = Field(default=None, description="For people.")

    @property
    def digests(self) -> tuple[str, ...]:
        """The digests of the bodies, sorted."""
        return tuple(sorted(body.removeprefix("class:") for body in self.bodies))


@dataclass(frozen=True)
class ClusterDecisions:
    """All decisions of a file, put together."""

    confirmed: tuple[tuple[str, ...], ...] = ()
    """Sets of body digests that are one skill: disjoint, each sorted, in the order of their first."""
    refused: frozenset[Pair] = frozenset()
    """Pairs of body digests, the smaller first, that nothing but a person may join."""

    def inputs(self) -> dict[str, JsonValue]:
        """Return what an output that depends on them is derived from."""
        return {"confirmed": self.confirmed_digest, "refused": digest(sorted(map(list, self.refused)))}

    @property
    def confirmed_digest(self) -> str:
        """Digest of what is confirmed: all that identity depends on."""
        return digest([list(bodies) for bodies in self.confirmed])

    def idle(self, bodies: Set[str]) -> int:
        """Return how many confirmed sets and refused pairs have fewer than two of their bodies among ``bodies``."""
        return sum(len(bodies & {*decided}) < 2 for decided in [*self.confirmed, *self.refused])

    def class_of_body(self) -> dict[str, str]:
        """Return the digest by which each confirmed body goes: the same for all of one set."""
        return {body: joined_digest(bodies) for bodies in self.confirmed for body in bodies}


NO_DECISIONS = ClusterDecisions()


def joined_digest(bodies: Sequence[str]) -> str:
    """Return the digest that stands for a confirmed set of bodies, given sorted."""
    return hashlib.sha256("\n".join(["one skill", *bodies]).encode("ascii")).hexdigest()


def read_cluster_decisions(path: Path) -> ClusterDecisions:
    """Read a file of decisions.

    Raises:
        BadInput: the file cannot be read, or rows are wrong or contradict each other; all faults are named.
    """
    return parse_cluster_decisions(path, read_file(path))


def parse_cluster_decisions(path: Path, data: bytes) -> ClusterDecisions:
    """Read decisions from the bytes ``data`` of the file ``path``, which is only named in faults.

    Raises:
        BadInput: rows are wrong or contradict each other; all faults are named with their line and field.
    """
    read: list[_Read] = []
    wrongs: list[tuple[int, Wrong]] = []
    for line, value, found in rows(data):
        wrongs += [(line, wrong) for wrong in found]
        if value is None:
            continue
        try:
            decision = ClusterDecision.model_validate(value)
        except ValidationError as error:
            wrongs += [(line, wrong) for wrong in _typed(error)]
            continue
        wrongs += [(line, wrong) for wrong in _row_faults(decision)]
        read.append(_Read(line, decision))
    confirmed = _united(decision.digests for _, decision in read if decision.same)
    wrongs += _contradictions(read, confirmed)
    if wrongs:
        raise bad_input(path, wrongs)
    refused = {pair for _, decision in read if not decision.same for pair in combinations(decision.digests, 2)}
    return ClusterDecisions(confirmed, frozenset(refused))


class _Read(NamedTuple):
    line: int
    decision: ClusterDecision


def _typed(error: ValidationError) -> Iterator[Wrong]:
    for found in error.errors(include_url=False):
        field = " ".join(str(part + 1) if isinstance(part, int) else part for part in found["loc"])
        match found["type"]:
            case "extra_forbidden":
                known = ", ".join(ClusterDecision.model_fields)
                yield Wrong(field, "unknown field", f"use one of: {known}")
            case "missing":
                yield Wrong(field, "is missing", "write it")
            case "string_pattern_mismatch" if field == "by":
                yield Wrong(field, "is blank", "say who decided")
            case "string_pattern_mismatch":
                what = f"is no `class:` with the 64 hex digits of a body digest: {in_row(found['input'])}"
                yield Wrong(field, what, "mend the value")
            case _:
                yield Wrong(field, f"{found['msg']}: {in_row(found['input'])}", "mend the value")


def _row_faults(decision: ClusterDecision) -> Iterator[Wrong]:
    if len(set(decision.bodies)) < len(decision.bodies):
        yield Wrong("bodies", "names a body twice", "name each once")
    if EMPTY in decision.digests:
        yield Wrong("bodies", "names the empty body, which is never one content with another", "leave it out")


def _united(sets: Iterable[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Unite the sets that share a member."""
    united: list[set[str]] = []
    for bodies in sets:
        new = set(bodies)
        apart = [old for old in united if not old & new]
        united = [*apart, new.union(*(old for old in united if old & new))]
    return tuple(sorted(tuple(sorted(bodies)) for bodies in united))


def _contradictions(read: Sequence[_Read], confirmed: Sequence[Sequence[str]]) -> Iterator[tuple[int, Wrong]]:
    place: Mapping[str, int] = {body: number for number, bodies in enumerate(confirmed) for body in bodies}
    for line, decision in read:
        if decision.same:
            continue
        for left, right in combinations(decision.digests, 2):
            if left != right and left in place and place.get(left) == place.get(right):
                what = f"parts class:{left[:12]}… and class:{right[:12]}…, which other rows make one"
                yield line, Wrong("bodies", what, "keep one of the two decisions")
