"""The checks, and the sample that they are made on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

from pydantic import JsonValue

from pipeline.checks import CheckRow, Outcome, Sample, minhash, okapi
from pipeline.engines import Engine
from pipeline.errors import CheckFailed

if TYPE_CHECKING:
    pass

SAMPLED = 200
"""Entries of the sample. Cutting their text into words in plain Python takes most of the time of the checks."""
ASKED = 32
"""Questions of the sample."""


class Check(NamedTuple):
    """A check: what it depends on beside the sample, and how it is made."""

    package: str
    """The package that it is made with."""
    inputs: Callable[[Mapping[str, Engine]], JsonValue]
    """What its outcome depends on, given the engines that run."""
    made: Callable[[str, str, Sample, Mapping[str, Engine]], Iterator[Outcome]]
    """The check, given its name, the package and its version, the sample, and the engines that run."""


CHECKS_MADE: dict[str, Check] = {
    "okapi-scores": Check("rank-bm25", okapi.inputs, okapi.outcomes),
    "signatures": Check("datasketch", minhash.inputs, minhash.outcomes),
}
"""Every check, by name."""


def peer_of(check: Check) -> str:
    """Return the package of a check, and its version."""
    return f"{check.package} {version(check.package)}"


def inputs(engines: Mapping[str, Engine]) -> dict[str, JsonValue]:
    """Return what the outcome of all checks depends on beside their sample, by the name of the check."""
    return {name: [peer_of(check), check.inputs(engines)] for name, check in CHECKS_MADE.items()}


def check_all(sample: Sample, engines: Mapping[str, Engine]) -> list[CheckRow]:
    """Make every check, and return a row for each subject.

    Raises:
        CheckFailed: a value differs by more than its tolerance; every subject with such a value is named.
    """
    outcomes = [
        outcome for name, check in CHECKS_MADE.items() for outcome in check.made(name, peer_of(check), sample, engines)
    ]
    failed = [outcome for outcome in outcomes if outcome.disagreement]
    if failed:
        raise CheckFailed(
            f"the check {row.check} of {row.subject} fails, so nothing is published: {disagreement}; "
            f"worst difference {row.worst_difference:g} of {row.values} values, allowed {row.tolerance:g}; "
            f"find out whether {row.peer} changed or Assay is wrong"
            for row, disagreement in failed
        )
    return [outcome.row for outcome in outcomes]
